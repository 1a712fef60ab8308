// SPDX-License-Identifier: Apache-2.0
// The sentinels name another master: each time at most one burst of a key, and over within a second
// of it.
//
// TIDEGATE_FAILOVER_ROUNDS: how often the master is killed; 2 if it is not set.
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
    FaultCase::Ask("closed");
    Back(SteadyMicros());
  }
  /// Takes the master away; back when the sentinels have another, which says so, and the store of
  /// every node answers.
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
        << test::kTiming << sentinels_->sentinel(1).Said();
    losses_.push_back({from_us, SteadyMicros()});
    std::cout << "the sentinels took " << (losses_.back().to_us - from_us) / 1000 << " ms\n";
    Back(losses_.back().to_us);
  }
  /// Scripts that clients ran on it, without those of its master.
  long ScriptRuns(std::size_t server) {
    const std::string info = (*sentinels_)[server].Text({"INFO", "commandstats"});
    long calls = 0;
    for (const std::string name : {"cmdstat_eval:calls=", "cmdstat_evalsha:calls="}) {
      const std::size_t at = info.find(name);
      if (at != std::string::npos) calls += std::stol(info.substr(at + name.size()));
    }
    return calls;
  }
  /// Waits until the old one gets no requests for a while.
  void AwaitLeft() {
    ASSERT_TRUE(test::WaitUntil([&] {
      const long runs = ScriptRuns(gone_);
      EXPECT_TRUE(load_->Progress(150));
      return ScriptRuns(gone_) == runs;
    }));
  }
  void ExpectAsEver(const Records& records) const {
    ExpectBuckets(records, losses_);
    ExpectInTime(records);
    EXPECT_TRUE(
        test::WaitUntil([&] { return fleet_->Metric("tidegate_fleet_key_mismatches") == 0; }));
  }

  std::optional<RedisSentinels> sentinels_;
  std::size_t gone_ = 0;
  std::vector<Loss> losses_;
};

TEST_F(SentinelTest, MasterIsKilledAgainAndAgain) {
  Begin();
  const int rounds = Setting("TIDEGATE_FAILOVER_ROUNDS", 2);
  for (int round = 0; round < rounds; ++round) {
    ASSERT_NO_FATAL_FAILURE(LoseMaster(By::kKill));
    if (round == 0) NothingGrows();
    // It comes back empty, and at first as the master that it was.
    (*sentinels_)[gone_].Start();
    sentinels_->AwaitWhole();
    EXPECT_EQ(ScriptRuns(gone_), 0) << "the sentinels had named another one";
  }
  ASSERT_TRUE(load_->Progress(600));
  const Records records = Finish();
  ExpectAsEver(records);
  EXPECT_FALSE(Of(DecidedBy::kClosed, records).empty());
}

TEST_F(SentinelTest, IgnoresOldMasterThatResumesAfterFailover) {
  Begin();
  ASSERT_NO_FATAL_FAILURE(LoseMaster(By::kStop));
  EXPECT_GT(Failures("timeout"), 0);
  // It does what waits in its sockets and believes for a while that it is the master.
  (*sentinels_)[gone_].Signal(SIGCONT);
  ASSERT_TRUE(test::WaitUntil([&] { return (*sentinels_)[gone_].Text({"PING"}) == "PONG"; }));
  const long runs = ScriptRuns(gone_);
  ASSERT_TRUE(load_->Progress(600));
  sentinels_->AwaitWhole();
  ASSERT_TRUE(load_->Progress(600));
  EXPECT_EQ(ScriptRuns(gone_), runs) << "it is not the master any more";
  ExpectAsEver(Finish());
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
  std::cout << "left within " << (left - named) / 1000 << " ms\n";
  sentinels_->AwaitWhole();
  ASSERT_TRUE(load_->Progress(600));
  const Records records = Finish();
  EXPECT_LE(left - named - canary_->LateMicros(named, left), kBackUs) << fleet_->Said();
  std::cout << Of(DecidedBy::kClosed, records).size() << " of " << records.size() << " refused\n";
  // Until the old one knows of it there are two, and each admits by itself.
  losses_[0].to_us = left;
  const double both = kBucket.limit * static_cast<double>(left - from) / 1e6;
  const auto more = static_cast<std::size_t>(both / kBucket.burst) + 1;
  losses_.insert(losses_.end(), more, losses_[0]);
  ExpectAsEver(records);
}

TEST_F(SentinelTest, FailsOverWithSomeSentinelsUnreachable) {
  sentinels_.emplace();
  // Two that do not exist, and one of three that is known; it knows the others.
  std::string url = "redis+sentinel://127.0.0.1:" + std::to_string(test::FreePort());
  url += ",127.0.0.1:" + std::to_string(test::FreePort()) + ',' + sentinels_->sentinel(0).address();
  BeginAt(url + "/mymaster");
  // That one dies, and then the master.
  sentinels_->sentinel(0).Kill();
  ASSERT_TRUE(load_->Progress(300));
  ASSERT_NO_FATAL_FAILURE(LoseMaster(By::kKill));
  ASSERT_TRUE(load_->Progress(600));
  ExpectAsEver(Finish());
}

TEST_F(SentinelTest, ConnectsOnceSentinelsStartAndSurvivesTheirLoss) {
  sentinels_.emplace(RedisSentinels::Options{.start_sentinels = false});
  Start(sentinels_->url());
  FaultCase::Ask("closed");
  EXPECT_EQ(load_->answered(DecidedBy::kStore), 0);
  sentinels_->StartSentinels();
  Back(SteadyMicros());
  // All of them gone again: the master is known, and no request fails.
  for (std::size_t i = 0; i < 3; ++i) sentinels_->sentinel(i).Kill();
  const std::int64_t alone = SteadyMicros();
  ASSERT_TRUE(load_->Progress(1500));
  const Records records = Finish();
  ExpectAsEver(records);
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
  ExpectAsEver(Finish());
  // A wrong one is an alarm, and is not logged.
  Start(sentinels_->url(), Rules(), 1, "20ms", "sentinel: { password: wr0ng }");
  FaultCase::Ask("closed");
  EXPECT_EQ(load_->answered(DecidedBy::kStore), 0);
  EXPECT_TRUE(test::WaitUntil([&] { return Errors("wrongpass") > 0; })) << fleet_->Said();
  EXPECT_EQ(fleet_->Said().find("wr0ng"), std::string::npos);
  returns_.clear();
  (void)Finish();
}

TEST_F(SentinelTest, UnknownMaster) {
  sentinels_.emplace();
  std::string url = sentinels_->url();
  url.replace(url.rfind('/'), std::string::npos, "/unknown-master");
  Start(url);
  FaultCase::Ask("closed");
  EXPECT_EQ(load_->answered(DecidedBy::kStore), 0);
  EXPECT_TRUE(test::WaitUntil([&] {
    return fleet_->Said().find("unknown-master") != std::string::npos;
  })) << fleet_->Said();
  (void)Finish();
}

}  // namespace
}  // namespace tidegate::redis_test
