// SPDX-License-Identifier: Apache-2.0
// Tests of leases whose acquire or release timed out, and of what a caller that retries may rely
// on.
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

constexpr std::string_view kTooSlow = "the machine was too slow to make the calls overlap";

using namespace std::chrono_literals;
using testing::HasSubstr;

/// Blocks Redis for that many seconds, from a separate connection, so that it answers no client.
std::thread Sleep(const RedisServer& redis, const std::string& seconds) {
  std::thread sleeping([&redis, seconds] {
    (void)redis.Connect().Text({"DEBUG", "SLEEP", seconds});
  });
  std::this_thread::sleep_for(20ms);
  return sleeping;
}

// A client sends a slow call and then a retry with the same lease id. The first call times out and
// is denied, the retry is granted. The compensation of the first call must not release the lease of
// the retry.
TEST(LeaseRaceTest, KeepsLeaseGrantedToARetry) {
  RedisServer redis;
  RedisStore::Options options = Node::To(redis);
  options.redis.deadline = 200ms;
  Node node{options};
  node.WaitUntilReady();
  const Quota quota = Of({Algorithm::kConcurrency, 1, 1h});
  std::thread sleeping = Sleep(redis, "0.32");
  CallResult first;
  std::thread slow([&] { first = node.Apply(Lease(quota, "mine")); });
  std::this_thread::sleep_for(150ms);
  const CallResult retry = node.Apply(Lease(quota, "mine"));
  slow.join();
  sleeping.join();
  if (first.allowed || !retry.allowed) GTEST_SKIP() << kTooSlow;
  ASSERT_EQ(retry.decisions[0].decided_by, DecidedBy::kStore);
  std::this_thread::sleep_for(200ms);
  EXPECT_THAT(redis.Text({"ZRANGE", "tg:cc:c:{db}", "0", "-1"}), HasSubstr("mine"))
      << "the lease that the retry was granted is gone";
  EXPECT_FALSE(node.Apply(Lease(quota, "another")).allowed)
      << "a second lease was granted for a limit of 1";
}

// A client repeats the acquire of a lease that it holds. If the repeated call times out and is
// denied, its compensation must not release the lease.
TEST(LeaseRaceTest, KeepsHeldLeaseWhenARepeatedAcquireTimesOut) {
  RedisServer redis;
  RedisStore::Options options = Node::To(redis);
  options.redis.deadline = 100ms;
  Node node{options};
  node.WaitUntilReady();
  const Quota quota = Of({Algorithm::kConcurrency, 1, 1h});
  ASSERT_TRUE(node.Apply(Lease(quota, "mine")).allowed);
  std::thread sleeping = Sleep(redis, "0.17");
  const bool refused = !node.Apply(Lease(quota, "mine")).allowed;
  sleeping.join();
  if (!refused) GTEST_SKIP() << kTooSlow;
  std::this_thread::sleep_for(200ms);
  EXPECT_FALSE(node.Apply(Lease(quota, "another")).allowed)
      << "a second lease was granted for a limit of 1";
}

// A release that finds the breaker open while the connection is up waits for the next connection,
// possibly for an hour. Meanwhile the client has retried, been granted the lease and renewed it;
// the late release must not end this lease.
TEST(LeaseRaceTest, DelayedReleaseDoesNotEndALaterLease) {
  RedisServer redis;
  RedisStore::Options options = Node::To(redis);
  options.redis.deadline = 100ms;
  Node node{options};
  node.WaitUntilReady();
  const Quota quota = Of({Algorithm::kConcurrency, 1, 1h});
  const Quota bucket = Of({.limit = 5, .period = 1h});
  std::vector<std::string> names;
  for (int i = 0; i < 140; ++i) names.push_back("n" + std::to_string(i));
  std::thread sleeping = Sleep(redis, "0.55");
  std::thread first([&] { (void)node.Apply({"r", "first", &bucket}); });
  // Two of the three failures that open the breaker have been counted. A full batch is sent beside
  // the one in flight.
  std::this_thread::sleep_for(250ms);
  std::vector<CallResult> many = {{.charges = {Lease(quota, "mine")}}};
  for (const std::string& name : names) many.push_back({.charges = {{"r", name, &bucket}}});
  node.Ask(many);
  first.join();
  sleeping.join();
  if (many[0].allowed) GTEST_SKIP() << kTooSlow;
  CallResult retry;
  for (int i = 0; i < 600 && !retry.allowed; ++i) {  // Retries until the breaker has closed again.
    retry = node.Apply(Lease(quota, "mine"));
    std::this_thread::sleep_for(5ms);
  }
  ASSERT_TRUE(retry.allowed);
  ASSERT_EQ(retry.decisions[0].decided_by, DecidedBy::kStore);
  ASSERT_EQ(node.Ask({.charges = {Lease(quota, "mine")}, .kind = Call::Kind::kRenew}).applied,
            Applied::kYes);
  const auto connections = node.redis_store().redis_stats().connections.get();
  (void)redis.Text({"CLIENT", "KILL", "TYPE", "pubsub"});
  while (node.redis_store().redis_stats().connections.get() == connections) {
    std::this_thread::sleep_for(1ms);
  }
  std::this_thread::sleep_for(100ms);
  EXPECT_FALSE(node.Apply(Lease(quota, "another")).allowed)
      << "a second lease was granted for a limit of 1";
}

}  // namespace
}  // namespace tidegate::redis_test
