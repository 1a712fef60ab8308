// SPDX-License-Identifier: Apache-2.0
// Stored states and replies that are not valid: they are repaired or rejected, and no other key is
// affected.
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

// docs/redis.md: a state that makes no sense is "never an error for a caller". Here a key has the
// sum of the lease units but no leases, so the Lua script would compute with nil.
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

// A fractional score reaches the script as a double. This must not end in `badtypes`, which makes
// all calls reconnect.
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

// A batch contains a denial and then a refund of the same key. The denial must not be cached after
// the refund.
TEST(RepairTest, RefundInvalidatesDenialOfTheSameBatch) {
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
    // By then every published message has arrived.
    std::this_thread::sleep_for(50ms);
    (void)node.Ask({.charges = {{"sync", "x", &quota}}, .kind = Call::Kind::kPeek});
    const CallResult again = node.Apply(charge);
    ASSERT_TRUE(again.allowed) << i << ": denied although one unit is left; decided_by "
                               << static_cast<int>(again.decisions[0].decided_by);
  }
}

// C++ does not check the numbers in a reply, because the Lua script limits them to whole numbers
// within 2^53. Run under the sanitizers.
TEST(RepairTest, ReadsReplyWithExtremeNumbersSafely) {
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

// A growing reply was once parsed from its beginning with every piece, in quadratic time. It must
// be parsed in linear time.
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

// The number of nodes that Redis reports is not bounded. Run under the sanitizers.
TEST(RepairTest, ComputesAShareForAnyNumberOfNodes) {
  for (const std::int64_t nodes : {std::int64_t{10'000'000}, INT64_MAX / 2, INT64_MAX}) {
    for (const Algorithm algorithm : {Algorithm::kTokenBucket, Algorithm::kFixedWindow}) {
      const Quota share = ShareOf(Of({algorithm, 5, 1h}), nodes);
      EXPECT_EQ(share.capacity(), 1);
      EXPECT_GE(share.period(), 1h);
    }
  }
}

// A node accepts a smaller node count only after kAlive, because an emptied or restarted Redis
// knows only the nodes that have reported since (heartbeat.hpp). This must also hold after an
// outage that is longer than kAlive.
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
  EXPECT_EQ(fleet.nodes, 4) << "the other nodes had no time to report again";
  node.Run([&](RedisStore&) { heartbeat.reset(); });
}

// Redis quotes the arguments of unknown commands in its error. HELLO is unknown to any Redis before
// version 6, to some proxies, and to a Redis with `rename-command HELLO ""`.
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
