// SPDX-License-Identifier: Apache-2.0
// Error bounds of hot keys whose requests were sampled.
#include <gtest/gtest.h>

#include <string>

#include "telemetry/hot_keys.hpp"

namespace tidegate {
namespace {

using std::chrono::milliseconds;
using Outcome = HotKeys::Outcome;

/// Returns true if the list's bounds hold for a key with this true count.
bool Holds(const HotList& list, const std::string& name, std::uint64_t count) {
  for (const HotKey& key : list.keys) {
    if (key.identity == name) return count <= key.count && count >= key.count - key.error;
  }
  return count <= list.error;
}

TEST(HotKeysBoundsTest, BoundsHoldForOneExpensiveRequestInFlood) {
  constexpr int kRounds = 64;
  int broken = 0;
  for (int round = 0; round < kRounds; ++round) {
    net::Timers timers;
    const HotKeys::Clock::time_point start{std::chrono::hours{1}};
    HotKeys keys(timers, 10, start, 0);
    for (int i = 0; i < 2000; ++i) {
      keys.Count(0, "client_ip=" + std::to_string(i % 50), 1 + i % 2, Outcome::kPassed);
      if (i == 1000) keys.Count(0, "whale", 1'000'000, Outcome::kPassed);
    }
    keys.Tick(start + milliseconds{500});
    const auto report = keys.Published();
    broken += Holds(report->of(HotBy::kCost), "whale", 1'000'000) ? 0 : 1;
  }
  EXPECT_EQ(broken, 0) << "of " << kRounds << "; the bound may break once in a billion rounds";
}

TEST(HotKeysBoundsTest, BoundsHoldInWindowAfterFlood) {
  constexpr int kBlock = Sampler::kInterval;
  int broken = 0;
  for (int round = 0; round < 32; ++round) {
    net::Timers timers;
    const HotKeys::Clock::time_point start{std::chrono::hours{1}};
    HotKeys keys(timers, 10, start, 100);
    // The first requests are counted exactly, the others in blocks; the last block is incomplete.
    for (int i = 0; i < 100 + kBlock * 3 + 8; ++i) keys.Count(0, "a", 1, Outcome::kPassed);
    keys.Tick(start + std::chrono::seconds{10});  // A new window begins.
    for (int i = 0; i < 20; ++i) keys.Count(0, "b", 1, Outcome::kPassed);
    // The window with key `a` is over; only key `b` is left.
    keys.Tick(start + std::chrono::seconds{20});
    keys.Tick(start + std::chrono::milliseconds{20'500});
    const auto report = keys.Published();
    broken += Holds(report->of(HotBy::kRequests), "b", 20) ? 0 : 1;
  }
  EXPECT_EQ(broken, 0);
}

}  // namespace
}  // namespace tidegate
