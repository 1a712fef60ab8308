// SPDX-License-Identifier: Apache-2.0
// The memory store when quotas change, when keys are reset, and when requests repeat or stall.
#include <thread>

#include "fixture.hpp"
#include "store/memory_shard.hpp"

namespace tidegate {
namespace {

class MemoryChangeTest : public testing::Test {
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

/// A request with two new keys, in a store with room for one key, after a stall of its thread.
TEST_F(MemoryChangeTest, RequestReturnsAfterStallWhileOtherKeysMove) {
  class Stalling final : public Clock {
   public:
    Time Now() const noexcept override {
      return Time{500'000h} + (reads_++ > 0 ? Micros{11s} : Micros{0});
    }
    mutable int reads_ = 0;
  };
  const Stalling clock;
  const auto store = NewMemoryStore({.max_keys = 1, .clock = &clock});
  clock.reads_ = 0;  // The first read in the request is the one before the stall.
  const Quota quota = MakeQuota({.limit = 5});
  std::array<Decision, 2> decisions;
  const std::array<Charge, 2> charges{Charge{"a", "i", &quota}, Charge{"b", "i", &quota}};
  EXPECT_EQ(store->Apply(charges, 1, decisions).value(), 1);
}

/// Regression: leases of different clients in one overflow bucket were one lease if their ids were
/// equal.
TEST_F(MemoryChangeTest, KeepsEqualLeaseIdsOfTwoClientsSeparate) {
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
  EXPECT_EQ(store->Release(lease("c")).value(), Applied::kNo);
  EXPECT_EQ(store->Release(lease("a")).value(), Applied::kYes);
  EXPECT_EQ(store->Peek(lease("c"))->remaining, 1);
}

/// Regression: when a rule got a slower quota, the key still counted as recovered after the time of
/// the old quota.
TEST_F(MemoryChangeTest, SlowerQuotaKeepsAllState) {
  const auto store = NewStore(100);
  const Quota quick = MakeQuota({.limit = 86'400, .period = 24h, .burst = 10});
  const Quota slow = MakeQuota({.limit = 10, .period = 24h});
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(store->Apply(Charge{"r", "victim", &quick})->allowed);
  clock_.Advance(9s);
  for (int i = 0; i < 9; ++i) ASSERT_TRUE(store->Apply(Charge{"r", "victim", &quick})->allowed);
  EXPECT_FALSE(store->Apply(Charge{"r", "victim", &slow})->allowed);
  clock_.Advance(60s);  // Long enough for the quick quota to recover.
  Fill(*store, slow);
  EXPECT_FALSE(store->Apply(Charge{"r", "victim", &slow})->allowed);
}

/// Regression: a request that had read the clock before its key recovered found the key fresh
/// afterwards, and counted in a past window.
TEST_F(MemoryChangeTest, RequestWithStaleTimeDoesNotCountInPastWindow) {
  /// A clock that returns a time before the end of the window once, for the late request, and then
  /// `now`.
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
  for (int i = 0; i < 200; ++i) {  // Other keys take the place of this key.
    ASSERT_TRUE(store->Apply(Charge{"o", Id(i), &other}).has_value());
    clock.now += 2us;
  }
  clock.late_ = true;
  const bool late = store->Apply(charge)->allowed;
  const bool next = store->Apply(charge)->allowed;
  EXPECT_LE((late ? 1 : 0) + (next ? 1 : 0), 1)
      << "both requests passed in the window that began at 100 s";
}

/// Regression: a peek created lists, even above the memory budget for lists.
TEST_F(MemoryChangeTest, PeekAddsNoEntry) {
  const auto store = NewStore(10'000, 10'000);
  const Quota log = MakeQuota({.algorithm = Algorithm::kSlidingLog, .limit = 5, .period = 1h});
  for (int i = 0; i < 1000; ++i) {
    const std::string id = Id(i);
    ASSERT_TRUE(store->Apply(Charge{"log", id, &log}).has_value());
    ASSERT_TRUE(store->Peek(Charge{"log", id, &log}).has_value());
  }
  EXPECT_LE(store->Stats().list_bytes, 10'500u);
}

/// Regression: a request that was denied for lack of memory had decisions that were all allowed.
TEST_F(MemoryChangeTest, DenialNamesTheChargeThatDenied) {
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

/// Regression: after a reset in the middle of a sweep, the free place was not found until all keys
/// had recovered.
TEST_F(MemoryChangeTest, ResetMakesRoomForNewKeys) {
  const Quota slow = MakeQuota({.limit = 10, .period = 24h});
  const auto store = NewStore(4000);
  Fill(*store, slow);
  for (int round = 0; round < 50; ++round) {
    // The reset comes somewhere in a sweep: each of these charges sweeps 256 of about 1,200 groups.
    for (int i = 0; i < round % 5; ++i) {
      ASSERT_TRUE(store->Apply(Charge{"f", Id(i), &slow}).has_value());
    }
    ASSERT_EQ(store->Reset({"fill", Id(round * 13), &slow}).value(), Applied::kYes);
    const std::uint64_t before = store->Stats().reclaimed;
    for (int i = 0; i < 10 && store->Stats().reclaimed == before; ++i) {
      ASSERT_TRUE(store->Apply(Charge{"n", Id(round * 10 + i), &slow}).has_value());
    }
    ASSERT_GT(store->Stats().reclaimed, before) << "round " << round;
  }
}

/// The same as SlowerQuotaKeepsAllState, through a request with two charges.
TEST_F(MemoryChangeTest, SlowerQuotaInRequestOfTwoChargesKeepsAllState) {
  const auto store = NewStore(1);
  const Quota quick = MakeQuota({.limit = 10, .period = 10ms});
  const Quota slow = MakeQuota({.limit = 10, .period = 900ms});
  const Quota day = MakeQuota({.limit = 100, .period = 24h});
  ASSERT_TRUE(store->Apply(Charge{"r", "victim", &quick, 10})->allowed);
  clock_.Advance(10ms);
  // By the quick quota the key has recovered; by the slow quota it has recovered hardly anything.
  const std::array<Charge, 2> charges{Charge{"r", "victim", &slow, 10}, Charge{"d", "i", &day}};
  std::array<Decision, 2> decisions;
  EXPECT_EQ(store->Apply(charges, 1, decisions).value(), 0);
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(store->Apply(Charge{"f", Id(i), &day}).has_value());
  EXPECT_FALSE(store->Apply(Charge{"r", "victim", &slow, 10})->allowed);
}

}  // namespace
}  // namespace tidegate
