// SPDX-License-Identifier: Apache-2.0
// Tests how /metrics counts the decisions of every frontend.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

#include "service/fixture.hpp"
#include "support/resp_client.hpp"

namespace tidegate::service {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr int kFrontends = 4;
/// Number of requests per frontend, so that at least one of them is timed.
constexpr int kTimes = DecisionLatency::kEvery;

/// Returns a configuration with all frontends. The gateway has no routes: requests are decided and
/// counted before they are routed.
Config AllFrontends(const std::string& metrics) {
  Config config = Service::ConfigOf(
      "client_ip: {trusted_proxies: [127.0.0.1]}\n"
      "rules: [{id: per-key, per: header:x-key, limit: 20/h}]\n" +
      metrics);
  config.listen.resp = "127.0.0.1:0";
  config.listen.gateway = "127.0.0.1:0";
  config.access_log.path = "off";
  return config;
}

void AskEveryFrontend(Service& service) {
  test::RespClient resp(service.server().resp());
  HttpClient gateway(service.server().gateway());
  HttpClient proxy(service.server().api());
  for (int i = 0; i < kTimes; ++i) {
    (void)service.Decide(ByRule("per-key", "alice"));
    EXPECT_THAT(resp.Ask({"TG.DECIDE", "per-key", "alice"}), HasSubstr("store"));
    gateway.Send("GET / HTTP/1.1\r\nHost: a\r\nX-Key: alice\r\n\r\n");
    EXPECT_NE(gateway.Read().status, 0);
    proxy.Send(
        "GET /v1/auth HTTP/1.1\r\nHost: a\r\nX-Forwarded-Uri: /\r\nX-Forwarded-Method: GET\r\n"
        "X-Key: alice\r\n\r\n");
    EXPECT_NE(proxy.Read().status, 0);
  }
}

/// Waits until a metric that a timer updates is not 0, and returns it.
double Await(Service& service, std::string_view metric) {
  const auto latest = std::chrono::steady_clock::now() + kPatience;
  double value = 0;
  while ((value = service.Metric(metric)) == 0 && std::chrono::steady_clock::now() < latest) {
    std::this_thread::sleep_for(std::chrono::milliseconds{10});
  }
  return value;
}

TEST(DecisionMetricsTest, CountsAndTimesTheDecisionsOfEveryFrontend) {
  Service service(AllFrontends(""));
  AskEveryFrontend(service);
  const double allowed = service.Metric(
      R"(tidegate_decisions_total{rule="per-key",outcome="allowed",decided_by="store"})");
  const double denied = service.Metric(
      R"(tidegate_decisions_total{rule="per-key",outcome="denied",decided_by="store"})");
  EXPECT_EQ(allowed, 20);
  EXPECT_EQ(denied, kFrontends * kTimes - 20);
  EXPECT_EQ(service.Metric("tidegate_decision_seconds_count"), kFrontends * kTimes);
  EXPECT_GT(service.Metric("tidegate_decision_seconds_sum"), 0);
  const double rate = Await(service, R"(tidegate_hot_key_rate{by="requests",rank="1"})");
  EXPECT_GT(rate, 0);
  // All frontends charged one key, so the sampler's counts of it are exact.
  const std::string metrics = service.Metrics();
  EXPECT_THAT(metrics, HasSubstr(R"(tidegate_hot_key_rate{by="denials",rank="1"})"));
  EXPECT_THAT(metrics, HasSubstr(R"(tidegate_hot_key_error_rate{by="requests"} 0)"));
  EXPECT_THAT(metrics, Not(HasSubstr(R"(by="requests",rank="2")")));
  EXPECT_THAT(metrics, Not(HasSubstr("alice")));
}

TEST(DecisionMetricsTest, CountsNothingIfMetricsAreOff) {
  Service service(AllFrontends("metrics: {decisions: false, hot_keys: 0}\n"));
  AskEveryFrontend(service);
  const std::string metrics = service.Metrics();
  EXPECT_THAT(metrics, Not(HasSubstr("tidegate_decisions_total{")));
  EXPECT_THAT(metrics, HasSubstr("tidegate_decision_seconds_count 0\n"));
  EXPECT_THAT(metrics, Not(HasSubstr("tidegate_hot_key_rate{")));
}

TEST(DecisionMetricsTest, ChangedMetricsNeedARestart) {
  Service service(AllFrontends(""));
  Config config = Service::ConfigOf("metrics: {hot_keys: 7}\n");
  EXPECT_THAT(service.server().NeedsRestart(config), testing::Contains("metrics"));
  config.metrics = {};
  EXPECT_THAT(service.server().NeedsRestart(config), Not(testing::Contains("metrics")));
}

}  // namespace
}  // namespace tidegate::service
