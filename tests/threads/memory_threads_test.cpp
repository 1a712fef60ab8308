// SPDX-License-Identifier: Apache-2.0
// Several threads use one store: together they are admitted exactly what the quota allows.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "store/store.hpp"

namespace tidegate {
namespace {

using namespace std::chrono_literals;

constexpr int kThreads = 4;

void InThreads(const std::function<void(int)>& body) {
  std::vector<std::jthread> threads;
  for (int t = 0; t < kThreads; ++t) threads.emplace_back(body, t);
}

Quota MakeQuota(const QuotaSpec& spec) { return Quota::Make(spec).value(); }

TEST(MemoryThreadsTest, OneKeyAdmitsExactlyItsLimit) {
  for (int a = 0; a < kAlgorithms; ++a) {
    ManualClock clock;
    const auto store = NewMemoryStore({.max_keys = 1000, .clock = &clock});
    const Quota quota = MakeQuota({.algorithm = static_cast<Algorithm>(a), .limit = 1234});
    std::atomic<int> admitted = 0;
    InThreads([&](int thread) {
      for (int i = 0; i < 1000; ++i) {
        const std::string lease = std::to_string(thread * 1000 + i);
        const Charge charge{.rule = "r", .identity = "i", .quota = &quota, .lease = lease};
        if (store->Apply(charge)->allowed) ++admitted;
      }
    });
    EXPECT_EQ(admitted, 1234) << Name(quota.algorithm());
  }
}

/// Time moves while four threads keep the key empty: no unit may be lost or admitted twice.
TEST(MemoryThreadsTest, OneKeyAdmitsExactlyItsRateWhileTimeMoves) {
  for (const Algorithm a : {Algorithm::kTokenBucket, Algorithm::kGcra}) {
    ManualClock clock;
    const auto store = NewMemoryStore({.max_keys = 1000, .clock = &clock});
    const Quota quota = MakeQuota({.algorithm = a, .limit = 3, .period = 10us, .burst = 100'000});
    const Charge charge{"r", "i", &quota};
    std::atomic<std::int64_t> admitted = 0;
    const auto drain = [&] {
      while (store->Apply(charge)->allowed) ++admitted;
    };
    drain();
    EXPECT_EQ(admitted, 100'000);
    constexpr int kTicks = 20'000;
    InThreads([&](int thread) {
      for (int i = 0; i < kTicks / kThreads; ++i) {
        clock.Advance(1us);
        if (store->Apply(charge)->allowed) ++admitted;
        if (thread == 0 && i % 100 == 0) drain();
      }
    });
    drain();
    EXPECT_EQ(admitted, 100'000 + kTicks * 3 / 10) << Name(a);
  }
}

TEST(MemoryThreadsTest, ChargesKeyAndGlobalLimitAllOrNothing) {
  ManualClock clock;
  const auto store = NewMemoryStore({.max_keys = 1000, .clock = &clock});
  const Quota each = MakeQuota({.limit = 20, .period = 1h});
  const Quota global = MakeQuota({.algorithm = Algorithm::kGcra, .limit = 700, .period = 1h});
  constexpr int kKeys = 50;  // 50 * 20 is more than 700: the global limit binds.
  std::vector<std::string> keys;
  for (int i = 0; i < kKeys; ++i) keys.push_back("key-" + std::to_string(i));
  std::array<std::atomic<int>, kKeys> admitted{};
  InThreads([&](int thread) {
    for (int i = 0; i < 3000; ++i) {
      const auto key = static_cast<std::size_t>((i * 7 + thread * 13) % kKeys);
      // Uses both orders: the store locks keys by address and not in the listed order.
      std::array<Charge, 2> charges{Charge{"each", keys[key], &each},
                                    Charge{"all", "all", &global}};
      if (i % 2 == 0) std::swap(charges[0], charges[1]);
      std::array<Decision, 2> decisions;
      if (store->Apply(charges, 1, decisions).value() == 1) ++admitted[key];
    }
  });
  std::int64_t total = 0;
  for (std::size_t i = 0; i < kKeys; ++i) {
    EXPECT_LE(admitted[i], 20);
    // Denied requests consumed nothing: the key lacks exactly the units that it admitted.
    EXPECT_EQ(store->Peek({"each", keys[i], &each})->remaining, 20 - admitted[i]);
    total += admitted[i];
  }
  EXPECT_EQ(total, 700);
}

TEST(MemoryThreadsTest, CallsWithACountAdmitExactlyTheLimit) {
  ManualClock clock;
  const auto store = NewMemoryStore({.max_keys = 1000, .clock = &clock});
  const Quota quota = MakeQuota({.algorithm = Algorithm::kSlidingWindow, .limit = 10'001});
  std::atomic<std::int64_t> admitted = 0;
  InThreads([&](int) {
    for (int i = 0; i < 500; ++i) {
      const Charge charge{"r", "i", &quota, 3};
      Decision decision;
      admitted += store->Apply({&charge, 1}, 1 + i % 20, {&decision, 1}).value();
    }
  });
  EXPECT_EQ(admitted, 10'001 / 3);
}

TEST(MemoryThreadsTest, RefundIdAppliesOnce) {
  ManualClock clock;
  const auto store = NewMemoryStore({.max_keys = 4000, .clock = &clock});
  const Quota quota = MakeQuota({.limit = 1000, .period = 1h});
  const Charge charge{"r", "i", &quota};
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(store->Apply(charge)->allowed);
  std::atomic<int> applied = 0;
  InThreads([&](int) {
    for (int i = 0; i < 300; ++i) {
      const std::string id = "refund-" + std::to_string(i);
      if (store->Refund(charge, {.id = id}).value() == Applied::kYes) ++applied;
    }
  });
  EXPECT_EQ(applied, 300);
  EXPECT_EQ(store->Peek(charge)->remaining, 300);
}

TEST(MemoryThreadsTest, GrantsNoMoreLeasesThanTheLimit) {
  const auto store = NewMemoryStore({.max_keys = 1000});
  const Quota slots = MakeQuota({.algorithm = Algorithm::kConcurrency, .limit = 2, .period = 1h});
  std::atomic<int> inside = 0;
  std::atomic<int> entered = 0;
  InThreads([&](int thread) {
    const std::string lease = "holder-" + std::to_string(thread);
    const Charge charge{"jobs", "i", &slots, 1, Mode::kEnforce, lease};
    for (int i = 0; i < 3000; ++i) {
      if (!store->Apply(charge)->allowed) continue;
      EXPECT_LE(++inside, 2);
      ++entered;
      EXPECT_EQ(store->Renew(charge).value(), Applied::kYes);
      --inside;
      EXPECT_EQ(store->Release(charge).value(), Applied::kYes);
    }
  });
  EXPECT_GT(entered, 1000);
  EXPECT_EQ(store->Peek({"jobs", "i", &slots, 1, Mode::kEnforce, "x"})->remaining, 2);
}

/// New keys arrive all the time, recovered keys make room for them, and entries move in the table.
/// Meanwhile keys that have not recovered neither lose nor gain units.
TEST(MemoryThreadsTest, TrackedKeysKeepStateWhileOtherKeysComeAndGo) {
  ManualClock clock;
  const auto store = NewMemoryStore({.max_keys = 2000, .clock = &clock});
  const Quota slow = MakeQuota({.limit = 10, .period = 24h});
  const Quota quick = MakeQuota({.limit = 1, .period = 1us});
  const Quota log = MakeQuota({.algorithm = Algorithm::kSlidingLog, .limit = 3, .period = 5us});
  constexpr std::size_t kTracked = 1000;
  std::vector<std::string> tracked;
  for (std::size_t i = 0; i < kTracked; ++i) tracked.push_back("tracked-" + std::to_string(i));
  for (const std::string& key : tracked)
    ASSERT_TRUE(store->Apply(Charge{"slow", key, &slow})->allowed);
  std::vector<std::atomic<int>> admitted(kTracked);
  InThreads([&](int thread) {
    for (int i = 0; i < 6000; ++i) {
      clock.Advance(1us);
      const std::string passing = std::to_string(thread) + "-passing-" + std::to_string(i);
      const auto at = static_cast<std::size_t>(i * 31 + thread) % kTracked;
      if (i % 3 == 0) {
        std::array<Charge, 3> charges{Charge{"quick", passing, &quick},
                                      Charge{"log", passing, &log},
                                      Charge{"slow", tracked[at], &slow}};
        std::array<Decision, 3> decisions;
        admitted[at] += static_cast<int>(store->Apply(charges, 1, decisions).value());
      } else {
        ASSERT_TRUE(store->Apply(Charge{"quick", passing, &quick}).has_value());
        admitted[at] += store->Apply(Charge{"slow", tracked[at], &slow})->allowed ? 1 : 0;
      }
    }
  });
  EXPECT_GT(store->Stats().reclaimed, 5000u);
  EXPECT_EQ(store->Stats().overflowed, 0u);
  for (std::size_t i = 0; i < kTracked; ++i) {
    EXPECT_EQ(admitted[i] + 1 + store->Peek({"slow", tracked[i], &slow})->remaining, 10) << i;
  }
}

/// Operators change keys that calls with several charges are using, in a store so full that entries
/// move all the time.
TEST(MemoryThreadsTest, OperatorChangesSucceedDuringCallsWithSeveralCharges) {
  ManualClock clock;
  const auto store = NewMemoryStore({.max_keys = 60, .clock = &clock});
  const Quota log = MakeQuota({.algorithm = Algorithm::kSlidingLog, .limit = 50, .period = 1ms});
  const Quota slots = MakeQuota({.algorithm = Algorithm::kConcurrency, .limit = 9, .period = 1ms});
  const Quota quick = MakeQuota({.limit = 1, .period = 5us});
  constexpr int kKeys = 12;
  InThreads([&](int thread) {
    const std::string lease = "lease-" + std::to_string(thread);
    for (int i = 0; i < 3000; ++i) {
      clock.Advance(1us);
      const std::string key = "key-" + std::to_string((i * 5 + thread) % kKeys);
      const Charge a{"log", key, &log};
      const Charge b{"slots", key, &slots, 1, Mode::kEnforce, lease};
      const std::string passing = std::to_string(thread) + "-" + std::to_string(i);
      switch ((i + thread) % 7) {
        case 0: EXPECT_TRUE(store->Reset(thread % 2 == 0 ? a : b).has_value()); break;
        case 1:
          EXPECT_TRUE(store->Peek(b).has_value());
          EXPECT_TRUE(store->Inspect(a).has_value());
          break;
        case 2: EXPECT_TRUE(store->Release(b).has_value()); break;
        case 3: {
          // If the store has no room for the refund id, it rejects the refund, which is correct
          // too.
          const auto refund = store->Refund(a, {.id = passing});
          EXPECT_TRUE(refund || refund.error().code == ErrorCode::kExhausted);
          break;
        }
        default: {
          const std::array<Charge, 3> charges{a, b, Charge{"quick", passing, &quick}};
          std::array<Decision, 3> decisions;
          EXPECT_TRUE(store->Apply(charges, 1, decisions).has_value());
        }
      }
    }
  });
  EXPECT_GT(store->Stats().reclaimed, 100u);
}

/// A lookup finds a key while the key moves between its two places in the table.
TEST(MemoryThreadsTest, FindsHeldLeaseWhileEntriesMove) {
  ManualClock clock;
  const auto store = NewMemoryStore({.max_keys = 200, .clock = &clock});
  const Quota slots = MakeQuota({.algorithm = Algorithm::kConcurrency, .limit = 1, .period = 24h});
  const Quota quick = MakeQuota({.limit = 1, .period = 3us});
  std::vector<std::string> holders;
  for (int i = 0; i < 150; ++i) holders.push_back("holder-" + std::to_string(i));
  const auto lease = [&](std::size_t i) {
    return Charge{"jobs", holders[i], &slots, 1, Mode::kEnforce, "lease"};
  };
  for (std::size_t i = 0; i < holders.size(); ++i) ASSERT_TRUE(store->Apply(lease(i))->allowed);
  InThreads([&](int thread) {
    for (int i = 0; i < 6000; ++i) {
      clock.Advance(1us);
      if (thread < 2) {
        const std::string passing = std::to_string(thread) + "-" + std::to_string(i);
        EXPECT_TRUE(store->Apply(Charge{"quick", passing, &quick}).has_value());
      } else {
        EXPECT_EQ(store->Renew(lease(static_cast<std::size_t>(i) % holders.size())).value(),
                  Applied::kYes);
      }
    }
  });
}

}  // namespace
}  // namespace tidegate
