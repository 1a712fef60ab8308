// SPDX-License-Identifier: Apache-2.0
#include "tidegate/limiter.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace tidegate {
namespace {

using namespace std::chrono_literals;

TEST(LimiterTest, CountsEachKeySeparately) {
  ManualClock clock;
  Limiter login(Quota::PerSecond(2), {.clock = &clock});
  EXPECT_TRUE(login.Check("alice").allowed);
  EXPECT_TRUE(login.Check("alice").allowed);
  const Decision denied = login.Check("alice");
  EXPECT_FALSE(denied.allowed);
  EXPECT_EQ(denied.retry_after, 500ms);
  EXPECT_TRUE(login.Check("bob").allowed);
  clock.Advance(500ms);
  EXPECT_TRUE(login.Check("alice").allowed);
}

TEST(LimiterTest, PeekDoesNotCharge) {
  ManualClock clock;
  Limiter login(Quota::PerSecond(5).Burst(10), {.clock = &clock});
  EXPECT_EQ(login.Peek("alice").remaining, 10);
  EXPECT_EQ(login.Check("alice", 4).remaining, 6);
  EXPECT_EQ(login.Peek("alice").remaining, 6);
}

TEST(LimiterTest, DebitMayCreateDebt) {
  ManualClock clock;
  Limiter traffic(Quota::PerSecond(10), {.clock = &clock});
  EXPECT_FALSE(traffic.Debit("alice", 15).allowed);
  EXPECT_EQ(traffic.Check("alice").retry_after, 600ms);
  EXPECT_TRUE(traffic.Reset("alice"));
  EXPECT_TRUE(traffic.Check("alice").allowed);
}

TEST(LimiterTest, ReportsInvalidArgumentsAsNeverAllowed) {
  Limiter login(Quota::PerSecond(5));
  for (const Decision& denied :
       {login.Check(""), login.Check("alice", 0), login.Check("alice", -1), login.Check("alice", 6),
        login.Check("alice", std::int64_t{1} << 40), login.Debit("", 1)}) {
    EXPECT_FALSE(denied.allowed);
    EXPECT_TRUE(denied.never);
  }
  EXPECT_EQ(login.Peek("alice").remaining, 5);
}

TEST(LimiterTest, RejectsConcurrencyQuotas) {
  EXPECT_THROW(Limiter(Quota::PerSecond(5).Using(Algorithm::kConcurrency)), std::invalid_argument);
}

TEST(LimiterTest, LimiterCanBeMoved) {
  Limiter first(Quota::PerHour(1));
  EXPECT_TRUE(first.Check("alice").allowed);
  Limiter second = std::move(first);
  EXPECT_FALSE(second.Check("alice").allowed);
  EXPECT_EQ(second.quota(), Quota::PerHour(1));
}

TEST(LimiterTest, WaitsUntilRequestIsAllowed) {
  Limiter limiter(Quota::Per(5ms, 1));
  EXPECT_TRUE(limiter.WaitUntilAllowed("alice", 0s).allowed)
      << "denied although no wait was needed";
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_TRUE(limiter.WaitUntilAllowed("alice", 1min).allowed);
  EXPECT_TRUE(limiter.WaitUntilAllowed("alice", 1min).allowed);
  EXPECT_GE(std::chrono::steady_clock::now() - begun, 9ms);
}

TEST(LimiterTest, DeniesAtOnceWhenWaitExceedsTimeout) {
  Limiter limiter(Quota::PerHour(1));
  EXPECT_TRUE(limiter.Check("alice").allowed);
  const Decision denied = limiter.WaitUntilAllowed("alice", 1min);
  EXPECT_FALSE(denied.allowed);
  EXPECT_GT(denied.retry_after, 59min);
  EXPECT_TRUE(limiter.WaitUntilAllowed("alice", 2h, 2).never)
      << "a cost above the burst is not reported as never";
}

TEST(LimiterTest, CallsBackWhenRequestIsAllowed) {
  std::vector<int> order;
  std::atomic<int> left = 3;
  Limiter limiter(Quota::Per(2ms, 1));
  for (int i = 0; i < 3; ++i) {
    limiter.WhenAllowed("alice", 1min, [&, i](const Decision& decision) {
      EXPECT_TRUE(decision.allowed);
      // One at a time: the first call runs on this thread, the others on the limiter's thread.
      order.push_back(i);
      --left;
      left.notify_one();
    });
  }
  for (int now = left; now > 0; now = left) left.wait(now);
  EXPECT_EQ(order, (std::vector{0, 1, 2}));
}

TEST(LimiterTest, DecidesWaitingRequestsWhenDestroyed) {
  std::atomic<int> denied = 0;
  {
    Limiter limiter(Quota::PerHour(1));
    EXPECT_TRUE(limiter.Check("alice").allowed);
    for (int i = 0; i < 3; ++i) {
      limiter.WhenAllowed("alice", 24h,
                          [&](const Decision& decision) { denied += decision.allowed ? 0 : 1; });
    }
    EXPECT_EQ(denied, 0);
  }
  EXPECT_EQ(denied, 3);
}

TEST(LimiterTest, ManyWaitingThreadsNeverExceedQuota) {
  ManualClock clock;
  Limiter limiter(Quota::PerHour(50), {.clock = &clock});
  std::atomic<int> allowed = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        if (limiter.WaitUntilAllowed("alice", 0s).allowed) ++allowed;
        if (limiter.Check("bob").allowed) ++allowed;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(allowed, 100);
}

TEST(LeaseTest, ReleasesLeaseAtEndOfScope) {
  ConcurrencyLimiter uploads(1);
  {
    const Lease lease = uploads.Acquire("alice");
    EXPECT_TRUE(lease);
    EXPECT_EQ(lease.decision().remaining, 0);
    EXPECT_FALSE(uploads.Acquire("alice"));
    EXPECT_TRUE(uploads.Acquire("bob"));
  }
  EXPECT_TRUE(uploads.Acquire("alice"));
}

TEST(LeaseTest, LeaseExpiresUnlessRenewed) {
  ManualClock clock;
  ConcurrencyLimiter uploads(1, 1min, {.clock = &clock});
  Lease lease = uploads.Acquire("alice");
  clock.Advance(59s);
  EXPECT_TRUE(lease.Renew());
  clock.Advance(59s);
  EXPECT_FALSE(uploads.Acquire("alice"));
  clock.Advance(1s);
  const Lease next = uploads.Acquire("alice");
  EXPECT_TRUE(next);
  EXPECT_FALSE(lease.Renew());
  EXPECT_FALSE(lease);
  lease.Release();
  EXPECT_FALSE(uploads.Acquire("alice")) << "an expired lease released the lease of its successor";
}

TEST(LeaseTest, LeaseCanBeMovedAndReleasedEarly) {
  ConcurrencyLimiter uploads(2);
  Lease first = uploads.Acquire("alice");
  Lease second = std::move(first);
  EXPECT_FALSE(first);  // NOLINT(bugprone-use-after-move): it holds nothing.
  EXPECT_TRUE(second);
  // The assignment acquires the second lease and then releases the first.
  second = uploads.Acquire("alice");
  EXPECT_EQ(uploads.Acquire("alice").decision().remaining, 0);
  second.Release();
  second.Release();
  EXPECT_TRUE(uploads.Acquire("alice", 2));
}

TEST(LeaseTest, LeaseMayOutliveItsLimiter) {
  Lease lease = ConcurrencyLimiter(1).Acquire("alice");
  EXPECT_TRUE(lease);
  lease.Release();
  EXPECT_FALSE(lease);
}

TEST(LeaseTest, RejectsInvalidArguments) {
  ConcurrencyLimiter uploads(1);
  EXPECT_FALSE(uploads.Acquire(""));
  EXPECT_FALSE(uploads.Acquire("alice", 0));
  EXPECT_FALSE(uploads.Acquire("alice", 2));
  EXPECT_THROW(ConcurrencyLimiter(0), std::invalid_argument);
  EXPECT_THROW(ConcurrencyLimiter(1, 0s), std::invalid_argument);
}

}  // namespace
}  // namespace tidegate
