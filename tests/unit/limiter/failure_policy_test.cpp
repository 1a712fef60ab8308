// SPDX-License-Identifier: Apache-2.0
#include "limiter/failure_policy.hpp"

#include <gtest/gtest.h>

namespace tidegate {
namespace {

using namespace std::chrono_literals;

constexpr auto kOpen = OnFailure::kOpen;
constexpr auto kClosed = OnFailure::kClosed;
constexpr auto kLocal = OnFailure::kLocal;

struct Asked : Call {
  Asked(Call::Kind of, std::vector<Charge> list) : own(std::move(list)), told(own.size()) {
    kind = of;
    charges = own;
    decisions = told;
  }
  std::vector<Charge> own;
  std::vector<Decision> told;
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
  Asked Apply(std::vector<Charge> charges) {
    Asked asked(Call::Kind::kApply, std::move(charges));
    policy_.Answer(asked);
    return asked;
  }
};

TEST_F(FailurePolicyTest, Open) {
  const Asked asked = Apply({Of("r", kOpen)});
  EXPECT_TRUE(asked.allowed);
  EXPECT_EQ(asked.told[0].decided_by, DecidedBy::kOpen);
  EXPECT_TRUE(asked.told[0].allowed);
}

TEST_F(FailurePolicyTest, ClosedMayBeTriedAgainInASecond) {
  const Asked asked = Apply({Of("r", kClosed)});
  EXPECT_FALSE(asked.allowed);
  EXPECT_EQ(asked.told[0].decided_by, DecidedBy::kClosed);
  EXPECT_EQ(asked.told[0].retry_after, 1s);
}

TEST_F(FailurePolicyTest, LocalCountsThisNodesShare) {
  nodes_ = 3;
  EXPECT_TRUE(Apply({Of("r", kLocal)}).allowed);
  EXPECT_TRUE(Apply({Of("r", kLocal)}).allowed);
  const Asked third = Apply({Of("r", kLocal)});
  EXPECT_FALSE(third.allowed);
  EXPECT_EQ(third.told[0].decided_by, DecidedBy::kLocal);
  EXPECT_EQ(third.told[0].limit, 2);
  EXPECT_EQ(third.told[0].retry_after, 3s) << "a third of one a second";
  clock_.Advance(3s);
  EXPECT_TRUE(Apply({Of("r", kLocal)}).allowed);
}

TEST_F(FailurePolicyTest, ClosedWinsAndNothingIsCharged) {
  const Asked asked = Apply({Of("local", kLocal), Of("closed", kClosed), Of("open", kOpen)});
  EXPECT_FALSE(asked.allowed);
  EXPECT_EQ(asked.told[0].decided_by, DecidedBy::kLocal);
  EXPECT_TRUE(asked.told[0].allowed);
  EXPECT_EQ(asked.told[1].decided_by, DecidedBy::kClosed);
  EXPECT_EQ(asked.told[2].decided_by, DecidedBy::kOpen);
  EXPECT_EQ(local_->Stats().tracked, 0u);
}

TEST_F(FailurePolicyTest, LocalDecidesAndOpenSaysNothing) {
  for (int i = 0; i < 6; ++i) {
    EXPECT_TRUE(Apply({Of("open", kOpen), Of("local", kLocal)}).allowed);
  }
  const Asked asked = Apply({Of("open", kOpen), Of("local", kLocal)});
  EXPECT_FALSE(asked.allowed);
  EXPECT_TRUE(asked.told[0].allowed);
  EXPECT_FALSE(asked.told[1].allowed);
}

TEST_F(FailurePolicyTest, LocalChargesAreAllOrNothing) {
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(Apply({Of("a", kLocal)}).allowed);
  EXPECT_FALSE(Apply({Of("b", kLocal), Of("a", kLocal)}).allowed);
  EXPECT_EQ(local_->Peek(Of("b", kLocal))->remaining, 6);
}

TEST_F(FailurePolicyTest, AShadowNeverRefuses) {
  const Asked closed = Apply({Of("s", kClosed, Mode::kShadow), Of("o", kOpen)});
  EXPECT_TRUE(closed.allowed);
  EXPECT_FALSE(closed.told[0].allowed) << "it would have";
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(Apply({Of("l", kLocal, Mode::kShadow)}).allowed);
  const Asked asked = Apply({Of("l", kLocal, Mode::kShadow)});
  EXPECT_TRUE(asked.allowed);
  EXPECT_FALSE(asked.told[0].allowed);
}

TEST_F(FailurePolicyTest, OtherQuestions) {
  Asked look(Call::Kind::kPeek, {Of("r", kLocal), Of("o", kOpen)});
  policy_.Answer(look);
  EXPECT_TRUE(look.allowed);
  EXPECT_EQ(look.told[0].remaining, 6);
  EXPECT_EQ(look.told[0].decided_by, DecidedBy::kLocal);
  Asked debit(Call::Kind::kDebit, {Of("r", kLocal)});
  debit.own[0].cost = 10;
  policy_.Answer(debit);
  EXPECT_FALSE(debit.allowed);
  EXPECT_EQ(debit.told[0].retry_after, 5s);
  Asked closed(Call::Kind::kDebit, {Of("r", kLocal), Of("c", kClosed)});
  policy_.Answer(closed);
  EXPECT_FALSE(closed.allowed);
  EXPECT_EQ(closed.told[1].decided_by, DecidedBy::kClosed);
  Asked refund(Call::Kind::kRefund, {Of("r", kLocal)});
  refund.refund.id = "x";
  policy_.Answer(refund);
  EXPECT_EQ(refund.done, Done::kApplied);
}

TEST_F(FailurePolicyTest, ALeaseOfBetterDaysIsKeptAlive) {
  const Quota quota = Quota::Make({.algorithm = Algorithm::kConcurrency, .limit = 1}).value();
  const auto lease = [&](std::string_view id, OnFailure policy) {
    return Charge{"c", "a", &quota, 1, Mode::kEnforce, id, policy};
  };
  Asked renew(Call::Kind::kRenew, {lease("mine", kLocal)});
  policy_.Answer(renew);
  EXPECT_EQ(renew.done, Done::kApplied) << "acquired while Redis answered; known from now on";
  Asked other(Call::Kind::kRenew, {lease("other", kLocal)});
  policy_.Answer(other);
  EXPECT_EQ(other.done, Done::kNothing) << "there is no second place";
  Asked open(Call::Kind::kRenew, {lease("any", kOpen)});
  policy_.Answer(open);
  EXPECT_EQ(open.done, Done::kApplied);
  Asked release(Call::Kind::kRelease, {lease("mine", kLocal)});
  policy_.Answer(release);
  EXPECT_EQ(release.done, Done::kApplied);
}

TEST(LocalShare, NodesTogetherAdmitNoMoreThanTheQuota) {
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
      // limit' / period' * nodes <= limit / period, but for at least one per period.
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
