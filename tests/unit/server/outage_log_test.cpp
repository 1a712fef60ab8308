// SPDX-License-Identifier: Apache-2.0
#include "server/outage_log.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace tidegate {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;

class OutageLogTest : public testing::Test {
 protected:
  using Decisions = OutageLog::ByPolicy;
  /// Returns the lines that the log writes if it observes `decisions` at the time `at`.
  std::string Observe(std::chrono::milliseconds at, Decisions decisions, bool connected = true) {
    testing::internal::CaptureStderr();
    log_.Observe({.connected = connected ? 2U : 0U,
                  .nodes = 2,
                  .decisions = decisions,
                  .error = connected ? "" : "Connection refused"},
                 OutageLog::Clock::time_point{1h} + at);
    return testing::internal::GetCapturedStderr();
  }

  OutageLog log_{[] { return OutageLog::ByPolicy{.open = 3, .closed = 1, .local = 2}; }};
};

TEST_F(OutageLogTest, WritesNothingWhileRedisDecides) {
  for (auto at = 0ms; at < 10min; at += 100ms) EXPECT_EQ(Observe(at, {}), "");
}

TEST_F(OutageLogTest, WritesTwoLinesPerOutageWithAllDecisions) {
  EXPECT_EQ(Observe(0ms, {}), "");
  EXPECT_THAT(Observe(100ms, {.open = 5}, false),
              AllOf(HasSubstr("Redis does not answer all calls; failure policies decide the rest"),
                    HasSubstr("rules_open=3  rules_closed=1  rules_local=2"),
                    HasSubstr("connected=0  nodes=2"), HasSubstr("Connection refused")));
  EXPECT_EQ(Observe(5s, {.open = 50, .closed = 7}, false), "");
  EXPECT_EQ(Observe(10s, {.open = 60, .closed = 7, .local = 1}), "")
      << "the end of the outage was logged too early";
  EXPECT_EQ(Observe(10100ms, {.open = 60, .closed = 7, .local = 1}), "");
  EXPECT_EQ(Observe(11s, {.open = 60, .closed = 7, .local = 1}), "");
  EXPECT_THAT(Observe(11100ms, {.open = 60, .closed = 7, .local = 1}),
              AllOf(HasSubstr("Redis answers all calls again"), HasSubstr("lasted_ms=10000"),
                    HasSubstr("decisions_open=60  decisions_closed=7  decisions_local=1")));
  EXPECT_EQ(Observe(11200ms, {.open = 60, .closed = 7, .local = 1}), "");
}

TEST_F(OutageLogTest, CountsEachDecisionInOneOutage) {
  EXPECT_NE(Observe(0ms, {.open = 5}), "");
  EXPECT_EQ(Observe(100ms, {.open = 5}), "");
  EXPECT_THAT(Observe(1100ms, {.open = 5}), HasSubstr("decisions_open=5"));
  EXPECT_NE(Observe(2min, {.open = 7}), "");
  EXPECT_EQ(Observe(2min + 100ms, {.open = 7}), "");
  EXPECT_THAT(Observe(2min + 1100ms, {.open = 7}), HasSubstr("decisions_open=2"));
}

TEST_F(OutageLogTest, WritesOneLinePerMinuteDuringOutage) {
  int lines = 0;
  std::uint64_t decisions = 0;
  for (auto at = 0ms; at <= 5min; at += 100ms) {
    const std::string output = Observe(at, {.local = ++decisions}, false);
    lines += static_cast<int>(std::ranges::count(output, '\n'));
    if (at == 1min) {
      EXPECT_THAT(
          output,
          AllOf(
              HasSubstr("Redis still does not answer all calls; failure policies decide the rest"),
              HasSubstr("lasted_ms=60000"), HasSubstr("decisions_local=601")));
    }
  }
  EXPECT_EQ(lines, 1 + 5);
}

TEST_F(OutageLogTest, WritesBoundedNumberOfLinesWhenRedisFailsRepeatedly) {
  int lines = 0;
  std::uint64_t decisions = 0;
  for (auto at = 0ms; at < 10min; at += 100ms) {
    if (at % 5s == 0ms) ++decisions;
    const std::string output = Observe(at, {.open = decisions});
    lines += static_cast<int>(std::ranges::count(output, '\n'));
  }
  EXPECT_LT(lines, 20) << "too many lines; without a bound there would be 240";
}

TEST_F(OutageLogTest, ReportsDecisionsOfOngoingOutageAtShutdown) {
  EXPECT_NE(Observe(0ms, {.closed = 1}, false), "");
  testing::internal::CaptureStderr();
  log_.Stop({.connected = 0, .nodes = 0, .decisions = {.closed = 9}, .error = {}},
            OutageLog::Clock::time_point{1h} + 2s);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("stopping during an outage of Redis"), HasSubstr("lasted_ms=2000"),
                    HasSubstr("decisions_closed=9")));
}

}  // namespace
}  // namespace tidegate
