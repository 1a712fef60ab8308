// SPDX-License-Identifier: Apache-2.0
// What once went wrong in the memory store: each of these failed, hung or crashed.
#include <thread>

#include "fixture.hpp"
#include "store/memory_shard.hpp"
#include "store/zeroed_memory.hpp"

namespace tidegate {
namespace {

class MemoryRegression : public testing::Test {
 protected:
  std::unique_ptr<Store> NewStore(std::size_t max_keys, std::size_t list_bytes = 1 << 20) {
    return NewMemoryStore({.max_keys = max_keys, .max_list_bytes = list_bytes, .clock = &clock_});
  }
  std::string Id(int i) const { return "id-" + std::to_string(i); }
  /// Charges new keys of rule "fill" until the store has no place left.
  void Fill(Store& store, const Quota& quota) {
    for (int i = 0; store.Stats().overflowed == 0; ++i) {
      ASSERT_TRUE(store.Apply(Charge{"fill", Id(i), &quota}).has_value());
    }
  }

  ManualClock clock_;
};

/// The refund's id took the very place that its key had been found in.
TEST_F(MemoryRegression, RefundsInANearlyFullStoreComeBack) {
  const Quota quota = MakeQuota({.limit = 1000, .period = 1h});
  for (int round = 0; round < 30; ++round) {
    const auto store = NewStore(50);
    for (int i = 0; i < 45; ++i) ASSERT_TRUE(store->Apply(Charge{"r", Id(i), &quota})->allowed);
    for (int i = 0; i < 45; ++i) {
      const auto refunded = store->Refund({"r", Id(i), &quota}, {.id = "x"});
      EXPECT_EQ(refunded.value_or(Done::kApplied), Done::kApplied);
    }
    clock_.Advance(1h);  // And where all have recovered.
    for (int i = 0; i < 45; ++i) {
      EXPECT_EQ(store->Refund({"r", Id(i), &quota}, {.id = "y"}).value(), Done::kNothing);
    }
  }
}

/// A request took a charge for its own pin where the two times were the same.
TEST_F(MemoryRegression, WhatIsChargedIsNotReclaimedAtWhateverTimeItRecovers) {
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
    EXPECT_EQ(store->Stats().reclaimed, 0u) << "time stood still";
    EXPECT_LE(static_cast<std::uint64_t>(admitted), store->Stats().tracked);
  }
}

/// Two new keys of one request, in a store with room for one, after a stall.
TEST_F(MemoryRegression, AStalledRequestComesBack) {
  class Stalling final : public Clock {
   public:
    Time Now() const noexcept override {
      return Time{500'000h} + (reads_++ > 0 ? Micros{11s} : Micros{0});
    }
    mutable int reads_ = 0;
  };
  const Stalling clock;
  const auto store = NewMemoryStore({.max_keys = 1, .clock = &clock});
  clock.reads_ = 0;  // The first read of the request is the one before the stall.
  const Quota quota = MakeQuota({.limit = 5});
  std::array<Decision, 2> decisions;
  const std::array<Charge, 2> charges{Charge{"a", "i", &quota}, Charge{"b", "i", &quota}};
  EXPECT_EQ(store->Apply(charges, 1, decisions).value(), 1);
}

/// A chain of moves came by the same place twice and put a key where it has no home.
TEST_F(MemoryRegression, MovesKeepEveryKeyAtHome) {
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
    // Somebody holds one entry for a moment of its own choosing.
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

/// Leases of different clients in one overflow bucket were one if their ids were equal.
TEST_F(MemoryRegression, EqualLeaseIdsOfTwoClientsAreTwoLeases) {
  const auto store = NewStore(1);
  const Quota hour = MakeQuota({.limit = 1, .period = 1h});
  Fill(*store, hour);
  const Quota slots = MakeQuota({.algorithm = Algorithm::kConcurrency, .limit = 2, .period = 1min});
  const auto lease = [&](std::string_view who) {
    return Charge{"jobs", who, &slots, 1, Mode::kEnforce, "job-1"};
  };
  EXPECT_TRUE(store->Apply(lease("a"))->allowed);
  EXPECT_TRUE(store->Apply(lease("b"))->allowed);
  EXPECT_FALSE(store->Apply(lease("c"))->allowed);
  EXPECT_EQ(store->Release(lease("c")).value(), Done::kNothing);
  EXPECT_EQ(store->Release(lease("a")).value(), Done::kApplied);
  EXPECT_EQ(store->Peek(lease("c"))->remaining, 1);
}

/// Two leases of one request in one overflow bucket were held under the first id.
TEST_F(MemoryRegression, LeasesThatOverflowTogetherEndOneByOne) {
  const auto store = NewStore(1);
  const Quota hour = MakeQuota({.limit = 1, .period = 1h});
  Fill(*store, hour);
  const Quota slots = MakeQuota({.algorithm = Algorithm::kConcurrency, .limit = 2, .period = 1min});
  const Charge a{"jobs", "a", &slots, 1, Mode::kEnforce, "la"};
  const Charge b{"jobs", "b", &slots, 1, Mode::kEnforce, "lb"};
  std::array<Decision, 2> decisions;
  EXPECT_EQ(store->Apply(std::array{a, b}, 1, decisions).value(), 1);
  EXPECT_EQ(store->Renew(b).value(), Done::kApplied);
  EXPECT_EQ(store->Release(a).value(), Done::kApplied);
  EXPECT_EQ(store->Peek(a)->remaining, 1) << "b still works";
  EXPECT_EQ(
      store
          ->Apply(std::array{a, Charge{"jobs", "c", &slots, 1, Mode::kEnforce, "lc"}}, 1, decisions)
          .value(),
      0);
}

/// Under a slower quota the key was still taken for recovered at the old time.
TEST_F(MemoryRegression, AQuotaMadeSlowerForgetsNobody) {
  const auto store = NewStore(100);
  const Quota quick = MakeQuota({.limit = 86'400, .period = 24h, .burst = 10});
  const Quota slow = MakeQuota({.limit = 10, .period = 24h});
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(store->Apply(Charge{"r", "victim", &quick})->allowed);
  clock_.Advance(9s);
  for (int i = 0; i < 9; ++i) ASSERT_TRUE(store->Apply(Charge{"r", "victim", &quick})->allowed);
  EXPECT_FALSE(store->Apply(Charge{"r", "victim", &slow})->allowed);
  clock_.Advance(60s);  // Long enough for the quick quota.
  Fill(*store, slow);
  EXPECT_FALSE(store->Apply(Charge{"r", "victim", &slow})->allowed);
}

/// A request that had read the clock before its key recovered found it fresh after.
TEST_F(MemoryRegression, AStaleTimeOpensNoWindowOfThePast) {
  /// Tells a late request the time before the window's end, once.
  class Late final : public Clock {
   public:
    Time Now() const noexcept override {
      return late_ ? std::exchange(late_, false), Time{99'999'900us} : now;
    }
    Time now{99'999'000us};
    mutable bool late_ = false;
  };
  Late clock;
  const auto store = NewMemoryStore({.max_keys = 1, .clock = &clock});
  const Quota quota = MakeQuota({.algorithm = Algorithm::kFixedWindow, .limit = 10});
  const Quota other = MakeQuota({.limit = 1'000'000});
  const Charge charge{"r", "i", &quota, 10};
  ASSERT_TRUE(store->Apply(charge)->allowed);
  clock.now = Time{100'000'100us};
  for (int i = 0; i < 200; ++i) {  // Others take its place.
    ASSERT_TRUE(store->Apply(Charge{"o", Id(i), &other}).has_value());
    clock.now += 2us;
  }
  clock.late_ = true;
  const bool late = store->Apply(charge)->allowed;
  const bool next = store->Apply(charge)->allowed;
  EXPECT_LE((late ? 1 : 0) + (next ? 1 : 0), 1) << "both in the window that began at 100 s";
}

/// Looking made lists, beyond the budget.
TEST_F(MemoryRegression, PeekMakesNothing) {
  const auto store = NewStore(10'000, 10'000);
  const Quota log = MakeQuota({.algorithm = Algorithm::kSlidingLog, .limit = 5, .period = 1h});
  for (int i = 0; i < 1000; ++i) {
    const std::string id = Id(i);
    ASSERT_TRUE(store->Apply(Charge{"log", id, &log}).has_value());
    ASSERT_TRUE(store->Peek(Charge{"log", id, &log}).has_value());
  }
  EXPECT_LE(store->Stats().list_bytes, 10'500u);
}

/// Who was refused for want of memory was told that every charge was allowed.
TEST_F(MemoryRegression, ARefusalSaysWhoRefused) {
  const auto store = NewStore(1000, 1000);
  const Quota slots =
      MakeQuota({.algorithm = Algorithm::kConcurrency, .limit = 5000, .period = 1min});
  const Quota wide = MakeQuota({.limit = 1000});
  int held = 0;
  for (; held < 5000; ++held) {
    const std::string id = Id(held);
    if (!store->Apply(Charge{"jobs", "i", &slots, 1, Mode::kEnforce, id})->allowed) break;
  }
  ASSERT_LT(held, 5000);
  const Charge one_more{"jobs", "i", &slots, 1, Mode::kEnforce, "more"};
  std::array<Decision, 2> decisions;
  EXPECT_EQ(store->Apply(std::array{one_more, Charge{"w", "i", &wide}}, 1, decisions).value(), 0);
  EXPECT_FALSE(decisions[0].allowed);
  EXPECT_EQ(decisions[0].retry_after, 1min);
  EXPECT_TRUE(decisions[1].allowed);
  EXPECT_FALSE(store->Peek(one_more)->allowed);
}

/// A reset in the middle of a sweep's round was not seen until all had recovered.
TEST_F(MemoryRegression, AResetIsFoundByTheNextKeys) {
  const Quota slow = MakeQuota({.limit = 10, .period = 24h});
  const auto store = NewStore(4000);
  Fill(*store, slow);
  for (int round = 0; round < 50; ++round) {
    // Somewhere in a round: each of these sweeps 256 groups of about 1,200.
    for (int i = 0; i < round % 5; ++i) {
      ASSERT_TRUE(store->Apply(Charge{"f", Id(i), &slow}).has_value());
    }
    ASSERT_EQ(store->Reset({"fill", Id(round * 13), &slow}).value(), Done::kApplied);
    const std::uint64_t before = store->Stats().reclaimed;
    for (int i = 0; i < 10 && store->Stats().reclaimed == before; ++i) {
      ASSERT_TRUE(store->Apply(Charge{"n", Id(round * 10 + i), &slow}).has_value());
    }
    ASSERT_GT(store->Stats().reclaimed, before) << "round " << round;
  }
}

/// Quotas of other periods forgot what an overflow bucket had counted.
TEST_F(MemoryRegression, OverflowBucketsAreNotSharedAcrossPeriodsOrModes) {
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
  EXPECT_EQ(admitted, 3) << "a shadow took what an enforcing charge needed";
}

TEST_F(MemoryRegression, OverflowBucketsAreNotSharedAcrossLimits) {
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
  EXPECT_EQ(admitted, 10) << "refilled at somebody else's rate";
}

/// The same as AQuotaMadeSlowerForgetsNobody, through a request of two charges.
TEST_F(MemoryRegression, AQuotaMadeSlowerForgetsNobodyInARequest) {
  const auto store = NewStore(1);
  const Quota quick = MakeQuota({.limit = 10, .period = 10ms});
  const Quota slow = MakeQuota({.limit = 10, .period = 900ms});
  const Quota day = MakeQuota({.limit = 100, .period = 24h});
  ASSERT_TRUE(store->Apply(Charge{"r", "victim", &quick, 10})->allowed);
  clock_.Advance(10ms);
  // By the quick quota it has recovered; by the slow one hardly anything.
  const std::array<Charge, 2> charges{Charge{"r", "victim", &slow, 10}, Charge{"d", "i", &day}};
  std::array<Decision, 2> decisions;
  EXPECT_EQ(store->Apply(charges, 1, decisions).value(), 0);
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(store->Apply(Charge{"f", Id(i), &day}).has_value());
  EXPECT_FALSE(store->Apply(Charge{"r", "victim", &slow, 10})->allowed);
}

/// Leases that share an overflow bucket counted twice when asked for again.
TEST_F(MemoryRegression, LeasesThatOverflowTogetherAreRenewedTogether) {
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

/// Without memory for a list of its own, a key is told of its rule's bucket.
TEST_F(MemoryRegression, PeekKnowsOfASpentBudget) {
  const auto store = NewStore(100, 0);
  const Quota log = MakeQuota({.algorithm = Algorithm::kSlidingLog, .limit = 1, .period = 1h});
  EXPECT_TRUE(store->Apply(Charge{"log", "a", &log})->allowed);
  EXPECT_FALSE(store->Peek(Charge{"log", "b", &log})->allowed);
  EXPECT_FALSE(store->Apply(Charge{"log", "b", &log})->allowed);
  EXPECT_FALSE(store->Peek(Charge{"log", "b", &log})->allowed);
}

TEST_F(MemoryRegression, ImpossibleSizesAreRefusedAtTheStart) {
  EXPECT_ANY_THROW(NewStore(SIZE_MAX));
  EXPECT_ANY_THROW(NewStore(326'661'092'960'000'000));
  const Quota quota = MakeQuota({.limit = 1});
  EXPECT_TRUE(NewStore(0)->Apply(Charge{"r", "i", &quota})->allowed);
}

}  // namespace
}  // namespace tidegate
