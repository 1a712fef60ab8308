// SPDX-License-Identifier: Apache-2.0
#include "core/token_bucket.hpp"

#include <gtest/gtest.h>

#include "core/quota_scale.hpp"
#include "unit/core/bucket_tables.hpp"

namespace tidegate {
namespace {

using Tables = BucketTables<property::TokenBucketKit>;

TEST(TokenBucketTest, AddsThirdsOfUnitsExactly) { Tables::ThirdsAddUp(); }
TEST(TokenBucketTest, RefillsFiveUnitsEachMicrosecond) { Tables::FiveTokensEachMicrosecond(); }
TEST(TokenBucketTest, AllowsOneUnitPerLongestPeriod) { Tables::OneInTheLongestPeriod(); }
TEST(TokenBucketTest, AllowsMostUnitsPerShortestPeriod) { Tables::TheMostInTheShortestPeriod(); }
TEST(TokenBucketTest, EnforcesBurstOfOne) { Tables::BurstOfOne(); }
TEST(TokenBucketTest, AllowsBurstAboveTheLimit) { Tables::BurstAboveTheLimit(); }
TEST(TokenBucketTest, AppliesDebitsAndRefunds) { Tables::DebitsAndRefunds(); }
TEST(TokenBucketTest, BoundsDebts) { Tables::BoundsDebts(); }
TEST(TokenBucketTest, RepairsWhenClockIsTooFarBehind) { Tables::ClockBehind(); }

TEST(TokenBucketTest, KeepsPartialTokensAsTime) {
  const Quota quota = Make(Algorithm::kTokenBucket, 3, 1'000'000);
  const auto stepped = token_bucket::Step({0, At(0), 0}, quota, 1, 1, At(500'000));
  // The token was complete at 333,333 1/3 us. The remaining half token began to accumulate then.
  EXPECT_EQ(stepped.next, (token_bucket::State{0, At(333'334), 2}));
}

/// A clock that is slightly behind finds the same whole tokens and grants none twice.
TEST(TokenBucketTest, LosesNoTokensToSmallClockJitter) {
  property::Subject<property::TokenBucketKit> bucket(Make(Algorithm::kTokenBucket, 10, 1'000'000),
                                                     0);
  Play(bucket, {
                   {Step(0, 1, 10), 10, 0, 0, 1'000'000},
                   {Step(250'000, 1), 1, 1, 0, 850'000},
                   {Look(240'000), 0, 1, 0, 860'000},
                   {Look(190'000), 0, 1, 0, 910'000},
                   {Step(190'000, 1, 2), 1, 0, 110'000, 1'010'000},
                   {Step(299'999, 1), 0, 0, 1, 900'001},
                   {Step(300'000, 1), 1, 0, 0, 1'000'000},
               });
}

TEST(TokenBucketTest, DropsPartialTokenOnRepair) {
  const Quota quota = Make(Algorithm::kTokenBucket, 3, 1'000'000);
  const auto stepped = token_bucket::Step({1, At(2'000'000), 2}, quota, 2, 1, At(999'999));
  EXPECT_EQ(stepped.outcome.effect, Effect::kRepaired);
  EXPECT_EQ(stepped.next, (token_bucket::State{1, At(999'999), 0}));
  const auto held = token_bucket::Step({1, At(2'000'000), 2}, quota, 2, 1, At(1'000'000));
  EXPECT_EQ(held.outcome.effect, Effect::kNone);
}

TEST(TokenBucketTest, KeepsWholeTokensWhenQuotaChanges) {
  const token_bucket::State six{6, At(0), 0};
  const auto look = [&](const token_bucket::State& state, std::int64_t limit, std::int64_t burst,
                        Tick now) {
    const Quota quota = Make(Algorithm::kTokenBucket, limit, 1'000'000, burst);
    return token_bucket::Step(state, quota, 1, 0, At(now)).outcome.remaining;
  };
  EXPECT_EQ(look(six, 10, 10, 0), 6);
  EXPECT_EQ(look(six, 100, 5, 0), 5) << "the tokens were not clamped to the new capacity";
  EXPECT_EQ(look(six, 1, 20, 2'000'000), 8) << "the elapsed time was not counted at the new rate";
  EXPECT_EQ(look(six, 1, 20, 2'999'999), 8);

  // A debt that is too large for the new quota is reduced to the largest debt that this quota can
  // count.
  const Quota slow = Make(Algorithm::kTokenBucket, 1, property::kLongest);
  const token_bucket::State deep{-1'000'000, At(0), 0};
  EXPECT_EQ(token_bucket::Step(deep, slow, 1, 1, At(0)).outcome.retry_after,
            (1 + Saturation(slow)) * slow.period());
}

}  // namespace
}  // namespace tidegate
