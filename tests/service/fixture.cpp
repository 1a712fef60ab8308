// SPDX-License-Identifier: Apache-2.0
#include "service/fixture.hpp"

#include <gtest/gtest.h>
#include <poll.h>

#include <charconv>

#include "rules/request_view.hpp"
#include "service/sandbox.hpp"

namespace tidegate::service {

// --- Answers ------------------------------------------------------------------

int HttpAnswer::Count(std::string_view name) const {
  int count = 0;
  for (const auto& field : fields) count += EqualsIgnoreCase(field.first, name) ? 1 : 0;
  return count;
}

std::string HttpAnswer::Field(std::string_view name) const {
  for (const auto& field : fields) {
    if (EqualsIgnoreCase(field.first, name)) return field.second;
  }
  return {};
}

boost::json::object HttpAnswer::Json() const {
  boost::system::error_code error;
  const boost::json::value value = boost::json::parse(body, error);
  EXPECT_TRUE(!error && value.is_object()) << status << " " << body;
  return value.is_object() ? value.get_object() : boost::json::object{};
}

std::string Post(std::string_view path, std::string_view body, std::string_view more_fields) {
  std::string text = "POST ";
  text.append(path).append(" HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n");
  text.append(more_fields).append("Content-Length: ").append(std::to_string(body.size()));
  return text.append("\r\n\r\n").append(body);
}

std::string Get(std::string_view path, std::string_view method) {
  std::string text(method);
  return text.append(" ").append(path).append(" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
}

// --- The client ---------------------------------------------------------------

std::optional<HttpAnswer> HttpClient::TryRead(Body with_body) {
  std::size_t head = 0;
  while ((head = received_.find("\r\n\r\n")) == std::string::npos) {
    if (!Receive()) return std::nullopt;
  }
  HttpAnswer answer;
  std::string_view lines(received_.data(), head + 2);
  const auto take_line = [&] {
    const std::size_t end = lines.find("\r\n");
    const std::string_view line = lines.substr(0, end);
    lines.remove_prefix(end + 2);
    return line;
  };
  const std::string_view first = take_line();
  if (!first.starts_with("HTTP/1.1 ") || first.size() < 13) {
    ADD_FAILURE() << "not a status line: " << first;
    return std::nullopt;
  }
  std::from_chars(first.data() + 9, first.data() + 12, answer.status);
  answer.reason = first.substr(13);
  while (!lines.empty()) {
    const std::string_view line = take_line();
    const std::size_t colon = line.find(": ");
    EXPECT_NE(colon, std::string_view::npos) << "not a field line: " << line;
    if (colon == std::string_view::npos) continue;
    answer.fields.emplace_back(line.substr(0, colon), line.substr(colon + 2));
  }
  received_.erase(0, head + 4);
  const bool interim = answer.status < 200;
  if (with_body == Body::kNo || interim) return answer;
  if (!answer.Has("content-length")) {  // Until the end of the connection.
    while (Receive()) {
    }
    answer.body = std::move(received_);
    received_.clear();
    return answer;
  }
  const std::size_t length = std::stoul(answer.Field("content-length"));
  while (received_.size() < length) {
    if (!Receive()) return std::nullopt;
  }
  answer.body = received_.substr(0, length);
  received_.erase(0, length);
  return answer;
}

HttpAnswer HttpClient::Read(Body body) {
  auto answer = TryRead(body);
  EXPECT_TRUE(answer.has_value()) << "no answer; received so far: " << received_.substr(0, 200);
  return answer.value_or(HttpAnswer{});
}

HttpClient::End HttpClient::WaitForEnd(std::chrono::milliseconds at_most) {
  if (!received_.empty()) return End::kBytes;
  pollfd poll{.fd = fd(), .events = POLLIN, .revents = 0};
  if (::poll(&poll, 1, static_cast<int>(at_most.count())) != 1) return End::kOpen;
  switch (stream_->Receive(received_)) {
    case Stream::Got::kBytes:
      return End::kBytes;
    case Stream::Got::kEnd:
      return End::kClosed;
    case Stream::Got::kCut:
      return End::kReset;
    case Stream::Got::kNothing:
      break;
  }
  return End::kOpen;
}

// --- The service --------------------------------------------------------------

Config Service::ConfigOf(std::string_view yaml) {
  const std::string text =
      "listen: {api: \"127.0.0.1:0\", admin: \"127.0.0.1:0\"}\n" + std::string(yaml);
  const ConfigReading reading = ParseConfig(text);
  for (const Problem& problem : reading.problems) {
    EXPECT_NE(problem.severity, Problem::Severity::kError) << problem.Text("test");
  }
  return reading.config.value();
}

Service::Service(const Config& config, int threads) {
  Problems problems;
  auto server = Server::Make(config,
                             {.threads = threads,
                              .clock = &clock_,
                              .version = "test",
                              .on_thread_start = SandboxedThread()},
                             problems);
  server_ = std::move(server.value());
  server_->Start();
}

Service::~Service() { server_->Stop(); }

HttpAnswer Service::Ask(std::string_view path, std::string_view body) {
  if (client_ == nullptr) client_ = std::make_unique<HttpClient>(api());
  return client_->Ask(path, body);
}

std::string Service::Metrics() {
  HttpClient client(admin());
  client.Send(Get("/metrics"));
  return client.Read().body;
}

double Service::Metric(std::string_view name_and_labels) {
  const std::string text = "\n" + Metrics();
  const std::string wanted = "\n" + std::string(name_and_labels) + " ";
  const std::size_t at = text.find(wanted);
  return at == std::string::npos ? 0 : std::stod(text.substr(at + wanted.size()));
}

bool Service::Reload(std::string_view yaml) {
  Problems problems;
  return server_->Reload(ConfigOf(yaml), problems);
}

std::string ByRule(std::string_view rule, std::string_view identity, std::string_view more) {
  std::string text =
      boost::json::serialize(boost::json::object{{"rule", rule}, {"identity", identity}});
  text.pop_back();
  return text.append(more).append("}");
}

}  // namespace tidegate::service
