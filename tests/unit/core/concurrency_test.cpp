// SPDX-License-Identifier: Apache-2.0
#include "core/concurrency.hpp"

#include <gtest/gtest.h>

#include "property/lease_history.hpp"
#include "unit/core/table.hpp"

namespace tidegate {
namespace {

using property::LeaseSubject;

enum : std::uint64_t { kAnna = 1, kBert, kCora };

/// Returns an expected result; the columns are admitted, remaining, retry_after and reset_after, as
/// in the other tables.
Expected Answer(std::int64_t admitted, std::int64_t remaining, Tick retry, Tick reset,
                Beside beside = Beside::kNothing) {
  return Row{Look(0), admitted, remaining, retry, reset, beside}.Answer();
}

TEST(ConcurrencyTest, DeniesAboveLimitUntilALeaseExpires) {
  LeaseSubject leases(Make(Algorithm::kConcurrency, 2, 100), 2);
  EXPECT_EQ(leases.Acquire(kAnna, 1, 0, 0), Answer(0, 2, 0, 0));
  EXPECT_EQ(leases.Acquire(kAnna, 1, 1, 0), Answer(1, 1, 0, 100));
  EXPECT_EQ(leases.Acquire(kBert, 1, 1, 10), Answer(1, 0, 0, 100));
  EXPECT_EQ(leases.Acquire(kCora, 1, 1, 20), Answer(0, 0, 80, 90));
  EXPECT_EQ(leases.Acquire(kCora, 2, 1, 20), Answer(0, 0, 90, 90));
  EXPECT_EQ(leases.Acquire(kCora, 3, 1, 20), Answer(0, 0, 0, 90, Beside::kNever));
  EXPECT_EQ(leases.Acquire(kCora, 1, 1, 99), Answer(0, 0, 1, 11));
  EXPECT_EQ(leases.Acquire(kCora, 1, 1, 100), Answer(1, 0, 0, 100));
  EXPECT_EQ(leases.leases().size(), 2u) << "the expired lease is still held";
}

TEST(ConcurrencyTest, GrantsOneLeasePerId) {
  LeaseSubject leases(Make(Algorithm::kConcurrency, 3, 100), 3);
  EXPECT_EQ(leases.Acquire(kAnna, 1, 1, 0), Answer(1, 2, 0, 100));
  EXPECT_EQ(leases.Acquire(kAnna, 1, 7, 50), Answer(7, 2, 0, 100))
      << "renews the lease, for a request that arrived seven times";
  EXPECT_EQ(leases.Acquire(kAnna, 3, 1, 60), Answer(1, 0, 0, 100))
      << "the cost of a lease may grow";
  EXPECT_EQ(leases.Acquire(kAnna, 2, 1, 70), Answer(1, 1, 0, 100))
      << "the cost of a lease may shrink";
  EXPECT_EQ(leases.Acquire(kBert, 1, 1, 70), Answer(1, 0, 0, 100));
  EXPECT_EQ(leases.Acquire(kAnna, 3, 1, 80), Answer(0, 0, 90, 90))
      << "Bert's lease must end first, not Anna's own";
  EXPECT_EQ(leases.leases().size(), 2u);
}

TEST(ConcurrencyTest, RenewsAndReleasesOnlyHeldLeases) {
  LeaseSubject leases(Make(Algorithm::kConcurrency, 2, 100), 2);
  EXPECT_EQ(leases.Renew(kAnna, 0), Answer(0, 2, 0, 0));
  EXPECT_EQ(leases.Acquire(kAnna, 2, 1, 0), Answer(1, 0, 0, 100));
  EXPECT_EQ(leases.Renew(kAnna, 99), Answer(1, 0, 0, 100));
  EXPECT_EQ(leases.Renew(kBert, 99), Answer(0, 0, 0, 100));
  EXPECT_EQ(leases.Release(kBert, 100), Answer(0, 0, 0, 99));
  EXPECT_EQ(leases.Release(kAnna, 100), Answer(1, 2, 0, 0));
  EXPECT_EQ(leases.Release(kAnna, 100), Answer(0, 2, 0, 0));
  EXPECT_EQ(leases.Acquire(kAnna, 1, 1, 100), Answer(1, 1, 0, 100));
  EXPECT_EQ(leases.Renew(kAnna, 200), Answer(0, 2, 0, 0)) << "an expired lease was renewed";
  EXPECT_EQ(leases.Release(kAnna, 200), Answer(0, 2, 0, 0));
}

TEST(ConcurrencyTest, SlowClockDoesNotShortenLeases) {
  LeaseSubject leases(Make(Algorithm::kConcurrency, 2, 100), 2);
  EXPECT_EQ(leases.Acquire(kAnna, 1, 1, 1000), Answer(1, 1, 0, 100));
  EXPECT_EQ(leases.Renew(kAnna, 950), Answer(1, 1, 0, 150));
  EXPECT_EQ(leases.Acquire(kAnna, 1, 1, 900), Answer(1, 1, 0, 200));
  EXPECT_EQ(leases.Acquire(kBert, 1, 1, 900), Answer(1, 0, 0, 200));
  EXPECT_EQ(leases.Acquire(kCora, 2, 1, 900), Answer(0, 0, 200, 200))
      << "the lease lasts up to two periods";
  EXPECT_EQ(leases.Acquire(kCora, 2, 1, 899), Answer(0, 0, 100, 100, Beside::kRepaired));
  EXPECT_EQ(leases.Acquire(kCora, 2, 1, 899), Answer(0, 0, 100, 100));
  EXPECT_EQ(leases.Acquire(kCora, 2, 1, 999), Answer(1, 0, 0, 100));
}

TEST(ConcurrencyTest, RepairsFutureLeasesOnEveryOperation) {
  const Quota quota = Make(Algorithm::kConcurrency, 2, 100);
  LeaseSubject leases(quota, 2);
  EXPECT_EQ(leases.Acquire(kAnna, 1, 1, 1000), Answer(1, 1, 0, 100));
  EXPECT_EQ(LeaseSubject(leases).Acquire(kBert, 1, 1, 0), Answer(1, 0, 0, 100, Beside::kRepaired));
  EXPECT_EQ(LeaseSubject(leases).Acquire(kBert, 1, 0, 0), Answer(0, 1, 0, 100, Beside::kRepaired));
  EXPECT_EQ(LeaseSubject(leases).Renew(kAnna, 0), Answer(1, 1, 0, 100, Beside::kRepaired));
  EXPECT_EQ(LeaseSubject(leases).Renew(kBert, 0), Answer(0, 1, 0, 100, Beside::kRepaired));
  EXPECT_EQ(LeaseSubject(leases).Release(kAnna, 0), Answer(1, 2, 0, 0, Beside::kRepaired));
  EXPECT_EQ(LeaseSubject(leases).Release(kBert, 0), Answer(0, 1, 0, 100, Beside::kRepaired));
}

TEST(ConcurrencyTest, DeniesUnderLoweredLimitUntilEnoughLeasesEnd) {
  LeaseSubject leases(Make(Algorithm::kConcurrency, 3, 100), 3);
  for (const std::uint64_t id : {kAnna, kBert, kCora}) {
    ASSERT_EQ(leases.Acquire(id, 1, 1, static_cast<Tick>(id)).admitted, 1);
  }
  leases.ChangeQuota(Make(Algorithm::kConcurrency, 1, 100));
  EXPECT_EQ(leases.Acquire(9, 1, 1, 10), Answer(0, 0, 93, 93));
  EXPECT_EQ(leases.Acquire(kAnna, 1, 1, 10), Answer(0, 0, 93, 93))
      << "two other leases already exceed the limit";
  EXPECT_EQ(leases.Renew(kAnna, 10), Answer(1, 0, 0, 100))
      << "a held lease can be renewed above the lowered limit";
}

TEST(ConcurrencyTest, CountsExactlyUnderExtremeQuotas) {
  LeaseSubject shortest(Make(Algorithm::kConcurrency, 1, 1), 1);
  EXPECT_EQ(shortest.Acquire(kAnna, 1, kMaxCount, 0), Answer(kMaxCount, 0, 0, 1));
  EXPECT_EQ(shortest.Acquire(kBert, 1, 1, 0), Answer(0, 0, 1, 1));
  EXPECT_EQ(shortest.Acquire(kBert, 1, 1, 1), Answer(1, 0, 0, 1));
  LeaseSubject longest(Make(Algorithm::kConcurrency, 10'000, property::kLongest), 10);
  EXPECT_EQ(longest.Acquire(kAnna, 10'000, 1, 0), Answer(1, 0, 0, property::kLongest));
  EXPECT_EQ(longest.Acquire(kBert, kMaxCost, 1, 0),
            Answer(0, 0, 0, property::kLongest, Beside::kNever));
}

}  // namespace
}  // namespace tidegate
