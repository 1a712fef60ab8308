// SPDX-License-Identifier: Apache-2.0
#include "tidegate/clock.hpp"

#include <gtest/gtest.h>

namespace tidegate {
namespace {

TEST(RealClockTest, NeverRunsBackwards) {
  const RealClock clock;
  Time last = clock.Now();
  for (int i = 0; i < 100'000; ++i) {
    const Time now = clock.Now();
    ASSERT_GE(now, last);
    last = now;
  }
}

TEST(RealClockTest, StartsAtTheWallClock) {
  const auto wall = [] { return std::chrono::floor<Micros>(std::chrono::system_clock::now()); };
  const RealClock clock;
  const Micros apart = clock.Now() - wall();
  // Less than 1 s apart: a machine that stalls between the two readings adds to the difference.
  EXPECT_LT(std::chrono::abs(apart), std::chrono::seconds{1});
}

TEST(RealClockTest, MovesForward) {
  const RealClock clock;
  const Time start = clock.Now();
  int readings = 0;
  while (clock.Now() == start && readings < 100'000'000) ++readings;
  EXPECT_GT(clock.Now(), start);
}

TEST(ManualClockTest, MovesOnlyWhenAdvanced) {
  ManualClock clock(Time{Micros{1000}});
  EXPECT_EQ(clock.Now(), Time{Micros{1000}});
  EXPECT_EQ(clock.Now(), Time{Micros{1000}});
  clock.Advance(Micros{1});
  EXPECT_EQ(clock.Now(), Time{Micros{1001}});
  clock.Advance(Micros{-501});
  EXPECT_EQ(clock.Now(), Time{Micros{500}});
  clock.Set(Time{Micros{-7}});
  EXPECT_EQ(clock.Now(), Time{Micros{-7}});
}

TEST(ManualClockTest, StartsWellAfterTheEpoch) {
  EXPECT_GT(ManualClock().Now().time_since_epoch(), std::chrono::hours{24 * 366});
}

TEST(ManualClockTest, WorksThroughClockInterface) {
  const ManualClock manual(Time{Micros{5}});
  const Clock& clock = manual;
  EXPECT_EQ(clock.Now(), Time{Micros{5}});
}

}  // namespace
}  // namespace tidegate
