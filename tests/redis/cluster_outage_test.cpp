// SPDX-License-Identifier: Apache-2.0
// A part of the cluster fails: only the keys in its slots are affected, and only until the cluster
// serves them again. In other tests all nodes refuse requests.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <iostream>
#include <map>

#include "redis/cluster_case.hpp"
#include "support/timing.hpp"
#include "support/wait.hpp"

namespace tidegate::redis_test {
namespace {

using namespace std::chrono_literals;

class ClusterOutageTest : public ClusterCase {
 protected:
  /// Waits until the cluster serves the slots of `home` again and the nodes use them. Returns the
  /// loss, which began at `from_us`.
  Loss AwaitServed(std::size_t home, std::int64_t from_us) {
    EXPECT_TRUE(test::WaitUntil([&] { return cluster_->Serves(SlotOf(KeysOf(home)[0])); }, 20s));
    const Loss loss{from_us, SteadyMicros()};
    std::cout << "the cluster took " << (loss.to_us - loss.from_us) / 1000 << " ms, since "
              << loss.from_us << " us\n";
    WaitUntilStoreAnswers(KeysOf(home), loss.to_us);
    return loss;
  }
  /// Checks the buckets: those of `home` with these losses, those of other masters without a loss.
  static void ExpectBucketsBut(const Records& records, std::size_t home, std::vector<Loss> losses) {
    ExpectBuckets(OfKeys(records, home), std::move(losses));
    ExpectBuckets(OfOthers(records, home));
  }
  /// Checks that only the keys of the stopped node were affected. If this machine paused for so
  /// long that a breaker opened, the effect lasts a moment longer than the pause.
  void ExpectOthersUnnoticed(const Records& records, std::size_t home) const {
    constexpr std::int64_t kAfterwardsUs = 100'000;
    const Records others = OfOthers(records, home);
    Records judged;
    for (const Record& record : canary_->Undisturbed(others)) {
      if (record.sent_us < begun_us_) continue;
      const bool of_store =
          record.decided_by == DecidedBy::kStore || record.decided_by == DecidedBy::kCache;
      if (of_store || canary_->LateMicros(record.sent_us - kAfterwardsUs, record.sent_us) == 0) {
        judged.push_back(record);
      }
    }
    ExpectUnnoticed(judged);
    EXPECT_GT(OfStore(others).size(), 1000U);
    EXPECT_FALSE(Of(DecidedBy::kClosed, OfKeys(records, home)).empty());
  }
  void ExpectNoSlower(const Records& before, const Records& during) const {
    const Latencies was = LatenciesOf(canary_->Undisturbed(before));
    const Latencies is = LatenciesOf(canary_->Undisturbed(during));
    std::cout << "latencies of the other masters' keys before: " << was
              << "\nlatencies of the other masters' keys during: " << is << '\n';
    if (was.count < before.size() / 2 || is.count < during.size() / 2) {
      GTEST_SKIP() << "latencies not judged: the machine was too busy";
    }
    // The median over quarters of a second ignores single quarters in which the machine paused.
    const double p99_was = MedianP99(canary_->Undisturbed(before));
    const double p99_is = MedianP99(canary_->Undisturbed(during));
    std::cout << "p99, median of quarters of a second: " << p99_was << " ms, then " << p99_is
              << " ms: " << p99_is / p99_was << "x\n";
    EXPECT_LE(p99_is, 2 * p99_was) << test::kTiming;
  }

 private:
  static double MedianP99(const Records& records) {
    constexpr std::int64_t kQuarterUs = 250'000;
    std::map<std::int64_t, Records> quarters;
    for (const Record& record : records) quarters[record.sent_us / kQuarterUs].push_back(record);
    std::vector<double> p99s;
    for (const auto& [quarter, its] : quarters) {
      if (its.size() >= 100) p99s.push_back(LatenciesOf(its).p99_ms);
    }
    if (p99s.empty()) return LatenciesOf(records).p99_ms;
    std::ranges::sort(p99s);
    return p99s[p99s.size() / 2];
  }
};

TEST_F(ClusterOutageTest, RecoversWhenReplicaTakesOver) {
  Begin();
  const std::int64_t killed = SteadyMicros();
  (*cluster_)[1].Kill();
  const Loss loss = AwaitServed(1, killed);
  ASSERT_TRUE(load_->Progress(1500));
  const Records records = Finish();
  EXPECT_EQ(cluster_->MasterOf(SlotOf(1)), cluster_->ReplicaOf(1));
  ExpectBack(records, KeysOf(1), loss.to_us);
  ExpectBucketsBut(records, 1, {loss});
  ExpectOthersUnnoticed(records, 1);
  ExpectInTime(records);
}

TEST_F(ClusterOutageTest, AppliesPolicyWhileMasterAndReplicaAreDown) {
  Begin();
  const std::int64_t begun = SteadyMicros();
  ASSERT_TRUE(load_->Progress(4500));
  const std::int64_t killed = SteadyMicros();
  (*cluster_)[cluster_->ReplicaOf(2)].Kill();
  (*cluster_)[2].Kill();
  ASSERT_TRUE(load_->Progress(6000));
  const std::int64_t end = SteadyMicros();
  (*cluster_)[2].Start();
  (*cluster_)[cluster_->ReplicaOf(2)].Start();
  const Loss loss = AwaitServed(2, killed);
  ASSERT_TRUE(load_->Progress(600));
  const Records records = Finish();
  ExpectBack(records, KeysOf(2), loss.to_us);
  ExpectBucketsBut(records, 2, {loss});
  ExpectOthersUnnoticed(records, 2);
  ExpectInTime(records);
  ExpectNoSlower(Between(OfOthers(records, 2), begun, killed),
                 Between(OfOthers(records, 2), killed, end));
  // While the master was gone, all requests for its keys were refused, except keys with a cached
  // denial in the first 100 ms.
  const Records gone = Between(OfKeys(records, 2), killed + 100'000, end);
  EXPECT_EQ(Of(DecidedBy::kClosed, gone).size(), gone.size());
  EXPECT_GT(fleet_->Metric("tidegate_failures_total", R"(decided_by="closed")"), 0);
}

TEST_F(ClusterOutageTest, RecoversWhenMasterHangs) {
  Begin();
  RecordResourceBaseline();
  const std::int64_t stopped = SteadyMicros();
  cluster_->Stop(0);
  const Loss loss = AwaitServed(0, stopped);
  ASSERT_TRUE(load_->Progress(600));
  // The continued node executes the requests waiting in its sockets and then learns that it is a
  // replica; Tidegate sends it no more requests.
  cluster_->Continue(0);
  EXPECT_TRUE(test::WaitUntil([&] { return (*cluster_)[0].Text({"ROLE"}).starts_with("slave"); }));
  ASSERT_TRUE(load_->Progress(1500));
  const Records records = Finish();
  EXPECT_GT(Failures("timeout"), 0);
  ExpectBack(records, KeysOf(0), loss.to_us);
  ExpectBucketsBut(records, 0, {loss});
  ExpectOthersUnnoticed(records, 0);
  ExpectInTime(records);
}

TEST_F(ClusterOutageTest, AppliesPolicyWhileAllNodesRefuse) {
  RedisCluster::Options options{.node_timeout_ms = kNoFailoverMs};
  Begin("closed", "20ms", options);
  RecordResourceBaseline();
  ASSERT_EQ(cluster_->All({"CONFIG", "SET", "cluster-require-full-coverage", "yes"}), "OK");
  // Without an owner of slot 0, which gets no requests, every node refuses all requests.
  const std::string free = "0";
  const std::size_t owner = cluster_->MasterOf(0);
  ASSERT_EQ(cluster_->All({"CLUSTER", "DELSLOTS", free}), "OK");
  EXPECT_TRUE(test::WaitUntil(
      [&] { return !cluster_->Serves(SlotOf(0)) && !cluster_->Serves(SlotOf(1)); }));
  const std::int64_t closed = load_->answered(DecidedBy::kClosed);
  EXPECT_TRUE(test::WaitUntil([&] { return Errors("clusterdown") > 0; })) << fleet_->Output();
  EXPECT_TRUE(test::WaitUntil([&] { return load_->answered(DecidedBy::kClosed) > closed + 1000; }));
  ASSERT_EQ((*cluster_)[owner].Text({"CLUSTER", "ADDSLOTS", free}), "OK");
  cluster_->AwaitWhole();
  const std::int64_t whole = SteadyMicros();
  for (std::size_t home = 0; home < 3; ++home) WaitUntilStoreAnswers(KeysOf(home), whole);
  ASSERT_TRUE(load_->Progress(600));
  const Records records = Finish();
  for (std::size_t home = 0; home < 3; ++home) ExpectBack(records, KeysOf(home), whole);
  ExpectBuckets(records);
  ExpectInTime(records);
  EXPECT_GT(Failures("rediserror") + Failures("breaker_open"), 0);
}

TEST_F(ClusterOutageTest, RecoversWhenClusterStartsLate) {
  cluster_.emplace(RedisCluster::Options{.replicas = false, .node_timeout_ms = kNoFailoverMs});
  for (std::size_t i = 0; i < cluster_->size(); ++i) (*cluster_)[i].Kill();
  Start(cluster_->url(), Rules());
  FaultCase::StartLoad(InTurn("closed"));
  EXPECT_EQ(load_->answered(DecidedBy::kStore), 0);
  for (std::size_t i = 0; i < cluster_->size(); ++i) (*cluster_)[i].Start();
  cluster_->AwaitWhole();
  const std::int64_t whole = SteadyMicros();
  for (std::size_t home = 0; home < 3; ++home) WaitUntilStoreAnswers(KeysOf(home), whole);
  ASSERT_TRUE(load_->Progress(600));
  const Records records = Finish();
  for (std::size_t home = 0; home < 3; ++home) ExpectBack(records, KeysOf(home), whole);
  ExpectBuckets(records);
}

}  // namespace
}  // namespace tidegate::redis_test
