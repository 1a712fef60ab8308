// SPDX-License-Identifier: Apache-2.0
// Network faults between Tidegate and Redis: delays, lost replies, cut connections and garbled
// bytes.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <set>

#include "redis/fault_case.hpp"
#include "redis/fault_proxy.hpp"
#include "support/wait.hpp"

namespace tidegate::redis_test {
namespace {

using namespace std::chrono_literals;
using Kind = Fault::Kind;

class WireTest : public FaultCase {
 protected:
  void Begin(std::string_view deadline = "20ms") {
    Start(proxy_.url(), Rules(), 1, deadline);
    FaultCase::StartLoad("closed");
    WaitUntilStoreAnswers(SteadyMicros());
    RecordResourceBaseline();
  }
  /// Injects `fault` for `answers` responses, removes it, and waits until the store answers.
  void RunWithFault(const Fault& fault, std::int64_t answers) {
    proxy_.Set(fault);
    ASSERT_TRUE(load_->Progress(answers));
    proxy_.Pass();
    WaitUntilStoreAnswers(SteadyMicros());
  }
  /// Returns how often rule `once` charged its most charged identity, and how often all identities.
  std::pair<int, int> Charges() {
    const std::string text = redis_.Text(
        {"EVAL",
         "local most, all = 0, 0 for _, k in ipairs(redis.call('KEYS', 'tg:fw:once:*')) do "
         "local n = tonumber(redis.call('HGET', k, 'count')) "
         "if n > most then most = n end all = all + n end return {most, all}",
         "0"});
    return {std::stoi(text), std::stoi(text.substr(text.find(' ')))};
  }

  RedisServer redis_;
  FaultProxy proxy_{redis_.port()};
};

TEST_F(WireTest, ShortReplyDelayCausesNoFailures) {
  Begin(kPatient);
  RunWithFault({.kind = Kind::kDelayReplies, .delay = 20ms}, 2000);
  const Records records = Finish();
  ExpectUnnoticed(records);
  ExpectBuckets(records);
}

TEST_F(WireTest, RecoversFromReplyDelayBeyondDeadline) {
  Begin();
  RunWithFault({.kind = Kind::kDelayReplies, .delay = 60ms}, 3000);
  const Records records = Finish();
  ExpectBuckets(records);
  ExpectInTime(records);
  EXPECT_GT(Failures("timeout"), 0);
}

TEST_F(WireTest, RecoversFromStalledConnections) {
  Begin();
  RunWithFault({.kind = Kind::kStall}, 3000);
  const Records records = Finish();
  ExpectBuckets(records);
  ExpectInTime(records);
  EXPECT_GT(Failures("timeout"), 0);
}

TEST_F(WireTest, ChargeWithLostReplyIsNotRetried) {
  Start(proxy_.url());
  // Each identity is used once only.
  FaultCase::StartLoad(DecideInTurn("once", ~0U), 1500);
  WaitUntilStoreAnswers(SteadyMicros());
  for (int round = 0; round < 3; ++round) {
    RunWithFault({.kind = Kind::kDropReplies}, 600);
    RunWithFault({.kind = Kind::kDropReplies, .share = 0.2}, 300);
    RunWithFault({.kind = Kind::kCutReplies, .bytes = 20, .share = 0.3}, 300);
  }
  EXPECT_GT(proxy_.hits(), 0);
  const Records records = Finish();
  ExpectInTime(records);
  const auto [most, all] = Charges();
  EXPECT_EQ(most, 1) << "charges of one request";
  EXPECT_LE(all, static_cast<int>(records.size()));
  EXPECT_GE(all, static_cast<int>(Admitted(records)));
  EXPECT_GT(all, static_cast<int>(Admitted(records)))
      << "the proxy dropped no reply of an executed charge";
}

TEST_F(WireTest, HoldsLimitsWhenConnectionIsCutInsideAReply) {
  Begin();
  for (std::size_t bytes = 0; bytes < 24; ++bytes) {
    RunWithFault({.kind = Kind::kCutReplies, .bytes = bytes, .share = 0.5}, 100);
    ASSERT_FALSE(HasFatalFailure());
  }
  EXPECT_GT(proxy_.hits(), 10);
  const Records records = Finish();
  ExpectBuckets(records);
  ExpectInTime(records);
}

TEST_F(WireTest, RejectsGarbledReplies) {
  Begin();
  for (int round = 0; round < 20; ++round) {
    RunWithFault({.kind = Kind::kGarble, .share = round % 2 == 0 ? 1.0 : 0.1}, 200);
    ASSERT_FALSE(HasFatalFailure());
  }
  EXPECT_GT(proxy_.hits(), 50);
  const Records records = Finish();
  ExpectBuckets(records);
  ExpectInTime(records);
  const double refused = Failures("badresponse") + Failures("badtypes") + Failures("rediserror");
  std::cout << proxy_.hits() << " garbled; badresponse " << Failures("badresponse") << ", badtypes "
            << Failures("badtypes") << ", rediserror " << Failures("rediserror") << ", timeout "
            << Failures("timeout") << '\n';
  EXPECT_GT(refused, 0);
}

TEST_F(WireTest, RecoversAfterRefusedConnections) {
  Begin();
  proxy_.Refuse();
  proxy_.CutAll();
  ASSERT_TRUE(load_->Progress(3000));
  EXPECT_GT(load_->answered(DecidedBy::kClosed), 1000);
  proxy_.Accept();
  WaitUntilStoreAnswers(SteadyMicros());
  const Records records = Finish();
  ExpectBuckets(records);
  ExpectInTime(records);
}

/// Nodes with many reactors, and therefore with many connections to Redis.
class ReconnectStormTest : public WireTest {
 protected:
  static constexpr int kThreads = 50;
  void Begin() {
    Start(proxy_.url(), Rules(), kThreads);
    FaultCase::StartLoad(DecideInTurn("closed", kKeys), 1500, 64);
    ASSERT_TRUE(test::WaitUntil([&] { return proxy_.open() >= 3 * kThreads; })) << proxy_.open();
    WaitUntilStoreAnswers(SteadyMicros());
    links_ = proxy_.open();
  }
  /// Divides the time into slices. Returns the number of slices, and in how many of them a
  /// connection was accepted.
  [[nodiscard]] std::pair<int, int> Slices(std::int64_t slice_us, std::int64_t since_us,
                                           std::int64_t until_us) const {
    std::set<std::int64_t> used;
    for (const std::int64_t at : proxy_.AcceptTimes()) {
      if (at >= since_us && at < until_us) used.insert((at - since_us) / slice_us);
    }
    return {static_cast<int>((until_us - since_us) / slice_us), static_cast<int>(used.size())};
  }
  /// Returns the largest number of connections accepted within `span_us`, among those since
  /// `since_us`.
  [[nodiscard]] int MostWithin(std::int64_t span_us, std::int64_t since_us) const {
    std::vector<std::int64_t> times = proxy_.AcceptTimes();
    std::erase_if(times, [&](std::int64_t at) { return at < since_us; });
    std::size_t most = 0;
    for (std::size_t i = 0, j = 0; i < times.size(); ++i) {
      while (times[i] - times[j] > span_us) ++j;
      most = std::max(most, i - j + 1);
    }
    return static_cast<int>(most);
  }
  int links_ = 0;
};

TEST_F(ReconnectStormTest, ReconnectsOnceAfterAllConnectionsAreCut) {
  Begin();
  const int before = proxy_.accepted();
  proxy_.CutAll();
  const std::int64_t cut = SteadyMicros();
  ASSERT_TRUE(test::WaitUntil([&] { return proxy_.open() >= links_; }))
      << proxy_.open() << " of " << links_;
  WaitUntilStoreAnswers(cut);
  ASSERT_TRUE(load_->Progress(1500));
  const int again = proxy_.accepted() - before;
  std::cout << links_ << " connections, " << again << " made again, at most "
            << MostWithin(5000, cut) << " of them within 5 ms\n";
  EXPECT_LE(again, links_ + links_ / 4);
  ExpectBuckets(Finish());
}

TEST_F(ReconnectStormTest, SpreadsReconnectAttemptsOverTime) {
  Begin();
  const std::int64_t start = SteadyMicros();
  const int before = proxy_.accepted();
  // The proxy accepts connections and cuts each one at its first reply: the worst case for
  // reconnecting clients.
  proxy_.Set({.kind = Kind::kCutReplies});
  proxy_.CutAll();
  constexpr std::int64_t kTime = 3'000'000;
  ASSERT_TRUE(test::WaitUntil([&] { return SteadyMicros() > start + kTime; }));
  const int tries = proxy_.accepted() - before;
  const auto [slices, used] = Slices(20'000, start + 1'000'000, start + kTime);
  std::cout << links_ << " connections, " << tries << " tries in 3 s; in " << used << " of "
            << slices << " slices of 20 ms\n";
  // Half of the 500 ms cap on average once the backoff has reached its cap, and a few attempts
  // before.
  EXPECT_LE(tries, links_ * (3000 / 250 + 8));
  // Without jitter, all attempts would fall into the same few slices; a busy machine bunches some
  // of them.
  EXPECT_GE(used * 2, slices);
  proxy_.Pass();
  WaitUntilStoreAnswers(SteadyMicros());
  ExpectBuckets(Finish());
}

}  // namespace
}  // namespace tidegate::redis_test
