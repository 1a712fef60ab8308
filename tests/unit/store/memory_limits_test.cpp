// SPDX-License-Identifier: Apache-2.0
// The memory store when it has no more room for keys or lists.
#include "fixture.hpp"

namespace tidegate {
namespace {

class MemoryLimitsTest : public MemoryStoreTest {
 protected:
  MemoryLimitsTest() : MemoryStoreTest(500, 64 << 10) {}

  std::string Id(int i) const { return "identity-" + std::to_string(i); }
  /// Charges new keys until one is counted in the overflow bucket. Returns how many keys were
  /// stored.
  int Fill(const Quota& quota) {
    int i = 0;
    for (; i < 100'000; ++i) {
      const auto before = store_->Stats().overflowed;
      Decide({"r", Id(i), &quota});
      if (store_->Stats().overflowed != before) break;
    }
    return i;
  }
};

TEST_F(MemoryLimitsTest, KeysBeyondMaxKeysShareOneBucket) {
  const Quota quota = MakeQuota({.limit = 3, .period = 1h});
  const int tracked = Fill(quota);
  EXPECT_GE(tracked, 500);
  EXPECT_LE(tracked, 600);
  EXPECT_EQ(store_->Stats().tracked, static_cast<std::uint64_t>(tracked));
  // Keys that are stored are decided as before.
  EXPECT_EQ(Decide({"r", Id(0), &quota}).remaining, 1);
  // All other keys share three units. The last key of Fill() has used one of them.
  int admitted = 0;
  for (int i = 0; i < 1000; ++i) admitted += Decide({"r", Id(200'000 + i), &quota}).allowed ? 1 : 0;
  EXPECT_EQ(admitted, 2);
  // Another rule has its own overflow bucket.
  EXPECT_TRUE(Decide({"other", "new", &quota}).allowed);
}

TEST_F(MemoryLimitsTest, ReclaimsOnlyRecoveredKeys) {
  const Quota slow = MakeQuota({.limit = 10, .period = 1h});
  const int tracked = Fill(slow);
  // After six minutes each key has recovered its one unit.
  clock_.Advance(6min - 1us);
  const auto overflowed = store_->Stats().overflowed;
  Decide({"r", "early", &slow});
  EXPECT_EQ(store_->Stats().overflowed, overflowed + 1);
  clock_.Advance(1us);
  for (int i = 0; i < tracked; ++i) {
    const Decision d = Decide({"r", "late-" + std::to_string(i), &slow});
    EXPECT_EQ(d.remaining, 9) << "the key was not stored";
  }
  EXPECT_EQ(store_->Stats().overflowed, overflowed + 1);
  EXPECT_LE(store_->Stats().tracked, static_cast<std::uint64_t>(tracked));
  EXPECT_GE(store_->Stats().reclaimed, static_cast<std::uint64_t>(tracked) / 2);
}

TEST_F(MemoryLimitsTest, ResetKeyMakesRoomAtOnce) {
  const Quota slow = MakeQuota({.limit = 10, .period = 24h});
  Fill(slow);
  // A flood of new keys has shown that no key recovers for hours, so the store sweeps only rarely.
  for (int i = 0; i < 1000; ++i) Decide({"r", "flood-" + std::to_string(i), &slow});
  EXPECT_EQ(store_->Reset({"r", Id(7), &slow}).value(), Applied::kYes);
  EXPECT_EQ(Decide({"r", "new", &slow}).remaining, 9);
}

TEST_F(MemoryLimitsTest, ReclaimingNeverGivesKeyAFreshBurst) {
  // A flood of other keys must not give a fresh burst to a client that has spent its burst.
  const Quota quota = MakeQuota({.limit = 5, .period = 1h});
  while (Decide({"r", "victim", &quota}).allowed) {
  }
  for (int i = 0; i < 20'000; ++i) Decide({"r", Id(i), &quota});
  EXPECT_FALSE(Decide({"r", "victim", &quota}).allowed);
}

TEST_F(MemoryLimitsTest, AddsUpSeveralChargesInOneOverflowBucket) {
  const Quota quota = MakeQuota({.limit = 10, .period = 1h});
  Fill(quota);  // The last key uses one of the ten units of the overflow bucket.
  EXPECT_EQ(Apply({{"r", "new-a", &quota, 5}, {"r", "new-b", &quota, 5}}), 0);
  EXPECT_EQ(Apply({{"r", "new-a", &quota, 5}, {"r", "new-b", &quota, 4}}), 1);
  EXPECT_EQ(Apply({{"r", "new-c", &quota}}), 0);
}

TEST_F(MemoryLimitsTest, RulesOverflowIntoSeparateBuckets) {
  const Quota quota = MakeQuota({.limit = 1, .period = 1h});
  Fill(quota);
  for (int i = 0; i < 5000; ++i) {
    const std::string rule = "rule-" + std::to_string(i);
    EXPECT_TRUE(Decide({rule, "x", &quota}).allowed);
    EXPECT_FALSE(Decide({rule, "y", &quota}).allowed);
  }
}

TEST_F(MemoryLimitsTest, LogsStayWithinMemoryBudgetAndNeverOverAdmit) {
  const Quota log = MakeQuota({.algorithm = Algorithm::kSlidingLog, .limit = 100, .period = 1h});
  // 64 KiB hold about 600 logs of four entries each, or 36 full logs.
  std::vector<int> admitted(60);
  for (int round = 0; round < 150; ++round) {
    for (int key = 0; key < 60; ++key) {
      const Decision d = Decide({"log", Id(key), &log});
      admitted[static_cast<std::size_t>(key)] += d.allowed ? 1 : 0;
    }
    clock_.Advance(1ms);
    EXPECT_LE(store_->Stats().list_bytes, (64u << 10) + 8192u);
  }
  for (const int n : admitted) EXPECT_LE(n, 100);
  EXPECT_EQ(admitted[0], 100) << "a log without memory for more entries counts wrongly";
  clock_.Advance(1h);
  EXPECT_EQ(Decide({"log", Id(0), &log}).remaining, 99);
}

TEST_F(MemoryLimitsTest, NewLogsShareOneBucketWhenMemoryBudgetIsUsedUp) {
  const Quota log = MakeQuota({.algorithm = Algorithm::kSlidingLog, .limit = 8, .period = 1h});
  int i = 0;
  while (store_->Stats().overflowed == 0) Decide({"log", Id(i++), &log});
  EXPECT_GE(i, 450);
  int admitted = 1;  // Begins with 1: the key that overflowed was admitted.
  for (int k = 0; k < 100; ++k) admitted += Decide({"log", "new-" + Id(k), &log}).allowed ? 1 : 0;
  EXPECT_EQ(admitted, 8);
  // Recovered logs are removed, a few at a time, when new logs need memory.
  clock_.Advance(1h);
  int own = 0;
  for (int k = 0; k < 500; ++k) own += Decide({"log", "later-" + Id(k), &log}).remaining == 7;
  EXPECT_GT(own, 300);
}

TEST_F(MemoryLimitsTest, DeniesLeasesWhenMemoryRunsOut) {
  const Quota slots =
      MakeQuota({.algorithm = Algorithm::kConcurrency, .limit = 5000, .period = 1min});
  std::vector<std::string> ids;
  for (int i = 0; i < 5000; ++i) ids.push_back(Id(i));
  const auto charge = [&](std::size_t i) {
    return Charge{"jobs", "i", &slots, 1, Mode::kEnforce, ids[i]};
  };
  std::size_t held = 0;
  Decision last;
  for (; held < ids.size(); ++held) {
    last = Decide(charge(held));
    if (!last.allowed) break;
  }
  EXPECT_GT(held, 500u);
  EXPECT_LT(held, 5000u);
  EXPECT_EQ(last.retry_after, 1min)
      << "the request was not told to wait until the first lease ends";
  EXPECT_EQ(Apply({charge(held), {"other", "i", &slots, 1, Mode::kEnforce, "x"}}), 0)
      << "a request that was denied for lack of memory was applied in part";
  EXPECT_EQ(store_->Release({"other", "i", &slots, 1, Mode::kEnforce, "x"}).value(), Applied::kNo);
  for (std::size_t i = 0; i < held; ++i) {
    EXPECT_EQ(store_->Release(charge(i)).value(), Applied::kYes);
  }
}

TEST_F(MemoryLimitsTest, RenewsAndReleasesLeasesInOverflowBucket) {
  const Quota quota = MakeQuota({.limit = 3, .period = 1h});
  Fill(quota);
  const Quota slots = MakeQuota({.algorithm = Algorithm::kConcurrency, .limit = 1, .period = 1min});
  const Charge a{"jobs", "a", &slots, 1, Mode::kEnforce, "lease-a"};
  const Charge b{"jobs", "b", &slots, 1, Mode::kEnforce, "lease-b"};
  EXPECT_TRUE(Decide(a).allowed);
  EXPECT_FALSE(Decide(b).allowed) << "the two leases do not share an overflow bucket";
  EXPECT_EQ(store_->Renew(a).value(), Applied::kYes);
  EXPECT_EQ(store_->Release(a).value(), Applied::kYes);
  EXPECT_TRUE(Decide(b).allowed);
}

TEST_F(MemoryLimitsTest, RejectsRefundWhenItsIdCannotBeStored) {
  const Quota quota = MakeQuota({.limit = 3, .period = 1h});
  Fill(quota);
  const auto refused = store_->Refund({"r", Id(0), &quota}, {.id = "x"});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kExhausted);
  EXPECT_EQ(Remaining({"r", Id(0), &quota}), 2);
}

TEST(MemoryOptionsTest, RulesShareOneBucketWhenOverflowBucketsAreUsedUp) {
  ManualClock clock;
  const auto store = NewMemoryStore({.max_keys = 1, .clock = &clock});
  for (int a = 0; a < kAlgorithms; ++a) {
    const Quota quota =
        MakeQuota({.algorithm = static_cast<Algorithm>(a), .limit = 2, .period = 1h});
    SCOPED_TRACE(Name(quota.algorithm()));
    const auto admitted = [&](const std::string& rule, const std::string& lease) {
      return store->Apply(Charge{.rule = rule, .identity = "i", .quota = &quota, .lease = lease})
          ->allowed;
    };
    if (a == 0) {
      int own = 0;
      for (int i = 0; i < 70'000; ++i) own += admitted("fill-" + std::to_string(i), "l") ? 1 : 0;
      EXPECT_GE(own, 65'000);
      EXPECT_LE(own, 66'500);
    }
    // There is no overflow bucket left for these rules: they share one bucket of two units.
    int passed = 0;
    for (int i = 0; i < 50; ++i) {
      const std::string rule = "rule-" + std::to_string(i);
      passed += admitted(rule, rule) ? 1 : 0;
    }
    EXPECT_LE(passed, 2);
    const Quota slots = MakeQuota({.algorithm = Algorithm::kConcurrency, .limit = 2, .period = 1h});
    if (quota.algorithm() == Algorithm::kConcurrency) {
      const Charge held{"rule-0", "i", &slots, 1, Mode::kEnforce, "rule-0"};
      EXPECT_EQ(store->Release(held).value(), Applied::kYes);
      EXPECT_TRUE(admitted("rule-99", "rule-99"));
    }
  }
}

TEST(MemoryOptionsTest, SmallestStoreServesEveryAlgorithm) {
  ManualClock clock;
  const auto store = NewMemoryStore({.max_keys = 1, .max_list_bytes = 0, .clock = &clock});
  const Quota quota = MakeQuota({.limit = 1, .period = 1h});
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(store->Apply(Charge{"r" + std::to_string(i), "i", &quota})->allowed);
  }
  for (int a = 0; a < kAlgorithms; ++a) {
    const Quota any = MakeQuota({.algorithm = static_cast<Algorithm>(a), .limit = 1});
    const Charge charge{.rule = "any", .identity = "i", .quota = &any, .lease = "l"};
    EXPECT_TRUE(store->Apply(charge)->allowed) << Name(any.algorithm());
  }
}

}  // namespace
}  // namespace tidegate
