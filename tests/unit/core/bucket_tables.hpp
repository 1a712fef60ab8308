// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "property/quotas.hpp"
#include "unit/core/table.hpp"

/// Tables that token_bucket and gcra share, because both algorithms give the same results.
namespace tidegate {

template <class Kit>
class BucketTables {
 public:
  /// A limit of 3/s: one token every 333,333 1/3 us, so whole tokens at 333,334, 666,667 and
  /// 1,000,000.
  static void ThirdsAddUp() {
    auto bucket = New(3, 1'000'000);
    Play(bucket, {
                     {Look(0), 0, 3, 0, 0},
                     {Step(0, 1, 3), 3, 0, 0, 1'000'000},
                     {Step(0, 1), 0, 0, 333'334, 1'000'000},
                     {Step(333'333, 1), 0, 0, 1, 666'667},
                     {Step(333'334, 1), 1, 0, 0, 1'000'000},
                     {Step(666'666, 1), 0, 0, 1, 666'668},
                     {Step(666'667, 1), 1, 0, 0, 1'000'000},
                     {Step(999'999, 1), 0, 0, 1, 666'668},
                     {Step(1'000'000, 1), 1, 0, 0, 1'000'000},
                     {Look(1'999'999), 0, 2, 0, 1},
                     {Look(2'000'000), 0, 3, 0, 0},
                     {Look(2'000'000, 4), 0, 3, 0, 0, Beside::kNever},
                     {Step(2'000'000, 4), 0, 3, 0, 0, Beside::kNever},
                     {Step(2'000'000, kMaxCost, kMaxCount), 0, 3, 0, 0, Beside::kNever},
                     {Step(2'000'000, 2, kMaxCount), 1, 1, 333'334, 666'667},
                     {Step(2'000'000, 1, kMaxCount), 1, 0, 333'334, 1'000'000},
                 });
  }

  static void FiveTokensEachMicrosecond() {
    auto bucket = New(5'000'000, 1'000'000);
    Play(bucket, {
                     {Step(0, 5'000'000), 1, 0, 0, 1'000'000},
                     {Step(0, 1), 0, 0, 1, 1'000'000},
                     {Step(1, 1, 10), 5, 0, 1, 1'000'000},
                     {Step(2, 6), 0, 5, 1, 999'999},
                     {Step(3, 6), 1, 4, 0, 1'000'000},
                     {Step(3, 5'000'000), 0, 4, 1'000'000, 1'000'000},
                 });
  }

  static void OneInTheLongestPeriod() {
    constexpr Tick kYear = property::kLongest;
    auto bucket = New(1, kYear);
    const Tick forgiven = kYear * (1 + bucket.quota().max_debt());
    Play(bucket, {
                     {Step(0, 1), 1, 0, 0, kYear},
                     {Step(kYear - 1, 1), 0, 0, 1, 1},
                     {Step(kYear, 1), 1, 0, 0, kYear},
                     {Look(300 * kYear), 0, 1, 0, 0},
                     // Debts are bounded: the second debit adds nothing.
                     {Debit(300 * kYear, kMaxCost), 1, 0, 0, forgiven},
                     {Debit(300 * kYear, kMaxCost), 1, 0, 0, forgiven},
                     {Look(300 * kYear), 0, 0, forgiven, forgiven},
                     {Look(301 * kYear), 0, 0, forgiven - kYear, forgiven - kYear},
                     {Debit(301 * kYear, 1), 1, 0, 0, forgiven},
                     {Refund(301 * kYear, kMaxCost, 0), 1, 1, 0, 0},
                 });
  }

  static void TheMostInTheShortestPeriod() {
    auto bucket = New(kMaxCost, 1);
    Play(bucket, {
                     {Step(0, 1, kMaxCount), kMaxCount, 0, 0, 1},
                     {Step(0, 1), 0, 0, 1, 1},
                     {Step(1, kMaxCost, 2), 1, 0, 1, 1},
                     {Debit(1, kMaxCost), 1, 0, 0, 2},
                     {Step(2, 1), 0, 0, 1, 1},
                 });
  }

  static void BurstOfOne() {
    auto bucket = New(10, 1'000'000, 1);
    Play(bucket, {
                     {Step(0, 1, 2), 1, 0, 100'000, 100'000},
                     {Step(99'999, 1), 0, 0, 1, 1},
                     {Step(100'000, 1), 1, 0, 0, 100'000},
                     {Step(10'000'000, 1, 5), 1, 0, 100'000, 100'000},
                     {Step(10'000'000, 2), 0, 0, 0, 100'000, Beside::kNever},
                 });
  }

  static void BurstAboveTheLimit() {
    auto bucket = New(2, 1'000'000, 10);
    Play(bucket, {
                     {Step(0, 10), 1, 0, 0, 5'000'000},
                     {Step(1'000'000, 3), 0, 2, 500'000, 4'000'000},
                     {Step(1'500'000, 3), 1, 0, 0, 5'000'000},
                     {Look(6'499'999, 10), 0, 9, 1, 1},
                     {Look(6'500'000, 10), 0, 10, 0, 0},
                 });
  }

  static void DebitsAndRefunds() {
    auto bucket = New(10, 1'000'000);
    Play(bucket, {
                     {Step(0, 1, 10), 10, 0, 0, 1'000'000},
                     {Debit(0, 5), 1, 0, 0, 1'500'000},
                     {Step(0, 1), 0, 0, 600'000, 1'500'000},
                     {Step(599'999, 1), 0, 0, 1, 900'001},
                     {Step(600'000, 1), 1, 0, 0, 1'000'000},
                     {Refund(650'000, 3, 0), 1, 3, 0, 650'000},
                     {Look(699'999), 0, 3, 0, 600'001},
                     {Look(700'000), 0, 4, 0, 600'000},
                     {Refund(700'000, kMaxCost, 0), 1, 10, 0, 0},
                     {Refund(700'000, 1, 0), 1, 10, 0, 0},
                     {Debit(700'000, 4), 1, 6, 0, 400'000},
                 });
  }

  /// A limit of 5 per hour: the default bound on debt is 50 units, which is 10 hours.
  static void BoundsDebts() {
    constexpr Tick kHour = 3'600'000'000;
    auto bucket = New(5, kHour);
    Play(bucket, {
                     {Debit(0, kMaxCost), 1, 0, 0, 11 * kHour},
                     {Debit(0, kMaxCost), 1, 0, 0, 11 * kHour},
                     {Step(0, 1), 0, 0, 10 * kHour + kHour / 5, 11 * kHour},
                     // In one hour 5 units of the debt are paid back; the next debit takes 5 units
                     // again.
                     {Debit(kHour, kMaxCost), 1, 0, 0, 11 * kHour},
                     {Refund(kHour, 50, 0), 1, 0, 0, kHour},
                 });
    property::Subject<Kit> strict(
        Quota::Make(
            {.algorithm = Kit::kAlgorithm, .limit = 5, .period = Micros{kHour}, .max_debt = 0})
            .value(),
        0);
    Play(strict, {
                     {Step(0, 3), 1, 2, 0, 3 * kHour / 5},
                     {Debit(0, 7), 1, 0, 0, kHour},
                     {Step(kHour / 5, 1), 1, 0, 0, kHour},
                 });
  }

  /// A clock that is behind by up to one recovery, here one second, counts as the last known time.
  /// If the clock is further behind, the state is repaired once.
  static void ClockBehind() {
    auto bucket = New(10, 1'000'000, 0, 1'000'000);
    Play(bucket, {
                     {Step(1'000'000, 1, 10), 10, 0, 0, 1'000'000},
                     {Step(999'999, 1), 0, 0, 100'001, 1'000'001},
                     {Step(900'000, 1), 0, 0, 200'000, 1'100'000},
                     {Step(0, 1), 0, 0, 1'100'000, 2'000'000},
                     {Step(-1, 1), 0, 0, 100'000, 1'000'000, Beside::kRepaired},
                     {Step(-1, 1), 0, 0, 100'000, 1'000'000},
                     {Step(99'998, 1), 0, 0, 1, 900'001},
                     {Step(99'999, 1), 1, 0, 0, 1'000'000},
                     // The clock is set back by one hour: a debit and a peek repair the state like
                     // a step does.
                     {Debit(-3'600'000'000, 2), 1, 0, 0, 1'200'000, Beside::kRepaired},
                     {Look(-7'200'000'000), 0, 0, 300'000, 1'200'000, Beside::kRepaired},
                     {Look(-7'200'000'000, 11), 0, 0, 0, 1'200'000, Beside::kNever},
                 });
  }

 private:
  static property::Subject<Kit> New(std::int64_t limit, Tick period, std::int64_t burst = 0,
                                    Tick now = 0) {
    return {Make(Kit::kAlgorithm, limit, period, burst), now};
  }
};

}  // namespace tidegate
