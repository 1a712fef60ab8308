// SPDX-License-Identifier: Apache-2.0
// Ten million invented identities against a memory store with room for one million keys.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "store/store.hpp"

namespace tidegate {
namespace {

using namespace std::chrono_literals;

std::size_t ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  std::size_t total = 0;
  std::size_t resident = 0;
  statm >> total >> resident;
  return resident * 4096;
}

struct Text {
  char data[32];
  std::string_view Write(const char* prefix, int i) {
    const int n = std::snprintf(data, sizeof(data), "%s-%d", prefix, i);
    return {data, static_cast<std::size_t>(n)};
  }
};

TEST(MemoryFloodTest, FloodNeitherEvictsTrackedKeysNorExceedsMemory) {
  constexpr int kTracked = 100'000;
  constexpr int kFlood = 10'000'000;
  ManualClock clock;
  const std::size_t before = ResidentBytes();
  const auto store = NewMemoryStore({.max_keys = 1'000'000, .clock = &clock});
  const Quota quota = Quota::Make({.limit = 10, .period = 24h}).value();
  Text text;
  for (int i = 0; i < kTracked; ++i) {
    ASSERT_TRUE(store->Apply(Charge{"r", text.Write("tracked", i), &quota, 4})->allowed);
  }
  // Two attackers send each request under a new identity while the clock stands still.
  std::atomic<std::int64_t> admitted = 0;
  {
    std::vector<std::jthread> attackers;
    for (int t = 0; t < 2; ++t) {
      attackers.emplace_back([&, t] {
        Text name;
        std::int64_t mine = 0;
        for (int i = t; i < kFlood; i += 2) {
          mine += store->Apply(Charge{"r", name.Write("flood", i), &quota})->allowed ? 1 : 0;
        }
        admitted += mine;
      });
    }
  }
  const StoreStats stats = store->Stats();
  const std::size_t bytes = ResidentBytes() - before;
  EXPECT_GE(stats.tracked, 1'000'000u);
  EXPECT_LE(stats.tracked, 1'050'000u);
  EXPECT_LE(bytes, 70'000'000u) << "bytes of memory for the store";
  // Each new key that found room was admitted once; all other identities shared one bucket of ten
  // units.
  EXPECT_EQ(admitted, static_cast<std::int64_t>(stats.tracked) - kTracked + 10);
  EXPECT_EQ(stats.overflowed, static_cast<std::uint64_t>(kFlood) - (stats.tracked - kTracked));
  EXPECT_EQ(stats.reclaimed, 0u);
  // Keys that were tracked before the flood keep their state: exactly 4 of 10 units are used.
  for (int i = 0; i < kTracked; ++i) {
    const std::string_view name = text.Write("tracked", i);
    ASSERT_EQ(store->Apply(Charge{"r", name, &quota, 6})->remaining, 0);
    ASSERT_FALSE(store->Apply(Charge{"r", name, &quota})->allowed);
  }
  // An attacker that reuses an identity gets no more than that identity has left.
  std::int64_t again = 0;
  for (int i = 0; i < 100'000; ++i) {
    const Charge charge{"r", text.Write("flood", i), &quota};
    Decision decision;
    again = std::max(again, store->Apply({&charge, 1}, 100, {&decision, 1}).value());
  }
  EXPECT_EQ(again, 9);
  // After a day every key has recovered, so there is room for new clients.
  clock.Advance(24h);
  for (int i = 0; i < 100'000; ++i) {
    ASSERT_EQ(store->Apply(Charge{"r", text.Write("new", i), &quota})->remaining, 9) << i;
  }
  std::printf("%zu bytes resident for %llu entries\n", bytes,
              static_cast<unsigned long long>(stats.tracked));
}

}  // namespace
}  // namespace tidegate
