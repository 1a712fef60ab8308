// SPDX-License-Identifier: Apache-2.0
// Redis replies with errors: the script or all data is gone, memory or replicas are missing, the
// password or a permission is wrong, or a script keeps Redis busy.
#include <gtest/gtest.h>

#include <atomic>
#include <iostream>
#include <thread>

#include "redis/fault_case.hpp"
#include "support/ports.hpp"
#include "support/wait.hpp"

namespace tidegate::redis_test {
namespace {

using namespace std::chrono_literals;

class RefusalTest : public FaultCase {
 protected:
  void Begin(const std::string& url, std::string_view deadline = "20ms") {
    Start(url, Rules(), 1, deadline);
    FaultCase::StartLoad("closed");
  }
  /// Runs `refuse`, checks that responses become 503 and that errors of `kind` are counted, runs
  /// `restore`, and waits until the store answers again.
  void ExpectRefused(std::string_view kind, const std::vector<std::string>& refuse,
                     const std::vector<std::string>& restore) {
    WaitUntilStoreAnswers(SteadyMicros());
    const double before = Errors(kind);
    const std::int64_t closed = load_->answered(DecidedBy::kClosed);
    EXPECT_EQ(redis_.Text(refuse), "OK");
    EXPECT_TRUE(test::WaitUntil([&] { return Errors(kind) > before; })) << kind << '\n'
                                                                        << fleet_->Output();
    EXPECT_TRUE(
        test::WaitUntil([&] { return load_->answered(DecidedBy::kClosed) > closed + 100; }));
    EXPECT_EQ(redis_.Text(restore), "OK");
    WaitUntilStoreAnswers(SteadyMicros());
    EXPECT_GT(Failures("rediserror"), 0);
  }
  void ExpectRefusedAndBack(std::string_view kind, const std::vector<std::string>& refuse,
                            const std::vector<std::string>& restore) {
    Begin(redis_.url());
    ExpectRefused(kind, refuse, restore);
    ASSERT_TRUE(load_->Progress(300));
    const Records records = Finish();
    ExpectBuckets(records);
    ExpectInTime(records);
  }

  RedisServer redis_;
};

TEST_F(RefusalTest, SurvivesScriptFlushInALoop) {
  Begin(redis_.url(), kPatient);
  WaitUntilStoreAnswers(SteadyMicros());
  RecordResourceBaseline();
  RedisClient client = redis_.Connect();
  const std::int64_t enough = load_->answered() + 6000;
  int flushed = 0;
  while (load_->answered() < enough) {
    ASSERT_EQ(client.Text({"SCRIPT", "FLUSH", flushed % 2 == 0 ? "SYNC" : "ASYNC"}), "OK");
    ++flushed;
    std::this_thread::sleep_for(2ms);
  }
  const Records records = Finish();
  std::cout << flushed << " times SCRIPT FLUSH, " << Errors("noscript") << " NOSCRIPT errors\n";
  ExpectUnnoticed(records);
  ExpectBuckets(records);
  EXPECT_GT(Errors("noscript"), 10);
}

TEST_F(RefusalTest, FlushAllCausesNoFailuresAndKeepsTheFleetKey) {
  Start(redis_.url(), Rules() + "  - { id: few, per: header:x-user, limit: 5/h }\n", 1, kPatient);
  FaultCase::StartLoad("closed");
  WaitUntilStoreAnswers(SteadyMicros());
  std::vector<Loss> losses;
  for (int round = 0; round < 3; ++round) {
    Loss loss;
    loss.from_us = SteadyMicros();
    ASSERT_EQ(redis_.Text({"FLUSHALL"}), "OK");
    loss.to_us = SteadyMicros();
    losses.push_back(loss);
    ASSERT_TRUE(load_->Progress(900));
  }
  const Records records = Finish();
  ExpectUnnoticed(records);
  ExpectBuckets(records, losses);
  // The heartbeats return, and with them the key that all identities are hashed with: a node that
  // starts now uses the same key as the nodes that were running before.
  EXPECT_TRUE(test::WaitUntil([&] { return fleet_->Metric("tidegate_fleet_nodes") == 9; }))
      << fleet_->Metric("tidegate_fleet_nodes");
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ((*fleet_)[1].Decide(R"({"rule":"few","identity":"alice"})").status, 200);
  }
  (*fleet_)[0].Kill();
  (*fleet_)[0].Start();
  Answer answer;
  ASSERT_TRUE(test::WaitUntil([&] {
    answer = (*fleet_)[0].Decide(R"({"rule":"few","identity":"alice"})");
    return answer.status != 503;
  }));
  EXPECT_EQ(answer.status, 429) << "the restarted node counted alice under another key";
  EXPECT_EQ(fleet_->Metric("tidegate_fleet_key_mismatches"), 0);
}

TEST_F(RefusalTest, AppliesPolicyWhileRedisIsOutOfMemory) {
  ExpectRefusedAndBack("oom", {"CONFIG", "SET", "maxmemory", "1"},
                       {"CONFIG", "SET", "maxmemory", "0"});
}

TEST_F(RefusalTest, AppliesPolicyWhileRedisHasTooFewReplicas) {
  ExpectRefusedAndBack("noreplicas", {"CONFIG", "SET", "min-replicas-to-write", "1"},
                       {"CONFIG", "SET", "min-replicas-to-write", "0"});
}

TEST_F(RefusalTest, AppliesPolicyWhileRedisIsReadOnly) {
  Begin(redis_.url());
  ExpectRefused("readonly", {"REPLICAOF", "127.0.0.1", std::to_string(test::FreePort())},
                {"REPLICAOF", "NO", "ONE"});
  const Records records = Finish();
  ExpectBuckets(records);
  ExpectInTime(records);
}

TEST_F(RefusalTest, RecoversAfterRedisWasBusyWithAScript) {
  Begin(redis_.url());
  WaitUntilStoreAnswers(SteadyMicros());
  EXPECT_EQ(redis_.Text({"CONFIG", "SET", "busy-reply-threshold", "30"}), "OK");
  std::thread busy([&] {
    RedisClient client = redis_.Connect();
    client.Text({"EVAL", "while true do end", "0"});
  });
  EXPECT_TRUE(test::WaitUntil([&] { return Errors("busy") > 0; })) << fleet_->Output();
  RedisClient client = redis_.Connect();
  EXPECT_EQ(client.Text({"SCRIPT", "KILL"}), "OK");
  WaitUntilStoreAnswers(SteadyMicros());
  busy.join();
  const Records records = Finish();
  ExpectBuckets(records);
  ExpectInTime(records);
}

TEST_F(RefusalTest, RecoversOnceRedisAcceptsThePassword) {
  EXPECT_EQ(redis_.Text({"CONFIG", "SET", "requirepass", "secret"}), "OK");
  const std::string at = "127.0.0.1:" + std::to_string(redis_.port());
  Begin("redis://default:wrong@" + at);
  EXPECT_TRUE(test::WaitUntil([&] { return Errors("wrongpass") > 0; })) << fleet_->Output();
  EXPECT_EQ(load_->answered_otherwise(DecidedBy::kClosed), 0);
  EXPECT_EQ(fleet_->Output().find("wrong@"), std::string::npos) << "the log contains the password";
  ASSERT_EQ(redis_.Text({"CONFIG", "SET", "requirepass", "wrong"}), "OK");
  WaitUntilStoreAnswers(SteadyMicros());
  ExpectBuckets(Finish());
}

TEST_F(RefusalTest, RecoversOnceRedisNeedsNoPassword) {
  EXPECT_EQ(redis_.Text({"CONFIG", "SET", "requirepass", "secret"}), "OK");
  Begin(redis_.url());
  EXPECT_TRUE(test::WaitUntil([&] { return Errors("noauth") > 0; })) << fleet_->Output();
  EXPECT_EQ(load_->answered_otherwise(DecidedBy::kClosed), 0);
  ASSERT_EQ(redis_.Text({"CONFIG", "SET", "requirepass", ""}), "OK");
  WaitUntilStoreAnswers(SteadyMicros());
  ExpectBuckets(Finish());
}

TEST_F(RefusalTest, AppliesPolicyWhilePermissionsAreRevoked) {
  const std::vector<std::string> all = {"ACL", "SETUSER", "tide", "on",
                                        ">pw", "~tg:*",   "&*",   "+@all"};
  EXPECT_EQ(redis_.Text(all), "OK");
  Begin("redis://tide:pw@127.0.0.1:" + std::to_string(redis_.port()));
  ExpectRefused("noperm", {"ACL", "SETUSER", "tide", "-eval", "-evalsha"}, all);
  // Redis refuses a command inside the script, which has already begun.
  ExpectRefused("noperm", {"ACL", "SETUSER", "tide", "-hset"}, all);
  // Redis refuses access to all keys of Tidegate.
  ExpectRefused("noperm", {"ACL", "SETUSER", "tide", "resetkeys", "~other:*"}, all);
  const Records records = Finish();
  ExpectBuckets(records);
  ExpectInTime(records);
}

TEST_F(RefusalTest, RecoversWhenDisabledUserIsEnabledAgain) {
  const std::vector<std::string> on = {"ACL", "SETUSER", "tide", "on", ">pw", "~*", "&*", "+@all"};
  EXPECT_EQ(redis_.Text(on), "OK");
  Begin("redis://tide:pw@127.0.0.1:" + std::to_string(redis_.port()));
  WaitUntilStoreAnswers(SteadyMicros());
  EXPECT_EQ(redis_.Text({"ACL", "SETUSER", "tide", "off"}), "OK");
  redis_.Text({"CLIENT", "KILL", "USER", "tide"});
  EXPECT_TRUE(test::WaitUntil([&] { return Errors("wrongpass") > 0; })) << fleet_->Output();
  EXPECT_EQ(redis_.Text(on), "OK");
  WaitUntilStoreAnswers(SteadyMicros());
  const Records records = Finish();
  ExpectBuckets(records);
  ExpectInTime(records);
}

/// If Redis may evict keys, an evicted key starts as a fresh bucket, and no more than that is
/// admitted.
class EvictionTest : public RefusalTest, public testing::WithParamInterface<const char*> {};

TEST_P(EvictionTest, EvictedKeyStartsAsFreshBucket) {
  constexpr std::uint32_t kMany = 2000;
  constexpr double kBurst = 2;
  EXPECT_EQ(redis_.Text({"CONFIG", "SET", "maxmemory-policy", GetParam()}), "OK");
  Start(redis_.url(), "rules: [{id: few, per: header:x-user, limit: 1/24h, burst: 2}]", 1,
        kPatient);
  FaultCase::StartLoad(DecideInTurn("few", kMany), 6000);
  WaitUntilStoreAnswers(SteadyMicros());
  ASSERT_TRUE(load_->Progress(2500));
  // Sets a limit slightly below the used memory, so that only some of Tidegate's keys fit.
  const std::string memory = redis_.Text({"INFO", "memory"});
  const long used = std::stol(memory.substr(memory.find("used_memory:") + 12));
  ASSERT_EQ(redis_.Text({"CONFIG", "SET", "maxmemory", std::to_string(used - 60'000)}), "OK");
  ASSERT_TRUE(load_->Progress(6000));
  const Records records = Finish();
  ExpectUnnoticed(records);
  const std::string info = redis_.Text({"INFO", "stats"});
  const double evicted = std::stod(info.substr(info.find("evicted_keys:") + 13));
  EXPECT_GT(evicted, 0);
  EXPECT_LE(static_cast<double>(Admitted(records)), kBurst * (kMany + evicted));
}

INSTANTIATE_TEST_SUITE_P(Policies, EvictionTest,
                         testing::Values("allkeys-lru", "allkeys-lfu", "allkeys-random",
                                         "volatile-lru", "volatile-lfu", "volatile-random",
                                         "volatile-ttl"),
                         [](const testing::TestParamInfo<const char*>& tested) {
                           std::string name = tested.param;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace tidegate::redis_test
