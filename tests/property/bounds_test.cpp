// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <deque>

#include "property/history.hpp"

/// Upper bounds on the units that each algorithm admits in any interval, counted by hand.
namespace tidegate::property {
namespace {

constexpr std::uint64_t kBoundSeeds = 100;
constexpr int kBoundSteps = 80;
constexpr Freedom kPlain{
    .clock_steps_back = false, .quota_changes = false, .debits_and_refunds = false};

struct Admitted {
  Tick at;
  std::int64_t units;
};

/// Runs plain random steps and returns the admitted units with their times, in order. `jitter`: the
/// clock may step back by up to half a recovery.
template <class S>
std::vector<Admitted> Live(Source& source, S& subject, bool jitter) {
  Chooser chooser(source, kPlain);
  std::vector<Admitted> admitted;
  Outcome last;
  Tick furthest = kStart;
  Tick charged = kStart;
  for (int i = 0; i < kBoundSteps; ++i) {
    Tick now = chooser.NextTime(subject.quota(), furthest, furthest, last);
    if (jitter && source.Below(3) == 0) {
      now = furthest - source.Between(0, subject.quota().recovery().count() / 2);
    }
    furthest = std::max(furthest, now);
    const std::int64_t cost = chooser.Cost(subject.quota(), last);
    last = subject.Step(cost, chooser.Count(subject.quota(), cost), now);
    if (last.admitted == 0) continue;
    charged = std::max(charged, now);
    admitted.push_back({charged, last.admitted * cost});
  }
  return admitted;
}

template <class Kit>
void NoIntervalAdmitsMoreThanBurstAndRefill() {
  for (std::uint64_t seed = 1; seed <= kBoundSeeds; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Source source(seed);
    Subject<Kit> subject(AnyQuota(source, Kit::kAlgorithm), kStart);
    SCOPED_TRACE(ToString(subject.quota()));
    const auto admitted = Live(source, subject, /*jitter=*/seed % 2 == 0);
    const oracle::Law law = oracle::Law::Of(subject.quota());
    for (std::size_t from = 0; from < admitted.size(); ++from) {
      oracle::Wide sum = 0;
      for (std::size_t to = from; to < admitted.size(); ++to) {
        sum += admitted[to].units;
        const Tick length = admitted[to].at - admitted[from].at;
        ASSERT_TRUE(sum * law.period <= law.capacity * law.period + law.limit * length)
            << "from step " << from << " to step " << to;
      }
    }
  }
}

TEST(AdmissionBoundsTest, TokenBucketAdmitsAtMostBurstPlusRefill) {
  NoIntervalAdmitsMoreThanBurstAndRefill<TokenBucketKit>();
}
TEST(AdmissionBoundsTest, GcraAdmitsAtMostBurstPlusRefill) {
  NoIntervalAdmitsMoreThanBurstAndRefill<GcraKit>();
}

/// Returns the greatest number of units admitted in any (t - period, t].
std::int64_t FullestWindow(const std::vector<Admitted>& admitted, Tick period) {
  std::int64_t most = 0;
  std::int64_t sum = 0;
  std::size_t first = 0;
  for (const Admitted& last : admitted) {
    sum += last.units;
    for (; admitted[first].at + period <= last.at; ++first) sum -= admitted[first].units;
    most = std::max(most, sum);
  }
  return most;
}

TEST(AdmissionBoundsTest, SlidingLogNeverExceedsLimitInAnyPeriod) {
  for (std::uint64_t seed = 1; seed <= kBoundSeeds; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Source source(seed);
    const Quota quota = AnyQuota(source, Algorithm::kSlidingLog);
    // A log without room for `limit` entries may only be stricter.
    const std::int64_t room = seed % 3 == 0 ? source.Between(1, quota.limit()) : kLongestList;
    LogSubject subject(quota, kStart, static_cast<std::uint32_t>(room));
    const auto admitted = Live(source, subject, /*jitter=*/false);
    ASSERT_LE(FullestWindow(admitted, quota.period().count()), quota.limit());
  }
}

TEST(AdmissionBoundsTest, FixedWindowNeverExceedsLimitPerWindow) {
  for (std::uint64_t seed = 1; seed <= kBoundSeeds; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Source source(seed);
    Subject<FixedWindowKit> subject(AnyQuota(source, Algorithm::kFixedWindow), kStart);
    const Tick period = subject.quota().period().count();
    std::int64_t sum = 0;
    Tick window = 0;
    for (const Admitted& step : Live(source, subject, /*jitter=*/false)) {
      if (step.at / period != window) sum = 0;
      window = step.at / period;
      sum += step.units;
      ASSERT_LE(sum, subject.quota().limit());
    }
  }
}

TEST(AdmissionBoundsTest, SlidingWindowStaysBelowTwiceItsLimit) {
  for (std::uint64_t seed = 1; seed <= kBoundSeeds; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Source source(seed);
    Subject<SlidingWindowKit> subject(AnyQuota(source, Algorithm::kSlidingWindow), kStart);
    const auto admitted = Live(source, subject, /*jitter=*/false);
    ASSERT_LE(FullestWindow(admitted, subject.quota().period().count()),
              2 * subject.quota().limit() - 1);
  }
}

/// The worst case: all units at the end of a window, and then all units that the fading estimate
/// admits.
TEST(AdmissionBoundsTest, SlidingWindowReachesBoundInWorstCase) {
  const Quota quota = Quota::Make({Algorithm::kSlidingWindow, 100, Micros{1'000'000}}).value();
  constexpr Tick kWindow = 2'000'000;
  Subject<SlidingWindowKit> subject(quota, kWindow - 1);
  std::vector<Admitted> admitted;
  admitted.push_back({kWindow - 1, subject.Step(1, 1000, kWindow - 1).admitted});
  for (Tick at = kWindow; at < kWindow + 1'000'000 - 1; at += 1'000) {
    admitted.push_back({at, subject.Step(1, 1, at).admitted});
  }
  const std::int64_t most = FullestWindow(admitted, 1'000'000);
  EXPECT_EQ(most, 199) << "expected 100 at the end of one window and 99 by the end of the next";
}

/// Compares the estimate with the true number of units in the last period, under Poisson traffic of
/// `load` times a limit of 1000. Measured mean error, in percent of the limit: 0.7 at half load,
/// 1.1 at 0.9, and 0.1 from 1.5 on, where the limit itself smooths the traffic.
TEST(AdmissionBoundsTest, SlidingWindowHasSmallErrorUnderSteadyTraffic) {
  constexpr Tick kPeriod = 1'000'000;
  constexpr std::int64_t kLimit = 1000;
  const Quota quota = Quota::Make({Algorithm::kSlidingWindow, kLimit, Micros{kPeriod}}).value();
  struct Row {
    double load;
    double worst_percent;
  };
  for (const auto& [load, worst_percent] :
       {Row{0.5, 1}, Row{0.9, 1.5}, Row{1.5, 0.2}, Row{3, 0.2}}) {
    SCOPED_TRACE(testing::Message() << "load " << load);
    Source source(7);
    Subject<SlidingWindowKit> subject(quota, 0);
    std::deque<Tick> inside;
    double error = 0;
    double time = 0;
    int samples = 0;
    while (time < 40e6) {
      const double chance = static_cast<double>(source.Below(1u << 30) + 1) / (1u << 30);
      time -= std::log(chance) * kPeriod / (load * kLimit);
      const Tick now = std::llround(time);
      const Outcome outcome = subject.Step(1, 1, now);
      if (outcome.admitted == 1) inside.push_back(now);
      while (inside.front() + kPeriod <= now) inside.pop_front();
      if (time < 2 * kPeriod) continue;
      const auto estimated = static_cast<double>(kLimit - outcome.remaining);
      error += std::abs(estimated - static_cast<double>(inside.size())) / kLimit;
      ++samples;
    }
    EXPECT_LT(100 * error / samples, worst_percent);
    EXPECT_GT(100 * error / samples, worst_percent / 10)
        << "the error is too small: the algorithm may not estimate any more";
  }
}

/// Both bucket algorithms give the same results for the same history, including debits and refunds,
/// as long as the clock runs forward.
TEST(AdmissionBoundsTest, TokenBucketAndGcraDecideTheSame) {
  for (std::uint64_t seed = 1; seed <= 2 * kBoundSeeds; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Source source(seed);
    Chooser chooser(source, kPlain);
    QuotaSpec spec = BucketSpec(source, Algorithm::kTokenBucket);
    spec.max_debt = AnyMaxDebt(source, Algorithm::kTokenBucket);
    const auto quota = Quota::Make(spec);
    if (!quota) continue;
    QuotaSpec twin = spec;
    twin.algorithm = Algorithm::kGcra;
    Subject<TokenBucketKit> bucket(*quota, kStart);
    Subject<GcraKit> gcra(Quota::Make(twin).value(), kStart);
    Outcome last;
    Tick now = kStart;
    for (int i = 0; i < 3 * kBoundSteps; ++i) {
      now = chooser.NextTime(*quota, now, now, last);
      const std::int64_t cost = chooser.Cost(*quota, last);
      const std::int64_t count = source.Below(4) == 0 ? kMaxCount : chooser.Count(*quota, cost);
      const std::uint64_t choice = seed % 2 == 0 ? source.Below(10) : 9;
      last = choice == 0   ? bucket.Debit(cost, now)
             : choice == 1 ? bucket.Refund(cost, now, now)
                           : bucket.Step(cost, count, now);
      const Outcome other = choice == 0   ? gcra.Debit(cost, now)
                            : choice == 1 ? gcra.Refund(cost, now, now)
                                          : gcra.Step(cost, count, now);
      ASSERT_EQ(last, other) << ToString(*quota) << "\n  at " << now - kStart << " cost " << cost
                             << " count " << count << "\n  token_bucket " << ToString(last)
                             << "\n  gcra         " << ToString(other);
    }
  }
}

}  // namespace
}  // namespace tidegate::property
