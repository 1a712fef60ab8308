// SPDX-License-Identifier: Apache-2.0
#include "limiter/deny_cache.hpp"

#include <gtest/gtest.h>

namespace tidegate {
namespace {

using namespace std::chrono_literals;

/// A denied call, with the fields that a store fills in.
struct Denied : Call {
  explicit Denied(std::vector<Charge> of, std::uint64_t request, Micros retry = 1s)
      : own(std::move(of)), answers(own.size()) {
    charges = own;
    decisions = answers;
    record.request = {request, request * 31};
    for (std::size_t i = 0; i < answers.size(); ++i) {
      answers[i] = {.allowed = false,
                    .limit = 1,
                    .remaining = 0,
                    .retry_after = retry,
                    .more_after = retry,
                    .reset_after = 2 * retry,
                    .rule = own[i].rule};
    }
  }
  std::vector<Charge> own;
  std::vector<Decision> answers;
};

class DenyCacheTest : public testing::Test {
 protected:
  const Quota quota_ = Quota::Make({.limit = 1}).value();
  const DenyCache::TimePoint now_{1000s};
  DenyCache cache_{64};

  void Insert(const Denied& call) { cache_.Insert(call, now_); }
  bool Finds(std::uint64_t request, DenyCache::TimePoint at) {
    Denied call({{"r", "a", &quota_}}, request);
    return cache_.Find(call, at);
  }
};

TEST_F(DenyCacheTest, KeepsDenialUntilRetryAfterHasPassedSinceTheRequestWasSent) {
  Insert(Denied({{"r", "a", &quota_}}, 7));
  EXPECT_TRUE(Finds(7, now_));
  EXPECT_TRUE(Finds(7, now_ + 999ms));
  EXPECT_FALSE(Finds(7, now_ + 999'950us))
      << "the retry time has passed by a clock that is slow by 50 ppm";
  EXPECT_FALSE(Finds(7, now_ + 1s)) << "the denial was cached for too long";
  EXPECT_FALSE(Finds(8, now_)) << "the denial of another request was found";
}

TEST_F(DenyCacheTest, ReportsRemainingTime) {
  Insert(Denied({{"r", "a", &quota_}}, 7));
  Denied call({{"r", "a", &quota_}}, 7);
  call.allowed = true;
  ASSERT_TRUE(cache_.Find(call, now_ + 400ms));
  EXPECT_FALSE(call.allowed);
  EXPECT_EQ(call.answers[0], (Decision{.allowed = false,
                                       .decided_by = DecidedBy::kCache,
                                       .limit = 1,
                                       .remaining = 0,
                                       .retry_after = 600ms,
                                       .more_after = 600ms,
                                       .reset_after = 1600ms,
                                       .rule = "r"}));
}

TEST_F(DenyCacheTest, DropsDenialAfterMaximumAge) {
  Insert(Denied({{"r", "a", &quota_}}, 7, 24h));
  EXPECT_TRUE(Finds(7, now_ + DenyCache::kCap - 1us));
  EXPECT_FALSE(Finds(7, now_ + DenyCache::kCap));
}

TEST_F(DenyCacheTest, KeepsDenialOfCostAboveCapacity) {
  Denied never({{"r", "a", &quota_}}, 7, 0s);
  never.answers[0].never = true;
  Insert(never);
  Denied call({{"r", "a", &quota_}}, 7);
  ASSERT_TRUE(cache_.Find(call, now_ + 1s));
  EXPECT_TRUE(call.answers[0].never);
  EXPECT_FALSE(call.answers[0].allowed);
}

TEST_F(DenyCacheTest, InvalidatesRequestByAnyOfItsKeys) {
  for (const std::string_view rule : {"r", "s"}) {
    Insert(Denied({{"r", "a", &quota_}, {"s", "a", &quota_}}, 7));
    cache_.Invalidate("t", "a");
    cache_.Invalidate("r", "b");
    Denied call({{"r", "a", &quota_}, {"s", "a", &quota_}}, 7);
    EXPECT_TRUE(cache_.Find(call, now_));
    cache_.Invalidate(rule, "a");
    EXPECT_FALSE(cache_.Find(call, now_));
    EXPECT_FALSE(cache_.Find(call, now_)) << "the invalidated denial was found again";
  }
  Insert(Denied({{"r", "a", &quota_}}, 7));
  cache_.Clear();
  EXPECT_FALSE(Finds(7, now_));
}

TEST_F(DenyCacheTest, KeepsDenialForLongestRetryAfterOfTheCharges) {
  Denied denied({{"short", "a", &quota_}, {"long", "a", &quota_}}, 7);
  denied.answers[0].retry_after = 100ms;
  denied.answers[1].retry_after = 2s;
  Insert(denied);
  Denied call({{"short", "a", &quota_}, {"long", "a", &quota_}}, 7);
  ASSERT_TRUE(cache_.Find(call, now_ + 1s));
  EXPECT_TRUE(call.answers[0].allowed) << "the charge whose retry time has passed is still denied";
  EXPECT_FALSE(call.answers[1].allowed);
  EXPECT_FALSE(call.allowed);
}

TEST_F(DenyCacheTest, IgnoresRetryAfterOfShadowCharges) {
  Denied denied({{"r", "a", &quota_}, {"s", "a", &quota_, 1, Mode::kShadow}}, 7);
  denied.answers[1].retry_after = 2s;
  Insert(denied);
  Denied call({{"r", "a", &quota_}, {"s", "a", &quota_, 1, Mode::kShadow}}, 7);
  EXPECT_FALSE(cache_.Find(call, now_ + 1s));
}

TEST_F(DenyCacheTest, ReplacesEntryThatExpiresFirst) {
  for (std::uint64_t i = 1; i <= 10'000; ++i) {
    Insert(Denied({{"r", "a", &quota_}}, i * 0x9E3779B97F4A7C15u));
  }
  int found = 0;
  for (std::uint64_t i = 1; i <= 10'000; ++i) {
    if (Finds(i * 0x9E3779B97F4A7C15u, now_)) ++found;
  }
  EXPECT_LE(found, 64);
  EXPECT_GT(found, 32);
}

TEST_F(DenyCacheTest, KeepsNoLeasesPeeksOrLargeRequests) {
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
