// SPDX-License-Identifier: Apache-2.0
#include "gateway/behaviour/gateway_fixture.hpp"
#include "service/sandbox.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

namespace tidegate::behaviour {

HttpResponse Client::Get(std::string_view target, std::string_view lines) {
  return Ask(GetText(target, lines));
}

std::string GetText(std::string_view target, std::string_view lines) {
  std::string text = "GET ";
  text.append(target).append(" HTTP/1.1\r\nHost: test\r\n");
  return text.append(lines).append("\r\n");
}

std::string RequestText(std::string_view method, std::string_view target, std::string_view lines,
                        std::string_view body) {
  std::string text(method);
  text.append(" ").append(target).append(" HTTP/1.1\r\nHost: test\r\n").append(lines);
  text.append("Content-Length: ").append(std::to_string(body.size())).append("\r\n\r\n");
  return text.append(body);
}

Config Gate::ConfigOf(std::string_view yaml) {
  std::string text =
      "listen: {api: \"127.0.0.1:0\", admin: \"127.0.0.1:0\", gateway: \"127.0.0.1:0\", "
      "resp: \"127.0.0.1:0\"}\n";
  if (yaml.find("access_log:") == std::string_view::npos) text += "access_log: off\n";
  text += yaml;
  const ConfigReading reading = ParseConfig(text);
  for (const Problem& problem : reading.problems) {
    EXPECT_NE(problem.severity, Problem::Severity::kError) << problem.Text("test") << "\n" << text;
  }
  return reading.config.value();
}

Gate::Gate(std::string_view yaml, int threads) {
  Problems problems;
  auto server = Server::Make(ConfigOf(yaml),
                             {.threads = threads,
                              .clock = &clock_,
                              .version = "test",
                              .on_thread_start = service::SandboxedThread()},
                             problems);
  EXPECT_TRUE(server.has_value());
  server_ = std::move(server.value());
  server_->Start();
}

Gate::~Gate() { server_->Stop(); }

bool Gate::Reload(std::string_view yaml) {
  Problems problems;
  return server_->Reload(ConfigOf(yaml), problems);
}

HttpResponse Gate::Get(std::string_view target, std::string_view lines) {
  return Client(at()).Get(target, lines);
}

boost::json::object Gate::Peek(std::string_view rule, std::string_view identity) {
  service::HttpClient client(server_->api());
  return client.Ask("/v1/peek", service::ByRule(rule, identity)).Json();
}

std::int64_t Gate::Remaining(std::string_view rule, std::string_view identity) {
  return Peek(rule, identity).at("remaining").as_int64();
}

double Gate::Metric(std::string_view name_and_labels) {
  service::HttpClient client(server_->admin());
  client.Send(service::Get("/metrics"));
  const std::string text = "\n" + client.Read().body;
  const std::string wanted = "\n" + std::string(name_and_labels) + " ";
  const std::size_t at = text.find(wanted);
  return at == std::string::npos ? 0 : std::stod(text.substr(at + wanted.size()));
}

std::string Routed(std::string_view targets, std::string_view upstream_keys,
                   std::string_view more) {
  std::string text = "routes: [{id: all, upstream: up}]\nupstreams:\n  up:\n    targets: ";
  text.append(targets).append("\n");
  while (!upstream_keys.empty()) {
    const std::size_t end = std::min(upstream_keys.find('\n'), upstream_keys.size());
    text.append("    ").append(upstream_keys.substr(0, end)).append("\n");
    upstream_keys.remove_prefix(std::min(end + 1, upstream_keys.size()));
  }
  return text.append(more);
}

}  // namespace tidegate::behaviour
