// SPDX-License-Identifier: Apache-2.0
#include "telemetry/hot_keys.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>
#include <string>

#include "unit/rules/allocations.hpp"
#include "unit/telemetry/exact_counts.hpp"

namespace tidegate {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::Field;
using testing::IsEmpty;
using testing::SizeIs;
using Outcome = HotKeys::Outcome;

/// The hot keys of one reactor, together with exact counts of the same requests.
class Counted {
 public:
  explicit Counted(std::size_t most, std::uint32_t exact = HotKeys::kExact)
      : keys_(timers_, most, start_, exact) {}

  void Count(std::uint64_t key, std::int64_t cost = 1, Outcome outcome = Outcome::kPassed) {
    keys_.Count(SlotOf(key), NameOf(key), cost, outcome);
    exact_[0].Add(key, 1);
    if (outcome == Outcome::kDenied) exact_[1].Add(key, 1);
    exact_[2].Add(key, static_cast<std::uint64_t>(cost));
  }
  /// Returns the report at the time `after`, counted from the start.
  std::shared_ptr<const HotReport> At(HotKeys::Clock::duration after) {
    keys_.Tick(start_ + after);
    return keys_.Published();
  }
  void ExpectBounds(const HotReport& report) const {
    for (std::size_t by = 0; by < kHotLists; ++by) exact_[by].ExpectBounds(report.by[by]);
  }
  [[nodiscard]] const ExactCounts& exact(HotBy by) const {
    return exact_[static_cast<std::size_t>(by)];
  }
  [[nodiscard]] HotKeys& keys() { return keys_; }

 private:
  net::Timers timers_;
  const HotKeys::Clock::time_point start_{std::chrono::hours{1}};
  HotKeys keys_;
  std::array<ExactCounts, kHotLists> exact_;
};

void ExpectTop(const HotList& list, const std::vector<std::string>& top) {
  std::set<std::string> listed;
  for (const HotKey& key : list.keys) listed.insert(key.identity);
  for (const std::string& name : top) EXPECT_TRUE(listed.contains(name)) << name;
}

auto IsKey(std::uint32_t slot, const std::string& name, std::uint64_t count) {
  return testing::AllOf(Field(&HotKey::slot, slot), Field(&HotKey::identity, name),
                        Field(&HotKey::count, count), Field(&HotKey::error, 0u));
}

TEST(HotKeysTest, ListsKeysByRequestsDenialsAndCost) {
  Counted counted(10);
  for (int i = 0; i < 5; ++i) counted.Count(4);
  for (int i = 0; i < 3; ++i) counted.Count(5, 1, Outcome::kDenied);
  counted.Count(6, 1000);
  const auto report = counted.At(milliseconds{500});
  EXPECT_EQ(report->span, milliseconds{500});
  EXPECT_THAT(report->of(HotBy::kRequests).keys,
              ElementsAre(IsKey(0, NameOf(4), 5), IsKey(1, NameOf(5), 3), IsKey(0, NameOf(6), 1)));
  EXPECT_THAT(report->of(HotBy::kDenials).keys, ElementsAre(IsKey(1, NameOf(5), 3)));
  EXPECT_THAT(
      report->of(HotBy::kCost).keys,
      ElementsAre(IsKey(0, NameOf(6), 1000), IsKey(0, NameOf(4), 5), IsKey(1, NameOf(5), 3)));
  for (const HotList& list : report->by) EXPECT_EQ(list.error, 0u);
  counted.ExpectBounds(*report);
}

TEST(HotKeysTest, CountsIdentitySeparatelyForEachRule) {
  net::Timers timers;
  const HotKeys::Clock::time_point start{};
  HotKeys keys(timers, 10, start);
  keys.Count(1, "a", 1, Outcome::kPassed);
  keys.Count(2, "a", 1, Outcome::kPassed);
  keys.Count(2, "a", 1, Outcome::kPassed);
  keys.Tick(start + seconds{1});
  EXPECT_THAT(keys.Published()->of(HotBy::kRequests).keys,
              ElementsAre(IsKey(2, "a", 2), IsKey(1, "a", 1)));
}

TEST(HotKeysTest, ReportsErrorBoundForUnlistedKeys) {
  Counted counted(2);
  for (std::uint64_t key = 1; key <= 5; ++key) {
    for (std::uint64_t i = 0; i < key * 10; ++i) counted.Count(key);
  }
  const auto report = counted.At(seconds{1});
  EXPECT_THAT(report->of(HotBy::kRequests).keys, SizeIs(2));
  EXPECT_EQ(report->of(HotBy::kRequests).error, 30u);
  counted.ExpectBounds(*report);
}

TEST(HotKeysTest, ForgetsKeysAfterTwoWindows) {
  Counted counted(10);
  counted.Count(1);
  EXPECT_THAT(counted.At(seconds{10})->of(HotBy::kRequests).keys, SizeIs(1));
  counted.Count(1);
  const auto both = counted.At(milliseconds{19'999});
  EXPECT_THAT(both->of(HotBy::kRequests).keys, ElementsAre(IsKey(1, NameOf(1), 2)));
  EXPECT_EQ(both->span, milliseconds{19'999});
  (void)counted.At(seconds{20});
  const auto one = counted.At(milliseconds{20'500});
  EXPECT_THAT(one->of(HotBy::kRequests).keys, ElementsAre(IsKey(1, NameOf(1), 1)));
  // The span begins with the window that began at 10 s.
  EXPECT_EQ(one->span, milliseconds{10'500});
  (void)counted.At(seconds{30});
  const auto none = counted.At(milliseconds{30'500});
  EXPECT_THAT(none->of(HotBy::kRequests).keys, IsEmpty());
  EXPECT_EQ(none->of(HotBy::kRequests).total, 0u);
}

TEST(HotKeysTest, SpanExcludesQuietTimeBeforeFirstRequest) {
  Counted counted(10);
  for (int i = 1; i <= 20; ++i) (void)counted.At(i * milliseconds{500});
  counted.Count(1);
  EXPECT_LE(counted.At(milliseconds{10'500})->span, seconds{1});
}

TEST(HotKeysTest, PublishesNothingWithoutRequests) {
  Counted counted(10);
  const auto first = counted.At(seconds{1});
  EXPECT_EQ(counted.At(seconds{2}), first);
  counted.Count(1);
  EXPECT_NE(counted.At(seconds{3}), first);
}

/// Checks bounds and ranks for random requests. `refill`: number of requests in half a second.
/// `exact`: how many of these are counted exactly.
void ExpectBoundsOf(unsigned seed, int count, int refill, bool costs,
                    std::uint32_t exact = HotKeys::kExact) {
  std::mt19937_64 random(seed);
  const ZipfNumbers zipf(100'000, 1.1);
  Counted counted(100, exact);
  for (int i = 0; i < count; ++i) {
    const bool noise = i % 2 == 0;
    const std::uint64_t key = noise ? 200'000 + random() % 1'000'000 : zipf(random);
    const auto cost = static_cast<std::int64_t>(costs && key % 5 == 0 ? 1 + random() % 50 : 1);
    counted.Count(key, cost, key % 7 == 0 ? Outcome::kDenied : Outcome::kPassed);
    if (i % refill == refill - 1) (void)counted.At((i / refill) * milliseconds{500});
  }
  const auto report = counted.At((count / refill + 1) * milliseconds{500});
  counted.ExpectBounds(*report);
  // Small counts of sampled keys have large errors, so only the first three ranks are compared.
  ExpectTop(report->of(HotBy::kRequests), counted.exact(HotBy::kRequests).Top(3));
  if (exact < HotKeys::kExact) return;
  ExpectTop(report->of(HotBy::kRequests), counted.exact(HotBy::kRequests).Top(10));
  ExpectTop(report->of(HotBy::kDenials), counted.exact(HotBy::kDenials).Top(10));
  ExpectTop(report->of(HotBy::kCost), counted.exact(HotBy::kCost).Top(10));
}

TEST(HotKeysTest, BoundsHoldForExactCounts) {
  ExpectBoundsOf(1, 40'000, 4'000, false);
  ExpectBoundsOf(2, 40'000, 4'000, true);
}

TEST(HotKeysTest, BoundsHoldAcrossWindows) {
  ExpectBoundsOf(3, 50'000, 2'000, false);  // 12.5 s, so that no window is forgotten yet.
  ExpectBoundsOf(4, 50'000, 2'000, true);
}

TEST(HotKeysTest, BoundsHoldForSampledCounts) {
  for (const unsigned seed : {5u, 6u, 7u}) {
    ExpectBoundsOf(seed, 60'000, 4'000, seed % 2 == 0, 500);
    ExpectBoundsOf(seed, 60'000, 4'000, seed % 2 == 0, 0);
  }
}

TEST(HotKeysTest, BoundIsTightInFlood) {
  Counted counted(10, 5'000);
  std::mt19937_64 random(1);
  for (int i = 0; i < 200'000; ++i) counted.Count(random() % 4 == 0 ? 1 : 2 + random() % 1'000'000);
  const auto report = counted.At(milliseconds{500});
  const HotKey& hottest = report->of(HotBy::kRequests).keys.front();
  EXPECT_EQ(hottest.identity, NameOf(1));
  EXPECT_NEAR(static_cast<double>(hottest.count), 50'000, 14'000);
  EXPECT_LT(hottest.error, 20'000u);
  EXPECT_LT(report->of(HotBy::kRequests).error, 5'000u);
}

TEST(HotKeysTest, CountsRareDenialsExactlyInFlood) {
  Counted counted(10, 1'000);
  for (int i = 0; i < 20'000; ++i) {
    if (i % 2'000 == 0) counted.Count(77, 1, Outcome::kDenied);
    counted.Count(static_cast<std::uint64_t>(i) % 500);
  }
  const auto report = counted.At(milliseconds{500});
  EXPECT_THAT(report->of(HotBy::kDenials).keys, ElementsAre(IsKey(1, NameOf(77), 10)));
}

TEST(HotKeysTest, CountDoesNotAllocate) {
  Counted counted(100);
  const std::string name = "header:x-api-key=~0123456789abcdefghijkl";
  const std::uint64_t before = AllocationsOfThisThread();
  for (int i = 0; i < 100; ++i) {
    counted.keys().Count(static_cast<std::uint32_t>(i), name, 1 + i % 2, Outcome::kDenied);
    counted.keys().Count(static_cast<std::uint32_t>(i), name, 1 + i % 2, Outcome::kDenied);
  }
  EXPECT_EQ(AllocationsOfThisThread(), before);
}

TEST(HotKeysTest, MergedReportKeepsBounds) {
  std::mt19937_64 random(7);
  const ZipfNumbers zipf(20'000, 1.1);
  Counted a(50), b(50), c(50);
  ExactCounts all;
  for (int i = 0; i < 60'000; ++i) {
    const std::uint64_t key = zipf(random);
    (key % 11 == 0 ? a : i % 2 == 0 ? b : c).Count(key);
    all.Add(key, 1);
  }
  const std::shared_ptr<const HotReport> parts[] = {a.At(milliseconds{500}), b.At(seconds{1}),
                                                    nullptr, c.At(milliseconds{700})};
  for (const std::size_t most : {1000u, 50u, 3u, 0u}) {
    const HotReport merged = Merge(parts, most);
    all.ExpectBounds(merged.of(HotBy::kRequests));
    EXPECT_LE(merged.of(HotBy::kRequests).keys.size(), most);
    EXPECT_EQ(merged.span, seconds{1});
    EXPECT_EQ(merged.of(HotBy::kDenials).total, 0u);
  }
  ExpectTop(Merge(parts, 50).of(HotBy::kRequests), all.Top(10));
}

constexpr int kBlock = Sampler::kInterval;

/// Returns the weight of the next event.
std::uint64_t Next(Sampler& sampler) { return sampler.Count() ? sampler.Weight() : 0; }

TEST(SamplerTest, TotalCountsAllEvents) {
  Sampler sampler(10, 4711);
  for (std::uint64_t came = 0; came < 5000; ++came) {
    ASSERT_EQ(sampler.total(), came);
    if (came % 777 == 0) sampler.Refill();
    (void)Next(sampler);
  }
}

TEST(SamplerTest, RecordsFirstEventsExactlyThenOneRandomEventPerBlock) {
  Sampler sampler(100, 1234567);
  for (int i = 0; i < 100; ++i) ASSERT_EQ(Next(sampler), 1u);
  std::set<int> places;
  for (int block = 0; block < 2000; ++block) {
    std::uint64_t sum = 0;
    for (int i = 0; i < kBlock; ++i) {
      const std::uint64_t times = Next(sampler);
      if (times != 0) places.insert(i);
      sum += times;
    }
    ASSERT_EQ(sum, Sampler::kInterval);
  }
  EXPECT_THAT(places, SizeIs(kBlock));
}

TEST(SamplerTest, FinishesBlockBeforeExactCounting) {
  for (int begun = 1; begun < kBlock; ++begun) {
    Sampler sampler(100, static_cast<std::uint64_t>(begun) * 7919);
    std::uint64_t sum = 0;
    for (int i = 0; i < 100 + begun; ++i) sum += Next(sampler);
    sampler.Refill();
    for (int i = begun; i < kBlock; ++i) sum += Next(sampler);
    EXPECT_EQ(sum, 100 + Sampler::kInterval);
    for (int i = 0; i < 100; ++i) ASSERT_EQ(Next(sampler), 1u);
  }
}

TEST(SamplerTest, SamplesFromFirstEventAfterFlood) {
  Sampler sampler(100, 99);
  for (int i = 0; i < 100 + kBlock * 100; ++i) (void)Next(sampler);
  sampler.Refill();
  std::uint64_t ones = 0;
  for (int i = 0; i < 2 * kBlock; ++i) ones += Next(sampler) == 1 ? 1 : 0;
  EXPECT_EQ(ones, 0u);
  sampler.Refill();  // The flood has ended, but one more block has begun.
  for (int i = 0; i < kBlock; ++i) (void)Next(sampler);
  for (int i = 0; i < 100; ++i) ASSERT_EQ(Next(sampler), 1u);
}

TEST(HotReportTest, MergeAddsErrorOfPartsThatLackAKey) {
  auto one = std::make_shared<HotReport>();
  one->by[0] = {.total = 100, .error = 7, .keys = {{1, "a", 50, 3}, {1, "b", 20, 0}}};
  auto other = std::make_shared<HotReport>();
  other->by[0] = {.total = 60, .error = 4, .keys = {{1, "a", 30, 1}}};
  const std::shared_ptr<const HotReport> parts[] = {one, other};
  const HotList list = Merge(parts, 10).of(HotBy::kRequests);
  EXPECT_EQ(list.total, 160u);
  EXPECT_EQ(list.error, 11u);
  ASSERT_THAT(list.keys, SizeIs(2));
  EXPECT_EQ(list.keys[0].count, 80u);
  EXPECT_EQ(list.keys[0].error, 4u);
  EXPECT_EQ(list.keys[1].count, 24u);
  EXPECT_EQ(list.keys[1].error, 4u);
  EXPECT_EQ(Merge(parts, 1).of(HotBy::kRequests).error, 24u);
}

}  // namespace
}  // namespace tidegate
