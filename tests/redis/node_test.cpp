// SPDX-License-Identifier: Apache-2.0
// Tests of the nodes themselves: a node dies and returns, and nodes count by themselves while the
// store is down.
#include <gtest/gtest.h>

#include <iostream>

#include "redis/fault_case.hpp"
#include "support/wait.hpp"

namespace tidegate::redis_test {
namespace {

using namespace std::chrono_literals;

class NodeTest : public FaultCase {
 protected:
  /// Waits until every node has seen the heartbeats of all three nodes.
  void AwaitFleet() {
    ASSERT_TRUE(test::WaitUntil([&] {
      for (std::size_t i = 0; i < fleet_->size(); ++i) {
        if ((*fleet_)[i].Metric("tidegate_fleet_nodes") != 3) return false;
      }
      return true;
    })) << fleet_->Output();
  }
  RedisServer redis_;
};

TEST_F(NodeTest, RestartedNodeDoesNotDisturbOthers) {
  Start(redis_.url());
  FaultCase::StartLoad("closed");
  WaitUntilStoreAnswers(SteadyMicros());
  const std::int64_t killed = SteadyMicros();
  (*fleet_)[0].Kill();
  ASSERT_TRUE(load_->Progress(1500));
  (*fleet_)[0].Start();
  const std::int64_t started = SteadyMicros();
  WaitUntilStoreAnswers(started);
  ASSERT_TRUE(load_->Progress(900));
  EXPECT_TRUE(fleet_->AllAlive());
  const Records records = load_->Stop();
  canary_->Stop();
  // The killed node loses the request in flight on each connection, and one more if it still
  // accepted a connection while it died.
  EXPECT_LE(load_->lost(), 32);
  for (const Record& record : canary_->Undisturbed(records)) {
    if (record.node == 0 && record.received_us() >= killed) continue;
    ASSERT_TRUE(record.status == 200 || record.status == 429) << record.status;
  }
  // The restarted node may answer 503 while it connects, but it never applies a limit of its own.
  ExpectBuckets(records);
  EXPECT_EQ(fleet_->Metric("tidegate_fleet_key_mismatches"), 0);
  AwaitFleet();
}

TEST_F(NodeTest, KilledNodeIsNotCountedUntilItReturns) {
  Start(redis_.url());
  AwaitFleet();
  (*fleet_)[2].Kill();
  EXPECT_TRUE(
      test::WaitUntil([&] { return (*fleet_)[0].Metric("tidegate_fleet_nodes") == 2; }, 30s));
  (*fleet_)[2].Start();
  AwaitFleet();
}

TEST_F(NodeTest, LocalSharesKeepTheFleetWithinTheLimit) {
  const Promise promise{300, 1'000'000, 300};
  Start(redis_.url(),
        "rules: [{id: l, per: header:x-user, limit: 300/s, burst: 300, on_failure: local}]");
  AwaitFleet();
  FaultCase::StartLoad(DecideInTurn("l", 1), 3000);
  WaitUntilStoreAnswers(SteadyMicros());
  ASSERT_TRUE(load_->Progress(1500));
  Loss loss;
  loss.from_us = SteadyMicros();
  redis_.Kill();
  ASSERT_TRUE(load_->Progress(6000));  // About two seconds of load.
  const std::int64_t back = SteadyMicros();
  redis_.Start();
  loss.to_us = SteadyMicros();
  WaitUntilStoreAnswers(loss.to_us);
  const Records records = Finish();
  EXPECT_TRUE(BucketHolds(OfStore(records), promise, std::vector<Loss>{loss}));
  const Records local = Of(DecidedBy::kLocal, records);
  EXPECT_TRUE(BucketHolds(local, promise));
  EXPECT_EQ(Of(DecidedBy::kClosed, records).size(), 0U);
  EXPECT_EQ(Of(DecidedBy::kOpen, records).size(), 0U);
  ExpectInTime(records);
  // The local shares are used in full: each of the three nodes admits its share of the burst and of
  // the rate.
  const double time = static_cast<double>(back - loss.from_us) / 1e6 - 0.3;
  std::cout << Admitted(local) << " admitted locally in " << time + 0.3 << " s\n";
  EXPECT_GE(static_cast<double>(Admitted(local)), 0.9 * (300 + 300 * time));
  for (int node = 0; node < 3; ++node) {
    Records own;
    for (const Record& record : local) {
      if (record.node == node) own.push_back(record);
    }
    EXPECT_TRUE(BucketHolds(own, Promise{100, 1'000'000, 100})) << "node " << node;
  }
}

TEST_F(NodeTest, LocalBucketsKeepStateWhileRedisRestartsRepeatedly) {
  Start(redis_.url(),
        "rules: [{id: l, per: header:x-user, limit: 30/h, burst: 30, on_failure: local}]");
  AwaitFleet();
  FaultCase::StartLoad(DecideInTurn("l", 1), 1500);
  for (int round = 0; round < 4; ++round) {
    const std::int64_t local = load_->answered(DecidedBy::kLocal);
    redis_.Kill();
    ASSERT_TRUE(test::WaitUntil([&] { return load_->answered(DecidedBy::kLocal) > local + 100; }));
    // Takes the time before the start: a node may send its request to Redis at once, be denied, and
    // cache that denial for seconds.
    const std::int64_t before = SteadyMicros();
    redis_.Start();
    WaitUntilStoreAnswers(before);
  }
  const Records local = Of(DecidedBy::kLocal, Finish());
  // Ten units per node, however often the store came back in between.
  EXPECT_LE(Admitted(local), 31);
  EXPECT_GE(Admitted(local), 29);
}

TEST_F(NodeTest, EmptyRedisDoesNotReduceTheNodeCount) {
  Start(redis_.url(),
        "rules: [{id: l, per: header:x-user, limit: 30/h, burst: 30, on_failure: local}]");
  AwaitFleet();
  const auto ask = [&](std::size_t node, const std::string& identity) {
    return (*fleet_)[node].Decide(R"({"rule":"l","identity":")" + identity + "\"}");
  };
  for (int round = 0; round < 3; ++round) {
    redis_.Kill();
    redis_.Start();
    // The restarted Redis has an empty list of nodes, so the first node that writes its heartbeat
    // finds only itself. Kills Redis at that moment, if it occurs within a few heartbeats.
    const bool alone = test::WaitUntil(
        [&] {
          for (std::size_t node = 0; node < fleet_->size(); ++node) {
            if ((*fleet_)[node].Metric("tidegate_fleet_nodes") < 3) return true;
          }
          return false;
        },
        2500ms);
    redis_.Kill();
    std::cout << (alone ? "a node counted fewer than three\n" : "");
    int admitted = 0;
    for (std::size_t node = 0; node < fleet_->size(); ++node) {
      for (int i = 0; i < 40; ++i) {
        const Answer answer = ask(node, "round-" + std::to_string(round));
        EXPECT_EQ(answer.Member("decided_by"), "local");
        admitted += static_cast<int>(answer.status == 200);
      }
    }
    EXPECT_LE(admitted, 30) << "admitted by three nodes that share one limit";
    redis_.Start();
  }
}

TEST_F(NodeTest, LocalShareOfSmallBurstIsOneUnitPerNode) {
  Start(redis_.url(),
        "rules: [{id: l, per: header:x-user, limit: 1/h, burst: 1, on_failure: local}]");
  AwaitFleet();
  redis_.Kill();
  for (std::size_t i = 0; i < fleet_->size(); ++i) {
    EXPECT_EQ((*fleet_)[i].Decide(R"({"rule":"l","identity":"a"})").status, 200);
    const Answer second = (*fleet_)[i].Decide(R"({"rule":"l","identity":"a"})");
    EXPECT_EQ(second.status, 429);
    EXPECT_EQ(second.Member("decided_by"), "local");
    // The local share refills at a third of a unit per hour.
    EXPECT_GT(second.Number("retry_after_ms"), 2.9 * 3'600'000);
  }
}

TEST_F(NodeTest, ClosedPolicyOverridesLocalAndOpen) {
  Start(redis_.url(), R"(rules:
  - { id: c, match: { path: /c/** }, per: client_ip, limit: 1000/s, on_failure: closed }
  - { id: l, match: { path: [/c/**, /l/**] }, per: client_ip, limit: 6/h, on_failure: local }
  - { id: o, match: { path: /** }, per: client_ip, limit: 3/h, on_failure: open }
)");
  AwaitFleet();
  Node& node = (*fleet_)[0];
  const auto ask = [&](std::string_view path) {
    return node.Decide(R"({"request":{"method":"GET","host":"h","path":")" + std::string(path) +
                       R"(","client_ip":"192.0.2.1"}})");
  };
  redis_.Kill();
  for (int i = 0; i < 5; ++i) {
    const Answer closed = ask("/c/x");
    EXPECT_EQ(closed.status, 503);
    EXPECT_EQ(closed.Member("decided_by"), "closed");
    EXPECT_EQ(closed.Field("X-Tidegate-Decided-By"), "closed");
  }
  for (int i = 0; i < 5; ++i) {
    const Answer open = ask("/o/x");
    EXPECT_EQ(open.status, 200) << "an open rule must admit every request while Redis is down";
    EXPECT_EQ(open.Member("decided_by"), "open");
    EXPECT_EQ(open.Field("RateLimit"), "");
  }
  // This node's share is two of six units; the requests that `closed` refused took none of them.
  for (int i = 0; i < 4; ++i) {
    const Answer local = ask("/l/x");
    EXPECT_EQ(local.status, i < 2 ? 200 : 429) << i;
    EXPECT_EQ(local.Member("decided_by"), "local");
    EXPECT_EQ(local.Field("X-Tidegate-Decided-By"), "local");
  }
}

}  // namespace
}  // namespace tidegate::redis_test
