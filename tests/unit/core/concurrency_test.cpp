// SPDX-License-Identifier: Apache-2.0
#include "core/concurrency.hpp"

#include <gtest/gtest.h>

#include "property/lease_history.hpp"
#include "unit/core/table.hpp"

namespace tidegate {
namespace {

using property::LeaseSubject;

enum : std::uint64_t { kAnna = 1, kBert, kCora };

/// admitted, remaining, retry_after, reset_after, as in the other tables.
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
  EXPECT_EQ(leases.leases().size(), 2u) << "the expired one is gone";
}

TEST(ConcurrencyTest, SameIdHoldsOneLease) {
  LeaseSubject leases(Make(Algorithm::kConcurrency, 3, 100), 3);
  EXPECT_EQ(leases.Acquire(kAnna, 1, 1, 0), Answer(1, 2, 0, 100));
  EXPECT_EQ(leases.Acquire(kAnna, 1, 7, 50), Answer(7, 2, 0, 100)) << "renewed, seven times over";
  EXPECT_EQ(leases.Acquire(kAnna, 3, 1, 60), Answer(1, 0, 0, 100)) << "its cost may grow";
  EXPECT_EQ(leases.Acquire(kAnna, 2, 1, 70), Answer(1, 1, 0, 100)) << "or shrink";
  EXPECT_EQ(leases.Acquire(kBert, 1, 1, 70), Answer(1, 0, 0, 100));
  EXPECT_EQ(leases.Acquire(kAnna, 3, 1, 80), Answer(0, 0, 90, 90)) << "Bert's must go, not hers";
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
  EXPECT_EQ(leases.Renew(kAnna, 200), Answer(0, 2, 0, 0)) << "alive before its expiry only";
  EXPECT_EQ(leases.Release(kAnna, 200), Answer(0, 2, 0, 0));
}

TEST(ConcurrencyTest, SlowClockDoesNotShortenLeases) {
  LeaseSubject leases(Make(Algorithm::kConcurrency, 2, 100), 2);
  EXPECT_EQ(leases.Acquire(kAnna, 1, 1, 1000), Answer(1, 1, 0, 100));
  EXPECT_EQ(leases.Renew(kAnna, 950), Answer(1, 1, 0, 150));
  EXPECT_EQ(leases.Acquire(kAnna, 1, 1, 900), Answer(1, 1, 0, 200));
  EXPECT_EQ(leases.Acquire(kBert, 1, 1, 900), Answer(1, 0, 0, 200));
  EXPECT_EQ(leases.Acquire(kCora, 2, 1, 900), Answer(0, 0, 200, 200)) << "two periods: held";
  EXPECT_EQ(leases.Acquire(kCora, 2, 1, 899), Answer(0, 0, 100, 100, Beside::kRepaired));
  EXPECT_EQ(leases.Acquire(kCora, 2, 1, 899), Answer(0, 0, 100, 100));
  EXPECT_EQ(leases.Acquire(kCora, 2, 1, 999), Answer(1, 0, 0, 100));
}

TEST(ConcurrencyTest, EveryOperationRepairsFutureLeases) {
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

TEST(ConcurrencyTest, LoweredLimitDeniesUntilEnoughLeasesEnd) {
  LeaseSubject leases(Make(Algorithm::kConcurrency, 3, 100), 3);
  for (const std::uint64_t id : {kAnna, kBert, kCora}) {
    ASSERT_EQ(leases.Acquire(id, 1, 1, static_cast<Tick>(id)).admitted, 1);
  }
  leases.ChangeQuota(Make(Algorithm::kConcurrency, 1, 100));
  EXPECT_EQ(leases.Acquire(9, 1, 1, 10), Answer(0, 0, 93, 93));
  EXPECT_EQ(leases.Acquire(kAnna, 1, 1, 10), Answer(0, 0, 93, 93)) << "two others are above it";
  EXPECT_EQ(leases.Renew(kAnna, 10), Answer(1, 0, 0, 100)) << "who holds may go on holding";
}

TEST(ConcurrencyTest, HandlesExtremeQuotas) {
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
