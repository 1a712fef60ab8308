// SPDX-License-Identifier: Apache-2.0
// Leases whose acquire or release timed out, and what the retry of the caller may rely on.
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

constexpr std::string_view kTooSlow = "the machine was too slow for what had to meet here";

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

/// Keeps Redis from answering anybody, from now on, for so long; on a connection of its own.
std::thread Sleep(const RedisServer& redis, const std::string& seconds) {
  std::thread sleeping([&redis, seconds] {
    (void)redis.Connect().Text({"DEBUG", "SLEEP", seconds});
  });
  std::this_thread::sleep_for(20ms);
  return sleeping;
}

// Two calls of one client with one lease: a slow one and its retry. The first times out and is
// refused, the retry is allowed; then what gives the first one's lease back takes the retry's.
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
      << "the caller was granted it";
  EXPECT_FALSE(node.Apply(Lease(quota, "another")).allowed) << "two hold a limit of one";
}

// A held lease that is requested once more: denying that would take the first away.
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
  EXPECT_FALSE(node.Apply(Lease(quota, "another")).allowed) << "two hold a limit of one";
}

// A release that found the breaker open with the connection up waits for the next connection, be
// that an hour later; by then the caller has tried again, been granted the lease and renewed it.
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
  // Two failures of three have been counted; a full batch leaves beside the one under way.
  std::this_thread::sleep_for(250ms);
  std::vector<CallResult> many = {{.charges = {Lease(quota, "mine")}}};
  for (const std::string& name : names) many.push_back({.charges = {{"r", name, &bucket}}});
  node.Ask(many);
  first.join();
  sleeping.join();
  if (many[0].allowed) GTEST_SKIP() << kTooSlow;
  CallResult retry;
  for (int i = 0; i < 600 && !retry.allowed; ++i) {  // Until the breaker has closed again.
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
  EXPECT_FALSE(node.Apply(Lease(quota, "another")).allowed) << "two hold a limit of one";
}

}  // namespace
}  // namespace tidegate::redis_test
