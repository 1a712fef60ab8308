// SPDX-License-Identifier: Apache-2.0
// Moves slots between the masters all the time, key by key; no request fails.
//
// TIDEGATE_RESHARD_SECONDS: seconds that each test takes; 2 if unset.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

#include "redis/cluster_case.hpp"
#include "redis/resharder.hpp"
#include "support/timing.hpp"
#include "support/wait.hpp"

namespace tidegate::redis_test {
namespace {

using namespace std::chrono_literals;

class ClusterReshardTest : public ClusterCase {
 protected:
  /// Moves the slots of all addresses while the load runs, and returns the records of the load.
  Records Reshard(Resharder::Options options = {}) {
    RecordResourceBaseline();
    Resharder resharder(*cluster_, AllSlots(), options);
    const auto seconds = std::chrono::seconds(Setting("TIDEGATE_RESHARD_SECONDS", 2));
    // Takes longer on a slow machine: a run without slot moves would prove nothing.
    const auto end = std::chrono::steady_clock::now() + seconds;
    EXPECT_TRUE(test::WaitUntil(
        [&] {
          if (resharder.ended()) return true;
          return std::chrono::steady_clock::now() > end &&
                 resharder.slots_moved() > 2 * static_cast<int>(kKeys);
        },
        seconds + 20s));
    resharder.Stop();
    disputed_ = resharder.disputed();
    if (disputed_) return Finish();
    EXPECT_EQ(resharder.problem(), "");
    Records records = Finish();
    std::cout << resharder.slots_moved() << " slots and " << resharder.keys_moved()
              << " keys moved; " << Errors("moved") << " MOVED, " << Errors("ask") << " ASK, "
              << Errors("tryagain") << " TRYAGAIN; failures: " << Failures("timeout")
              << " by time, " << Failures("breaker_open") << " by breaker, "
              << Failures("rediserror") << " by errors\n";
    EXPECT_GT(resharder.keys_moved(), 0);
    EXPECT_GT(Errors("moved"), 0);
    EXPECT_GT(Errors("ask"), 0);
    ExpectFewNoticed(records);
    return records;
  }

  void ExpectFewNoticed(const Records& all) const {
    const Records records = Between(all, begun_us_, SteadyMicros());
    const Records judged = canary_->Undisturbed(records);
    const std::size_t noticed = judged.size() - OfStore(judged).size();
    std::cout << noticed << " of " << judged.size() << " answers were not the store's ("
              << records.size() - OfStore(records).size() << " of all " << records.size() << ")\n";
    // A breaker that opened while the machine paused stays open for a moment longer.
    if (std::getenv("TIDEGATE_STRICT") == nullptr && judged.size() < records.size() * 9 / 10) {
      GTEST_SKIP() << "failures not judged: the machine was too busy";
    }
    EXPECT_LE(static_cast<double>(noticed), 0.001 * static_cast<double>(judged.size()))
        << test::kTiming;
  }

  /// Returns the number of units that rule `once` has counted, over the whole cluster.
  std::int64_t Charged() {
    std::int64_t charged = 0;
    for (std::size_t master = 0; master < cluster_->masters(); ++master) {
      for (const std::string& key : cluster_->Keys(master, "tg:fw:once:*")) {
        charged += std::stoll((*cluster_)[master].Text({"HGET", key, "count"}));
      }
    }
    return charged;
  }

  bool disputed_ = false;
};

TEST_F(ClusterReshardTest, BucketsHoldTheirLimitWhileSlotsMove) {
  Begin("closed", kPatient, {.node_timeout_ms = kNoFailoverMs});
  const Records records = Reshard();
  if (disputed_) GTEST_SKIP() << "not judged: the masters dispute a slot";
  ExpectBuckets(records);
}

TEST_F(ClusterReshardTest, ChargesNoRequestTwiceWhileSlotsMove) {
  Begin("once", kPatient, {.node_timeout_ms = kNoFailoverMs});
  const Records records = Reshard();
  if (disputed_) GTEST_SKIP() << "not judged: the masters dispute a slot";
  const std::int64_t charged = Charged();
  std::cout << Admitted(records) << " admitted, " << charged << " charged, " << records.size()
            << " requests\n";
  EXPECT_GE(charged, Admitted(records));
  EXPECT_LE(charged, static_cast<std::int64_t>(records.size()));
  // A redirected request was not charged before its retry, so the refused requests are the only
  // ones that may be charged without being admitted.
  const auto unknown = static_cast<std::int64_t>(Of(DecidedBy::kClosed, records).size());
  EXPECT_LE(charged, Admitted(records) + unknown);
}

TEST_F(ClusterReshardTest, MeetsShortDeadlinesWhileSlotsMove) {
  Begin("closed", "20ms", {.node_timeout_ms = kNoFailoverMs});
  const Records records = Reshard();
  if (disputed_) GTEST_SKIP() << "not judged: the masters dispute a slot";
  ExpectBuckets(records);
  ExpectInTime(records);
}

TEST_F(ClusterReshardTest, ChargesTwoRulesAllOrNothingWhileSlotsMove) {
  cluster_.emplace(RedisCluster::Options{.node_timeout_ms = kNoFailoverMs});
  Start(cluster_->url(), R"(rules:
  - { id: bucket, per: client_ip, limit: 100/s, burst: 50, algorithm: token_bucket }
  - { id: once, per: client_ip, limit: 1000000/24h, algorithm: fixed_window }
)",
        1, kPatient);
  FaultCase::StartLoad([turn = 0U](std::uint32_t, const Record*,
                                   LoadRequest& load_request) mutable {
    load_request.key = turn++ % kKeys;
    load_request.body.assign(R"({"request":{"method":"GET","host":"h","path":"/","client_ip":")");
    load_request.body.append(AddressOf(load_request.key)).append("\"}}");
  });
  for (std::size_t home = 0; home < 3; ++home) WaitUntilStoreAnswers(KeysOf(home), SteadyMicros());
  begun_us_ = SteadyMicros();
  // While one of the two keys has moved and the other has not, both nodes reply TRYAGAIN to a
  // script that uses both keys.
  const Records records = Reshard();
  if (disputed_) GTEST_SKIP() << "not judged: the masters dispute a slot";
  EXPECT_GT(Errors("tryagain"), 0);
  ExpectBuckets(records);
  // All or nothing: requests that the bucket denied were not counted by `once` either.
  const std::int64_t charged = Charged();
  const auto unknown = static_cast<std::int64_t>(Of(DecidedBy::kClosed, records).size());
  std::cout << Admitted(records) << " admitted, " << charged << " charged\n";
  EXPECT_GE(charged, Admitted(records));
  EXPECT_LE(charged, Admitted(records) + unknown);
}

}  // namespace
}  // namespace tidegate::redis_test
