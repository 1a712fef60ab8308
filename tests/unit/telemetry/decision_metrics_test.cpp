// SPDX-License-Identifier: Apache-2.0
#include "telemetry/decision_metrics.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace tidegate {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;
using testing::HasSubstr;
using testing::Not;
using Clock = net::Timer::Clock;

std::uint64_t Times(const DecisionLatency& latency) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i <= DecisionLatency::kBuckets; ++i) sum += latency.count(i);
  return sum;
}

TEST(DecisionLatencyTest, UsesPowersOfTwoAsBuckets) {
  const struct {
    nanoseconds took;
    std::size_t bucket;
  } cases[] = {{nanoseconds{-5}, 0},       {nanoseconds{0}, 0},         {microseconds{1}, 0},
               {nanoseconds{1001}, 1},     {microseconds{2}, 1},        {nanoseconds{2001}, 2},
               {microseconds{4}, 2},       {microseconds{131'072}, 17}, {microseconds{131'073}, 18},
               {microseconds{1 << 30}, 18}};
  for (const auto& [took, bucket] : cases) {
    DecisionLatency latency;
    latency.Add(took, 1);
    EXPECT_EQ(latency.count(bucket), 1u) << took.count();
    EXPECT_EQ(Times(latency), 1u);
  }
  EXPECT_DOUBLE_EQ(DecisionLatency::UpperSeconds(0), 1e-6);
  EXPECT_DOUBLE_EQ(DecisionLatency::UpperSeconds(17), 0.131072);
}

TEST(DecisionLatencyTest, MeasuresEvery33rdCallAnsweredAtOnce) {
  DecisionLatency latency;
  for (int i = 1; i <= 100; ++i) {
    DecisionLatency::Mark mark;
    latency.Time(mark, [&] { latency.Answered(mark); });
    EXPECT_EQ(Times(latency), static_cast<std::uint64_t>(i / 33 * 33));
  }
}

TEST(DecisionLatencyTest, MeasuresAllCallsAnsweredLater) {
  DecisionLatency latency;
  std::vector<DecisionLatency::Mark> marks(50);
  for (auto& mark : marks) latency.Time(mark, [] {});
  EXPECT_EQ(Times(latency), 0u);
  // The calls wait for at least 300 us.
  const auto began = Clock::now();
  while (Clock::now() - began < microseconds{300}) {
  }
  for (auto& mark : marks) latency.Answered(mark);
  EXPECT_EQ(Times(latency), 50u);
  for (std::size_t bucket = 0; bucket <= 8; ++bucket) EXPECT_EQ(latency.count(bucket), 0u);
  EXPECT_GE(latency.seconds(), 50 * 300e-6);
  latency.Answered(marks[0]);  // No call is in progress.
  EXPECT_EQ(Times(latency), 50u);
}

TEST(DecisionLatencyTest, AllowsNextCallWithSameMarkFromCallback) {
  DecisionLatency latency;
  DecisionLatency::Mark mark;
  int left = 66;
  const std::function<void()> start = [&] {
    latency.Time(mark, [&] {
      latency.Answered(mark);
      if (--left > 0) start();
    });
  };
  start();
  EXPECT_EQ(Times(latency), 66u);
}

class DecisionMetricsTest : public testing::Test {
 protected:
  std::string Text(const DecisionMetrics& metrics) {
    const DecisionMetrics* const reactors[] = {&metrics};
    return Expose(DecisionFamilies(reactors, {"(other)", "per-key"}));
  }
  void Later() { timers_.Run(Clock::now() + std::chrono::seconds{1}); }

  net::Timers timers_;
  Charge charge_{.rule = "per-key", .identity = "client_ip=192.0.2.1"};
  Decision allowed_{.allowed = true, .rule = {}};
  Decision denied_{};
};

TEST_F(DecisionMetricsTest, CountsEachDecisionOnce) {
  DecisionMetrics metrics(timers_, {});
  metrics.Count(1, charge_, allowed_);
  metrics.Count(1, charge_, denied_);
  charge_.mode = Mode::kShadow;
  metrics.Count(1, charge_, denied_);
  Later();
  const auto hot = metrics.hot();
  EXPECT_EQ(hot->of(HotBy::kRequests).total, 3u);
  EXPECT_EQ(hot->of(HotBy::kDenials).total, 1u);  // Denials of shadow rules do not count.
  const std::string text = Text(metrics);
  EXPECT_THAT(text, HasSubstr(R"(outcome="denied",decided_by="store"} 1)"));
  EXPECT_THAT(text, HasSubstr(R"(outcome="shadow_denied",decided_by="store"} 1)"));
}

TEST_F(DecisionMetricsTest, CountsOperatorDecisionsSeparately) {
  DecisionMetrics metrics(timers_, {});
  const Decision banned{.decided_by = DecidedBy::kOperator, .reason = Reason::kBanned, .rule = {}};
  const Decision exempt{
      .allowed = true, .decided_by = DecidedBy::kOperator, .reason = Reason::kExempt, .rule = {}};
  metrics.Count(1, charge_, banned);
  metrics.Count(1, charge_, banned);
  metrics.Count(1, charge_, exempt);
  Later();
  EXPECT_EQ(metrics.hot()->of(HotBy::kRequests).total, 2u);
  EXPECT_EQ(metrics.hot()->of(HotBy::kDenials).total, 2u);
  const std::string text = Text(metrics);
  EXPECT_THAT(text, HasSubstr(R"({rule="per-key",outcome="banned",decided_by="operator"} 2)"));
  EXPECT_THAT(text, HasSubstr(R"({rule="per-key",outcome="exempted",decided_by="operator"} 1)"));
}

TEST_F(DecisionMetricsTest, ExposesTenRanksWithoutKeyNames) {
  DecisionMetrics metrics(timers_, {});
  for (int key = 0; key < 12; ++key) {
    const std::string identity = "client_ip=192.0.2." + std::to_string(key);
    charge_.identity = identity;
    for (int i = 0; i <= key; ++i) metrics.Count(1, charge_, allowed_);
  }
  Later();
  const std::string text = Text(metrics);
  EXPECT_THAT(text, HasSubstr(R"(tidegate_hot_key_rate{by="requests",rank="1"} )"));
  EXPECT_THAT(text, HasSubstr(R"(tidegate_hot_key_rate{by="cost",rank="10"} )"));
  EXPECT_THAT(text, Not(HasSubstr(R"(rank="11")")));
  EXPECT_THAT(text, HasSubstr(R"(tidegate_hot_key_error_rate{by="denials"} 0)"));
  EXPECT_THAT(text, Not(HasSubstr("192.0.2")));
}

TEST_F(DecisionMetricsTest, ExportsLatencyAsHistogram) {
  DecisionMetrics metrics(timers_, {});
  for (int i = 0; i < 33; ++i) {
    DecisionLatency::Mark mark;
    metrics.Time(mark, [&] { metrics.Answered(mark); });
  }
  const std::string text = Text(metrics);
  EXPECT_THAT(text, HasSubstr("# TYPE tidegate_decision_seconds histogram\n"));
  EXPECT_THAT(text, HasSubstr("tidegate_decision_seconds_bucket{le=\"+Inf\"} 33\n"));
  EXPECT_THAT(text, HasSubstr("tidegate_decision_seconds_count 33\n"));
}

TEST_F(DecisionMetricsTest, CountsNothingWhenMetricsAreOff) {
  DecisionMetrics metrics(timers_, {.decisions = false, .hot_keys = 0});
  bool started = false;
  DecisionLatency::Mark mark;
  for (int i = 0; i < 40; ++i) {
    metrics.Time(mark, [&] { started = true; });
    metrics.Answered(mark);
  }
  EXPECT_TRUE(started);
  metrics.Count(1, charge_, denied_);
  const Decision banned{.decided_by = DecidedBy::kOperator, .reason = Reason::kBanned, .rule = {}};
  metrics.Count(1, charge_, banned);
  Later();
  metrics.counters().Each(1, [](auto, auto, std::uint64_t count) { ADD_FAILURE() << count; });
  EXPECT_EQ(Times(metrics.latency()), 0u);
  EXPECT_EQ(metrics.hot()->of(HotBy::kRequests).total, 0u);
}

}  // namespace
}  // namespace tidegate
