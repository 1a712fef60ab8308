// SPDX-License-Identifier: Apache-2.0
#include "limiter/failure_policy.hpp"

#include <gtest/gtest.h>

namespace tidegate {
namespace {

using namespace std::chrono_literals;

constexpr auto kOpen = OnFailure::kOpen;
constexpr auto kClosed = OnFailure::kClosed;
constexpr auto kLocal = OnFailure::kLocal;

struct TestCall : Call {
  TestCall(Call::Kind of, std::vector<Charge> list) : own(std::move(list)), answers(own.size()) {
    kind = of;
    charges = own;
    decisions = answers;
  }
  std::vector<Charge> own;
  std::vector<Decision> answers;
};

class FailurePolicyTest : public testing::Test {
 protected:
  ManualClock clock_;
  std::unique_ptr<Store> local_ = NewMemoryStore({.max_keys = 1000, .clock = &clock_});
  std::int64_t nodes_ = 1;
  FailurePolicy policy_{*local_, [this] { return nodes_; }};
  const Quota quota_ = Quota::Make({.limit = 6, .period = 6s}).value();

  Charge Of(std::string_view rule, OnFailure on_failure, Mode mode = Mode::kEnforce) const {
    return {rule, "a", &quota_, 1, mode, {}, on_failure};
  }
  TestCall Apply(std::vector<Charge> charges) {
    TestCall call(Call::Kind::kApply, std::move(charges));
    policy_.Answer(call);
    return call;
  }
};

TEST_F(FailurePolicyTest, OpenPolicyAllowsRequests) {
  const TestCall call = Apply({Of("r", kOpen)});
  EXPECT_TRUE(call.allowed);
  EXPECT_EQ(call.answers[0].decided_by, DecidedBy::kOpen);
  EXPECT_TRUE(call.answers[0].allowed);
}

TEST_F(FailurePolicyTest, ClosedPolicyDeniesForOneSecond) {
  const TestCall call = Apply({Of("r", kClosed)});
  EXPECT_FALSE(call.allowed);
  EXPECT_EQ(call.answers[0].decided_by, DecidedBy::kClosed);
  EXPECT_EQ(call.answers[0].retry_after, 1s);
}

TEST_F(FailurePolicyTest, LocalPolicyCountsShareOfThisNode) {
  nodes_ = 3;
  EXPECT_TRUE(Apply({Of("r", kLocal)}).allowed);
  EXPECT_TRUE(Apply({Of("r", kLocal)}).allowed);
  const TestCall third = Apply({Of("r", kLocal)});
  EXPECT_FALSE(third.allowed);
  EXPECT_EQ(third.answers[0].decided_by, DecidedBy::kLocal);
  EXPECT_EQ(third.answers[0].limit, 2);
  EXPECT_EQ(third.answers[0].retry_after, 3s) << "the share is a third of one per second";
  clock_.Advance(3s);
  EXPECT_TRUE(Apply({Of("r", kLocal)}).allowed);
}

TEST_F(FailurePolicyTest, ClosedRuleDeniesWithoutChargingLocalRules) {
  const TestCall call = Apply({Of("local", kLocal), Of("closed", kClosed), Of("open", kOpen)});
  EXPECT_FALSE(call.allowed);
  EXPECT_EQ(call.answers[0].decided_by, DecidedBy::kLocal);
  EXPECT_TRUE(call.answers[0].allowed);
  EXPECT_EQ(call.answers[1].decided_by, DecidedBy::kClosed);
  EXPECT_EQ(call.answers[2].decided_by, DecidedBy::kOpen);
  EXPECT_EQ(local_->Stats().tracked, 0u);
}

TEST_F(FailurePolicyTest, LocalPolicyDecidesBesideOpenPolicy) {
  for (int i = 0; i < 6; ++i) {
    EXPECT_TRUE(Apply({Of("open", kOpen), Of("local", kLocal)}).allowed);
  }
  const TestCall call = Apply({Of("open", kOpen), Of("local", kLocal)});
  EXPECT_FALSE(call.allowed);
  EXPECT_TRUE(call.answers[0].allowed);
  EXPECT_FALSE(call.answers[1].allowed);
}

TEST_F(FailurePolicyTest, LocalPolicyChargesAllRulesOrNone) {
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(Apply({Of("a", kLocal)}).allowed);
  EXPECT_FALSE(Apply({Of("b", kLocal), Of("a", kLocal)}).allowed);
  EXPECT_EQ(local_->Peek(Of("b", kLocal))->remaining, 6);
}

TEST_F(FailurePolicyTest, ShadowRuleNeverDenies) {
  const TestCall closed = Apply({Of("s", kClosed, Mode::kShadow), Of("o", kOpen)});
  EXPECT_TRUE(closed.allowed);
  EXPECT_FALSE(closed.answers[0].allowed) << "the shadow rule does not report that it would deny";
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(Apply({Of("l", kLocal, Mode::kShadow)}).allowed);
  const TestCall call = Apply({Of("l", kLocal, Mode::kShadow)});
  EXPECT_TRUE(call.allowed);
  EXPECT_FALSE(call.answers[0].allowed);
}

TEST_F(FailurePolicyTest, AnswersPeeksDebitsAndRefunds) {
  TestCall look(Call::Kind::kPeek, {Of("r", kLocal), Of("o", kOpen)});
  policy_.Answer(look);
  EXPECT_TRUE(look.allowed);
  EXPECT_EQ(look.answers[0].remaining, 6);
  EXPECT_EQ(look.answers[0].decided_by, DecidedBy::kLocal);
  TestCall debit(Call::Kind::kDebit, {Of("r", kLocal)});
  debit.own[0].cost = 10;
  policy_.Answer(debit);
  EXPECT_FALSE(debit.allowed);
  EXPECT_EQ(debit.answers[0].retry_after, 5s);
  TestCall closed(Call::Kind::kDebit, {Of("r", kLocal), Of("c", kClosed)});
  policy_.Answer(closed);
  EXPECT_FALSE(closed.allowed);
  EXPECT_EQ(closed.answers[1].decided_by, DecidedBy::kClosed);
  TestCall refund(Call::Kind::kRefund, {Of("r", kLocal)});
  refund.refund.id = "x";
  policy_.Answer(refund);
  EXPECT_EQ(refund.applied, Applied::kYes);
}

TEST_F(FailurePolicyTest, RenewsLeaseAcquiredBeforeTheOutage) {
  const Quota quota = Quota::Make({.algorithm = Algorithm::kConcurrency, .limit = 1}).value();
  const auto lease = [&](std::string_view id, OnFailure policy) {
    return Charge{"c", "a", &quota, 1, Mode::kEnforce, id, policy};
  };
  TestCall renew(Call::Kind::kRenew, {lease("mine", kLocal)});
  policy_.Answer(renew);
  EXPECT_EQ(renew.applied, Applied::kYes) << "a lease that was acquired from Redis was not renewed";
  TestCall other(Call::Kind::kRenew, {lease("other", kLocal)});
  policy_.Answer(other);
  EXPECT_EQ(other.applied, Applied::kNo) << "a second lease was granted";
  TestCall open(Call::Kind::kRenew, {lease("any", kOpen)});
  policy_.Answer(open);
  EXPECT_EQ(open.applied, Applied::kYes);
  TestCall release(Call::Kind::kRelease, {lease("mine", kLocal)});
  policy_.Answer(release);
  EXPECT_EQ(release.applied, Applied::kYes);
}

TEST(LocalShareTest, AllNodesTogetherAdmitAtMostTheQuota) {
  const QuotaSpec specs[] = {{.limit = 10, .period = 1s},
                             {.limit = 100, .period = 1s, .burst = 7},
                             {Algorithm::kGcra, 1'000'003, 1s, 50},
                             {Algorithm::kSlidingLog, 17, 1min},
                             {Algorithm::kSlidingWindow, 1000, 1h},
                             {Algorithm::kFixedWindow, 5, 24h * 366},
                             {Algorithm::kTokenBucket, 3, 24h * 366},
                             {Algorithm::kConcurrency, 20, 30s}};
  for (const QuotaSpec& spec : specs) {
    const Quota quota = Quota::Make(spec).value();
    for (const std::int64_t nodes : {1, 2, 3, 7, 1000}) {
      const Quota share = ShareOf(quota, nodes);
      EXPECT_EQ(share.algorithm(), quota.algorithm());
      EXPECT_GE(share.capacity(), 1);
      if (nodes <= quota.capacity()) {
        EXPECT_LE(share.capacity() * nodes, quota.capacity());
      }
      // limit' / period' * nodes <= limit / period, except that each node admits at least one unit
      // per period.
      const double rate =
          static_cast<double>(share.limit()) / static_cast<double>(share.period().count());
      const double all =
          static_cast<double>(quota.limit()) / static_cast<double>(quota.period().count());
      if (nodes <= quota.limit()) {
        EXPECT_LE(rate * static_cast<double>(nodes), all * 1.000001);
      }
    }
  }
}

}  // namespace
}  // namespace tidegate
