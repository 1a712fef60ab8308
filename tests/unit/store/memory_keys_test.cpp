// SPDX-License-Identifier: Apache-2.0
// Operations on one key: peek, debit, refund, reset and inspect.
#include "fixture.hpp"

namespace tidegate {
namespace {

using MemoryKeysTest = MemoryStoreTest;

TEST_F(MemoryKeysTest, CountsRulesIdentitiesAndAlgorithmsSeparately) {
  const Quota bucket = MakeQuota({.limit = 1});
  const Quota gcra = MakeQuota({.algorithm = Algorithm::kGcra, .limit = 1});
  EXPECT_TRUE(Decide({"r", "i", &bucket}).allowed);
  EXPECT_TRUE(Decide({"r2", "i", &bucket}).allowed);
  EXPECT_TRUE(Decide({"r", "i2", &bucket}).allowed);
  EXPECT_TRUE(Decide({"r", "i", &gcra}).allowed);
  EXPECT_FALSE(Decide({"r", "i", &bucket}).allowed);
  EXPECT_EQ(store_->Stats().tracked, 4u);
}

TEST_F(MemoryKeysTest, AcceptsAnyBytesInIdentities) {
  const Quota quota = MakeQuota({.limit = 1});
  const std::vector<std::string> odd = {
      std::string("a\0b", 3), "a", "{}", "}{", "a\r\nb", "\xff\xfe", std::string(1 << 20, 'x')};
  for (const std::string& identity : odd) EXPECT_TRUE(Decide({"r", identity, &quota}).allowed);
  for (const std::string& identity : odd) EXPECT_FALSE(Decide({"r", identity, &quota}).allowed);
}

TEST_F(MemoryKeysTest, PeekDoesNotCharge) {
  const Quota quota = MakeQuota({.limit = 5});
  const Charge charge{"r", "i", &quota, 2};
  for (int i = 0; i < 3; ++i) {
    const Decision d = store_->Peek(charge).value();
    EXPECT_TRUE(d.allowed);
    EXPECT_EQ(d.remaining, 5);
    EXPECT_EQ(d.reset_after, 0us);
  }
  EXPECT_EQ(store_->Stats().tracked, 0u) << "a peek added a key";
  EXPECT_EQ(Decide(charge).remaining, 3);
  EXPECT_EQ(Decide(charge).remaining, 1);
  const Decision d = store_->Peek(charge).value();
  EXPECT_FALSE(d.allowed);
  EXPECT_EQ(d.remaining, 1);
  EXPECT_EQ(d.retry_after, 200ms);
  EXPECT_TRUE(store_->Peek({"r", "i", &quota, 6}).value().never);
}

TEST_F(MemoryKeysTest, PeekReportsFullQuotaForUnknownKey) {
  for (int a = 0; a < kAlgorithms; ++a) {
    const Quota quota = MakeQuota({.algorithm = static_cast<Algorithm>(a), .limit = 3});
    const Charge charge{.rule = "r", .identity = "i", .quota = &quota, .lease = "l"};
    EXPECT_TRUE(store_->Peek(charge).value().allowed);
    EXPECT_EQ(Remaining(charge), 3);
  }
  EXPECT_EQ(store_->Stats().tracked, 0u);
}

TEST_F(MemoryKeysTest, DebitMayCreateDebt) {
  for (const Algorithm a : {Algorithm::kTokenBucket, Algorithm::kGcra}) {
    const Quota quota = MakeQuota({.algorithm = a, .limit = 10});
    const Charge charge{"debt", "i", &quota, 25};
    const Decision d = store_->Debit(charge).value();
    EXPECT_FALSE(d.allowed)
        << "the debit reports allowed although a request of cost 1 would be denied";
    EXPECT_EQ(d.retry_after, 1600ms);
    EXPECT_EQ(d.remaining, 0);
    EXPECT_EQ(d.reset_after, 2500ms);
    const Decision denied = Decide({"debt", "i", &quota});
    EXPECT_EQ(denied.retry_after, 1600ms)
        << "a debt of 15 units plus 1 unit, at 10 units per second";
    clock_.Advance(1600ms);
    EXPECT_TRUE(Decide({"debt", "i", &quota}).allowed);
  }
}

TEST_F(MemoryKeysTest, AppliesRefundOncePerIdAndNeverAboveCapacity) {
  for (const Algorithm a : {Algorithm::kTokenBucket, Algorithm::kGcra, Algorithm::kFixedWindow,
                            Algorithm::kSlidingWindow, Algorithm::kSlidingLog}) {
    const Quota quota = MakeQuota({.algorithm = a, .limit = 10, .period = 1h});
    SCOPED_TRACE(Name(a));
    const Charge three{"r", "i", &quota, 3};
    EXPECT_EQ(store_->Refund(three, {.id = "x"}).value(), Applied::kNo)
        << "a refund was applied before any charge";
    EXPECT_EQ(Decide(three).remaining, 7);
    EXPECT_EQ(Decide(three).remaining, 4);
    EXPECT_EQ(store_->Refund(three, {.id = "x"}).value(), Applied::kYes);
    EXPECT_EQ(Remaining(three), 7);
    EXPECT_EQ(store_->Refund(three, {.id = "x"}).value(), Applied::kNo)
        << "a refund was applied twice with the same id";
    EXPECT_EQ(Remaining(three), 7);
    EXPECT_EQ(store_->Refund({"r", "i", &quota, 100}, {.id = "y"}).value(), Applied::kYes);
    EXPECT_EQ(Remaining(three), 10);
    // The id of a refund is unique per key: another key may use the same id.
    EXPECT_TRUE(Decide({"r", "j", &quota}).allowed);
    EXPECT_EQ(store_->Refund({"r", "j", &quota}, {.id = "x"}).value(), Applied::kYes);
  }
}

TEST_F(MemoryKeysTest, DropsRefundsForPastWindow) {
  const Quota quota = MakeQuota({.algorithm = Algorithm::kFixedWindow, .limit = 10});
  const Charge charge{"r", "i", &quota};
  const Time charged = clock_.Now();
  EXPECT_TRUE(Decide(charge).allowed);
  clock_.Advance(1s);
  EXPECT_EQ(Decide(charge).remaining, 9);
  EXPECT_EQ(store_->Refund(charge, {.id = "x", .charged_at = charged}).value(), Applied::kNo);
  EXPECT_EQ(Remaining(charge), 9);
  EXPECT_EQ(store_->Refund(charge, {.id = "x", .charged_at = clock_.Now()}).value(), Applied::kYes)
      << "the id of a dropped refund cannot be used again";
}

TEST_F(MemoryKeysTest, RefundsChargeMadeWhileClockWasBehind) {
  for (const Algorithm a :
       {Algorithm::kFixedWindow, Algorithm::kSlidingWindow, Algorithm::kSlidingLog}) {
    SCOPED_TRACE(Name(a));
    ManualClock clock{Time{5200ms}};
    const auto store = NewMemoryStore({.max_keys = 100, .clock = &clock});
    const Quota quota = MakeQuota({.algorithm = a, .limit = 10});
    ASSERT_TRUE(store->Apply(Charge{"r", "i", &quota, 8})->allowed);
    clock.Advance(-300ms);
    const Charge one{"r", "i", &quota};
    ASSERT_EQ(store->Apply(one)->remaining, 1);
    EXPECT_EQ(store->Refund(one, {.id = "x", .charged_at = clock.Now()}).value(), Applied::kYes);
    EXPECT_EQ(store->Peek(one)->remaining, 2);
    ASSERT_EQ(store->Apply(one)->remaining, 1);
    EXPECT_EQ(store->Refund(one, {.id = "y"}).value(), Applied::kYes)
        << "a refund without a time was not applied";
    EXPECT_EQ(store->Peek(one)->remaining, 2);
  }
}

TEST_F(MemoryKeysTest, ForgetsRefundIdsOnceKeyHasRecovered) {
  const Quota quota = MakeQuota({.limit = 2});
  const Charge charge{"r", "i", &quota};
  EXPECT_TRUE(Decide(charge).allowed);
  EXPECT_EQ(store_->Refund(charge, {.id = "x"}).value(), Applied::kYes);
  clock_.Advance(2s);
  EXPECT_TRUE(Decide(charge).allowed);
  EXPECT_EQ(store_->Refund(charge, {.id = "x"}).value(), Applied::kYes);
}

TEST_F(MemoryKeysTest, ResetRestoresTheFullQuota) {
  for (const Algorithm a : {Algorithm::kTokenBucket, Algorithm::kSlidingLog}) {
    const Quota quota = MakeQuota({.algorithm = a, .limit = 1});
    const Charge charge{"r", "i", &quota};
    EXPECT_EQ(store_->Reset(charge).value(), Applied::kNo);
    EXPECT_TRUE(Decide(charge).allowed);
    EXPECT_FALSE(Decide(charge).allowed);
    EXPECT_EQ(store_->Reset(charge).value(), Applied::kYes);
    EXPECT_FALSE(store_->Inspect(charge).value().tracked);
    EXPECT_TRUE(Decide(charge).allowed);
  }
}

TEST_F(MemoryKeysTest, InspectReportsState) {
  const Quota quota = MakeQuota({.limit = 5});
  const Charge charge{"r", "i", &quota};
  EXPECT_FALSE(store_->Inspect(charge).value().tracked);
  EXPECT_TRUE(Decide(charge).allowed);
  const Inspection inspection = store_->Inspect(charge).value();
  EXPECT_TRUE(inspection.tracked);
  EXPECT_EQ(inspection.decision.remaining, 4);
  ASSERT_GE(inspection.state.size(), 2u);
  EXPECT_EQ(inspection.state[0].name, "tokens");
  EXPECT_EQ(inspection.state[0].value, "4");
  EXPECT_EQ(inspection.state[1].name, "last_refill");
  for (int a = 0; a < kAlgorithms; ++a) {
    const Quota other = MakeQuota({.algorithm = static_cast<Algorithm>(a), .limit = 3});
    const Charge c{.rule = "all", .identity = "i", .quota = &other, .lease = "l"};
    EXPECT_TRUE(Decide(c).allowed);
    EXPECT_FALSE(store_->Inspect(c).value().state.empty());
  }
}

TEST_F(MemoryKeysTest, KeepsStateWhenLimitChanges) {
  const Quota small = MakeQuota({.limit = 10, .burst = 10});
  const Quota large = MakeQuota({.limit = 20, .burst = 20});
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(Decide({"r", "i", &small}).allowed);
  EXPECT_EQ(Decide({"r", "i", &large}).remaining, 1) << "the state was reset or doubled";
  EXPECT_EQ(Remaining({"r", "i", &small}), 1);
}

TEST_F(MemoryKeysTest, CountsRepairs) {
  const Quota quota = MakeQuota({.algorithm = Algorithm::kFixedWindow, .limit = 1});
  EXPECT_TRUE(Decide({"r", "i", &quota}).allowed);
  clock_.Advance(-1h);
  EXPECT_FALSE(Decide({"r", "i", &quota}).allowed);
  EXPECT_EQ(store_->Stats().repaired, 1u);
  EXPECT_FALSE(Decide({"r", "i", &quota}).allowed);
  EXPECT_EQ(store_->Stats().repaired, 1u) << "the repair was not written with the denial";
  clock_.Advance(1s);
  EXPECT_TRUE(Decide({"r", "i", &quota}).allowed);
}

TEST_F(MemoryKeysTest, RejectsUnsupportedOperations) {
  const Quota slots = MakeQuota({.algorithm = Algorithm::kConcurrency, .limit = 1});
  const Quota bucket = MakeQuota({.limit = 1});
  const Charge slot{.rule = "r", .identity = "i", .quota = &slots, .lease = "l"};
  EXPECT_EQ(store_->Debit(slot).error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(store_->Refund(slot, {.id = "x"}).error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(store_->Renew({"r", "i", &bucket}).error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(store_->Release({"r", "i", &bucket}).error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(store_->Refund({"r", "i", &bucket}, {.id = ""}).error().code, ErrorCode::kBadCharge);
}

}  // namespace
}  // namespace tidegate
