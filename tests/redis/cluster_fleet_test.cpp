// SPDX-License-Identifier: Apache-2.0
// Loads three Tidegate processes with as many requests as they can take, on a Redis Cluster and
// behind sentinels. Checks that every algorithm holds its limit exactly, as on one Redis, and that
// a cluster's keys are spread over all masters.
//
// TIDEGATE_FLEET_SECONDS: seconds of load for each algorithm; half a second if unset.
#include <gtest/gtest.h>

#include <cmath>
#include <iostream>

#include "redis/fault_case.hpp"
#include "redis/redis_cluster.hpp"
#include "redis/redis_sentinels.hpp"
#include "support/wait.hpp"

namespace tidegate::redis_test {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t kSecond = 1'000'000;

struct Algorithm {
  const char* name;
  const char* tag;  ///< Abbreviation of the algorithm in a Redis key.
  Promise one;      ///< Promise of the limit when all requests charge one key.
  Promise each;
};

constexpr Algorithm kAlgorithms[] = {
    {"token_bucket", "tb", {2000, kSecond, 500}, {2, kSecond, 4}},
    {"gcra", "gc", {2000, kSecond, 500}, {2, kSecond, 4}},
    {"sliding_log", "sl", {500, kSecond / 4, 0}, {2, kSecond / 4, 0}},
    {"sliding_window", "sw", {500, kSecond / 4, 0}, {2, kSecond / 4, 0}},
    {"fixed_window", "fw", {500, kSecond / 4, 0}, {2, kSecond / 4, 0}},
    {"concurrency", "cc", {20, 30 * kSecond, 0}, {2, 30 * kSecond, 0}},
};

testing::AssertionResult Holds(const Algorithm& algorithm, const Promise& promise,
                               std::span<const Record> key, std::int64_t epoch_us) {
  const std::string_view name = algorithm.name;
  if (name == "fixed_window") return FixedWindowHolds(key, promise, epoch_us);
  if (name == "sliding_log") return LogHolds(key, promise);
  if (name == "sliding_window") return SlidingWindowHolds(key, promise, epoch_us);
  if (name == "concurrency") return LeasesHold(key, promise);
  return BucketHolds(key, promise);
}

class EveryAlgorithmTest : public FaultCase {
 protected:
  enum class Keys : bool { kOne, kMany };

  static std::string RulesFor(Keys keys) {
    std::string rules = "rules:\n";
    for (const Algorithm& algorithm : kAlgorithms) {
      const Promise& promise = keys == Keys::kOne ? algorithm.one : algorithm.each;
      rules += "  - { id: " + std::string(algorithm.tag) + ", per: header:x-user, limit: ";
      rules += std::to_string(static_cast<int>(promise.limit)) + '/';
      rules += std::to_string(promise.period_us / 1000) + "ms, algorithm: " + algorithm.name;
      if (promise.burst > 0) rules += ", burst: " + std::to_string(static_cast<int>(promise.burst));
      rules += " }\n";
    }
    return rules;
  }

  void RunLoadOnEveryAlgorithm(const std::string& url, Keys keys) {
    Start(url, RulesFor(keys), 1, kPatient);
    Node& last = (*fleet_)[2];
    ASSERT_TRUE(test::WaitUntil([&] {
      return last.Decide(R"({"rule":"tb","identity":"first"})").Member("decided_by") == "store";
    })) << fleet_->Output();
    for (const Algorithm& algorithm : kAlgorithms) {
      SCOPED_TRACE(algorithm.name);
      RunLoadOn(algorithm, keys);
    }
    EXPECT_TRUE(fleet_->AllAlive());
    EXPECT_EQ(fleet_->Metric("tidegate_fleet_key_mismatches"), 0);
  }

  void RunLoadOn(const Algorithm& algorithm, Keys keys) {
    const bool leases = std::string_view(algorithm.name) == "concurrency";
    const std::uint32_t count = keys == Keys::kOne ? 1 : leases ? 32 : 1000;
    const Promise& promise = keys == Keys::kOne ? algorithm.one : algorithm.each;
    canary_.emplace();
    Load load({.ports = fleet_->Apis(), .connections = 48},
              leases ? LeaseInTurn(algorithm.tag, count, 3ms) : DecideInTurn(algorithm.tag, count));
    const int seconds = Setting("TIDEGATE_FLEET_SECONDS", 0);
    std::this_thread::sleep_for(seconds == 0 ? 500ms : std::chrono::milliseconds(1000 * seconds));
    if (keys == Keys::kMany && !leases) ExpectSpread(algorithm);
    const Records records = load.Stop();
    canary_->Stop();
    EXPECT_EQ(load.lost(), 0);
    EXPECT_EQ(load.unexpected(), 0);
    ASSERT_GT(records.size(), 500U);
    EXPECT_GT(Admitted(records), 0);
    std::cout << algorithm.name << ": " << records.size() << " requests, " << Admitted(records)
              << " admitted, " << LatenciesOf(records) << '\n';
    EXPECT_TRUE(EachKey(records, [&](std::span<const Record> key) {
      return Holds(algorithm, promise, key, epoch_us_);
    }));
    ExpectUnnoticed(records);
    if (!leases) ExpectUsed(algorithm, promise, records, count);
  }

  /// Checks how the keys are stored while the load runs.
  virtual void ExpectSpread(const Algorithm& /*algorithm*/) {}

  /// Checks that the keys admitted all that their limits allow, if there were enough requests.
  /// fleet_test.cpp explains why windows admit a little less.
  void ExpectUsed(const Algorithm& algorithm, const Promise& promise, const Records& records,
                  std::uint32_t keys) const {
    std::int64_t from = records[0].received_us();
    std::int64_t to = from;
    for (const Record& record : records) {
      from = std::min(from, record.received_us());
      to = std::max(to, record.sent_us);
    }
    // No requests were sent while the machine did not run the load.
    to -= canary_->LateMicros(from, to);
    // With many keys, each key gets few requests, so it can use only a part of its burst.
    const double requests = static_cast<double>(records.size()) / keys;
    double each = promise.burst;
    if (keys == 1 && promise.burst > 0) {
      each +=
          promise.limit * static_cast<double>(to - from) / static_cast<double>(promise.period_us);
    } else if (promise.burst == 0) {
      each = keys > 1 ? promise.limit
                      : promise.limit * std::floor(static_cast<double>(to - from) /
                                                   static_cast<double>(promise.period_us));
    }
    const bool slides = std::string_view(algorithm.name).starts_with("sliding");
    const double promised = keys * std::min(each, std::floor(requests));
    EXPECT_GE(static_cast<double>(Admitted(records)), promised * (slides ? 0.75 : 0.98) - 2);
  }

  std::int64_t epoch_us_ = EpochMicros();
};

class ClusterFleetTest : public EveryAlgorithmTest {
 protected:
  /// Checks that each master stores about a third of the keys and that each key has a TTL.
  void ExpectSpread(const Algorithm& algorithm) override {
    for (std::size_t master = 0; master < cluster_.masters(); ++master) {
      const auto found = cluster_.Keys(master, "tg:" + std::string(algorithm.tag) + ":*");
      EXPECT_GT(found.size(), 150U) << "on master " << master;
      for (std::size_t i = 0; i < found.size(); i += 10) {
        EXPECT_NE(cluster_[master].Text({"PTTL", found[i]}), "-1") << found[i];
      }
    }
  }

  /// The long node timeout prevents a failover: this load keeps the machine busy.
  RedisCluster cluster_{{.node_timeout_ms = 15'000}};
};

TEST_F(ClusterFleetTest, EveryAlgorithmHoldsItsLimitOnOneKey) {
  RunLoadOnEveryAlgorithm(cluster_.url(), Keys::kOne);
}

TEST_F(ClusterFleetTest, EveryAlgorithmHoldsItsLimitOnManyKeys) {
  RunLoadOnEveryAlgorithm(cluster_.url(), Keys::kMany);
}

class SentinelFleetTest : public EveryAlgorithmTest {
 protected:
  RedisSentinels sentinels_{{.down_after_ms = 15'000}};
};

TEST_F(SentinelFleetTest, EveryAlgorithmHoldsItsLimitOnOneKey) {
  RunLoadOnEveryAlgorithm(sentinels_.url(), Keys::kOne);
}

TEST_F(SentinelFleetTest, EveryAlgorithmHoldsItsLimitOnManyKeys) {
  RunLoadOnEveryAlgorithm(sentinels_.url(), Keys::kMany);
}

}  // namespace
}  // namespace tidegate::redis_test
