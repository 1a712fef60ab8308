// SPDX-License-Identifier: Apache-2.0
#include "limiter/deny_cache.hpp"

#include <gtest/gtest.h>

namespace tidegate {
namespace {

using namespace std::chrono_literals;

/// A call that was denied, as a store fills it.
struct Denied : Call {
  explicit Denied(std::vector<Charge> of, std::uint64_t request, Micros retry = 1s)
      : own(std::move(of)), told(own.size()) {
    charges = own;
    decisions = told;
    record.request = {request, request * 31};
    for (std::size_t i = 0; i < told.size(); ++i) {
      told[i] = {.allowed = false,
                 .limit = 1,
                 .remaining = 0,
                 .retry_after = retry,
                 .more_after = retry,
                 .reset_after = 2 * retry,
                 .rule = own[i].rule};
    }
  }
  std::vector<Charge> own;
  std::vector<Decision> told;
};

class DenyCacheTest : public testing::Test {
 protected:
  const Quota quota_ = Quota::Make({.limit = 1}).value();
  const DenyCache::TimePoint now_{1000s};
  DenyCache cache_{64};

  void Insert(const Denied& call, std::vector<std::uint64_t> keys) {
    cache_.Insert(call, keys, now_);
  }
  bool Finds(std::uint64_t request, DenyCache::TimePoint at) {
    Denied asked({{"r", "a", &quota_}}, request);
    return cache_.Find(asked, at);
  }
};

TEST_F(DenyCacheTest, HoldsUntilTheQuestionLeftPlusRetryAfterAndNoLonger) {
  Insert(Denied({{"r", "a", &quota_}}, 7), {1});
  EXPECT_TRUE(Finds(7, now_));
  EXPECT_TRUE(Finds(7, now_ + 999ms));
  EXPECT_FALSE(Finds(7, now_ + 999'950us))
      << "by a clock that is slow by 50 millionths it has passed";
  EXPECT_FALSE(Finds(7, now_ + 1s)) << "it may pass now";
  EXPECT_FALSE(Finds(8, now_)) << "another question";
}

TEST_F(DenyCacheTest, TellsTheTimeThatIsLeft) {
  Insert(Denied({{"r", "a", &quota_}}, 7), {1});
  Denied asked({{"r", "a", &quota_}}, 7);
  asked.allowed = true;
  ASSERT_TRUE(cache_.Find(asked, now_ + 400ms));
  EXPECT_FALSE(asked.allowed);
  EXPECT_EQ(asked.told[0], (Decision{.allowed = false,
                                     .decided_by = DecidedBy::kCache,
                                     .limit = 1,
                                     .remaining = 0,
                                     .retry_after = 600ms,
                                     .more_after = 600ms,
                                     .reset_after = 1600ms,
                                     .rule = "r"}));
}

TEST_F(DenyCacheTest, NeverOlderThanItsCap) {
  Insert(Denied({{"r", "a", &quota_}}, 7, 24h), {1});
  EXPECT_TRUE(Finds(7, now_ + DenyCache::kCap - 1us));
  EXPECT_FALSE(Finds(7, now_ + DenyCache::kCap));
}

TEST_F(DenyCacheTest, WhatCanNeverFitIsKeptToo) {
  Denied never({{"r", "a", &quota_}}, 7, 0s);
  never.told[0].never = true;
  Insert(never, {1});
  Denied asked({{"r", "a", &quota_}}, 7);
  ASSERT_TRUE(cache_.Find(asked, now_ + 1s));
  EXPECT_TRUE(asked.told[0].never);
  EXPECT_FALSE(asked.told[0].allowed);
}

TEST_F(DenyCacheTest, AnyOfItsKeysInvalidatesIt) {
  for (const std::uint64_t key : {11u, 12u}) {
    Insert(Denied({{"r", "a", &quota_}, {"s", "a", &quota_}}, 7), {11, 12});
    cache_.Invalidate(13);
    Denied asked({{"r", "a", &quota_}, {"s", "a", &quota_}}, 7);
    EXPECT_TRUE(cache_.Find(asked, now_));
    cache_.Invalidate(key);
    EXPECT_FALSE(cache_.Find(asked, now_));
    EXPECT_FALSE(cache_.Find(asked, now_)) << "and stays so";
  }
  Insert(Denied({{"r", "a", &quota_}}, 7), {1});
  cache_.Clear();
  EXPECT_FALSE(Finds(7, now_));
}

TEST_F(DenyCacheTest, ARequestHoldsAsLongAsTheLongestOfItsCharges) {
  Denied denied({{"short", "a", &quota_}, {"long", "a", &quota_}}, 7);
  denied.told[0].retry_after = 100ms;
  denied.told[1].retry_after = 2s;
  Insert(denied, {1, 2});
  Denied asked({{"short", "a", &quota_}, {"long", "a", &quota_}}, 7);
  ASSERT_TRUE(cache_.Find(asked, now_ + 1s));
  EXPECT_TRUE(asked.told[0].allowed) << "this one would pass by now";
  EXPECT_FALSE(asked.told[1].allowed);
  EXPECT_FALSE(asked.allowed);
}

TEST_F(DenyCacheTest, AShadowDoesNotProlongIt) {
  Denied denied({{"r", "a", &quota_}, {"s", "a", &quota_, 1, Mode::kShadow}}, 7);
  denied.told[1].retry_after = 2s;
  Insert(denied, {1, 2});
  Denied asked({{"r", "a", &quota_}, {"s", "a", &quota_, 1, Mode::kShadow}}, 7);
  EXPECT_FALSE(cache_.Find(asked, now_ + 1s));
}

TEST_F(DenyCacheTest, IsBoundedAndForgetsTheOneThatEndsFirst) {
  for (std::uint64_t i = 1; i <= 10'000; ++i) {
    Insert(Denied({{"r", "a", &quota_}}, i * 0x9E3779B97F4A7C15u), {i});
  }
  int found = 0;
  for (std::uint64_t i = 1; i <= 10'000; ++i) {
    if (Finds(i * 0x9E3779B97F4A7C15u, now_)) ++found;
  }
  EXPECT_LE(found, 64);
  EXPECT_GT(found, 32);
}

TEST_F(DenyCacheTest, LeasesAndOtherQuestionsAreNeverKept) {
  const Quota leases = Quota::Make({.algorithm = Algorithm::kConcurrency, .limit = 1}).value();
  EXPECT_TRUE(DenyCache::MayKeep(Denied({{"r", "a", &quota_}}, 1)));
  EXPECT_FALSE(DenyCache::MayKeep(
      Denied({{"r", "a", &quota_}, {"c", "a", &leases, 1, Mode::kEnforce, "x"}}, 1)));
  Denied look({{"r", "a", &quota_}}, 1);
  look.kind = Call::Kind::kPeek;
  EXPECT_FALSE(DenyCache::MayKeep(look));
  EXPECT_FALSE(DenyCache::MayKeep(Denied(std::vector<Charge>(5, {"r", "a", &quota_}), 1)));
}

}  // namespace
}  // namespace tidegate
