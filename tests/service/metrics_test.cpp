// SPDX-License-Identifier: Apache-2.0
// Tests the metrics of a running server. tests/metrics checks them with a real Prometheus.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "service/fixture.hpp"
#include "unit/telemetry/text_format.hpp"

namespace tidegate::service {
namespace {

using test::MetricsText;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::string_view kRules = "rules: [{id: a, per: header:x-user, limit: 2/h}]\n";

TEST(MetricsTest, CountsResponsesByClass) {
  Service service(kRules);
  for (int i = 0; i < 5; ++i) (void)service.Decide(ByRule("a", "alice"));
  EXPECT_EQ(service.Metric("tidegate_responses_total{listener=\"api\",code=\"2xx\"}"), 2);
  EXPECT_EQ(service.Metric("tidegate_responses_total{listener=\"api\",code=\"4xx\"}"), 3);
  // Responses to malformed requests count too.
  HttpClient client(service.api());
  client.Send("nonsense\r\n\r\n");
  EXPECT_EQ(client.Read().status, 400);
  EXPECT_EQ(service.Metric("tidegate_responses_total{listener=\"api\",code=\"4xx\"}"), 4);
  // The three Metric() calls above were requests to the admin port.
  EXPECT_EQ(service.Metric("tidegate_responses_total{listener=\"admin\",code=\"2xx\"}"), 3);
}

TEST(MetricsTest, ExposesZeroForEventsThatNeverHappened) {
  Service service(kRules);
  const std::string text = service.Metrics();
  for (const std::string reason :
       {"rediserror", "badresponse", "badtypes", "timeout", "breaker_open", "queue_full"}) {
    EXPECT_THAT(text, HasSubstr("\nratelimit_failclosed_total{reason=\"" + reason + "\"} 0\n"));
    EXPECT_THAT(text, HasSubstr("\nratelimit_failopen_total{reason=\"" + reason + "\"} 0\n"));
  }
  EXPECT_THAT(text, HasSubstr("\ntidegate_responses_total{listener=\"api\",code=\"5xx\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("\ntidegate_store_max_entries "));
  EXPECT_THAT(MetricsText::Read(text).problems, IsEmpty());
}

TEST(MetricsTest, ExposesResponsesOfHttpListenersOnly) {
  Config config = Service::ConfigOf(kRules);
  config.listen.resp = "127.0.0.1:0";
  Service service(config);
  const MetricsText text = MetricsText::Read(service.Metrics());
  const auto* const family = text.Find("tidegate_responses_total");
  ASSERT_NE(family, nullptr);
  EXPECT_EQ(family->samples.size(), 8U) << "samples: 2xx to 5xx for api and admin";
  for (const auto& sample : family->samples) {
    EXPECT_NE(sample.labels.at("listener"), "resp");
    EXPECT_NE(sample.labels.at("code"), "1xx");
  }
}

TEST(MetricsTest, ExposesWhetherTheLastReloadSucceeded) {
  Service service(kRules);
  const auto successful = [&] { return service.Metric("tidegate_config_last_reload_successful"); };
  EXPECT_EQ(successful(), 1);
  service.server().NoteRefusedReload();
  EXPECT_EQ(successful(), 0);
  EXPECT_EQ(service.Metric("tidegate_config_reloads_total{result=\"refused\"}"), 1);
  ASSERT_TRUE(service.Reload(kRules));
  EXPECT_EQ(successful(), 1);
}

TEST(MetricsTest, ExposesOneSeriesForTwoUrlsOfOneTarget) {
  const ConfigReading reading = ParseConfig(
      "listen: { api: \"127.0.0.1:0\", admin: \"127.0.0.1:0\", gateway: \"127.0.0.1:0\" }\n" +
      std::string(kRules) +
      "access_log: off\nroutes: [{upstream: u}]\nupstreams:\n"
      "  u: { targets: [\"http://127.0.0.1:1\", \"https://127.0.0.1:1\"] }\n");
  ASSERT_TRUE(reading.config);
  Service service(*reading.config);
  const MetricsText text = MetricsText::Read(service.Metrics());
  EXPECT_THAT(text.problems, IsEmpty()) << text.Complaint();
  const auto* const up = text.Find("tidegate_upstream_target_up");
  ASSERT_NE(up, nullptr);
  EXPECT_EQ(up->samples.size(), 1U);
}

}  // namespace
}  // namespace tidegate::service
