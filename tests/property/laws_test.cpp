// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "property/lease_history.hpp"

/// Laws that hold between steps of every algorithm. They are checked without an oracle, by stepping
/// copies of the state and comparing the results.
namespace tidegate::property {
namespace {

constexpr std::uint64_t kLawSeeds = 80;
constexpr int kLawSteps = 100;

template <class Kit>
Subject<Kit> NewSubject(Source& source, const Subject<Kit>*) {
  return {AnyQuota(source, Kit::kAlgorithm), kStart};
}
LogSubject NewSubject(Source& source, const LogSubject*) {
  return {AnyQuota(source, Algorithm::kSlidingLog), kStart,
          static_cast<std::uint32_t>(kLongestList)};
}

/// Every algorithm whose requests differ only in their cost.
template <class S>
class AlgorithmLawsTest : public testing::Test {
 protected:
  /// Calls `visit(before, now, cost, count)` before each step of random histories.
  template <class Visit>
  void Along(const Freedom& freedom, Visit visit) {
    for (std::uint64_t seed = 1; seed <= kLawSeeds && !testing::Test::HasFailure(); ++seed) {
      SCOPED_TRACE(testing::Message() << "seed " << seed);
      Source source(seed);
      Chooser chooser(source, freedom);
      S subject = NewSubject(source, static_cast<const S*>(nullptr));
      SCOPED_TRACE(ToString(subject.quota()));
      Outcome last;
      Tick now = kStart;
      for (int i = 0; i < kLawSteps && !testing::Test::HasFailure(); ++i) {
        now = chooser.NextTime(subject.quota(), now, subject.Stored(now), last);
        const std::int64_t cost = chooser.Cost(subject.quota(), last);
        const std::int64_t count = chooser.Count(subject.quota(), cost);
        if (freedom.debits_and_refunds && source.Below(12) == 0) last = subject.Debit(cost, now);
        if (freedom.debits_and_refunds && source.Below(12) == 0) {
          last = subject.Refund(cost, now, now);
        }
        visit(static_cast<const S&>(subject), now, cost, count);
        // Print the step only after a failure: a trace for each step would take most of the time.
        if (testing::Test::HasFailure()) {
          ADD_FAILURE() << "at step " << i << ", time " << now - kStart << ", cost " << cost
                        << ", count " << count;
        }
        last = subject.Step(cost, count, now);
      }
    }
  }
};

using Subjects = testing::Types<Subject<TokenBucketKit>, Subject<GcraKit>, Subject<FixedWindowKit>,
                                Subject<SlidingWindowKit>, LogSubject>;
struct Names {
  template <class S>
  static std::string GetName(int i) {
    constexpr const char* kNames[] = {"TokenBucket", "Gcra", "FixedWindow", "SlidingWindow",
                                      "SlidingLog"};
    return kNames[i];
  }
};
TYPED_TEST_SUITE(AlgorithmLawsTest, Subjects, Names);

TYPED_TEST(AlgorithmLawsTest, StepWithCountEqualsThatManySingleSteps) {
  this->Along({}, [](const TypeParam& before, Tick now, std::int64_t cost, std::int64_t count) {
    if (count == 0) return;
    TypeParam at_once = before;
    const Outcome all = at_once.Step(cost, count, now);
    TypeParam in_a_row = before;
    Outcome sum;
    bool repaired = false;
    bool denied = false;
    for (std::int64_t i = 0; i < count && !denied; ++i) {
      const std::int64_t admitted = sum.admitted;
      sum = in_a_row.Step(cost, 1, now);
      denied = sum.admitted == 0;
      repaired = repaired || sum.effect == Effect::kRepaired;
      sum.admitted += admitted;
    }
    sum.effect = repaired ? Effect::kRepaired : sum.admitted > 0 ? Effect::kCharged : Effect::kNone;
    EXPECT_EQ(all, sum) << ToString(all) << "\n" << ToString(sum);
    EXPECT_TRUE(at_once.SameState(in_a_row));
  });
}

TYPED_TEST(AlgorithmLawsTest, RetryAfterIsSufficientAndMinimal) {
  this->Along({}, [](const TypeParam& before, Tick now, std::int64_t cost, std::int64_t count) {
    TypeParam after = before;
    const Outcome outcome = after.Step(cost, count, now);
    const Tick wait = outcome.retry_after.count();
    if (outcome.never) {
      EXPECT_EQ(wait, 0);
      EXPECT_GT(cost, before.quota().capacity());
      return;
    }
    if (outcome.admitted == count && count > 0) {
      EXPECT_EQ(wait, 0) << "retry_after is set although no request was denied";
      return;
    }
    EXPECT_EQ(TypeParam(after).Step(cost, 1, now + wait).admitted, 1)
        << "denied after retry_after: " << wait;
    if (wait == 0) {
      EXPECT_EQ(count, 0) << "denied with a retry_after of 0";
      return;
    }
    EXPECT_EQ(TypeParam(after).Step(cost, 1, now + wait - 1).admitted, 0)
        << "admitted before retry_after: " << wait;
    EXPECT_EQ(TypeParam(after).Step(cost, 1, now).admitted, 0);
  });
}

TYPED_TEST(AlgorithmLawsTest, ResetAfterIsSufficientAndMinimal) {
  this->Along({}, [](const TypeParam& before, Tick now, std::int64_t cost, std::int64_t count) {
    TypeParam after = before;
    const Tick wait = after.Step(cost, count, now).reset_after.count();
    const Outcome then = TypeParam(after).Step(1, 0, now + wait);
    EXPECT_EQ(then.remaining, before.quota().capacity());
    EXPECT_EQ(then.reset_after, Micros{0});
    if (wait == 0) return;
    EXPECT_EQ(TypeParam(after).Step(1, 0, now + wait - 1).reset_after, Micros{1});
  });
}

TYPED_TEST(AlgorithmLawsTest, MoreAfterIsSufficientAndMinimal) {
  this->Along({}, [](const TypeParam& before, Tick now, std::int64_t cost, std::int64_t count) {
    TypeParam after = before;
    const Outcome outcome = after.Step(cost, count, now);
    const Tick wait = outcome.more_after.count();
    if (wait == 0) {
      EXPECT_EQ(outcome.remaining, before.quota().capacity());
      return;
    }
    EXPECT_GT(TypeParam(after).Step(1, 0, now + wait).remaining, outcome.remaining);
    EXPECT_LE(TypeParam(after).Step(1, 0, now + wait - 1).remaining, outcome.remaining);
  });
}

TYPED_TEST(AlgorithmLawsTest, DenialsAndPeeksConsumeNothing) {
  this->Along({}, [](const TypeParam& before, Tick now, std::int64_t cost, std::int64_t count) {
    TypeParam after = before;
    if (after.Step(cost, count, now).admitted > 0) return;
    const std::int64_t held = TypeParam(before).Step(1, 0, now).remaining;
    EXPECT_EQ(TypeParam(after).Step(1, 0, now).remaining, held);
    EXPECT_EQ(after.Step(cost, count, now).effect, Effect::kNone)
        << "a second repair after the first";
  });
}

/// However much is debited and however often, a key admits a unit again after the time that pays
/// back the bound on debts and refills the quota. A window recovers within its own time.
TYPED_TEST(AlgorithmLawsTest, DebitsBlockKeyForBoundedTime) {
  const Freedom freedom{.clock_steps_back = false, .quota_changes = false};
  this->Along(freedom, [](const TypeParam& before, Tick now, std::int64_t cost, std::int64_t) {
    TypeParam debited = before;
    for (const std::int64_t units : {cost, kMaxCost, std::int64_t{1}, kMaxCost}) {
      const Outcome debit = debited.Debit(units, now);
      EXPECT_EQ(debit.admitted, 1);
      const Quota& quota = debited.quota();
      const oracle::Wide owed = oracle::Wide{quota.max_debt()} + quota.capacity();
      const oracle::Wide paid = owed * quota.period().count() / quota.limit() + 1;
      const Micros wait = debited.Step(1, 0, now).retry_after;
      EXPECT_LE(oracle::Wide{wait.count()}, std::max(paid, oracle::Wide{quota.recovery().count()}))
          << "after a debit of " << units;
    }
  });
}

/// Whatever quota a state was written under, with whatever period: decisions stay within the new
/// quota, and a request passes after its retry_after.
TYPED_TEST(AlgorithmLawsTest, StateStaysValidUnderAnyOtherQuota) {
  this->Along({}, [](const TypeParam& before, Tick now, std::int64_t cost, std::int64_t count) {
    Source source(static_cast<std::uint64_t>(now));
    TypeParam changed = before;
    auto unused = changed.NewModel(now);
    changed.ChangeQuota(AnyQuota(source, before.quota().algorithm()), unused);
    const std::int64_t capacity = changed.quota().capacity();
    const Outcome outcome = changed.Step(cost, count, now);
    EXPECT_EQ(changed.Fault(), "");
    EXPECT_GE(outcome.remaining, 0);
    EXPECT_LE(outcome.remaining, capacity);
    EXPECT_LE(outcome.admitted, capacity / cost);
    EXPECT_GE(outcome.retry_after, Micros{0});
    EXPECT_GE(outcome.reset_after, outcome.retry_after);
    const Tick reset = outcome.reset_after.count();
    EXPECT_EQ(TypeParam(changed).Step(1, 0, now + reset).remaining, capacity);
    if (cost > capacity || (count > 0 && outcome.admitted == count)) return;
    const Tick wait = outcome.retry_after.count();
    EXPECT_EQ(TypeParam(changed).Step(cost, 1, now + wait).admitted, 1) << ToString(outcome);
  });
}

/// The retry_after of a state that was written under another quota is no longer than necessary.
TYPED_TEST(AlgorithmLawsTest, RetryAfterIsMinimalUnderAnyOtherQuota) {
  this->Along({}, [](const TypeParam& before, Tick now, std::int64_t cost, std::int64_t count) {
    Source source(static_cast<std::uint64_t>(now));
    TypeParam changed = before;
    auto unused = changed.NewModel(now);
    changed.ChangeQuota(AnyQuota(source, before.quota().algorithm()), unused);
    const Outcome outcome = changed.Step(cost, count, now);
    const Tick wait = outcome.retry_after.count();
    if (wait == 0) return;
    EXPECT_EQ(TypeParam(changed).Step(cost, 1, now + wait - 1).admitted, 0) << ToString(outcome);
  });
}

TYPED_TEST(AlgorithmLawsTest, ClockStepBackDelaysAtMostOneExtraRecovery) {
  const Freedom freedom{.clock_steps_back = false, .debits_and_refunds = false};
  this->Along(freedom, [](const TypeParam& before, Tick now, std::int64_t cost, std::int64_t) {
    const Tick recovery = before.quota().recovery().count();
    // A period of less than a minute is too short to tell the slower quota of a caller from a wrong
    // clock.
    const bool by_caller = before.quota().origin() == QuotaOrigin::kCaller;
    const Tick held = by_caller ? std::max<Tick>(recovery, 60'000'000) : recovery;
    for (const Tick back : {Tick{1}, recovery - 1, recovery, recovery + 1, 2 * recovery,
                            3 * recovery, Tick{3'600'000'000}, Tick{kLongest}}) {
      TypeParam stepped = before;
      const Tick then = now - back;
      const Outcome outcome = stepped.Step(cost, 1, then);
      EXPECT_LE(outcome.reset_after.count(), held + recovery)
          << "after a clock step back by " << back;
      EXPECT_EQ(stepped.Step(1, 0, then + held + recovery).remaining, before.quota().capacity())
          << "after a clock step back by " << back;
    }
  });
}

TEST(ConcurrencyLawsTest, RetryAfterIsSufficientAndMinimal) {
  for (std::uint64_t seed = 1; seed <= kLawSeeds; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Source source(seed);
    Chooser chooser(source, {});
    LeaseSubject subject(AnyQuota(source, Algorithm::kConcurrency), kLongestList);
    Outcome last;
    Tick now = kStart;
    for (int i = 0; i < kLawSteps; ++i) {
      now = chooser.NextTime(subject.quota(), now, now, last);
      const auto id = source.Below(static_cast<std::uint64_t>(subject.quota().limit()) + 2);
      const std::int64_t cost = chooser.Cost(subject.quota(), last);
      last = subject.Acquire(id, cost, 1, now);
      if (last.admitted == 1 || last.never) continue;
      const Tick wait = last.retry_after.count();
      ASSERT_EQ(LeaseSubject(subject).Acquire(id, cost, 1, now + wait).admitted, 1) << wait;
      ASSERT_EQ(LeaseSubject(subject).Acquire(id, cost, 1, now + wait - 1).admitted, 0) << wait;
      ASSERT_LE(wait, 2 * subject.quota().period().count());
    }
  }
}

TEST(ConcurrencyLawsTest, HeldUnitsNeverExceedLimit) {
  for (std::uint64_t seed = 1; seed <= kLawSeeds; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Source source(seed);
    Chooser chooser(source, {.clock_steps_back = false});
    LeaseSubject subject(AnyQuota(source, Algorithm::kConcurrency), kLongestList);
    Outcome last;
    Tick now = kStart;
    for (int i = 0; i < kLawSteps; ++i) {
      now = chooser.NextTime(subject.quota(), now, now, last);
      const auto id = source.Below(static_cast<std::uint64_t>(subject.quota().limit()) + 2);
      last = subject.Acquire(id, chooser.Cost(subject.quota(), last), 1, now);
      std::int64_t held = 0;
      for (const auto& lease : subject.leases().all()) {
        if (now < TickOf(lease.expiry)) held += lease.units;
      }
      ASSERT_LE(held, subject.quota().limit());
      ASSERT_EQ(last.remaining, subject.quota().limit() - held);
    }
  }
}

}  // namespace
}  // namespace tidegate::property
