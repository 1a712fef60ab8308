// SPDX-License-Identifier: Apache-2.0
// Leases of the concurrency algorithm in the memory store.
#include "fixture.hpp"

namespace tidegate {
namespace {

class MemoryLeaseTest : public MemoryStoreTest {
 protected:
  Charge Lease(std::string_view id, std::int64_t cost = 1) const {
    return {"jobs", "i", &quota_, cost, Mode::kEnforce, id};
  }

  const Quota quota_ = MakeQuota({.algorithm = Algorithm::kConcurrency, .limit = 2, .period = 10s});
};

TEST_F(MemoryLeaseTest, AcquiresAndReleasesLeases) {
  EXPECT_EQ(Decide(Lease("a")).remaining, 1);
  EXPECT_EQ(Decide(Lease("b")).remaining, 0);
  const Decision denied = Decide(Lease("c"));
  EXPECT_FALSE(denied.allowed);
  EXPECT_EQ(denied.retry_after, 10s);
  EXPECT_EQ(store_->Release(Lease("a")).value(), Applied::kYes);
  EXPECT_EQ(store_->Release(Lease("a")).value(), Applied::kNo);
  EXPECT_TRUE(Decide(Lease("c")).allowed);
}

TEST_F(MemoryLeaseTest, AcquiringHeldLeaseAgainIsIdempotent) {
  EXPECT_EQ(Decide(Lease("a")).remaining, 1);
  EXPECT_EQ(Decide(Lease("a")).remaining, 1);
  EXPECT_EQ(Decide(Lease("b")).remaining, 0);
  EXPECT_TRUE(Decide(Lease("a")).allowed)
      << "the holder of a lease was denied because no lease is free";
  EXPECT_FALSE(Decide(Lease("c")).allowed);
}

TEST_F(MemoryLeaseTest, LeasesExpireUnlessRenewed) {
  EXPECT_TRUE(Decide(Lease("dead")).allowed);
  EXPECT_TRUE(Decide(Lease("alive")).allowed);
  clock_.Advance(9s);
  EXPECT_EQ(store_->Renew(Lease("alive")).value(), Applied::kYes);
  EXPECT_FALSE(Decide(Lease("new")).allowed);
  clock_.Advance(1s);
  EXPECT_TRUE(Decide(Lease("new")).allowed);
  EXPECT_FALSE(Decide(Lease("newer")).allowed);
  EXPECT_EQ(store_->Renew(Lease("dead")).value(), Applied::kNo);
  clock_.Advance(9s);
  EXPECT_EQ(store_->Renew(Lease("alive")).value(), Applied::kNo);
}

TEST_F(MemoryLeaseTest, PeekNeedsNoLeaseId) {
  EXPECT_EQ(Remaining(Lease("")), 2);
  EXPECT_TRUE(Decide(Lease("a")).allowed);
  EXPECT_EQ(Remaining(Lease("")), 1);
  EXPECT_TRUE(Decide(Lease("b")).allowed);
  EXPECT_FALSE(store_->Peek(Lease("")).value().allowed);
  EXPECT_EQ(store_->Peek(Lease("")).value().retry_after, 10s);
  EXPECT_TRUE(store_->Peek(Lease("a")).value().allowed) << "a peek denies the holder of a lease";
  EXPECT_FALSE(store_->Apply(Lease("")).has_value()) << "a lease was acquired without an id";
}

TEST_F(MemoryLeaseTest, LeaseMayTakeSeveralUnits) {
  EXPECT_TRUE(Decide(Lease("a", 2)).allowed);
  EXPECT_FALSE(Decide(Lease("b")).allowed);
  EXPECT_TRUE(Decide(Lease("c", 3)).never);
  EXPECT_TRUE(Decide(Lease("a", 1)).allowed) << "the holder cannot lower the cost of its lease";
  EXPECT_TRUE(Decide(Lease("b")).allowed);
}

TEST_F(MemoryLeaseTest, HoldsFiveHundredLeases) {
  const Quota wide = MakeQuota({.algorithm = Algorithm::kConcurrency, .limit = 500, .period = 10s});
  std::vector<std::string> ids;
  for (int i = 0; i < 501; ++i) ids.push_back("lease-" + std::to_string(i));
  const auto charge = [&](const std::string& id) {
    return Charge{"many", "i", &wide, 1, Mode::kEnforce, id};
  };
  for (int i = 0; i < 500; ++i)
    EXPECT_TRUE(Decide(charge(ids[static_cast<std::size_t>(i)])).allowed);
  EXPECT_FALSE(Decide(charge(ids[500])).allowed);
  for (int i = 0; i < 500; i += 2) {
    EXPECT_EQ(store_->Release(charge(ids[static_cast<std::size_t>(i)])).value(), Applied::kYes);
  }
  EXPECT_EQ(Remaining(charge(ids[500])), 250);
}

}  // namespace
}  // namespace tidegate
