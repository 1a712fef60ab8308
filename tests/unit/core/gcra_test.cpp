// SPDX-License-Identifier: Apache-2.0
#include "core/gcra.hpp"

#include <gtest/gtest.h>

#include "unit/core/bucket_tables.hpp"

namespace tidegate {
namespace {

using GcraTables = BucketTables<property::GcraKit>;

TEST(GcraTest, AddsThirdsOfUnitsExactly) { GcraTables::ThirdsAddUp(); }
TEST(GcraTest, RefillsFiveUnitsEachMicrosecond) { GcraTables::FiveTokensEachMicrosecond(); }
TEST(GcraTest, AllowsOneUnitPerLongestPeriod) { GcraTables::OneInTheLongestPeriod(); }
TEST(GcraTest, AllowsMostUnitsPerShortestPeriod) { GcraTables::TheMostInTheShortestPeriod(); }
TEST(GcraTest, EnforcesBurstOfOne) { GcraTables::BurstOfOne(); }
TEST(GcraTest, AllowsBurstAboveTheLimit) { GcraTables::BurstAboveTheLimit(); }
TEST(GcraTest, AppliesDebitsAndRefunds) { GcraTables::DebitsAndRefunds(); }
TEST(GcraTest, BoundsDebts) { GcraTables::BoundsDebts(); }
TEST(GcraTest, RepairsWhenClockIsTooFarBehind) { GcraTables::ClockBehind(); }

TEST(GcraTest, KeepsTheFractionOfTheArrivalTime) {
  const Quota quota = Make(Algorithm::kGcra, 3, 1'000'000);
  const auto stepped = gcra::Step(gcra::Fresh(quota, At(0)), quota, 1, 1, At(0));
  EXPECT_EQ(stepped.next, (gcra::State{At(333'333), 1, 0}));
}

/// The arrival time of a debt is further in the future than any burst allows, but must not be
/// repaired as if the clock had been set back.
TEST(GcraTest, DoesNotRepairDebtAsClockStep) {
  property::Subject<property::GcraKit> bucket(Make(Algorithm::kGcra, 10, 1'000'000), 0);
  Play(bucket, {
                   {Debit(0, 110), 1, 0, 0, 11'000'000},
                   {Look(0), 0, 0, 10'100'000, 11'000'000},
                   {Look(5'000'000), 0, 0, 5'100'000, 6'000'000},
                   // A clock that is behind by one recovery counts as the last known time. Further
                   // behind, the state is repaired, including the debt.
                   {Look(-1'000'000), 0, 0, 11'100'000, 12'000'000},
                   {Look(-1'000'001), 0, 0, 10'100'000, 11'000'000, Beside::kRepaired},
               });
}

/// One recovery is 0.6 us, reported as 1 us: a clock that is behind by 1 us counts as the last
/// known time.
TEST(GcraTest, ToleratesClockOneTickBehindWhenRecoveryIsShorter) {
  property::Subject<property::GcraKit> bucket(Make(Algorithm::kGcra, 5, 3, 1), 1000);
  Play(bucket, {
                   {Step(1000, 1), 1, 0, 0, 1},
                   {Look(999), 0, 0, 2, 2},
                   {Look(998), 0, 0, 1, 1, Beside::kRepaired},
               });
}

TEST(GcraTest, KeepsArrivalTimeWhenQuotaChanges) {
  const gcra::State four{At(400'000), 0, 0};  // Four of ten units are used, at 10/s.
  const auto look = [&](std::int64_t limit, std::int64_t burst) {
    const Quota quota = Make(Algorithm::kGcra, limit, 1'000'000, burst);
    return gcra::Step(four, quota, 1, 0, At(0)).outcome;
  };
  EXPECT_EQ(look(10, 10).remaining, 6);
  EXPECT_EQ(look(10, 20).remaining, 16);
  EXPECT_EQ(look(5, 10).remaining, 8);
  // 400 ms at 100/s are 40 units, far above a burst of 5: the state is repaired as after a clock
  // step.
  EXPECT_EQ(look(100, 5).remaining, 0);
  EXPECT_EQ(look(100, 5).effect, Effect::kRepaired);
  EXPECT_EQ(look(100, 5).reset_after, Micros{50'000});
}

Quota MakeOfCaller(std::int64_t limit, std::int64_t period, std::int64_t burst) {
  return Quota::Make({.algorithm = Algorithm::kGcra,
                      .limit = limit,
                      .period = Micros{period},
                      .burst = burst,
                      .origin = QuotaOrigin::kCaller})
      .value();
}

/// With quotas that callers send in requests, the units that a slower quota took stay taken.
TEST(GcraTest, KeepsArrivalTimeOfSlowerCallerQuota) {
  const Quota slow = MakeOfCaller(1, 3'600'000'000, 1);
  const auto taken = gcra::Step(gcra::Fresh(slow, At(0)), slow, 1, 1, At(0));
  EXPECT_EQ(taken.next, (gcra::State{At(3'600'000'000), 0, 3'600'000'000}));
  const Quota quick = MakeOfCaller(10, 60'000'000, 10);
  const auto denied = gcra::Step(taken.next, quick, 1, 1, At(0));
  EXPECT_EQ(denied.outcome.admitted, 0);
  EXPECT_EQ(denied.outcome.effect, Effect::kNone);
  EXPECT_EQ(denied.outcome.retry_after, Micros{3'546'000'000});
  EXPECT_EQ(denied.outcome.reset_after, Micros{3'600'000'000});
  // A burst of half a microsecond must not pass in the last tick that counts as the last known
  // time.
  EXPECT_EQ(gcra::Step(taken.next, MakeOfCaller(2, 1, 1), 1, 1, At(0)).outcome.admitted, 0);
}

/// A clock that ran ahead blocks the key of a caller's quota for no longer than the slowest quota
/// of this key does.
TEST(GcraTest, RepairsCallerQuotaStateAfterClockStep) {
  const Quota slow = MakeOfCaller(1, 3'600'000'000, 1);
  const Quota quick = MakeOfCaller(10, 60'000'000, 10);
  const std::int64_t day = 86'400'000'000;
  const auto taken = gcra::Step(gcra::Fresh(slow, At(day)), slow, 1, 1, At(day));
  const auto held = gcra::Step(taken.next, quick, 1, 1, At(day - 60'000'000));
  EXPECT_EQ(held.outcome.effect, Effect::kNone);
  EXPECT_EQ(held.outcome.reset_after, Micros{3'660'000'000});
  const auto repaired = gcra::Step(taken.next, quick, 1, 1, At(day - 60'000'001));
  EXPECT_EQ(repaired.outcome.effect, Effect::kRepaired);
  EXPECT_EQ(repaired.outcome.reset_after, Micros{60'000'000});
  EXPECT_EQ(repaired.next.owed, 0) << "`owed` is stored for a recovery of only a minute";
}

/// One tick refills more than the whole burst. The bucket still holds no more than the burst.
TEST(GcraTest, NeverExceedsLoweredBurst) {
  const Quota wide = Make(Algorithm::kGcra, 7, 1, 4);
  const Quota narrow = Make(Algorithm::kGcra, 7, 1, 2);
  const auto spent = gcra::Step(gcra::Fresh(wide, At(1000)), wide, 4, 1, At(1000));
  const auto stepped = gcra::Step(spent.next, narrow, 1, 10, At(1000));
  EXPECT_LE(stepped.outcome.admitted, 2);
  EXPECT_LE(gcra::Step(spent.next, narrow, 1, 0, At(1000)).outcome.remaining, 2);
}

}  // namespace
}  // namespace tidegate
