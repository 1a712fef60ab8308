// SPDX-License-Identifier: Apache-2.0
// Tests of the cluster and sentinel fixtures that the other tests use.
#include <gtest/gtest.h>

#include <csignal>
#include <iostream>

#include "redis/redis_cluster.hpp"
#include "redis/redis_sentinels.hpp"
#include "redis/resharder.hpp"
#include "redis/slot_move.hpp"
#include "redis/slots.hpp"
#include "redis/tls_files.hpp"
#include "support/wait.hpp"

namespace tidegate::redis_test {
namespace {

using namespace std::chrono_literals;
using Wire = RedisServer::Wire;

TEST(RedisClusterFixtureTest, MovesSlotWithItsKeys) {
  RedisCluster cluster;
  const int slot = cluster.SlotOf("{a}");
  const std::size_t from = cluster.MasterOf(slot);
  const std::size_t to = (from + 1) % 3;
  EXPECT_EQ(cluster.SlotOf("{" + TagOf(slot) + "}"), slot);
  EXPECT_EQ(SlotOfTag("a"), slot);
  for (const std::string key : {"1{a}", "2{a}"}) {
    EXPECT_EQ(cluster[from].Text({"SET", key, "value"}), "OK");
  }
  const std::string there = std::to_string(slot) + ' ' + cluster[to].address();
  const std::string here = std::to_string(slot) + ' ' + cluster[from].address();
  SlotMove move(cluster, slot, from, to);
  move.Begin();
  move.MoveKey("1{a}");
  EXPECT_EQ(cluster[from].Text({"GET", "1{a}"}), "(error) ASK " + there);
  EXPECT_EQ(cluster[from].Text({"GET", "2{a}"}), "value");
  EXPECT_TRUE(cluster[from].Text({"MGET", "1{a}", "2{a}"}).starts_with("(error) TRYAGAIN"));
  EXPECT_EQ(cluster[to].Text({"GET", "1{a}"}), "(error) MOVED " + here) << "without ASKING";
  EXPECT_EQ(cluster[to].Text({"ASKING"}), "OK");
  EXPECT_EQ(cluster[to].Text({"GET", "1{a}"}), "value");
  EXPECT_EQ(move.MoveKeys(10), 1U);
  EXPECT_EQ(move.MoveKeys(10), 0U);
  move.End();
  EXPECT_EQ(cluster[from].Text({"GET", "2{a}"}), "(error) MOVED " + there);
  EXPECT_EQ(cluster[to].Text({"GET", "2{a}"}), "value");
  EXPECT_EQ(cluster.MasterOf(slot), to);
  cluster.MoveSlot(slot, to, from);
  EXPECT_EQ(cluster[from].Text({"GET", "2{a}"}), "value");
  EXPECT_EQ(cluster.MasterOf(slot), from);
  EXPECT_GT(cluster.CpuSeconds(), 0);
}

TEST(RedisClusterFixtureTest, ResharderLosesNoKey) {
  RedisCluster cluster({.replicas = false});
  std::vector<int> slots;
  for (const std::string tag : {"a", "b", "c", "d"}) {
    const int slot = cluster.SlotOf("{" + tag + "}");
    const std::size_t owner = cluster.MasterOf(slot);
    for (int i = 0; i < 5; ++i) {
      EXPECT_EQ(cluster[owner].Text({"SET", std::to_string(i) + "{" + tag + "}", "v"}), "OK");
    }
    slots.push_back(slot);
  }
  Resharder resharder(cluster, slots);
  EXPECT_TRUE(test::WaitUntil([&] { return resharder.slots_moved() >= 12; }));
  resharder.Stop();
  EXPECT_EQ(resharder.problem(), "");
  EXPECT_GE(resharder.keys_moved(), 60);
  std::size_t keys = 0;
  for (std::size_t i = 0; i < cluster.size(); ++i) keys += cluster.Keys(i, "*").size();
  EXPECT_EQ(keys, 20U);
  cluster.AwaitWhole();
}

TEST(RedisClusterFixtureTest, ReplicaTakesOverKilledMaster) {
  RedisCluster cluster;
  const std::size_t master = cluster.MasterOf(0);
  EXPECT_EQ(master, 0U);
  EXPECT_EQ(cluster[0].Text({"SET", "{" + TagOf(0) + "}", "kept"}), "OK");
  EXPECT_EQ(cluster[0].Text({"WAIT", "1", "1000"}), "1");
  EXPECT_TRUE(cluster.Serves(0));
  cluster[0].Kill();
  EXPECT_FALSE(cluster.Serves(0));
  EXPECT_TRUE(cluster.Serves(RedisCluster::kSlots - 1));
  EXPECT_TRUE(test::WaitUntil([&] { return cluster.Serves(0); }));
  EXPECT_EQ(cluster.MasterOf(0), cluster.ReplicaOf(0));
  EXPECT_EQ(cluster[3].Text({"GET", "{" + TagOf(0) + "}"}), "kept");
  // The restarted node becomes a replica. When the new master is stopped, this replica takes the
  // slots back.
  cluster[0].Start();
  EXPECT_TRUE(test::WaitUntil([&] { return cluster[0].Text({"ROLE"}).starts_with("slave"); }));
  cluster.AwaitWhole();
  cluster.Stop(3);
  EXPECT_TRUE(test::WaitUntil([&] { return cluster.Serves(0); }));
  EXPECT_EQ(cluster.MasterOf(0), 0U);
  cluster.Continue(3);
  EXPECT_TRUE(test::WaitUntil([&] { return cluster[3].Text({"ROLE"}).starts_with("slave"); }));
}

TEST(RedisClusterFixtureTest, MovesSlotOverTls) {
  TlsFiles files;
  RedisCluster cluster(
      {.replicas = false, .arguments = files.Arguments(files.Issue()), .wire = Wire::kTls});
  EXPECT_TRUE(cluster.url("u:p@").starts_with("rediss+cluster://u:p@127.0.0.1:"));
  const int slot = cluster.SlotOf("a");
  const std::size_t from = cluster.MasterOf(slot);
  EXPECT_EQ(cluster[from].Text({"SET", "a", "v"}), "OK");
  cluster.MoveSlot(slot, from, (from + 1) % 3);
  EXPECT_EQ(cluster[(from + 1) % 3].Text({"GET", "a"}), "v");
  RedisClient plain(cluster[0].port());
  EXPECT_EQ(plain.Text({"PING"}), "(no reply)");
}

void ExpectFailover(RedisSentinels& sentinels, bool kill) {
  const std::size_t before = sentinels.Master();
  ASSERT_LT(before, sentinels.size());
  const auto began = std::chrono::steady_clock::now();
  if (kill) {
    sentinels[before].Kill();
  } else {
    sentinels[before].Signal(SIGSTOP);
  }
  ASSERT_TRUE(test::WaitUntil([&] { return sentinels.Switched(before); }))
      << sentinels.sentinel(0).Output();
  std::cout << "failover in " << (std::chrono::steady_clock::now() - began) / 1ms << " ms\n";
  if (kill) {
    sentinels[before].Start();
  } else {
    sentinels[before].Signal(SIGCONT);
  }
  EXPECT_TRUE(test::WaitUntil([&] { return sentinels.Follows(before, sentinels.Master()); }, 20s));
  sentinels.AwaitWhole();
}

TEST(RedisSentinelsFixtureTest, ReplicaTakesOverKilledMaster) {
  RedisSentinels sentinels;
  EXPECT_EQ(sentinels.Master(), 0U);
  ExpectFailover(sentinels, true);
  ExpectFailover(sentinels, false);
}

TEST(RedisSentinelsFixtureTest, FailsOverWithTlsAndPassword) {
  TlsFiles files;
  const TlsFiles::Pair own = files.Issue();
  RedisSentinels sentinels({.arguments = files.Arguments(own),
                            .lines = files.Lines(own),
                            .password = "secret",
                            .wire = Wire::kTls});
  ExpectFailover(sentinels, true);
}

}  // namespace
}  // namespace tidegate::redis_test
