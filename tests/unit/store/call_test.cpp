// SPDX-License-Identifier: Apache-2.0
// Store::Start() gives the same results as the functions that wait.
#include "store/call.hpp"
#include "fixture.hpp"

namespace tidegate {
namespace {

class StoreCallTest : public MemoryStoreTest {
 protected:
  struct Counted : Call {
    int times = 0;
    std::vector<Decision> answers;
  };

  Counted Run(Call::Kind kind, std::vector<Charge> charges, const RefundRequest& refund = {}) {
    charges_ = std::move(charges);
    Counted call;
    call.answers.resize(charges_.size());
    call.kind = kind;
    call.charges = charges_;
    call.decisions = call.answers;
    call.refund = refund;
    call.finished = [](Call& done) noexcept { ++static_cast<Counted&>(done).times; };
    // The fields still have the values of an earlier use: a Call may be used again.
    call.error = Error{ErrorCode::kExhausted, "old"};
    call.applied = Applied::kYes;
    store_->Start(call);
    EXPECT_EQ(call.times, 1);
    return call;
  }

  const Quota quota_ = MakeQuota({.limit = 3, .period = 3s});
  const Quota small_ = MakeQuota({.limit = 1, .period = 3s});
  const Quota leases_ = MakeQuota({.algorithm = Algorithm::kConcurrency, .limit = 1, .period = 9s});
  const Charge charge_{.rule = "r", .identity = "i", .quota = &quota_};
  std::vector<Charge> charges_;
};

TEST_F(StoreCallTest, AppliesSingleCharge) {
  for (int i = 0; i < 3; ++i) {
    const auto call = Run(Call::Kind::kApply, {charge_});
    EXPECT_FALSE(call.error);
    EXPECT_TRUE(call.allowed);
    EXPECT_EQ(call.answers[0].remaining, 2 - i);
  }
  const auto denied = Run(Call::Kind::kApply, {charge_});
  EXPECT_FALSE(denied.allowed);
  EXPECT_EQ(denied.answers[0].retry_after, 1s);
}

TEST_F(StoreCallTest, AppliesAllChargesOrNone) {
  const Charge narrow{.rule = "s", .identity = "i", .quota = &small_};
  EXPECT_TRUE(Run(Call::Kind::kApply, {charge_, narrow}).allowed);
  EXPECT_FALSE(Run(Call::Kind::kApply, {charge_, narrow}).allowed);
  EXPECT_EQ(Remaining(charge_), 2);
}

TEST_F(StoreCallTest, ShadowChargeAloneDeniesNothing) {
  Charge shadow = charge_;
  shadow.mode = Mode::kShadow;
  shadow.quota = &small_;
  EXPECT_TRUE(Run(Call::Kind::kApply, {shadow}).allowed);
  const auto second = Run(Call::Kind::kApply, {shadow});
  EXPECT_TRUE(second.allowed);
  EXPECT_FALSE(second.answers[0].allowed);
  EXPECT_TRUE(Run(Call::Kind::kPeek, {shadow}).allowed);
}

TEST_F(StoreCallTest, PeekNeverChargesAndDebitAlwaysCharges) {
  EXPECT_EQ(Run(Call::Kind::kPeek, {charge_}).answers[0].remaining, 3);
  Charge heavy = charge_;
  heavy.cost = 5;
  EXPECT_FALSE(Run(Call::Kind::kDebit, {heavy}).error);
  const auto look = Run(Call::Kind::kPeek, {charge_});
  EXPECT_FALSE(look.allowed);
  EXPECT_EQ(look.answers[0].retry_after, 3s);
}

TEST_F(StoreCallTest, RefundReportsResultingState) {
  (void)Run(Call::Kind::kApply, {charge_});
  const auto refund = Run(Call::Kind::kRefund, {charge_}, {.id = "x"});
  EXPECT_EQ(refund.applied, Applied::kYes);
  EXPECT_EQ(refund.answers[0].remaining, 3);
  EXPECT_EQ(Run(Call::Kind::kRefund, {charge_}, {.id = "x"}).applied, Applied::kNo);
}

TEST_F(StoreCallTest, RenewsAndReleasesLeasesAndResetsKeys) {
  const Charge lease{.rule = "l", .identity = "i", .quota = &leases_, .lease = "a"};
  EXPECT_EQ(Run(Call::Kind::kRenew, {lease}).applied, Applied::kNo);
  EXPECT_TRUE(Run(Call::Kind::kApply, {lease}).allowed);
  EXPECT_EQ(Run(Call::Kind::kRenew, {lease}).applied, Applied::kYes);
  EXPECT_EQ(Run(Call::Kind::kRelease, {lease}).applied, Applied::kYes);
  EXPECT_EQ(Run(Call::Kind::kRelease, {lease}).applied, Applied::kNo);
  (void)Run(Call::Kind::kApply, {charge_});
  EXPECT_EQ(Run(Call::Kind::kReset, {charge_}).applied, Applied::kYes);
  EXPECT_EQ(Remaining(charge_), 3);
}

TEST_F(StoreCallTest, InvalidCallReportsErrorAndChargesNothing) {
  Charge bad = charge_;
  bad.cost = 0;
  const auto one = Run(Call::Kind::kApply, {bad});
  ASSERT_TRUE(one.error);
  EXPECT_EQ(one.error->code, ErrorCode::kBadCharge);
  EXPECT_TRUE(Run(Call::Kind::kApply, {charge_, bad}).error);
  EXPECT_TRUE(Run(Call::Kind::kRenew, {charge_}).error);
  EXPECT_EQ(Remaining(charge_), 3);
}

}  // namespace
}  // namespace tidegate
