// SPDX-License-Identifier: Apache-2.0
#include "tidegate/rule_limiter.hpp"

#include <gtest/gtest.h>

#include <array>

namespace tidegate {
namespace {

using namespace std::chrono_literals;

Quota MakeQuota(const QuotaSpec& spec) { return Quota::Make(spec).value(); }

TEST(RuleLimiterTest, DecidesPerIdentity) {
  ManualClock clock;
  RuleLimiter limiter({.clock = &clock});
  const Quota quota = MakeQuota({.limit = 2, .period = 1s});
  EXPECT_TRUE(limiter.Decide("login", "alice", quota)->allowed);
  EXPECT_TRUE(limiter.Decide("login", "alice", quota)->allowed);
  EXPECT_EQ(limiter.Decide("login", "alice", quota)->retry_after, 500ms);
  EXPECT_TRUE(limiter.Decide("login", "bob", quota)->allowed);
  EXPECT_FALSE(limiter.Decide("login", "alice", quota, 0).has_value());
}

TEST(RuleLimiterTest, UsesTheRealClockByDefault) {
  RuleLimiter limiter;
  const Quota quota = MakeQuota({.limit = 1, .period = 1h});
  EXPECT_TRUE(limiter.Decide("r", "i", quota)->allowed);
  const auto denied = limiter.Decide("r", "i", quota);
  EXPECT_FALSE(denied->allowed);
  EXPECT_GT(denied->retry_after, 59min);
  EXPECT_LE(denied->retry_after, 1h);
}

TEST(RuleLimiterTest, ReportsLongestRetryTimeOfDenial) {
  ManualClock clock;
  RuleLimiter limiter({.clock = &clock});
  const Quota second = MakeQuota({.limit = 1, .period = 1s});
  const Quota minute = MakeQuota({.limit = 1, .period = 1min});
  const Quota wide = MakeQuota({.limit = 100, .period = 1h});
  const std::array<RuleCharge, 3> charges{RuleCharge{"second", "i", &second},
                                          RuleCharge{"minute", "i", &minute},
                                          RuleCharge{"wide", "i", &wide}};
  const Verdict first = limiter.Decide(charges).value();
  EXPECT_TRUE(first.allowed);
  EXPECT_EQ(first.governing.rule, "second")
      << "the first of the rules with nothing left does not govern";
  const Verdict denied = limiter.Decide(charges).value();
  EXPECT_FALSE(denied.allowed);
  EXPECT_EQ(denied.governing.rule, "minute");
  ASSERT_EQ(denied.decisions.size(), 3u);
  EXPECT_TRUE(denied.decisions[2].allowed);
}

TEST(RuleLimiterTest, ReportsRuleWithSmallestRemainingShare) {
  ManualClock clock;
  RuleLimiter limiter({.clock = &clock});
  const Quota hundred = MakeQuota({.limit = 100});
  const Quota three = MakeQuota({.limit = 3});
  const std::array<RuleCharge, 2> charges{RuleCharge{"hundred", "i", &hundred},
                                          RuleCharge{"three", "i", &three}};
  EXPECT_EQ(limiter.Decide(charges)->governing.rule, "three");
}

TEST(RuleLimiterTest, ReportsPermanentDenialFirstAndSkipsShadowRules) {
  ManualClock clock;
  RuleLimiter limiter({.clock = &clock});
  const Quota one = MakeQuota({.limit = 1, .period = 24h});
  const Quota two = MakeQuota({.limit = 2, .period = 1s});
  EXPECT_TRUE(limiter.Decide("one", "i", one)->allowed);
  const std::array<RuleCharge, 3> charges{RuleCharge{"shadow", "i", &one, 9, Mode::kShadow},
                                          RuleCharge{"one", "i", &one},
                                          RuleCharge{"two", "i", &two, 3}};
  const Verdict verdict = limiter.Decide(charges).value();
  EXPECT_FALSE(verdict.allowed);
  EXPECT_EQ(verdict.governing.rule, "two");
  EXPECT_TRUE(verdict.governing.never);
}

TEST(RuleLimiterTest, ChargesAllRulesOrNone) {
  ManualClock clock;
  RuleLimiter limiter({.clock = &clock});
  const Quota one = Quota::PerHour(1);
  const Quota many = Quota::PerHour(10);
  const std::array<RuleCharge, 2> charges{RuleCharge{"many", "i", &many},
                                          RuleCharge{"one", "i", &one}};
  EXPECT_TRUE(limiter.Decide(charges)->allowed);
  EXPECT_FALSE(limiter.Decide(charges)->allowed);
  EXPECT_EQ(limiter.Peek(charges[0])->remaining, 9);
}

TEST(RuleLimiterTest, AppliesRefundOnce) {
  ManualClock clock;
  RuleLimiter limiter({.clock = &clock});
  const Quota quota = Quota::PerHour(5);
  const RuleCharge charge{.rule = "r", .identity = "i", .quota = &quota, .cost = 2};
  EXPECT_TRUE(limiter.Decide(charge)->allowed);
  EXPECT_EQ(limiter.Refund(charge, {.id = "first"}).value(), Applied::kYes);
  EXPECT_EQ(limiter.Refund(charge, {.id = "first"}).value(), Applied::kNo);
  EXPECT_EQ(limiter.Peek(charge)->remaining, 5);
  EXPECT_TRUE(limiter.Debit(charge)->allowed);
  EXPECT_EQ(limiter.Peek(charge)->remaining, 3);
  EXPECT_EQ(limiter.Reset(charge).value(), Applied::kYes);
  EXPECT_EQ(limiter.Peek(charge)->remaining, 5);
}

TEST(RuleLimiterTest, HoldsLeaseUntilReleased) {
  ManualClock clock;
  RuleLimiter limiter({.clock = &clock});
  const Quota quota = Quota::PerMinute(1).Using(Algorithm::kConcurrency);
  const RuleCharge first{.rule = "r", .identity = "i", .quota = &quota, .lease = "first"};
  const RuleCharge second{.rule = "r", .identity = "i", .quota = &quota, .lease = "second"};
  EXPECT_TRUE(limiter.Decide(first)->allowed);
  EXPECT_FALSE(limiter.Decide(second)->allowed);
  EXPECT_EQ(limiter.Renew(first).value(), Applied::kYes);
  EXPECT_EQ(limiter.Inspect(first)->state.size(), 1U);
  EXPECT_EQ(limiter.Release(first).value(), Applied::kYes);
  EXPECT_EQ(limiter.Release(first).value(), Applied::kNo);
  EXPECT_TRUE(limiter.Decide(second)->allowed);
}

TEST(RuleLimiterTest, ReportsInvalidArgumentsAsErrors) {
  RuleLimiter limiter;
  const Quota quota = Quota::PerHour(5);
  const auto empty = limiter.Decide("rule", "", quota);
  ASSERT_FALSE(empty.has_value());
  EXPECT_EQ(empty.error().code, ErrorCode::kBadCharge);
  EXPECT_THROW((void)empty.value(), std::logic_error);
}

}  // namespace
}  // namespace tidegate
