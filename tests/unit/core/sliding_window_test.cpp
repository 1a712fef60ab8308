// SPDX-License-Identifier: Apache-2.0
#include "core/sliding_window.hpp"

#include <gtest/gtest.h>

#include "core/quota_scale.hpp"
#include "property/quotas.hpp"
#include "unit/core/table.hpp"

namespace tidegate {
namespace {

using Sliding = property::Subject<property::SlidingWindowKit>;

TEST(SlidingWindowTest, CountsPreviousWindowLessOverTime) {
  Sliding window(Make(Algorithm::kSlidingWindow, 10, 1000), 900);
  Play(window, {
                   {Look(900), 0, 10, 0, 0},
                   {Step(900, 1, 10), 10, 0, 0, 1100},
                   {Step(900, 1), 0, 0, 200, 1100},
                   {Step(1000, 1), 0, 0, 100, 1000},
                   {Step(1099, 1), 0, 0, 1, 901},
                   {Step(1100, 1), 1, 0, 0, 1900},
                   // 10 * 0.5 + 1 units are counted, so four more are allowed; a fifth is allowed
                   // when 10 * 0.4 + 5 + 1 <= 10.
                   {Step(1500, 1, 9), 4, 0, 100, 1500},
                   {Look(1501), 0, 0, 99, 1499},
                   // With 5 units in its own window, a cost of 6 cannot fit; in the next window 5 *
                   // 0.8 + 6 fits.
                   {Step(1555, 6), 0, 0, 645, 1445},
                   {Step(2199, 6), 0, 5, 1, 801},
                   {Step(2200, 6), 1, 0, 0, 1800},
                   {Step(2200, 11), 0, 0, 0, 1800, Beside::kNever},
                   {Look(3999), 0, 9, 0, 1},
                   {Look(4000), 0, 10, 0, 0},
                   {Look(4'000'000), 0, 10, 0, 0},
               });
}

/// The whole limit is available again only when both windows are empty.
TEST(SlidingWindowTest, RestoresWholeLimitAfterTwoWindows) {
  Sliding window(Make(Algorithm::kSlidingWindow, 10, 1000), 0);
  Play(window, {
                   {Step(0, 10), 1, 0, 0, 2000},
                   {Step(0, 10), 0, 0, 2000, 2000},
                   {Step(1999, 10), 0, 9, 1, 1},
                   {Step(2000, 10), 1, 0, 0, 2000},
               });
}

TEST(SlidingWindowTest, KeepsNextWindowAndRepairsLaterWindows) {
  Sliding window(Make(Algorithm::kSlidingWindow, 10, 1000), 1000);
  Play(window, {
                   {Step(1999, 5), 1, 5, 0, 1001},
                   {Step(2200, 6), 1, 0, 0, 1800},
                   // The clock is behind and counts as 2000, the beginning of the newest window,
                   // where the 5 units of the window before still count in full beside the 6 of
                   // this one.
                   {Step(1999, 1), 0, 0, 401, 2001},
                   {Step(1000, 1), 0, 0, 1400, 3000},
                   {Step(999, 1), 1, 2, 0, 1001, Beside::kRepaired},
                   {Refund(999, 2, 500), 1, 4, 0, 1001},
                   {Refund(999, kMaxCost, -1), 1, 5, 0, 1001},
                   {Refund(999, 1, -1001), 0, 5, 0, 1001},
                   {Refund(999, kMaxCost, 5000), 1, 10, 0, 0},
               });
}

TEST(SlidingWindowTest, DebitsDelayRetryIntoLaterWindows) {
  Sliding window(Make(Algorithm::kSlidingWindow, 10, 1000), 0);
  Play(window, {
                   {Debit(0, 90), 1, 0, 0, 2000},
                   // 90 * (1 - e) + 1 <= 10 holds from e = 0.9 of the next window.
                   {Step(0, 1), 0, 0, 1900, 2000},
                   {Step(1899, 1), 0, 0, 1, 101},
                   {Step(1900, 1), 1, 0, 0, 1100},
               });
}

TEST(SlidingWindowTest, StopsDebitsAtMaxDebt) {
  const Quota quota = Make(Algorithm::kSlidingWindow, 10, 1000);
  const auto current_after = [&](std::int64_t current, std::int64_t previous, Tick now) {
    const auto stepped =
        sliding_window::Debit({At(0), current, previous}, quota, kMaxCost, At(now));
    EXPECT_EQ(stepped.outcome.remaining, 0);
    return stepped.next.current;
  };
  EXPECT_EQ(current_after(0, 0, 0), 110);
  EXPECT_EQ(current_after(0, 100, 500), 60) << "the previous window does not count by half";
  EXPECT_EQ(current_after(0, 101, 500), 59);
  EXPECT_EQ(current_after(120, 0, 0), 120) << "a count from a larger quota was lowered";
  const std::int64_t most = Saturation(quota);
  EXPECT_EQ(current_after(most + 1, most + 1, 0), most);
}

/// A count of 2^31-1 per minute fades in slices of 100 us: within a slice nothing changes.
TEST(SlidingWindowTest, PreviousWindowFadesInSlices) {
  const Quota quota = Make(Algorithm::kSlidingWindow, 2'147'483'647, 60'000'000);
  ASSERT_EQ(Slice(quota), Micros{100});
  Sliding window(quota, 0);
  // One slice frees 2147483647 / 600000 = 3579.13 units, two slices free 7158.27.
  Play(window, {
                   {Step(0, kMaxCost), 1, 0, 0, 120'000'000},
                   {Look(60'000'099), 0, 0, 1, 59'999'901},
                   {Look(60'000'100, 3'580), 0, 3'579, 100, 59'999'900},
                   {Look(60'000'199, 3'580), 0, 3'579, 1, 59'999'801},
                   {Look(60'000'200, 3'580), 0, 7'158, 0, 59'999'800},
               });
}

TEST(SlidingWindowTest, CountsExactlyUnderExtremeQuotas) {
  Sliding shortest(Make(Algorithm::kSlidingWindow, 1, 1), 0);
  Play(shortest, {
                     {Step(0, 1, 2), 1, 0, 2, 2},
                     {Step(1, 1), 0, 0, 1, 1},
                     {Step(2, 1), 1, 0, 0, 2},
                 });
  Sliding longest(Make(Algorithm::kSlidingWindow, 1, property::kLongest), 0);
  Play(longest, {
                    {Step(0, 1), 1, 0, 0, 2 * property::kLongest},
                    {Step(1, 1), 0, 0, 2 * property::kLongest - 1, 2 * property::kLongest - 1},
                    {Step(2 * property::kLongest, 1), 1, 0, 0, 2 * property::kLongest},
                });
}

}  // namespace
}  // namespace tidegate
