// SPDX-License-Identifier: Apache-2.0
// What a running server tells of itself. What Prometheus makes of it is in tests/metrics.
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

TEST(MetricsTest, AnswersAreCountedByTheirClass) {
  Service service(kRules);
  for (int i = 0; i < 5; ++i) (void)service.Decide(ByRule("a", "alice"));
  EXPECT_EQ(service.Metric("tidegate_responses_total{door=\"api\",code=\"2xx\"}"), 2);
  EXPECT_EQ(service.Metric("tidegate_responses_total{door=\"api\",code=\"4xx\"}"), 3);
  // What was no request is answered too.
  HttpClient client(service.api());
  client.Send("nonsense\r\n\r\n");
  EXPECT_EQ(client.Read().status, 400);
  EXPECT_EQ(service.Metric("tidegate_responses_total{door=\"api\",code=\"4xx\"}"), 4);
  // Three questions before this one.
  EXPECT_EQ(service.Metric("tidegate_responses_total{door=\"admin\",code=\"2xx\"}"), 3);
}

TEST(MetricsTest, WhatDidNotHappenIsToldAsZero) {
  Service service(kRules);
  const std::string text = service.Metrics();
  for (const std::string reason :
       {"rediserror", "badresponse", "badtypes", "timeout", "breaker_open", "queue_full"}) {
    EXPECT_THAT(text, HasSubstr("\nratelimit_failclosed_total{reason=\"" + reason + "\"} 0\n"));
    EXPECT_THAT(text, HasSubstr("\nratelimit_failopen_total{reason=\"" + reason + "\"} 0\n"));
  }
  EXPECT_THAT(text, HasSubstr("\ntidegate_responses_total{door=\"api\",code=\"5xx\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("\ntidegate_store_max_entries "));
  EXPECT_THAT(MetricsText::Read(text).problems, IsEmpty());
}

TEST(MetricsTest, TwoNamesOfOneTargetAreOneSeries) {
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
