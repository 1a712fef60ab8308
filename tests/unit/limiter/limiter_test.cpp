// SPDX-License-Identifier: Apache-2.0
#include "tidegate/limiter.hpp"

#include <gtest/gtest.h>

#include <array>

namespace tidegate {
namespace {

using namespace std::chrono_literals;

Quota MakeQuota(const QuotaSpec& spec) { return Quota::Make(spec).value(); }

TEST(Limiter, DecidesPerIdentity) {
  ManualClock clock;
  Limiter limiter({.clock = &clock});
  const Quota quota = MakeQuota({.limit = 2, .period = 1s});
  EXPECT_TRUE(limiter.Decide("login", "alice", quota)->allowed);
  EXPECT_TRUE(limiter.Decide("login", "alice", quota)->allowed);
  EXPECT_EQ(limiter.Decide("login", "alice", quota)->retry_after, 500ms);
  EXPECT_TRUE(limiter.Decide("login", "bob", quota)->allowed);
  EXPECT_FALSE(limiter.Decide("login", "alice", quota, 0).has_value());
}

TEST(Limiter, OnTheRealClock) {
  Limiter limiter;
  const Quota quota = MakeQuota({.limit = 1, .period = 1h});
  EXPECT_TRUE(limiter.Decide("r", "i", quota)->allowed);
  const auto denied = limiter.Decide("r", "i", quota);
  EXPECT_FALSE(denied->allowed);
  EXPECT_GT(denied->retry_after, 59min);
  EXPECT_LE(denied->retry_after, 1h);
}

TEST(Limiter, TheLongestWaitGovernsADenial) {
  ManualClock clock;
  Limiter limiter({.clock = &clock});
  const Quota second = MakeQuota({.limit = 1, .period = 1s});
  const Quota minute = MakeQuota({.limit = 1, .period = 1min});
  const Quota wide = MakeQuota({.limit = 100, .period = 1h});
  const std::array<Charge, 3> charges{Charge{"second", "i", &second},
                                      Charge{"minute", "i", &minute}, Charge{"wide", "i", &wide}};
  const Verdict first = limiter.Decide(charges).value();
  EXPECT_TRUE(first.allowed);
  EXPECT_EQ(first.governing.rule, "second") << "nothing left of it; the first of equals";
  const Verdict denied = limiter.Decide(charges).value();
  EXPECT_FALSE(denied.allowed);
  EXPECT_EQ(denied.governing.rule, "minute");
  ASSERT_EQ(denied.decisions.size(), 3u);
  EXPECT_TRUE(denied.decisions[2].allowed);
}

TEST(Limiter, TheSmallestShareGovernsWhenAllPass) {
  ManualClock clock;
  Limiter limiter({.clock = &clock});
  const Quota hundred = MakeQuota({.limit = 100});
  const Quota three = MakeQuota({.limit = 3});
  const std::array<Charge, 2> charges{Charge{"hundred", "i", &hundred},
                                      Charge{"three", "i", &three}};
  EXPECT_EQ(limiter.Decide(charges)->governing.rule, "three");
}

TEST(Limiter, NeverOutweighsAnyWaitAndShadowsDoNotGovern) {
  ManualClock clock;
  Limiter limiter({.clock = &clock});
  const Quota one = MakeQuota({.limit = 1, .period = 24h});
  const Quota two = MakeQuota({.limit = 2, .period = 1s});
  EXPECT_TRUE(limiter.Decide("one", "i", one)->allowed);
  const std::array<Charge, 3> charges{Charge{"shadow", "i", &one, 9, Mode::kShadow},
                                      Charge{"one", "i", &one}, Charge{"two", "i", &two, 3}};
  const Verdict verdict = limiter.Decide(charges).value();
  EXPECT_FALSE(verdict.allowed);
  EXPECT_EQ(verdict.governing.rule, "two");
  EXPECT_TRUE(verdict.governing.never);
}

/// Which of two rules governs, given what was decided for each.
std::string_view GoverningOf(const Decision& a, const Decision& b,
                             Mode mode_of_a = Mode::kEnforce) {
  const std::array<Charge, 2> charges{Charge{"a", "i", nullptr, 1, mode_of_a}, Charge{"b", "i"}};
  std::array<Decision, 2> decisions{a, b};
  decisions[0].rule = "a";
  decisions[1].rule = "b";
  return Governing(charges, decisions).rule;
}

TEST(Governing, AnOpenRuleSaysNothingAboutOthers) {
  const Decision open{
      .allowed = true, .decided_by = DecidedBy::kOpen, .limit = 10, .remaining = 0, .rule = {}};
  const Decision full{
      .allowed = true, .decided_by = DecidedBy::kLocal, .limit = 10, .remaining = 10, .rule = {}};
  const Decision denied{
      .decided_by = DecidedBy::kLocal, .limit = 10, .retry_after = 1s, .rule = {}};
  EXPECT_EQ(GoverningOf(open, full), "b");
  EXPECT_EQ(GoverningOf(full, open), "a");
  EXPECT_EQ(GoverningOf(open, denied), "b");
  EXPECT_EQ(GoverningOf(open, open), "a");
  // Numbers of a rule that limits nobody are not what a client should hear.
  EXPECT_EQ(GoverningOf(full, open, Mode::kShadow), "b");
}

TEST(Governing, AClosedRuleIsHeardBeforeAllOthers) {
  const Decision closed{
      .decided_by = DecidedBy::kClosed, .limit = 10, .retry_after = 1s, .rule = {}};
  const Decision longer{
      .decided_by = DecidedBy::kLocal, .limit = 10, .retry_after = 1h, .rule = {}};
  const Decision never{.never = true, .decided_by = DecidedBy::kLocal, .limit = 10, .rule = {}};
  const Decision open{.allowed = true, .decided_by = DecidedBy::kOpen, .rule = {}};
  for (const Decision& other : {longer, never, open}) {
    EXPECT_EQ(GoverningOf(closed, other), "a");
    EXPECT_EQ(GoverningOf(other, closed), "b");
    EXPECT_EQ(GoverningOf(closed, other, Mode::kShadow), "b") << "it refuses nobody";
  }
}

TEST(Limiter, AcquireRenewAndRelease) {
  ManualClock clock;
  Limiter limiter({.clock = &clock});
  const Quota slots = MakeQuota({.algorithm = Algorithm::kConcurrency, .limit = 1, .period = 5s});
  EXPECT_TRUE(limiter.Acquire("jobs", "i", slots, "a")->allowed);
  EXPECT_EQ(limiter.Acquire("jobs", "i", slots, "b")->retry_after, 5s);
  clock.Advance(4s);
  EXPECT_EQ(limiter.Renew("jobs", "i", slots, "a").value(), Done::kApplied);
  EXPECT_EQ(limiter.Acquire("jobs", "i", slots, "b")->retry_after, 5s);
  EXPECT_EQ(limiter.Release("jobs", "i", slots, "a").value(), Done::kApplied);
  EXPECT_EQ(limiter.Renew("jobs", "i", slots, "a").value(), Done::kNothing);
  EXPECT_TRUE(limiter.Acquire("jobs", "i", slots, "b")->allowed);
}

TEST(Limiter, PeekAndDebit) {
  ManualClock clock;
  Limiter limiter({.clock = &clock});
  const Quota quota = MakeQuota({.limit = 10});
  EXPECT_EQ(limiter.Peek("llm", "i", quota)->remaining, 10);
  EXPECT_EQ(limiter.Debit("llm", "i", quota, 12)->remaining, 0);
  EXPECT_EQ(limiter.Peek("llm", "i", quota)->retry_after, 300ms);
}

}  // namespace
}  // namespace tidegate
