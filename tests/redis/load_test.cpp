// SPDX-License-Identifier: Apache-2.0
// Tests the load generator, the fleet and the invariant checks together on the memory store: they
// must work before they are used to find faults.
#include "redis/load.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "redis/canary.hpp"
#include "redis/fleet.hpp"
#include "redis/invariants.hpp"
#include "support/wait.hpp"

namespace tidegate::redis_test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr std::string_view kRules = R"(rules:
  - { id: tb, per: header:x-user, limit: 1000/s, burst: 500, algorithm: token_bucket }
  - { id: cc, per: header:x-user, limit: 20/30s, algorithm: concurrency }
  - { id: fw, per: header:x-user, limit: 50/200ms, algorithm: fixed_window }
  - { id: sl, per: header:x-user, limit: 50/200ms, algorithm: sliding_log }
)";

class LoadTest : public testing::Test {
 protected:
  /// Runs the load for `time`, and longer until `least` responses arrived: a busy machine takes
  /// longer.
  Records Run(const Load::Next& next, Load::Options options = {},
              std::chrono::milliseconds time = 600ms, std::int64_t least = 0) {
    options.ports = fleet_.Apis();
    Load load(options, next);
    const auto end = std::chrono::steady_clock::now() + time;
    std::this_thread::sleep_until(end);
    EXPECT_TRUE(test::WaitUntil([&] { return load.answered() >= least; }));
    Records records = load.Stop();
    EXPECT_EQ(load.lost(), 0);
    EXPECT_EQ(load.unexpected(), 0);
    EXPECT_EQ(load.answered(), static_cast<std::int64_t>(records.size()));
    return records;
  }

  Fleet fleet_{{.yaml = std::string(kRules), .nodes = 1}};
};

TEST_F(LoadTest, BucketAdmitsExactlyItsLimit) {
  const Promise promise{1000, 1'000'000, 500};
  const Records records = Run(DecideInTurn("tb", 1), {}, 600ms, 2001);
  ASSERT_GT(records.size(), 2000U);
  EXPECT_TRUE(BucketHolds(records, promise));
  EXPECT_FALSE(BucketHolds(records, Promise{1000, 1'000'000, 450}));
  EXPECT_GE(Admitted(records), 1000);
  EXPECT_EQ(fleet_.Metric("tidegate_decisions_total", R"(rule="tb")"),
            static_cast<double>(records.size()));
  for (const Record& record : records) ASSERT_EQ(record.decided_by, DecidedBy::kStore);
  std::cout << LatenciesOf(records) << '\n';
}

TEST_F(LoadTest, BucketsLimitEachOfManyKeys) {
  const Records records = Run(DecideInTurn("tb", 1000), {}, 600ms, 6000);
  EXPECT_TRUE(EachKey(records, [](std::span<const Record> key) {
    EXPECT_GT(key.size(), 2U);
    return BucketHolds(key, Promise{1000, 1'000'000, 500});
  }));
}

TEST_F(LoadTest, WindowsAndLogsHoldTheirLimit) {
  const Promise promise{50, 200'000, 0};
  const Records windows = Run(DecideInTurn("fw", 1));
  EXPECT_TRUE(FixedWindowHolds(windows, promise, EpochMicros()));
  EXPECT_GE(Admitted(windows), 100);
  const Records logs = Run(DecideInTurn("sl", 1));
  EXPECT_TRUE(LogHolds(logs, promise));
  EXPECT_GE(Admitted(logs), 100);
}

TEST_F(LoadTest, LeasesHoldTheirLimit) {
  const Promise promise{20, 30'000'000, 0};
  const Records records = Run(LeaseInTurn("cc", 1, 3ms));
  EXPECT_TRUE(LeasesHold(records, promise));
  EXPECT_GE(MostLeases(records, promise), 10);
}

TEST_F(LoadTest, SendsAtTheConfiguredRate) {
  const Records records = Run(DecideInTurn("tb", 1), {.connections = 16, .rate = 1000}, 1s);
  EXPECT_GT(records.size(), 700U);
  EXPECT_LT(records.size(), 1300U);
}

TEST_F(LoadTest, StopsAfterTheConfiguredNumberOfRequests) {
  Load load({.ports = fleet_.Apis(), .connections = 8, .most = 1000}, DecideInTurn("tb", 10));
  ASSERT_TRUE(test::WaitUntil([&] { return load.answered() == 1000; }));
  EXPECT_EQ(load.Stop().size(), 1000U);
}

TEST_F(LoadTest, ReconnectsAfterNodeRestarts) {
  Load load({.ports = fleet_.Apis(), .connections = 8}, DecideInTurn("tb", 10));
  ASSERT_TRUE(load.Progress(1000));
  fleet_[0].Kill();
  EXPECT_FALSE(fleet_.AllAlive());
  ASSERT_TRUE(test::WaitUntil([&] { return load.lost() > 0; }));
  fleet_[0].Start();
  EXPECT_TRUE(fleet_.AllAlive());
  EXPECT_TRUE(load.Progress(1000));
  const Records records = load.Stop();
  // One lost request per connection, and one more if the dying process still accepted a connection.
  EXPECT_LE(load.lost(), 16);
  EXPECT_GT(fleet_.ResidentBytes(), 1 << 20);
  EXPECT_GT(fleet_.Descriptors(), 3);
}

TEST_F(LoadTest, ReadsDecisionOfASingleRequest) {
  const Answer answer = fleet_[0].Decide(R"({"rule":"tb","identity":"bob"})");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.Member("decided_by"), "store");
  EXPECT_EQ(answer.Number("remaining"), 499);
  EXPECT_THAT(answer.Field("RateLimit"), HasSubstr("r=499"));
  EXPECT_EQ(answer.Field("X-Tidegate-Decided-By"), "");
}

TEST(CanaryTest, ExcludesRequestsWhileThreadsWaitForCpu) {
  Records records(1);
  Canary canary;
  records[0].sent_us = SteadyMicros();
  records[0].status = 200;
  // Starts more busy threads than there are processors, so that some threads must wait.
  std::vector<std::thread> threads;
  std::atomic<bool> stop{false};
  for (unsigned i = 0; i < 3 * std::thread::hardware_concurrency(); ++i) {
    threads.emplace_back([&] {
      while (!stop) continue;
    });
  }
  const std::int64_t start = SteadyMicros();
  EXPECT_TRUE(test::WaitUntil([&] { return SteadyMicros() > start + 300'000; }));
  records[0].took_us = static_cast<std::uint32_t>(SteadyMicros() - records[0].sent_us);
  stop = true;
  for (std::thread& thread : threads) thread.join();
  canary.Stop();
  EXPECT_TRUE(canary.Undisturbed(records).empty());
  records[0].sent_us -= 10'000'000;  // Moves the request to a time before the stall.
  EXPECT_EQ(canary.Undisturbed(records).size(), 1U);
}

}  // namespace
}  // namespace tidegate::redis_test
