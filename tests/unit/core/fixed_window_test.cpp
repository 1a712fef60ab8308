// SPDX-License-Identifier: Apache-2.0
#include "core/fixed_window.hpp"

#include <gtest/gtest.h>

#include "core/quota_scale.hpp"
#include "property/quotas.hpp"
#include "unit/core/table.hpp"

namespace tidegate {
namespace {

using Fixed = property::Subject<property::FixedWindowKit>;

TEST(FixedWindowTest, CountsPerEpochAlignedWindow) {
  Fixed window(Make(Algorithm::kFixedWindow, 3, 1000), 500);
  Play(window, {
                   {Look(500), 0, 3, 0, 0},
                   {Step(500, 1, 2), 2, 1, 0, 500},
                   {Step(999, 2), 0, 1, 1, 1},
                   {Step(999, 1, kMaxCount), 1, 0, 1, 1},
                   // Twice the limit passes within two microseconds, at the border of two windows:
                   // a documented property of fixed windows.
                   {Step(1000, 3), 1, 0, 0, 1000},
                   {Step(1000, 4), 0, 0, 0, 1000, Beside::kNever},
                   {Step(1999, 1), 0, 0, 1, 1},
                   {Look(5'000'000), 0, 3, 0, 0},
               });
}

TEST(FixedWindowTest, AlignsWindowsBeforeTheEpoch) {
  Fixed window(Make(Algorithm::kFixedWindow, 1, 1000), -1500);
  Play(window, {
                   {Step(-1500, 1), 1, 0, 0, 500},
                   {Step(-1001, 1), 0, 0, 1, 1},
                   {Step(-1000, 1), 1, 0, 0, 1000},
                   {Step(-1, 1), 0, 0, 1, 1},
                   {Step(0, 1), 1, 0, 0, 1000},
               });
}

TEST(FixedWindowTest, KeepsNextWindowAndRepairsLaterWindows) {
  Fixed window(Make(Algorithm::kFixedWindow, 3, 1000), 1000);
  Play(window, {
                   {Step(1000, 2), 1, 1, 0, 1000},
                   {Step(999, 2), 0, 1, 1001, 1001},
                   {Step(999, 1), 1, 0, 0, 1001},
                   {Step(0, 1), 0, 0, 2000, 2000},
                   {Step(-1, 1), 0, 0, 1, 1, Beside::kRepaired},
                   {Step(-1, 1), 0, 0, 1, 1},
                   {Step(0, 1), 1, 2, 0, 1000},
                   {Refund(-2000, 1, -2000), 1, 3, 0, 0, Beside::kRepaired},
               });
}

TEST(FixedWindowTest, AppliesDebitsAndRefunds) {
  Fixed window(Make(Algorithm::kFixedWindow, 3, 1000), 0);
  Play(window, {
                   {Debit(0, 11), 1, 0, 0, 1000},
                   {Step(0, 1), 0, 0, 1000, 1000},
                   {Refund(10, 9, 0), 1, 1, 0, 990},
                   {Refund(10, 1, -1), 0, 1, 0, 990},
                   {Refund(10, 1, 2000), 1, 2, 0, 990},
                   {Refund(10, kMaxCost, 10), 1, 3, 0, 0},
                   {Debit(10, 2), 1, 1, 0, 990},
                   // The refund is too late: the window that it belongs to has passed, and the new
                   // window counts nothing.
                   {Refund(1000, 1, 999), 0, 3, 0, 0},
               });
}

TEST(FixedWindowTest, StopsDebitsAtMaxDebt) {
  const Quota quota = Make(Algorithm::kFixedWindow, 3, 1000);
  const auto count_after = [&](std::int64_t count) {
    return fixed_window::Debit({At(0), count}, quota, kMaxCost, At(0)).next.count;
  };
  EXPECT_EQ(count_after(0), 33);
  EXPECT_EQ(count_after(32), 33);
  EXPECT_EQ(count_after(40), 40) << "a count from a larger quota was lowered";
  EXPECT_EQ(count_after(Saturation(quota) + 1), Saturation(quota));
}

TEST(FixedWindowTest, CountsExactlyUnderExtremeQuotas) {
  Fixed shortest(Make(Algorithm::kFixedWindow, 1, 1), 0);
  Play(shortest, {{Step(0, 1, 2), 1, 0, 1, 1}, {Step(1, 1), 1, 0, 0, 1}});
  const std::int64_t most = std::int64_t{1} << 51;
  Fixed widest(Make(Algorithm::kFixedWindow, most, property::kLongest), 0);
  Play(widest, {
                   {Step(0, kMaxCost, 2), 2, most - 2 * kMaxCost, 0, property::kLongest},
                   {Step(0, kMaxCost, kMaxCount), 1'048'574, 1'048'576, property::kLongest,
                    property::kLongest},
               });
}

TEST(FixedWindowTest, KeepsCountWhenLimitChanges) {
  const fixed_window::State seven{At(0), 7};
  EXPECT_EQ(fixed_window::Step(seven, Make(Algorithm::kFixedWindow, 10, 1000), 1, 0, At(1))
                .outcome.remaining,
            3);
  const auto over = fixed_window::Step(seven, Make(Algorithm::kFixedWindow, 5, 1000), 1, 1, At(1));
  EXPECT_EQ(over.outcome.remaining, 0);
  EXPECT_EQ(over.outcome.retry_after, Micros{999});
}

}  // namespace
}  // namespace tidegate
