// SPDX-License-Identifier: Apache-2.0
#include "service/fixture.hpp"

#include <gtest/gtest.h>

#include "service/sandbox.hpp"

namespace tidegate::service {

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

HttpResponse Service::Ask(std::string_view path, std::string_view body) {
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
