// SPDX-License-Identifier: Apache-2.0
// Sentinel failovers: each failover admits at most one extra burst per key and is over within a
// second after the sentinels name the new master.
//
// TIDEGATE_FAILOVER_ROUNDS: how often the test kills the master; 2 if unset.
#include <gtest/gtest.h>

#include <csignal>
#include <iostream>

#include "redis/fault_case.hpp"
#include "redis/redis_sentinels.hpp"
#include "support/ports.hpp"
#include "support/timing.hpp"
#include "support/wait.hpp"

namespace tidegate::redis_test {
namespace {

using namespace std::chrono_literals;

class SentinelTest : public FaultCase {
 protected:
  enum class By : bool { kKill, kStop };

  void Begin(const RedisSentinels::Options& options = {}) {
    sentinels_.emplace(options);
    BeginAt(sentinels_->url());
  }
  void BeginAt(const std::string& url, std::string_view more = {}) {
    Start(url, Rules(), 1, "20ms", more);
    FaultCase::StartLoad("closed");
    WaitUntilStoreAnswers(SteadyMicros());
  }
  /// Kills or stops the master. Waits until the sentinels name another master, that server reports
  /// itself as master, and the store of every node answers.
  void LoseMaster(By by) {
    gone_ = sentinels_->Master();
    ASSERT_LT(gone_, sentinels_->size());
    const std::int64_t from = SteadyMicros();
    if (by == By::kKill) {
      (*sentinels_)[gone_].Kill();
    } else {
      (*sentinels_)[gone_].Signal(SIGSTOP);
    }
    AwaitSwitch(from);
  }
  void AwaitSwitch(std::int64_t from_us) {
    ASSERT_TRUE(test::WaitUntil([&] { return sentinels_->Switched(gone_); }, 20s))
        << test::kTiming << sentinels_->sentinel(1).Output();
    losses_.push_back({from_us, SteadyMicros()});
    std::cout << "the sentinels took " << (losses_.back().to_us - from_us) / 1000 << " ms\n";
    WaitUntilStoreAnswers(losses_.back().to_us);
  }
  /// Returns how many scripts clients have run on the server; scripts replicated from its master do
  /// not count.
  long ScriptRuns(std::size_t server) {
    const std::string info = (*sentinels_)[server].Text({"INFO", "commandstats"});
    long calls = 0;
    for (const std::string name : {"cmdstat_eval:calls=", "cmdstat_evalsha:calls="}) {
      const std::size_t at = info.find(name);
      if (at != std::string::npos) calls += std::stol(info.substr(at + name.size()));
    }
    return calls;
  }
  /// Waits until the old master gets no requests during 150 responses.
  void AwaitLeft() {
    ASSERT_TRUE(test::WaitUntil([&] {
      const long runs = ScriptRuns(gone_);
      EXPECT_TRUE(load_->Progress(150));
      return ScriptRuns(gone_) == runs;
    }));
  }
  void ExpectLimitsAndLatency(const Records& records) const {
    ExpectBuckets(records, losses_);
    ExpectInTime(records);
    EXPECT_TRUE(
        test::WaitUntil([&] { return fleet_->Metric("tidegate_fleet_key_mismatches") == 0; }));
  }

  std::optional<RedisSentinels> sentinels_;
  std::size_t gone_ = 0;
  std::vector<Loss> losses_;
};

TEST_F(SentinelTest, HoldsLimitsWhenMasterIsKilledRepeatedly) {
  Begin();
  const int rounds = Setting("TIDEGATE_FAILOVER_ROUNDS", 2);
  for (int round = 0; round < rounds; ++round) {
    ASSERT_NO_FATAL_FAILURE(LoseMaster(By::kKill));
    if (round == 0) RecordResourceBaseline();
    // The killed server restarts empty and at first believes that it is still the master.
    (*sentinels_)[gone_].Start();
    sentinels_->AwaitWhole();
    EXPECT_EQ(ScriptRuns(gone_), 0)
        << "the restarted server got requests although it is not the master";
  }
  ASSERT_TRUE(load_->Progress(600));
  const Records records = Finish();
  ExpectLimitsAndLatency(records);
  EXPECT_FALSE(Of(DecidedBy::kClosed, records).empty());
}

TEST_F(SentinelTest, IgnoresOldMasterThatResumesAfterFailover) {
  Begin();
  ASSERT_NO_FATAL_FAILURE(LoseMaster(By::kStop));
  EXPECT_GT(Failures("timeout"), 0);
  // The resumed server executes the requests that wait in its sockets and at first believes that it
  // is still the master.
  (*sentinels_)[gone_].Signal(SIGCONT);
  ASSERT_TRUE(test::WaitUntil([&] { return (*sentinels_)[gone_].Text({"PING"}) == "PONG"; }));
  const long runs = ScriptRuns(gone_);
  ASSERT_TRUE(load_->Progress(600));
  sentinels_->AwaitWhole();
  ASSERT_TRUE(load_->Progress(600));
  EXPECT_EQ(ScriptRuns(gone_), runs) << "the old master got requests after the failover";
  ExpectLimitsAndLatency(Finish());
}

TEST_F(SentinelTest, FollowsManualFailoverOfRunningMaster) {
  Begin();
  gone_ = sentinels_->Master();
  const std::int64_t from = SteadyMicros();
  ASSERT_EQ(sentinels_->sentinel(0).Text({"SENTINEL", "FAILOVER", "mymaster"}), "OK");
  ASSERT_NO_FATAL_FAILURE(AwaitSwitch(from));
  const std::int64_t named = losses_[0].to_us;
  AwaitLeft();
  const std::int64_t left = SteadyMicros();
  std::cout << "nodes left the old master within " << (left - named) / 1000 << " ms\n";
  sentinels_->AwaitWhole();
  ASSERT_TRUE(load_->Progress(600));
  const Records records = Finish();
  EXPECT_LE(left - named - canary_->LateMicros(named, left), kBackUs) << fleet_->Output();
  std::cout << Of(DecidedBy::kClosed, records).size() << " of " << records.size() << " refused\n";
  // Until the old master learns of the failover, there are two masters, and each of them admits on
  // its own.
  losses_[0].to_us = left;
  const double both = kBucket.limit * static_cast<double>(left - from) / 1e6;
  const auto more = static_cast<std::size_t>(both / kBucket.burst) + 1;
  losses_.insert(losses_.end(), more, losses_[0]);
  ExpectLimitsAndLatency(records);
}

TEST_F(SentinelTest, FailsOverWithSomeSentinelsUnreachable) {
  sentinels_.emplace();
  // The URL names two sentinels that do not exist and one that does, which knows the other two.
  std::string url = "redis+sentinel://127.0.0.1:" + std::to_string(test::FreePort());
  url += ",127.0.0.1:" + std::to_string(test::FreePort()) + ',' + sentinels_->sentinel(0).address();
  BeginAt(url + "/mymaster");
  // Kills this sentinel and then the master.
  sentinels_->sentinel(0).Kill();
  ASSERT_TRUE(load_->Progress(300));
  ASSERT_NO_FATAL_FAILURE(LoseMaster(By::kKill));
  ASSERT_TRUE(load_->Progress(600));
  ExpectLimitsAndLatency(Finish());
}

TEST_F(SentinelTest, ConnectsOnceSentinelsStartAndSurvivesTheirLoss) {
  sentinels_.emplace(RedisSentinels::Options{.start_sentinels = false});
  Start(sentinels_->url());
  FaultCase::StartLoad("closed");
  EXPECT_EQ(load_->answered(DecidedBy::kStore), 0);
  sentinels_->StartSentinels();
  WaitUntilStoreAnswers(SteadyMicros());
  // All sentinels are killed: the nodes know the master, so no request fails.
  for (std::size_t i = 0; i < 3; ++i) sentinels_->sentinel(i).Kill();
  const std::int64_t alone = SteadyMicros();
  ASSERT_TRUE(load_->Progress(1500));
  const Records records = Finish();
  ExpectLimitsAndLatency(records);
  Records since;
  for (const Record& record : records) {
    if (record.sent_us >= alone) since.push_back(record);
  }
  ExpectUnnoticed(since);
}

TEST_F(SentinelTest, AuthenticatesToSentinelsAndHidesThePassword) {
  sentinels_.emplace(RedisSentinels::Options{.password = "s3cret"});
  BeginAt(sentinels_->url(), "sentinel: { password: s3cret }");
  ASSERT_NO_FATAL_FAILURE(LoseMaster(By::kKill));
  ExpectLimitsAndLatency(Finish());
  // A wrong sentinel password is reported as an error and is not logged.
  Start(sentinels_->url(), Rules(), 1, "20ms", "sentinel: { password: wr0ng }");
  FaultCase::StartLoad("closed");
  EXPECT_EQ(load_->answered(DecidedBy::kStore), 0);
  EXPECT_TRUE(test::WaitUntil([&] { return Errors("wrongpass") > 0; })) << fleet_->Output();
  EXPECT_EQ(fleet_->Output().find("wr0ng"), std::string::npos);
  returns_.clear();
  (void)Finish();
}

TEST_F(SentinelTest, LogsUnknownMasterName) {
  sentinels_.emplace();
  std::string url = sentinels_->url();
  url.replace(url.rfind('/'), std::string::npos, "/unknown-master");
  Start(url);
  FaultCase::StartLoad("closed");
  EXPECT_EQ(load_->answered(DecidedBy::kStore), 0);
  EXPECT_TRUE(test::WaitUntil([&] {
    return fleet_->Output().find("unknown-master") != std::string::npos;
  })) << fleet_->Output();
  (void)Finish();
}

}  // namespace
}  // namespace tidegate::redis_test
