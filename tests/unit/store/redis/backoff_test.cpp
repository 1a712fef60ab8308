// SPDX-License-Identifier: Apache-2.0
#include "store/redis/breaker.hpp"

#include <gtest/gtest.h>

namespace tidegate::redis {
namespace {

using namespace std::chrono_literals;

TEST(BackoffTest, GrowsToCapAndSpreadsWaitsUniformly) {
  Backoff::Duration sum{0};
  Backoff::Duration longest{0};
  Backoff::Duration shortest{1h};
  Backoff backoff(7);
  for (int attempt = 0; attempt < 2000; ++attempt) {
    const auto wait = backoff.Next();
    const auto most = attempt >= 5 ? Backoff::Duration(500ms) : (1 << attempt) * Backoff::kFirst;
    ASSERT_GE(wait, 0us);
    ASSERT_LT(wait, most) << attempt;
    if (attempt < 5) continue;
    sum += wait;
    longest = std::max(longest, wait);
    shortest = std::min(shortest, wait);
  }
  EXPECT_NEAR(static_cast<double>(sum.count()) / 1995, 250e3, 20e3);
  EXPECT_GT(longest, 490ms);
  EXPECT_LT(shortest, 10ms);
  backoff.Reset();
  EXPECT_LT(backoff.Next(), 20ms);
}

TEST(BackoffTest, WaitsForDifferentTimesOnEachNode) {
  Backoff a(1);
  Backoff b(2);
  int equal = 0;
  for (int i = 0; i < 100; ++i) equal += a.Next() == b.Next() ? 1 : 0;
  EXPECT_LT(equal, 3);
}

}  // namespace
}  // namespace tidegate::redis
