// SPDX-License-Identifier: Apache-2.0
// Stored states and replies that make no sense: they are repaired or rejected, and hurt no other
// key.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <mutex>
#include <random>
#include <thread>

#include "limiter/failure_policy.hpp"
#include "redis/fault_proxy.hpp"
#include "redis/lease_charge.hpp"
#include "redis/node.hpp"
#include "store/redis/batch.hpp"
#include "store/redis/heartbeat.hpp"
#include "store/redis/msgpack.hpp"
#include "store/redis/resp_reader.hpp"

namespace tidegate::redis_test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;
using SteadyClock = std::chrono::steady_clock;

// docs/redis.md: a state that makes no sense is "never an error for a caller". The sum of units
// without leases: Lua does arithmetic on nil.
TEST(RepairTest, RepairsWrongSumOfLeases) {
  RedisServer redis;
  Node node{Node::To(redis)};
  const Quota quota = Of({Algorithm::kConcurrency, 5, 1h});
  (void)redis.Text({"ZADD", "tg:cc:c:{db}", "-3", "#"});
  EXPECT_EQ(node.Apply(Lease(quota, "mine")).decisions[0].decided_by, DecidedBy::kStore);
  EXPECT_EQ(
      node.Ask({.charges = {Lease(quota, "x")}, .kind = Call::Kind::kPeek}).decisions[0].decided_by,
      DecidedBy::kStore);
  EXPECT_EQ(node.Ask({.charges = {Lease(quota, "x")}, .kind = Call::Kind::kRelease})
                .decisions[0]
                .decided_by,
            DecidedBy::kStore);
}

TEST(RepairTest, RepairsWrongSumOfLeasesOnPeek) {
  RedisServer redis;
  Node node{Node::To(redis)};
  const Quota quota = Of({Algorithm::kConcurrency, 5, 1h});
  (void)redis.Text({"ZADD", "tg:cc:c:{db}", "-3", "#"});
  EXPECT_EQ(
      node.Ask({.charges = {Lease(quota, "x")}, .kind = Call::Kind::kPeek}).decisions[0].decided_by,
      DecidedBy::kStore);
}

TEST(RepairTest, CorruptKeyDoesNotAffectOtherKeys) {
  RedisServer redis;
  Node node{Node::To(redis)};
  node.WaitUntilReady();
  const Quota leases = Of({Algorithm::kConcurrency, 5, 1h});
  const Quota bucket = Of({.limit = 5, .period = 1h});
  (void)redis.Text({"ZADD", "tg:cc:c:{db}", "-3", "#"});
  std::vector<CallResult> both = {{.charges = {{.rule = "r",
                                                .identity = "neighbour",
                                                .quota = &bucket,
                                                .on_failure = OnFailure::kClosed}}},
                                  {.charges = {Lease(leases, "x")}, .kind = Call::Kind::kPeek}};
  node.Ask(both);
  EXPECT_EQ(both[0].decisions[0].decided_by, DecidedBy::kStore);
}

// A score that is no whole number comes back as a double: `badtypes`, and a new connection for all.
TEST(RepairTest, RepairsLeasesWithFractionalEnds) {
  RedisServer redis;
  Node node{Node::To(redis)};
  const Quota quota = Of({Algorithm::kConcurrency, 2, 1h});
  const auto clock = std::chrono::system_clock::now().time_since_epoch();
  const auto now = std::chrono::duration_cast<std::chrono::microseconds>(clock).count();
  (void)redis.Text({"ZADD", "tg:cc:c:{db}", std::to_string(now + 60'000'000) + ".5", "one",
                    std::to_string(now + 90'000'000), "two"});
  EXPECT_EQ(node.Apply(Lease(quota, "three")).decisions[0].decided_by, DecidedBy::kStore);
  EXPECT_EQ(node.redis_store().redis_stats().connections.get(), 1u);
}

TEST(RepairTest, RepairsLogsWithFractionalTimes) {
  RedisServer redis;
  Node node{Node::To(redis)};
  const Quota quota = Of({Algorithm::kSlidingLog, 2, 1h});
  const auto clock = std::chrono::system_clock::now().time_since_epoch();
  const auto now = std::chrono::duration_cast<std::chrono::microseconds>(clock).count();
  (void)redis.Text({"ZADD", "tg:sl:r:{a}", std::to_string(now - 2'000'000) + ".5", "1:1",
                    std::to_string(now - 1'000'000) + ".5", "1:2"});
  const Charge charge{
      .rule = "r", .identity = "a", .quota = &quota, .on_failure = OnFailure::kClosed};
  EXPECT_EQ(node.Apply(charge).decisions[0].decided_by, DecidedBy::kStore);
  EXPECT_EQ(node.redis_store().redis_stats().connections.get(), 1u);
}

// A denial and, behind it in the same batch, the refund: is what was denied before kept after it?
TEST(RepairTest, RefundInTheBatchOfADenialInvalidatesIt) {
  RedisServer redis;
  Node node{Node::To(redis)};
  node.WaitUntilReady();
  const Quota quota = Of({.limit = 1, .period = 1h});
  for (int i = 0; i < 20; ++i) {
    const std::string identity = std::to_string(i);
    const Charge charge{"r", identity, &quota};
    ASSERT_TRUE(node.Apply(charge).allowed);
    std::vector<CallResult> both = {{.charges = {charge}},
                                    {.charges = {charge},
                                     .kind = Call::Kind::kRefund,
                                     .refund = {.id = "x", .charged_at = {}, .age = {}}}};
    node.Ask(both);
    ASSERT_FALSE(both[0].allowed);
    ASSERT_EQ(both[1].applied, Applied::kYes);
    // Whatever was published has come by then.
    std::this_thread::sleep_for(50ms);
    (void)node.Ask({.charges = {{"sync", "x", &quota}}, .kind = Call::Kind::kPeek});
    const CallResult again = node.Apply(charge);
    ASSERT_TRUE(again.allowed) << i << ": one is there; decided_by "
                               << static_cast<int>(again.decisions[0].decided_by);
  }
}

// What Lua checks (whole numbers within 2^53) C++ takes as it comes. For the sanitizers.
TEST(RepairTest, AcceptsAnyNumberInAReply) {
  const redis::KeyNames names("tg:");
  const Fingerprinter fingerprinter;
  const std::array<std::int64_t, 4> extremes = {INT64_MIN, -1, 1'800'000'000'000'000, INT64_MAX};
  for (const Algorithm algorithm : {Algorithm::kTokenBucket, Algorithm::kGcra,
                                    Algorithm::kFixedWindow, Algorithm::kSlidingWindow}) {
    const Quota quota = Of({algorithm, 5, 1h});
    for (int way = 0; way < 256; ++way) {
      redis::Batch batch(names, fingerprinter);
      const std::array<Charge, 1> charges = {Charge{"r", "a", &quota}};
      std::array<Decision, 1> answers;
      Call call;
      call.charges = charges;
      call.decisions = answers;
      call.record.request = {1, 1};
      ASSERT_TRUE(batch.Add(call));
      std::string packed;
      const auto at = [&](int place) {
        return extremes[static_cast<std::size_t>(way >> (2 * place)) % 4];
      };
      redis::WritePacked(packed, {at(0), 0, 0, 0, at(1), at(2), at(3), 0});
      (void)batch.Read(packed, [](Call&) {});
    }
  }
}

// A reply that grew was parsed from its beginning with every piece that came, so only short ones
// could be allowed.
TEST(RepairTest, ReadsEndlessArrayInLinearTime) {
  redis::RespReader reader;
  reader.Feed("*1000000\r\n");
  redis::Reply reply;
  std::string piece;
  while (piece.size() < 3072) piece += "_\r\n";
  const auto begin = SteadyClock::now();
  for (std::size_t fed = 0; fed < (2u << 20); fed += piece.size()) {
    reader.Feed(piece);
    ASSERT_EQ(reader.Next(reply), redis::RespReader::Progress::kMore);
  }
  EXPECT_LT(SteadyClock::now() - begin, 2s);
}

// What Redis says of the number of nodes is not bounded. For the sanitizers.
TEST(RepairTest, ComputesAShareForAnyNumberOfNodes) {
  for (const std::int64_t nodes : {std::int64_t{10'000'000}, INT64_MAX / 2, INT64_MAX}) {
    for (const Algorithm algorithm : {Algorithm::kTokenBucket, Algorithm::kFixedWindow}) {
      const Quota share = ShareOf(Of({algorithm, 5, 1h}), nodes);
      EXPECT_EQ(share.capacity(), 1);
      EXPECT_GE(share.period(), 1h);
    }
  }
}

// heartbeat.hpp: "Fewer than before is believed after kAlive: a Redis that has just been emptied or
// restarted knows only those that have reported since". Not after an outage that lasted that long.
TEST(RepairTest, ShareDoesNotGrowAtOnceAfterALongOutage) {
  RedisServer redis;
  redis::Fleet fleet;
  Node node{Node::To(redis)};
  node.WaitUntilReady();
  std::unique_ptr<redis::Heartbeat> heartbeat;
  node.Run([&](RedisStore& redis_store) {
    heartbeat = std::make_unique<redis::Heartbeat>(
        node.reactor(), redis_store.client(), fleet,
        redis::Heartbeat::Options{.node = "me", .key_id = "k", .secret = ""});
  });
  const auto clock = std::chrono::system_clock::now().time_since_epoch();
  const auto ahead =
      std::chrono::duration_cast<std::chrono::microseconds>(clock).count() + 3'000'000;
  for (const std::string other : {"a k", "b k", "c k"}) {
    (void)redis.Text({"ZADD", "tg:nodes:{fleet}", std::to_string(ahead), other});
  }
  node.Run([&](RedisStore&) { heartbeat->Start(); });
  while (fleet.nodes != 4) std::this_thread::sleep_for(5ms);
  redis.Kill();
  std::this_thread::sleep_for(5500ms);
  const auto before = fleet.heartbeats.load();
  redis.Start();
  while (fleet.heartbeats == before) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(fleet.nodes, 4) << "the others had no time to come back";
  node.Run([&](RedisStore&) { heartbeat.reset(); });
}

// Redis quotes the arguments of commands that it does not know: any Redis before 6, a proxy, or one
// with `rename-command HELLO ""`.
TEST(RepairTest, DoesNotLogThePassword) {
  RedisServer redis({.arguments = {"--rename-command", "HELLO", ""}});
  std::mutex mutex;
  std::string logged;
  RedisStore::Options options = Node::To(redis);
  options.redis.url.password = "hunter2-very-secret";
  options.log = [&](RedisStore::Severity, const std::string& what) {
    const std::lock_guard lock(mutex);
    logged += what + "\n";
  };
  {
    Node node{options};
    std::this_thread::sleep_for(500ms);
  }
  const std::lock_guard lock(mutex);
  EXPECT_THAT(logged, HasSubstr("RESP3"));
  EXPECT_THAT(logged, Not(HasSubstr("hunter2")));
}

}  // namespace
}  // namespace tidegate::redis_test
