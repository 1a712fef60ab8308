// SPDX-License-Identifier: Apache-2.0
#include "store/memory_shard.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <unordered_map>
#include <vector>

namespace tidegate {
namespace {

const Time kNow{std::chrono::hours{1}};
const Meta::Kind kKind = 1;

class MemoryShardTest : public testing::Test {
 protected:
  static constexpr std::size_t kKeys = 20'000;

  MemoryShardTest() : memory_(MemoryShard::GroupsFor(kKeys) * sizeof(Group), Pages::kSmall) {
    shard_.Init(
        static_cast<Group*>(memory_.data()), MemoryShard::GroupsFor(kKeys), kKeys, clock_,
        [](void* context, Entry&, Meta) { ++*static_cast<int*>(context); }, &disposed_);
  }

  Fingerprint Random() { return {random_() | 1, random_()}; }
  /// Finds or adds the key `f` and writes `value` and the time `recovered`. Returns false if the
  /// shard is full.
  bool Put(const Fingerprint& f, std::uint64_t value, Time recovered) {
    const LockedEntry locked = shard_.LockOrAdd(f);
    if (!locked) return false;
    locked.ref.entry().Save(value);
    locked.ref.entry().Unlock(Meta{kKind, recovered});
    return true;
  }
  std::optional<std::uint64_t> Get(const Fingerprint& f) {
    const LockedEntry locked = shard_.Lock(f);
    if (!locked) return std::nullopt;
    const auto value = locked.ref.entry().Load<std::uint64_t>();
    locked.ref.entry().Unlock(locked.meta);
    return value;
  }

  const ManualClock clock_{kNow};
  std::mt19937_64 random_{7};
  ZeroedMemory memory_;
  int disposed_ = 0;
  MemoryShard shard_;
};

TEST_F(MemoryShardTest, StoresAndFindsAllKeys) {
  std::vector<Fingerprint> keys;
  for (std::size_t i = 0; i < kKeys; ++i) {
    keys.push_back(Random());
    ASSERT_TRUE(Put(keys.back(), i, kNow + Micros{1})) << "after " << i << " of " << kKeys;
  }
  EXPECT_EQ(shard_.used(), kKeys);
  EXPECT_EQ(disposed_, 0);
  for (std::size_t i = 0; i < kKeys; ++i) ASSERT_EQ(Get(keys[i]), i);
  EXPECT_FALSE(Put(Random(), 0, kNow)) << "a key was added although none can be reclaimed";
  for (std::size_t i = 0; i < kKeys; ++i) ASSERT_EQ(Get(keys[i]), i);
}

TEST_F(MemoryShardTest, ReclaimsOnlyRecoveredKeys) {
  std::vector<Fingerprint> kept;
  for (std::size_t i = 0; i < kKeys; ++i) {
    const Fingerprint f = Random();
    const bool recovered = i % 4 == 0;
    ASSERT_TRUE(Put(f, i, recovered ? kNow : kNow + Micros{1}));
    if (!recovered) kept.push_back(f);
  }
  std::size_t added = 0;
  for (std::size_t i = 0; i < kKeys * 2; ++i) added += Put(Random(), i, kNow + Micros{1});
  EXPECT_EQ(static_cast<std::size_t>(disposed_), shard_.reclaimed());
  EXPECT_EQ(shard_.reclaimed(), kKeys / 4) << "some recovered entries were not reclaimed";
  EXPECT_EQ(added, kKeys / 4);
  for (const Fingerprint& f : kept) ASSERT_TRUE(Get(f).has_value());
}

TEST_F(MemoryShardTest, AgreesWithStdMapOverManyOperations) {
  struct Model {
    std::uint64_t value;
    Time recovered;
  };
  std::unordered_map<std::uint64_t, Model> model;
  std::vector<Fingerprint> keys;
  for (std::size_t i = 0; i < 2 * kKeys; ++i) keys.push_back(Random());
  for (std::uint64_t step = 0; step < 200'000; ++step) {
    const Fingerprint& f = keys[random_() % keys.size()];
    const Time recovered = random_() % 3 == 0 ? kNow : kNow + Micros{1};
    if (Put(f, step, recovered)) model[f.low] = {step, recovered};
  }
  for (const Fingerprint& f : keys) {
    const auto it = model.find(f.low);
    const auto got = Get(f);
    if (it == model.end()) {
      EXPECT_FALSE(got.has_value());
    } else if (it->second.recovered > kNow) {
      EXPECT_EQ(got, it->second.value) << "a live entry was lost";
    } else if (got) {
      EXPECT_EQ(got, it->second.value);
    }
  }
}

TEST_F(MemoryShardTest, EntryMetadataKeepsKindAndTime) {
  for (const std::int64_t t : {std::int64_t{0}, std::int64_t{1}, std::int64_t{1} << 58}) {
    const Meta meta{5, Time{Micros{t}}};
    EXPECT_EQ(meta.kind(), 5);
    EXPECT_EQ(meta.recovered().time_since_epoch().count(), t);
  }
  EXPECT_EQ((Meta{7, Time{Micros{-5}}}).recovered(), Time{});
  EXPECT_EQ((Meta{7, Time::max()}).kind(), 7);
}

}  // namespace
}  // namespace tidegate
