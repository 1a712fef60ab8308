// SPDX-License-Identifier: Apache-2.0
// The memory store when it is nearly full, or when its memory for lists is used up.
#include <thread>

#include "fixture.hpp"
#include "store/memory_shard.hpp"

namespace tidegate {
namespace {

class MemoryOverflowTest : public testing::Test {
 protected:
  std::unique_ptr<Store> NewStore(std::size_t max_keys, std::size_t list_bytes = 1 << 20) {
    return NewMemoryStore({.max_keys = max_keys, .max_list_bytes = list_bytes, .clock = &clock_});
  }
  std::string Id(int i) const { return "id-" + std::to_string(i); }
  /// Charges new keys of rule "fill" until the store has no room for another key.
  void Fill(Store& store, const Quota& quota) {
    for (int i = 0; store.Stats().overflowed == 0; ++i) {
      ASSERT_TRUE(store.Apply(Charge{"fill", Id(i), &quota}).has_value());
    }
  }

  ManualClock clock_;
};

/// Regression: the id of a refund took the place in which its key had been found.
TEST_F(MemoryOverflowTest, RefundsFinishInNearlyFullStore) {
  const Quota quota = MakeQuota({.limit = 1000, .period = 1h});
  for (int round = 0; round < 30; ++round) {
    const auto store = NewStore(50);
    for (int i = 0; i < 45; ++i) ASSERT_TRUE(store->Apply(Charge{"r", Id(i), &quota})->allowed);
    for (int i = 0; i < 45; ++i) {
      const auto refunded = store->Refund({"r", Id(i), &quota}, {.id = "x"});
      EXPECT_EQ(refunded.value_or(Applied::kYes), Applied::kYes);
    }
    clock_.Advance(1h);  // Afterwards all keys of the store have recovered.
    for (int i = 0; i < 45; ++i) {
      EXPECT_EQ(store->Refund({"r", Id(i), &quota}, {.id = "y"}).value(), Applied::kNo);
    }
  }
}

/// Regression: a request took a charge for its own reservation of the entry if both had the same
/// time, and reclaimed the key.
TEST_F(MemoryOverflowTest, DoesNotReclaimChargedKeysBeforeTheyRecover) {
  const Quota wide = MakeQuota({.limit = 1'000'000, .period = 1h});
  for (const Micros period : {Micros{1ms}, Micros{10ms}, Micros{100ms}, Micros{1s}, Micros{10s}}) {
    const Quota one = MakeQuota({.limit = 1, .period = period});
    const auto store = NewStore(100);
    int admitted = 0;
    for (int round = 0; round < 2; ++round) {
      for (int i = 0; i < 400; ++i) {
        const std::string id = Id(i);
        const std::array<Charge, 2> charges{Charge{"one", id, &one}, Charge{"all", "all", &wide}};
        std::array<Decision, 2> decisions;
        admitted += static_cast<int>(store->Apply(charges, 1, decisions).value());
      }
    }
    EXPECT_EQ(store->Stats().reclaimed, 0u) << "a key was reclaimed although no time has passed";
    EXPECT_LE(static_cast<std::uint64_t>(admitted), store->Stats().tracked);
  }
}

/// Regression: a chain of moves that reached the same place twice put a key into a group that is
/// not its home.
TEST_F(MemoryOverflowTest, KeepsMovedKeysInTheirHomeGroups) {
  enum Home : std::uint64_t { kA, kB, kC, kD, kE };
  const Time far{10'000'000h};
  for (int round = 0; round < 200; ++round) {
    ZeroedMemory memory(8 * sizeof(Group), Pages::kSmall);
    MemoryShard shard;
    shard.Init(
        static_cast<Group*>(memory.data()), 8, 30, clock_, [](void*, Entry&, Meta) {}, nullptr);
    std::uint64_t serial = 1;
    std::vector<Fingerprint> keys;
    const auto make = [&](Home first, Home second) {
      const auto bits = [&](Home home) { return (home << 61) + (1ULL << 20) + serial++; };
      const std::uint64_t low = bits(first);
      return Fingerprint{low, bits(second)};
    };
    const auto add = [&](Home first, Home second) {
      const Fingerprint f = make(first, second);
      const LockedEntry locked = shard.LockOrAdd(f);
      locked.ref.entry().Unlock(Meta{1, far});
      keys.push_back(f);
      return f;
    };
    const Fingerprint held_key = add(kA, kB);
    for (int i = 0; i < 3; ++i) add(kA, kE);
    add(kB, kC);
    for (int i = 0; i < 2; ++i) add(kB, kE);
    for (int i = 0; i < 4; ++i) add(kC, i == 0 ? kA : kE);
    for (int i = 0; i < 4; ++i) add(kD, kE);
    for (int i = 0; i < 4; ++i) add(kE, kD);
    // Another thread locks one entry for a random time.
    const LockedEntry held = shard.Lock(held_key);
    std::atomic<bool> go = false;
    std::jthread holder([&] {
      while (!go) std::this_thread::yield();
      for (int i = 0; i < 300 + round * 20; ++i)
        std::atomic_signal_fence(std::memory_order_seq_cst);
      held.ref.entry().Unlock(held.meta);
    });
    go = true;
    if (const LockedEntry added = shard.LockOrAdd(make(kA, kD))) {
      added.ref.entry().Unlock(Meta{1, far});
    }
    holder.join();
    for (const Fingerprint& f : keys) {
      const LockedEntry found = shard.Lock(f);
      ASSERT_TRUE(found) << "a key was lost in round " << round;
      found.ref.entry().Unlock(found.meta);
    }
  }
}

/// Regression: two leases of one request in one overflow bucket were both held under the first id.
TEST_F(MemoryOverflowTest, ReleasesOverflowedLeasesOneByOne) {
  const auto store = NewStore(1);
  const Quota hour = MakeQuota({.limit = 1, .period = 1h});
  Fill(*store, hour);
  const Quota slots = MakeQuota({.algorithm = Algorithm::kConcurrency, .limit = 2, .period = 1min});
  const Charge a{"jobs", "a", &slots, 1, Mode::kEnforce, "la"};
  const Charge b{"jobs", "b", &slots, 1, Mode::kEnforce, "lb"};
  std::array<Decision, 2> decisions;
  EXPECT_EQ(store->Apply(std::array{a, b}, 1, decisions).value(), 1);
  EXPECT_EQ(store->Renew(b).value(), Applied::kYes);
  EXPECT_EQ(store->Release(a).value(), Applied::kYes);
  EXPECT_EQ(store->Peek(a)->remaining, 1) << "the lease of b is not held any more";
  EXPECT_EQ(
      store
          ->Apply(std::array{a, Charge{"jobs", "c", &slots, 1, Mode::kEnforce, "lc"}}, 1, decisions)
          .value(),
      0);
}

/// Regression: quotas with other periods reset the count of an overflow bucket.
TEST_F(MemoryOverflowTest, DoesNotShareOverflowBucketsAcrossPeriodsOrModes) {
  const auto store = NewStore(1);
  const Quota hour = MakeQuota({.algorithm = Algorithm::kFixedWindow, .limit = 3, .period = 1h});
  const Quota second = MakeQuota({.algorithm = Algorithm::kFixedWindow, .limit = 3, .period = 1s});
  Fill(*store, MakeQuota({.limit = 1, .period = 24h}));
  int admitted = 0;
  for (int i = 0; i < 20; ++i) {
    admitted += store->Apply(Charge{"r", "a", &hour})->allowed ? 1 : 0;
    ASSERT_TRUE(store->Apply(Charge{"r", "b", &second}).has_value());
    clock_.Advance(1s);
  }
  EXPECT_EQ(admitted, 3);
  const Quota three = MakeQuota({.limit = 3, .period = 24h});
  admitted = 0;
  for (int i = 0; i < 3; ++i) {
    const std::array<Charge, 2> charges{Charge{"s", "a", &three},
                                        Charge{"s", "b", &three, 1, Mode::kShadow}};
    std::array<Decision, 2> decisions;
    admitted += static_cast<int>(store->Apply(charges, 1, decisions).value());
  }
  EXPECT_EQ(admitted, 3) << "a shadow charge used units of an enforcing charge";
}

TEST_F(MemoryOverflowTest, DoesNotShareOverflowBucketsAcrossLimits) {
  const auto store = NewStore(1);
  const Quota slow = MakeQuota({.limit = 10, .period = 1h});
  const Quota quick = MakeQuota({.limit = 36'000, .period = 1h});
  Fill(*store, MakeQuota({.limit = 1, .period = 24h}));
  int admitted = 0;
  for (int i = 0; i < 60; ++i) {
    admitted += store->Apply(Charge{"r", "a", &slow})->allowed ? 1 : 0;
    ASSERT_TRUE(store->Apply(Charge{"r", "b", &quick}).has_value());
    clock_.Advance(1s);
  }
  EXPECT_EQ(admitted, 10) << "the bucket was refilled at the rate of another quota";
}

/// Regression: leases that share an overflow bucket counted twice when they were acquired again.
TEST_F(MemoryOverflowTest, RenewsOverflowedLeasesTogether) {
  const auto store = NewStore(1);
  Fill(*store, MakeQuota({.limit = 1, .period = 1h}));
  const Quota slots = MakeQuota({.algorithm = Algorithm::kConcurrency, .limit = 2, .period = 1min});
  const std::array<Charge, 2> both{Charge{"jobs", "a", &slots, 1, Mode::kEnforce, "la"},
                                   Charge{"jobs", "b", &slots, 1, Mode::kEnforce, "lb"}};
  std::array<Decision, 2> decisions;
  EXPECT_EQ(store->Apply(both, 1, decisions).value(), 1);
  EXPECT_EQ(store->Apply(both, 1, decisions).value(), 1);
  EXPECT_EQ(store->Peek(both[0])->remaining, 0);
}

/// A key without memory for its own list is counted in the overflow bucket of its rule, so a peek
/// reports that bucket.
TEST_F(MemoryOverflowTest, PeekReportsOverflowBucketWhenMemoryBudgetIsUsedUp) {
  const auto store = NewStore(100, 0);
  const Quota log = MakeQuota({.algorithm = Algorithm::kSlidingLog, .limit = 1, .period = 1h});
  EXPECT_TRUE(store->Apply(Charge{"log", "a", &log})->allowed);
  EXPECT_FALSE(store->Peek(Charge{"log", "b", &log})->allowed);
  EXPECT_FALSE(store->Apply(Charge{"log", "b", &log})->allowed);
  EXPECT_FALSE(store->Peek(Charge{"log", "b", &log})->allowed);
}

TEST_F(MemoryOverflowTest, ThrowsForImpossibleSizes) {
  EXPECT_ANY_THROW(NewStore(SIZE_MAX));
  EXPECT_ANY_THROW(NewStore(326'661'092'960'000'000));
  const Quota quota = MakeQuota({.limit = 1});
  EXPECT_TRUE(NewStore(0)->Apply(Charge{"r", "i", &quota})->allowed);
}

}  // namespace
}  // namespace tidegate
