// SPDX-License-Identifier: Apache-2.0
// Redis is killed, suspended, paused, asleep, or not yet running when the nodes start.
//
// TIDEGATE_KILL_ROUNDS: how often the test kills Redis; 10 if unset.
#include <gtest/gtest.h>

#include <csignal>
#include <iostream>

#include "redis/fault_case.hpp"
#include "support/wait.hpp"

namespace tidegate::redis_test {
namespace {

using namespace std::chrono_literals;

class OutageTest : public FaultCase {
 protected:
  void Begin(std::string_view rule = "closed") {
    Start(redis_.url());
    FaultCase::StartLoad(rule);
    WaitUntilStoreAnswers(SteadyMicros());
  }
  /// Kills Redis, waits for about `answers` responses, and starts Redis again.
  Loss KillAndStart(std::int64_t answers) {
    Loss loss;
    loss.from_us = SteadyMicros();
    redis_.Kill();
    EXPECT_TRUE(load_->Progress(answers));
    redis_.Start();
    loss.to_us = SteadyMicros();
    WaitUntilStoreAnswers(loss.to_us);
    return loss;
  }
  /// Checks the records of an outage in which Redis was alive but did not reply: responses are 503
  /// and in time.
  void ExpectSilentOutage(const Records& records) {
    ExpectBuckets(records);
    ExpectInTime(records);
    EXPECT_FALSE(Of(DecidedBy::kClosed, records).empty());
    EXPECT_GT(Failures("timeout"), 0);
  }

  RedisServer redis_;
};

TEST_F(OutageTest, HoldsLimitsWhenRedisIsKilledRepeatedly) {
  Begin();
  const int rounds = Setting("TIDEGATE_KILL_ROUNDS", 10);
  std::vector<Loss> losses;
  for (int round = 0; round < rounds; ++round) {
    if (round == std::min(3, rounds - 1)) RecordResourceBaseline();
    losses.push_back(KillAndStart(100 + 100 * (round % 7)));
    ASSERT_FALSE(HasFatalFailure());
    ASSERT_TRUE(load_->Progress(300));
  }
  const Records records = Finish();
  ExpectBuckets(records, losses);
  ExpectInTime(records);
  EXPECT_FALSE(Of(DecidedBy::kClosed, records).empty());
  EXPECT_GT(fleet_->Metric("tidegate_failures_total", R"(decided_by="closed")"), 0);
  EXPECT_EQ(fleet_->Metric("tidegate_failures_total", R"(decided_by="open")"), 0);
  EXPECT_EQ(fleet_->Metric("tidegate_fleet_key_mismatches"), 0);
}

TEST_F(OutageTest, OpenRuleAllowsAllWhileRedisIsDown) {
  Begin("open");
  const Loss loss = KillAndStart(1500);
  const Records records = Finish();
  ExpectBuckets(records, {loss});
  ExpectInTime(records);
  const Records open = Of(DecidedBy::kOpen, records);
  EXPECT_GT(open.size(), 1000U);
  for (const Record& record : open) ASSERT_EQ(record.status, 200);
  EXPECT_EQ(Of(DecidedBy::kClosed, records).size(), 0U);
  EXPECT_EQ(fleet_->Metric("tidegate_failures_total", R"(decided_by="open")"),
            static_cast<double>(open.size()));
}

TEST_F(OutageTest, ResponseNamesTheFailurePolicy) {
  Start(redis_.url());
  redis_.Kill();
  const Answer closed = (*fleet_)[0].Decide(R"({"rule":"closed","identity":"a"})");
  EXPECT_EQ(closed.status, 503);
  EXPECT_EQ(closed.Member("decided_by"), "closed");
  EXPECT_EQ(closed.Field("X-Tidegate-Decided-By"), "closed");
  EXPECT_EQ(closed.Field("Retry-After"), "1");
  const Answer open = (*fleet_)[0].Decide(R"({"rule":"open","identity":"a"})");
  EXPECT_EQ(open.status, 200);
  EXPECT_EQ(open.Member("decided_by"), "open");
  EXPECT_EQ(open.Field("X-Tidegate-Decided-By"), "open");
  EXPECT_EQ(open.Field("RateLimit"), "");
  EXPECT_EQ(open.Field("RateLimit-Policy"), "");
  const Answer local = (*fleet_)[0].Decide(R"({"rule":"local","identity":"a"})");
  EXPECT_EQ(local.status, 200);
  EXPECT_EQ(local.Member("decided_by"), "local");
  EXPECT_EQ(local.Field("X-Tidegate-Decided-By"), "local");
}

TEST_F(OutageTest, RecoversWhenRedisIsSuspended) {
  Begin();
  for (int round = 0; round < 3; ++round) {
    redis_.Signal(SIGSTOP);
    ASSERT_TRUE(load_->Progress(1500));
    if (round == 0) RecordResourceBaseline();
    redis_.Signal(SIGCONT);
    WaitUntilStoreAnswers(SteadyMicros());
  }
  ExpectSilentOutage(Finish());
}

TEST_F(OutageTest, RecoversWhenRedisPausesItsClients) {
  Begin();
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(redis_.Text({"CLIENT", "PAUSE", "500", "ALL"}), "OK");
    EXPECT_EQ(redis_.Text({"PING"}), "PONG");  // Redis replies when the pause ends.
    WaitUntilStoreAnswers(SteadyMicros());
    ASSERT_TRUE(load_->Progress(300));
  }
  ExpectSilentOutage(Finish());
}

TEST_F(OutageTest, RecoversWhenRedisSleeps) {
  Begin();
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(redis_.Text({"DEBUG", "SLEEP", "0.4"}), "OK");
    WaitUntilStoreAnswers(SteadyMicros());
    ASSERT_TRUE(load_->Progress(300));
  }
  ExpectSilentOutage(Finish());
}

TEST_F(OutageTest, IgnoresPauseBelowTheDeadline) {
  Start(redis_.url(), Rules(), 1, kPatient);
  FaultCase::StartLoad("closed");
  WaitUntilStoreAnswers(SteadyMicros());
  for (int round = 0; round < 5; ++round) {
    EXPECT_EQ(redis_.Text({"DEBUG", "SLEEP", "0.05"}), "OK");
    ASSERT_TRUE(load_->Progress(300));
  }
  const Records records = Finish();
  ExpectUnnoticed(records);
  ExpectBuckets(records);
}

TEST_F(OutageTest, RecoversWhenRedisStartsLate) {
  redis_.Kill();
  Start(redis_.url());
  FaultCase::StartLoad("closed");
  EXPECT_EQ(load_->answered_otherwise(DecidedBy::kClosed), 0);
  redis_.Start();
  WaitUntilStoreAnswers(SteadyMicros());
  ASSERT_TRUE(load_->Progress(600));
  const Records records = Finish();
  ExpectBuckets(records);
  ExpectInTime(records);
  EXPECT_TRUE(
      test::WaitUntil([&] { return fleet_->Metric("tidegate_fleet_key_mismatches") == 0; }));
  // One key per identity: no node used a hash key of its own, not even briefly.
  RedisClient client = redis_.Connect();
  const Reply keys = client.Command({"KEYS", "tg:tb:closed:*"});
  EXPECT_EQ(keys->elements, kKeys);
}

TEST_F(OutageTest, LeasesStayWithinTheirLimit) {
  const Promise promise{5, 30'000'000, 0};
  Start(redis_.url(),
        "rules: [{id: cc, per: header:x-user, limit: 5/30s, algorithm: concurrency}]");
  FaultCase::StartLoad(LeaseInTurn("cc", 1, 2ms), 1500, 8);
  WaitUntilStoreAnswers(SteadyMicros());
  std::vector<Loss> losses;
  for (int round = 0; round < 3; ++round) {
    losses.push_back(KillAndStart(200));
    redis_.Signal(SIGSTOP);
    ASSERT_TRUE(load_->Progress(200));
    redis_.Signal(SIGCONT);
    // The restart lost all leases, so new leases are granted without waiting 30 s for the old ones
    // to expire.
    WaitUntilStoreAnswers(SteadyMicros());
    const std::int64_t now = SteadyMicros();
    ASSERT_TRUE(test::WaitUntil([&] { return load_->last_store_us() > now; }));
  }
  EXPECT_TRUE(LeasesHold(Finish(), promise, losses));
}

}  // namespace
}  // namespace tidegate::redis_test
