// SPDX-License-Identifier: Apache-2.0
#include "telemetry/hot_sketch.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <unordered_map>

#include "unit/rules/allocations.hpp"
#include "unit/telemetry/exact_counts.hpp"

namespace tidegate {
namespace {

/// Returns a fingerprint that is as evenly distributed as the keyed hash of a name.
std::uint64_t FingerprintOf(std::uint64_t number) {
  std::uint64_t mixed = (number + 1) * 0x9E3779B97F4A7C15u;
  mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9u;
  mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBu;
  return (mixed ^ (mixed >> 31)) | 1;
}

SketchKey KeyOf(std::uint64_t number, std::string_view name) {
  return {FingerprintOf(number), static_cast<std::uint32_t>(number % 3), name};
}

struct Drawn {
  std::uint64_t key;
  std::uint64_t weight;
};

/// Checks for every key of a random stream that the bounds contain its exact count, whether the
/// sketch lists the key or not.
void ExpectBounds(HotSketch& sketch, int additions, const std::function<Drawn(int)>& draw) {
  std::unordered_map<std::uint64_t, std::uint64_t> exact;
  for (int i = 0; i < additions; ++i) {
    const Drawn drawn = draw(i);
    exact[drawn.key] += drawn.weight;
    sketch.Add(KeyOf(drawn.key, std::to_string(drawn.key)), drawn.weight);
  }
  for (const auto& [key, count] : exact) {
    const HotSketch::Estimate estimate = sketch.Get(FingerprintOf(key));
    ASSERT_LE(count, estimate.count) << key;
    ASSERT_GE(count, estimate.count - estimate.error) << key;
    ASSERT_LE(estimate.error, estimate.count) << key;
    if (estimate.named) {
      ASSERT_EQ(estimate.identity, std::to_string(key));
      ASSERT_EQ(estimate.slot, key % 3);
    }
  }
}

TEST(HotSketchTest, CountsExactlyWhileAllKeysFit) {
  HotSketch sketch(1024);
  ExpectBounds(sketch, 10'000, [](int i) { return Drawn{static_cast<std::uint64_t>(i % 50), 1}; });
  for (std::uint64_t key = 0; key < 50; ++key) {
    const HotSketch::Estimate estimate = sketch.Get(FingerprintOf(key));
    EXPECT_EQ(estimate.count, 200u);
    EXPECT_EQ(estimate.error, 0u);
    EXPECT_TRUE(estimate.named);
  }
}

TEST(HotSketchTest, BoundsHoldOnRandomStreams) {
  for (const unsigned seed : {1u, 2u, 3u}) {
    std::mt19937_64 random(seed);
    const ZipfNumbers zipf(100'000, 1.1);
    HotSketch sketch(256);
    ExpectBounds(sketch, 50'000, [&](int) { return Drawn{zipf(random), 1}; });
    sketch.Clear();
    ExpectBounds(sketch, 50'000, [&](int) { return Drawn{random() % 1'000'000, 1}; });
    sketch.Clear();
    ExpectBounds(sketch, 50'000, [&](int) {
      return Drawn{zipf(random), std::uint64_t{1} << (random() % 31)};
    });
  }
}

TEST(HotSketchTest, BoundsHoldForAdversarialStreams) {
  // Each key appears again when the sketch has just dropped it.
  for (const std::uint64_t keys : {9u, 64u, 65u, 257u, 3000u}) {
    HotSketch sketch(64);
    ExpectBounds(sketch, 30'000, [&](int i) {
      return Drawn{static_cast<std::uint64_t>(i) % keys, 1};
    });
  }
  // One key appears repeatedly, with more weight each time, in a flood of new names.
  HotSketch sketch(64);
  ExpectBounds(sketch, 30'000, [](int i) {
    return i % 100 == 0 ? Drawn{0, static_cast<std::uint64_t>(i / 100 + 1)}
                        : Drawn{static_cast<std::uint64_t>(i), 1};
  });
}

TEST(HotSketchTest, BoundsCountOfUnlistedKeyByItsSet) {
  HotSketch sketch(HotSketch::kWays);
  for (std::uint64_t key = 0; key < 8; ++key) sketch.Add(KeyOf(key, "a"), 10 + key);
  const HotSketch::Estimate missing = sketch.Get(FingerprintOf(99));
  EXPECT_FALSE(missing.placed);
  EXPECT_EQ(missing.count, 10u);
  EXPECT_EQ(missing.error, 10u);
  EXPECT_EQ(sketch.Bound(3), 10u);
}

TEST(HotSketchTest, StoresNameOfRepeatedOrHeavyKeyOnly) {
  HotSketch sketch(HotSketch::kWays);
  for (std::uint64_t key = 0; key < 8; ++key) sketch.Add(KeyOf(key, "old"), 5);
  sketch.Add(KeyOf(100, "once"), 1);
  EXPECT_TRUE(sketch.Get(FingerprintOf(100)).placed);
  EXPECT_FALSE(sketch.Get(FingerprintOf(100)).named);
  sketch.Add(KeyOf(100, "once"), 1);
  EXPECT_EQ(sketch.Get(FingerprintOf(100)).identity, "once");
  EXPECT_TRUE(sketch.Get(FingerprintOf(100)).named);
  sketch.Add(KeyOf(101, "heavy"), 1000);
  EXPECT_EQ(sketch.Get(FingerprintOf(101)).identity, "heavy");
}

TEST(HotSketchTest, AllocatesNothingForTenMillionNames) {
  HotSketch sketch(1024);
  std::string name = "header:x-api-key=~0123456789abcdefghijkl";
  const std::uint64_t before = AllocationsOfThisThread();
  for (std::uint64_t i = 0; i < 10'000'000; ++i) {
    std::memcpy(name.data() + 18, &i, sizeof i);
    sketch.Add({FingerprintOf(i), 1, name}, 1);
  }
  EXPECT_EQ(AllocationsOfThisThread(), before);
  EXPECT_EQ(sketch.places(), 1024u);
}

}  // namespace
}  // namespace tidegate
