// SPDX-License-Identifier: Apache-2.0
// Tests the store of one node on a cluster, in this process: which master gets which charges, in
// how many parts, and what is stored afterwards.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <map>
#include <random>
#include <thread>

#include "redis/cluster_node_case.hpp"
#include "redis/redis_sentinels.hpp"
#include "redis/slot_move.hpp"
#include "support/ports.hpp"
#include "support/wait.hpp"

namespace tidegate::redis_test {
namespace {

using namespace std::chrono_literals;

class ClusterStoreTest : public ClusterNodeCase {
 protected:
  [[nodiscard]] std::uint64_t Compensations() const {
    return node_->redis_store().stats().compensations.get() +
           node_->redis_store().stats().failed_compensations.get();
  }
};

TEST_F(ClusterStoreTest, CountsEachIdentityOnTheOwnerOfItsSlot) {
  const Quota quota = Of({.algorithm = Algorithm::kFixedWindow, .limit = 3, .period = 24h});
  std::vector<std::string> identities;
  for (int i = 0; i < 300; ++i) identities.push_back("user-" + std::to_string(i));
  for (int round = 0; round < 2; ++round) {
    std::vector<CallResult> all;
    for (const std::string& identity : identities) {
      for (int i = 0; i < 2; ++i) all.push_back({.charges = {{"r", identity, &quota}}});
    }
    node_->Ask(all);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const Decision& decision = all[i].decisions[0];
      EXPECT_EQ(decision.decided_by, DecidedBy::kStore);
      const auto before = std::int64_t{round} * 2 + static_cast<std::int64_t>(i % 2);
      EXPECT_EQ(decision.allowed, before < 3) << i;
      EXPECT_EQ(decision.remaining, std::max<std::int64_t>(0, 2 - before)) << i;
    }
  }
  std::size_t keys = 0;
  for (std::size_t master = 0; master < 3; ++master) {
    const auto here = cluster_->Keys(master, "tg:fw:r:*").size();
    EXPECT_GT(here, 50U);
    keys += here;
  }
  EXPECT_EQ(keys, identities.size());
  EXPECT_EQ(node_->redis_store().stats().cross_slot_calls.get(), 0U);
}

TEST_F(ClusterStoreTest, CallsWaitUntilTheTopologyIsKnown) {
  const Quota quota = Of({.limit = 100, .period = 24h});
  for (int i = 0; i < 20; ++i) {
    Node node(To(cluster_->url()));
    EXPECT_EQ(node.Apply({"r", On(2), &quota}).decisions[0].decided_by, DecidedBy::kStore);
  }
  // The wait ends with the deadline.
  RedisStore::Options options = To("redis+cluster://127.0.0.1:" + std::to_string(test::FreePort()));
  Node unreachable(options);
  const auto result = std::chrono::steady_clock::now();
  EXPECT_EQ(unreachable.Apply({"r", On(2), &quota}).decisions[0].decided_by, DecidedBy::kOpen);
  EXPECT_LT(std::chrono::steady_clock::now() - result, 4s);
}

TEST_F(ClusterStoreTest, SendsRulesOfOneIdentityAsOneCall) {
  const Quota large = Of({.algorithm = Algorithm::kFixedWindow, .limit = 10, .period = 24h});
  const Quota small = Of({.algorithm = Algorithm::kFixedWindow, .limit = 2, .period = 24h});
  const std::string& who = On(1);
  for (int i = 0; i < 4; ++i) {
    const CallResult result =
        node_->Ask(CallResult{.charges = {{"a", who, &large}, {"b", who, &small}}});
    EXPECT_EQ(result.allowed, i < 2);
  }
  EXPECT_EQ(Stored(1, "tg:fw:a:{" + who + "}"), "2");
  EXPECT_EQ(node_->redis_store().stats().cross_slot_calls.get(), 0U);
}

TEST_F(ClusterStoreTest, SendsIdentitiesWithOneSlotTagAsOneCall) {
  const Quota large = Of({.algorithm = Algorithm::kFixedWindow, .limit = 10, .period = 24h});
  const Quota small = Of({.algorithm = Algorithm::kFixedWindow, .limit = 2, .period = 24h});
  const std::string& tag = On(1);
  const std::vector<Charge> charges = {
      {.rule = "a", .identity = On(0), .quota = &large, .slot_tag = tag},
      {.rule = "b", .identity = On(2), .quota = &small, .slot_tag = tag},
      {.rule = "c", .identity = tag, .quota = &large}};
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(node_->Ask(CallResult{.charges = charges}).allowed, i < 2) << i;
  }
  EXPECT_EQ(node_->redis_store().stats().cross_slot_calls.get(), 0U);
  EXPECT_EQ(Stored(1, "tg:fw:a:{" + tag + "}:" + On(0)), "2");
  EXPECT_EQ(Stored(1, "tg:fw:b:{" + tag + "}:" + On(2)), "2");
  EXPECT_EQ(Stored(1, "tg:fw:c:{" + tag + "}"), "2");
  const CallResult refund = node_->Ask(
      CallResult{.charges = charges, .kind = Call::Kind::kRefund, .refund = {.id = "once"}});
  EXPECT_EQ(refund.applied, Applied::kYes);
  EXPECT_EQ(Stored(1, "tg:fw:a:{" + tag + "}:" + On(0)), "1");
  EXPECT_EQ(Stored(1, "tg:fw:c:{" + tag + "}"), "1");
  EXPECT_EQ(node_->redis_store().stats().cross_slot_calls.get(), 0U);
}

TEST_F(ClusterStoreTest, RefundsTaggedKeysWhenAnotherSlotDenies) {
  const Quota many = Of({.algorithm = Algorithm::kFixedWindow, .limit = 100, .period = 24h});
  const Quota leases = Of({.algorithm = Algorithm::kConcurrency, .limit = 1, .period = 1h});
  const std::string& tag = On(1);
  const auto charges = [&](std::string_view lease) {
    return std::vector<Charge>{
        {.rule = "many", .identity = On(0), .quota = &many, .slot_tag = tag},
        {.rule = "same", .identity = On(2), .quota = &many, .slot_tag = tag},
        {.rule = "lease", .identity = On(2), .quota = &leases, .lease = lease, .slot_tag = On(0)}};
  };
  EXPECT_TRUE(node_->Ask(CallResult{.charges = charges("first")}).allowed);
  EXPECT_EQ(node_->redis_store().stats().cross_slot_calls.get(), 1U);
  EXPECT_EQ((*cluster_)[0].Text({"ZCARD", "tg:cc:lease:{" + On(0) + "}:" + On(2)}), "1");
  // The lease is held by another call, so the charges of the other slot are refunded.
  EXPECT_FALSE(node_->Ask(CallResult{.charges = charges("second")}).allowed);
  WaitUntilNoCallWaits();
  EXPECT_EQ(Stored(1, "tg:fw:many:{" + tag + "}:" + On(0)), "1");
  EXPECT_EQ(Stored(1, "tg:fw:same:{" + tag + "}:" + On(2)), "1");
  EXPECT_EQ(node_->redis_store().stats().compensations.get(), 2U);
  EXPECT_EQ(node_->redis_store().stats().failed_compensations.get(), 0U);
}

TEST_F(ClusterStoreTest, AppliesEveryOperationAcrossSlots) {
  const Quota bucket = Of({.limit = 5, .period = 24h});
  const Quota leases = Of({.algorithm = Algorithm::kConcurrency, .limit = 1, .period = 1h});
  const std::vector<Charge> charges = {
      {"r", On(0), &bucket, 2}, {"r", On(1), &bucket, 2}, {"r", On(2), &bucket, 2}};
  using Kind = Call::Kind;
  EXPECT_TRUE(node_->Ask(CallResult{.charges = charges}).allowed);
  const CallResult peek = node_->Ask(CallResult{.charges = charges, .kind = Kind::kPeek});
  EXPECT_TRUE(peek.allowed);
  for (const Decision& decision : peek.decisions) EXPECT_EQ(decision.remaining, 3);
  const CallResult debit = node_->Ask(CallResult{.charges = charges, .kind = Kind::kDebit});
  for (const Decision& decision : debit.decisions) EXPECT_EQ(decision.remaining, 1);
  for (const bool again : {false, true}) {
    const CallResult refund =
        node_->Ask(CallResult{.charges = charges, .kind = Kind::kRefund, .refund = {.id = "once"}});
    EXPECT_EQ(refund.applied, again ? Applied::kNo : Applied::kYes);
    for (const Decision& decision : refund.decisions) EXPECT_EQ(decision.remaining, 3);
  }
  const CallResult reset = node_->Ask(CallResult{.charges = charges, .kind = Kind::kReset});
  EXPECT_EQ(reset.applied, Applied::kYes);
  for (const Decision& decision : reset.decisions) EXPECT_EQ(decision.remaining, 5);
  const std::vector<Charge> held = {
      {.rule = "c", .identity = On(0), .quota = &leases, .lease = "l"},
      {.rule = "c", .identity = On(2), .quota = &leases, .lease = "l"}};
  EXPECT_TRUE(node_->Ask(CallResult{.charges = held}).allowed);
  EXPECT_EQ(node_->Ask(CallResult{.charges = held, .kind = Kind::kRenew}).applied, Applied::kYes);
  EXPECT_EQ(node_->Ask(CallResult{.charges = held, .kind = Kind::kRelease}).applied, Applied::kYes);
  EXPECT_EQ(node_->Ask(CallResult{.charges = held, .kind = Kind::kRelease}).applied, Applied::kNo);
}

/// Sends requests one after the other, with charges in up to four slots and quotas that do not
/// refill in time. Once all compensations have arrived, a request is admitted exactly if all its
/// costs fit into the remaining units.
TEST_F(ClusterStoreTest, CrossSlotCallsCountExactly) {
  const std::array<Algorithm, 3> algorithms = {Algorithm::kFixedWindow, Algorithm::kTokenBucket,
                                               Algorithm::kSlidingLog};
  std::mt19937 random(7);
  std::map<std::string, std::int64_t> used;
  std::vector<Quota> quotas;
  for (int i = 0; i < 6; ++i) {
    quotas.push_back(Of({.algorithm = algorithms[static_cast<std::size_t>(i) % 3],
                         .limit = 5 + 7 * i,
                         .period = 24h * 300}));
  }
  std::uint64_t compensations = 0;
  int denied = 0;
  for (int request = 0; request < 600; ++request) {
    CallResult result;
    std::vector<std::string> keys;
    const std::size_t count = 1 + random() % 4;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t rule = random() % quotas.size();
      const std::string& who = On(random() % 3, static_cast<int>(random() % 2));
      const std::string key = std::to_string(rule) + who;
      if (std::ranges::find(keys, key) != keys.end()) continue;
      keys.push_back(key);
      static const std::array<std::string, 6> kRules = {"r0", "r1", "r2", "r3", "r4", "r5"};
      result.charges.push_back({.rule = kRules[rule],
                                .identity = who,
                                .quota = &quotas[rule],
                                .cost = 1 + static_cast<std::int64_t>(random() % 3)});
    }
    bool fits = true;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const Charge& charge = result.charges[i];
      fits = fits && used[keys[i]] + charge.cost <= charge.quota->capacity();
    }
    result = node_->Ask(std::move(result));
    ASSERT_EQ(result.allowed, fits) << request;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const Charge& charge = result.charges[i];
      if (fits) used[keys[i]] += charge.cost;
      // A cached denial contains the remaining units of the time when it was cached.
      if (!fits && result.decisions[i].decided_by == DecidedBy::kCache) continue;
      ASSERT_EQ(result.decisions[i].decided_by, DecidedBy::kStore);
      ASSERT_EQ(result.decisions[i].remaining, charge.quota->capacity() - used[keys[i]]) << request;
    }
    denied += fits ? 0 : 1;
    // Waits for all compensations before the next request, which may be denied otherwise.
    compensations = Compensations();
    WaitUntilNoCallWaits();
  }
  EXPECT_GT(denied, 100);
  EXPECT_GT(compensations, 50U);
  EXPECT_EQ(node_->redis_store().stats().failed_compensations.get(), 0U);
  // The compensations leave no refund ids behind.
  for (std::size_t master = 0; master < 3; ++master) {
    EXPECT_TRUE(cluster_->Keys(master, "tg:rf:*").empty());
  }
}

TEST_F(ClusterStoreTest, ChargesShadowRulesAndLeasesAfterOtherSlots) {
  const Quota one = Of({.algorithm = Algorithm::kFixedWindow, .limit = 1, .period = 24h});
  const Quota many = Of({.algorithm = Algorithm::kFixedWindow, .limit = 100, .period = 24h});
  const Quota leases = Of({.algorithm = Algorithm::kConcurrency, .limit = 1, .period = 1h});
  const std::vector<Charge> charges = {
      {.rule = "e", .identity = On(0), .quota = &one},
      {.rule = "s", .identity = On(1), .quota = &many, .mode = Mode::kShadow},
      {.rule = "c", .identity = On(2), .quota = &leases, .lease = "first"}};
  EXPECT_TRUE(node_->Ask(CallResult{.charges = charges}).allowed);
  std::vector<Charge> other = charges;
  other[2].lease = "second";
  const CallResult denied = node_->Ask(CallResult{.charges = other});
  EXPECT_FALSE(denied.allowed);
  EXPECT_FALSE(denied.decisions[0].allowed);
  EXPECT_FALSE(denied.decisions[2].allowed);
  EXPECT_EQ(denied.decisions[1].remaining, 99);
  EXPECT_EQ(Stored(1, "tg:fw:s:{" + On(1) + "}"), "1")
      << "a shadow rule counts admitted requests only";
  // Now the lease denies the request, so the bucket gets its unit back.
  const std::vector<Charge> leased = {
      {.rule = "m", .identity = On(0), .quota = &many},
      {.rule = "s2", .identity = On(1), .quota = &many, .mode = Mode::kShadow},
      {.rule = "c", .identity = On(2), .quota = &leases, .lease = "second"}};
  const CallResult held = node_->Ask(CallResult{.charges = leased});
  EXPECT_FALSE(held.allowed);
  EXPECT_EQ(held.decisions[0].remaining, 100);
  EXPECT_TRUE(test::WaitUntil([&] { return Stored(0, "tg:fw:m:{" + On(0) + "}") == "0"; }));
  EXPECT_TRUE(test::WaitUntil([&] { return Stored(1, "tg:fw:s2:{" + On(1) + "}") != "1"; }));
  EXPECT_EQ((*cluster_)[2].Text({"ZCARD", "tg:cc:c:{" + On(2) + "}"}), "1");
}

TEST_F(ClusterStoreTest, FollowsMovedSlot) {
  const Quota quota = Of({.algorithm = Algorithm::kFixedWindow, .limit = 1000, .period = 24h});
  const std::string& who = On(0, 7);
  const Charge charge{"r", who, &quota};
  EXPECT_TRUE(node_->Apply(charge).allowed);
  const int slot = SlotOfTag(who);
  cluster_->MoveSlot(slot, 0, 2);
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(node_->Apply(charge).decisions[0].decided_by, DecidedBy::kStore);
  EXPECT_EQ(Stored(2, "tg:fw:r:{" + who + "}"), "6");
  EXPECT_GT(node_->redis_store()
                .redis_stats()
                .errors[static_cast<std::size_t>(redis::ErrorKind::kMoved)]
                .get(),
            0U);
  cluster_->MoveSlot(slot, 2, 0);
}

TEST_F(ClusterStoreTest, SendsKeysOfMigratingSlotSeparately) {
  const Quota quota = Of({.algorithm = Algorithm::kFixedWindow, .limit = 1000, .period = 24h});
  const std::string& who = On(1, 9);
  const std::vector<Charge> both = {{"a", who, &quota}, {"b", who, &quota}};
  const std::vector<Charge> fresh = {{"n1", who, &quota}, {"n2", who, &quota}};
  EXPECT_TRUE(node_->Ask(CallResult{.charges = both}).allowed);
  SlotMove move(*cluster_, SlotOfTag(who), 1, 0);
  move.Begin();
  int expected = 1;
  const auto ask = [&] {
    std::vector<CallResult> all(20, CallResult{.charges = both});
    all.insert(all.end(), 5, CallResult{.charges = fresh});
    all.insert(all.end(), 5,
               CallResult{.charges = {{"a", who, &quota}}, .kind = Call::Kind::kPeek});
    node_->Ask(all);
    for (const CallResult& result : all) {
      EXPECT_TRUE(result.allowed);
      for (const Decision& decision : result.decisions)
        EXPECT_EQ(decision.decided_by, DecidedBy::kStore);
    }
    expected += 20;
  };
  ask();
  move.MoveKey("tg:fw:a:{" + who + "}");
  ask();
  move.MoveKey("tg:fw:b:{" + who + "}");
  ask();
  while (move.MoveKeys(10) > 0) {
  }
  ask();
  move.End();
  ask();
  EXPECT_EQ(Stored(0, "tg:fw:a:{" + who + "}"), std::to_string(expected));
  EXPECT_EQ(Stored(0, "tg:fw:b:{" + who + "}"), std::to_string(expected));
  EXPECT_EQ(Stored(0, "tg:fw:n1:{" + who + "}"), "25");
  EXPECT_EQ(Stored(0, "tg:fw:n2:{" + who + "}"), "25");
  cluster_->MoveSlot(SlotOfTag(who), 0, 1);
}

TEST_F(ClusterStoreTest, RefundInvalidatesDenialsOfOtherNodes) {
  const Quota quota = Of({.limit = 1, .period = 24h});
  Node other(To(cluster_->url()));
  other.WaitUntilReady();
  for (std::size_t master = 0; master < 3; ++master) {
    const Charge charge{"r", On(master), &quota};
    EXPECT_TRUE(node_->Apply(charge).allowed);
    EXPECT_FALSE(other.Apply(charge).allowed);
    EXPECT_EQ(other.Apply(charge).decisions[0].decided_by, DecidedBy::kCache);
    EXPECT_EQ(node_->Ask(CallResult{.charges = {charge}, .kind = Call::Kind::kReset}).applied,
              Applied::kYes);
    EXPECT_TRUE(test::WaitUntil([&] { return other.Apply(charge).allowed; }, 2s)) << master;
  }
}

TEST_F(ClusterStoreTest, LogsThatRedisIsNotACluster) {
  RedisServer single;
  std::mutex mutex;
  std::string log;
  RedisStore::Options options = To("redis+cluster://127.0.0.1:" + std::to_string(single.port()));
  options.log = [&](RedisStore::Severity, const std::string& what) {
    const std::lock_guard lock(mutex);
    log += what + "\n";
  };
  Node node(options);
  EXPECT_TRUE(test::WaitUntil([&] {
    const std::lock_guard lock(mutex);
    return log.find("cluster support disabled") != std::string::npos;
  })) << log;
  // Configures a node of the cluster as a single Redis.
  log.clear();
  options.redis.url = redis::ParseRedisUrl((*cluster_)[0].url()).value();
  Node plain(options);
  plain.WaitUntilReady();
  const Quota quota = Of({.limit = 1, .period = 24h});
  (void)plain.Apply({"r", On(1), &quota});
  const std::lock_guard lock(mutex);
  EXPECT_THAT(log, testing::HasSubstr("redis+cluster://"));
}

/// One node of the cluster is down, and no replica takes its place.
TEST(ClusterStoreOutageTest, AppliesFailurePolicyToAffectedChargesOnly) {
  RedisCluster cluster({.masters = 3, .replicas = false});
  RedisStore::Options options = To(cluster.url());
  options.redis.deadline = 200ms;
  Node node(options);
  node.WaitUntilReady();
  const auto on = [](std::size_t master) { return TagOf(static_cast<int>(master) * 5461 + 100); };
  const std::string alive = on(0);
  const std::string dead = on(2);
  const Quota quota = Of({.algorithm = Algorithm::kFixedWindow, .limit = 10, .period = 24h});
  const auto charge = [&](const char* rule, const std::string& who, OnFailure policy) {
    return Charge{.rule = rule, .identity = who, .quota = &quota, .on_failure = policy};
  };
  cluster[2].Kill();
  const Charge closed = charge("closed", dead, OnFailure::kClosed);
  EXPECT_TRUE(test::WaitUntil(
      [&] { return node.Apply(closed).decisions[0].decided_by == DecidedBy::kClosed; }));
  const Charge a = charge("a", alive, OnFailure::kClosed);
  const std::string key = "tg:fw:a:{" + alive + "}";
  EXPECT_EQ(node.Apply(a).decisions[0].decided_by, DecidedBy::kStore);

  // The policy of one charge refuses the call, so the other charge is refunded.
  const CallResult refused = node.Ask(CallResult{.charges = {a, closed}});
  EXPECT_FALSE(refused.allowed);
  EXPECT_EQ(refused.decisions[0].decided_by, DecidedBy::kStore);
  EXPECT_EQ(refused.decisions[0].remaining, 9);
  EXPECT_EQ(refused.decisions[1].decided_by, DecidedBy::kClosed);
  EXPECT_TRUE(test::WaitUntil([&] { return cluster[0].Text({"HGET", key, "count"}) == "1"; }));

  const CallResult open =
      node.Ask(CallResult{.charges = {a, charge("open", dead, OnFailure::kOpen)}});
  EXPECT_TRUE(open.allowed);
  EXPECT_EQ(open.decisions[0].remaining, 8);
  EXPECT_EQ(open.decisions[1].decided_by, DecidedBy::kOpen);

  const Charge local = charge("local", dead, OnFailure::kLocal);
  for (int i = 0; i < 8; ++i) {
    const CallResult passed = node.Ask(CallResult{.charges = {a, local}});
    EXPECT_TRUE(passed.allowed) << i;
    EXPECT_EQ(passed.decisions[1].decided_by, DecidedBy::kLocal);
  }
  // The store denies the call, so nothing is charged on this node.
  EXPECT_FALSE(node.Ask(CallResult{.charges = {a, local}}).allowed);
  EXPECT_EQ(
      node.Ask(CallResult{.charges = {local}, .kind = Call::Kind::kPeek}).decisions[0].remaining,
      2);
  // The local share of this node denies the call, so the store gets its unit back.
  const Charge b = charge("b", alive, OnFailure::kClosed);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(node.Ask(CallResult{.charges = {b, local}}).allowed, i < 2);
  EXPECT_TRUE(test::WaitUntil([&] {
    return cluster[0].Text({"HGET", "tg:fw:b:{" + alive + "}", "count"}) == "2";
  }));
}

/// Calls time out while other calls join the same rounds, for the same slots and for others.
TEST(ClusterStoreOutageTest, ExpiredCallsDoNotAffectOthers) {
  RedisCluster cluster({.masters = 1, .replicas = false});
  RedisStore::Options options = To(cluster.url());
  options.redis.deadline = 20ms;
  Node node(options);
  node.WaitUntilReady();
  const Quota quota = Of({.algorithm = Algorithm::kFixedWindow, .limit = 1'000'000, .period = 24h});
  std::atomic<bool> over{false};
  std::atomic<std::uint64_t> admitted{0};
  std::vector<std::thread> callers;
  for (unsigned seed = 0; seed < 24; ++seed) {
    callers.emplace_back([&, seed] {
      std::mt19937 random(seed);
      while (!over) {
        const std::string who = "user-" + std::to_string(random() % 40);
        const CallResult result = node.Apply(
            {.rule = "r", .identity = who, .quota = &quota, .on_failure = OnFailure::kClosed});
        if (result.allowed) ++admitted;
        // Otherwise all callers would send and time out at the same time.
        std::this_thread::sleep_for(std::chrono::microseconds(random() % 9'000));
      }
    });
  }
  for (int i = 0; i < 15; ++i) {
    cluster[0].Signal(SIGSTOP);
    // Calls exceed their deadline, but the breaker stays closed.
    std::this_thread::sleep_for(50ms);
    cluster[0].Signal(SIGCONT);
    const std::uint64_t before = admitted;
    EXPECT_TRUE(test::WaitUntil([&] { return admitted > before + 100; }));
  }
  over = true;
  for (std::thread& caller : callers) caller.join();
  // Every admitted charge was counted, for each identity separately; a failed charge may have been
  // counted.
  std::uint64_t counted = 0;
  for (const std::string& key : cluster.Keys(0, "tg:fw:r:*")) {
    counted += std::stoull(cluster[0].Text({"HGET", key, "count"}));
  }
  EXPECT_GE(counted, admitted.load());
  EXPECT_LE(counted, admitted.load() + std::uint64_t{15} * 24 * 4);
  EXPECT_EQ(node.redis_store()
                .redis_stats()
                .errors[static_cast<std::size_t>(redis::ErrorKind::kOther)]
                .get(),
            0U);
}

/// Uses the configuration in docs/recipes.
TEST(SentinelStoreTest, FollowsMasterAfterFailover) {
  RedisSentinels sentinels({.arguments = {"--include", TIDEGATE_RECIPES "/redis.conf"}});
  ASSERT_EQ(sentinels[0].Text({"CONFIG", "GET", "maxmemory-policy"}),
            "maxmemory-policy noeviction");
  RedisStore::Options options = To(sentinels.url());
  options.redis.deadline = 100ms;
  Node node(options);
  node.WaitUntilReady();
  const Quota quota = Of({.limit = 1'000'000, .period = 24h});
  const Charge charge{
      .rule = "r", .identity = "a", .quota = &quota, .on_failure = OnFailure::kClosed};
  EXPECT_EQ(node.Apply(charge).decisions[0].decided_by, DecidedBy::kStore);
  const std::size_t before = sentinels.Master();
  sentinels[before].Signal(SIGSTOP);
  EXPECT_TRUE(test::WaitUntil([&] { return sentinels.Switched(before); }, 20s));
  EXPECT_TRUE(test::WaitUntil(
      [&] { return node.Apply(charge).decisions[0].decided_by == DecidedBy::kStore; }, 2s));
  sentinels[before].Signal(SIGCONT);
  const std::size_t master = sentinels.Master();
  EXPECT_TRUE(test::WaitUntil([&] { return sentinels.Follows(before, master); }, 20s));
  EXPECT_EQ(node.Apply(charge).decisions[0].decided_by, DecidedBy::kStore);
}

}  // namespace
}  // namespace tidegate::redis_test
