// SPDX-License-Identifier: Apache-2.0
// Tests the Redis store with a real redis-server, as the frontends use it: merged calls, calls with
// several charges, refunds, leases, and the denial cache.
#include "limiter/redis_store.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <thread>

#include "redis/node.hpp"

namespace tidegate::redis_test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

Quota Of(const QuotaSpec& spec) { return Quota::Make(spec).value(); }

class RedisStoreTest : public testing::Test {
 protected:
  RedisServer redis_;
  Node node_{Node::To(redis_)};
};

TEST_F(RedisStoreTest, AnswersEachOfManyEqualCalls) {
  const Quota quota = Of({.limit = 5, .period = 1h});
  std::vector<CallResult> all(8, CallResult{.charges = {{"r", "alice", &quota}}});
  node_.Ask(all);
  for (int i = 0; i < 8; ++i) {
    const Decision& decision = all[static_cast<std::size_t>(i)].decisions[0];
    EXPECT_EQ(decision.allowed, i < 5) << i;
    EXPECT_EQ(decision.remaining, std::max(4 - i, 0)) << i;
    EXPECT_EQ(decision.decided_by, DecidedBy::kStore);
    EXPECT_EQ(decision.retry_after > 0s, i >= 5);
    EXPECT_EQ(decision.rule, "r");
  }
  // All eight calls were merged into one entry of one batch.
  EXPECT_EQ(node_.redis_store().redis_stats().entries.get(), 1u);
  EXPECT_EQ(node_.redis_store().redis_stats().batches.get(), 1u);
  // A batch is counted after all of its calls have been answered, so the calls may return before
  // that.
  for (int i = 0; i < 5000 && node_.redis_store().redis_stats().batch_calls.sum() == 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  EXPECT_EQ(node_.redis_store().redis_stats().batch_calls.count(3), 1u)
      << "the bucket of 5 to 8 calls per batch";
  EXPECT_EQ(node_.redis_store().redis_stats().batch_calls.sum(), 8u);
}

TEST_F(RedisStoreTest, AnswersEachOfManyEqualCallsOnLists) {
  const Quota log = Of({Algorithm::kSlidingLog, 5, 1h});
  std::vector<CallResult> all(7, CallResult{.charges = {{"log", "alice", &log}}});
  node_.Ask(all);
  for (int i = 0; i < 7; ++i) {
    const Decision& decision = all[static_cast<std::size_t>(i)].decisions[0];
    EXPECT_EQ(decision.allowed, i < 5) << i;
    EXPECT_EQ(decision.remaining, std::max(4 - i, 0)) << i;
    EXPECT_EQ(decision.retry_after > 0s, i >= 5);
    EXPECT_GT(decision.reset_after, 59min);
  }
}

TEST_F(RedisStoreTest, SeveralChargesAreAllOrNothing) {
  const Quota narrow = Of({.limit = 2, .period = 1h});
  const Quota wide = Of({Algorithm::kFixedWindow, 100, 24h * 300});
  const Quota log = Of({Algorithm::kSlidingLog, 50, 1h});
  const Quota shadow = Of({Algorithm::kGcra, 1, 1h});
  std::vector<CallResult> all(4,
                              CallResult{.charges = {{"narrow", "a", &narrow},
                                                     {"wide", "all", &wide},
                                                     {"log", "a", &log},
                                                     {"shadow", "a", &shadow, 1, Mode::kShadow}}});
  node_.Ask(all);
  EXPECT_TRUE(all[0].allowed);
  EXPECT_TRUE(all[1].allowed);
  EXPECT_FALSE(all[2].allowed);
  EXPECT_FALSE(all[3].allowed);
  EXPECT_TRUE(all[0].decisions[3].allowed);
  EXPECT_FALSE(all[1].decisions[3].allowed) << "the shadow rule would deny the second call";
  EXPECT_EQ(all[1].decisions[1].remaining, 98);
  EXPECT_EQ(all[3].decisions[1].remaining, 98) << "a denied request consumes nothing";
  EXPECT_EQ(all[3].decisions[2].remaining, 48);
  EXPECT_TRUE(all[3].decisions[1].allowed);
  EXPECT_EQ(redis_.Text({"HGET", "tg:fw:wide:{all}", "count"}), "2");
  EXPECT_EQ(redis_.Text({"ZCARD", "tg:sl:log:{a}"}), "1")
      << "charges of the same moment must share one entry";
}

TEST_F(RedisStoreTest, RejectsInvalidCalls) {
  const Quota quota = Of({.limit = 5});
  EXPECT_THAT(node_.Ask({.charges = {{"r", "a", &quota}, {"r", "a", &quota}}}).error->message,
              HasSubstr("the same key"));
  EXPECT_TRUE(node_.Ask({.charges = {{"r", "", &quota}}}).error);
  EXPECT_TRUE(node_.Ask({.charges = {{"r", "a", &quota, 0}}}).error);
  EXPECT_TRUE(node_.Ask({.charges = {{"r", "a", &quota}}, .kind = Call::Kind::kRefund}).error);
  EXPECT_TRUE(node_.Ask({.charges = {{"r", "a", &quota}}, .kind = Call::Kind::kRenew}).error);
  EXPECT_EQ(redis_.Text({"DBSIZE"}), "0");
}

TEST_F(RedisStoreTest, AppliesRefundDebitPeekAndResetToEachCharge) {
  const Quota a = Of({.limit = 5, .period = 1h});
  const Quota b = Of({Algorithm::kSlidingLog, 5, 1h});
  const std::vector<Charge> both = {{"a", "x", &a, 3}, {"b", "x", &b, 3}};
  (void)node_.Ask({.charges = both});
  CallResult refund = node_.Ask({.charges = both,
                                 .kind = Call::Kind::kRefund,
                                 .refund = {.id = "r1", .charged_at = {}, .age = {}}});
  ASSERT_FALSE(refund.error);
  EXPECT_EQ(refund.applied, Applied::kYes);
  EXPECT_EQ(refund.decisions[0].remaining, 5);
  EXPECT_EQ(refund.decisions[1].remaining, 5);
  refund = node_.Ask({.charges = both,
                      .kind = Call::Kind::kRefund,
                      .refund = {.id = "r1", .charged_at = {}, .age = {}}});
  EXPECT_EQ(refund.applied, Applied::kNo);
  const CallResult debit = node_.Ask({.charges = both, .kind = Call::Kind::kDebit});
  EXPECT_EQ(debit.decisions[0].remaining, 2);
  EXPECT_EQ(debit.decisions[1].remaining, 2);
  const CallResult look = node_.Ask({.charges = both, .kind = Call::Kind::kPeek});
  EXPECT_FALSE(look.allowed);
  EXPECT_EQ(look.decisions[1].remaining, 2);
  const CallResult reset = node_.Ask({.charges = both, .kind = Call::Kind::kReset});
  EXPECT_EQ(reset.applied, Applied::kYes);
  EXPECT_EQ(reset.decisions[0].remaining, 5);
  EXPECT_EQ(reset.decisions[1].remaining, 5);
}

TEST_F(RedisStoreTest, ForgetsCachedDenialsOfTheGivenKeyOnly) {
  for (int i = 0; i < kAlgorithms; ++i) {
    const auto algorithm = static_cast<Algorithm>(i);
    if (algorithm == Algorithm::kConcurrency) continue;  // Denials of leases are not cached.
    const Quota quota = Of({algorithm, 1, 1h});
    const std::string rule = "rule-" + std::to_string(i);
    const std::string hashed(300, 'x');  // Too long for a key name, so the store hashes it.
    const auto decided_by = [&](std::string_view identity) {
      return node_.Apply({rule, identity, &quota}).decisions[0].decided_by;
    };
    for (const std::string& identity : {std::string("banned"), std::string("other"), hashed}) {
      EXPECT_TRUE(node_.Apply({rule, identity, &quota}).allowed);
      EXPECT_EQ(decided_by(identity), DecidedBy::kStore);
      EXPECT_EQ(decided_by(identity), DecidedBy::kCache);
    }
    node_.Run([&](RedisStore& redis_store) { redis_store.ForgetDenials(rule, "banned"); });
    EXPECT_EQ(decided_by("banned"), DecidedBy::kStore) << rule;
    EXPECT_EQ(decided_by("other"), DecidedBy::kCache) << rule;
    EXPECT_EQ(decided_by(hashed), DecidedBy::kCache) << rule;
    node_.Run([&](RedisStore& redis_store) { redis_store.ForgetDenials(rule, hashed); });
    EXPECT_EQ(decided_by(hashed), DecidedBy::kStore) << rule;
    node_.Run([&](RedisStore& redis_store) { redis_store.ForgetDenials("another", "other"); });
    EXPECT_EQ(decided_by("other"), DecidedBy::kCache) << rule;
  }
}

TEST_F(RedisStoreTest, RefundsAndReleasesTheKeyWithTheSlotTag) {
  const Quota bucket = Of({Algorithm::kFixedWindow, 5, 24h * 300});
  const Quota leases = Of({Algorithm::kConcurrency, 2, 1h});
  const Charge plain{.rule = "r", .identity = "a", .quota = &bucket, .cost = 2};
  Charge tagged = plain;
  tagged.slot_tag = "acme";
  EXPECT_TRUE(node_.Apply(plain).allowed);
  EXPECT_TRUE(node_.Apply(tagged).allowed);
  for (const bool again : {false, true}) {
    const CallResult refund = node_.Ask({.charges = {tagged},
                                         .kind = Call::Kind::kRefund,
                                         .refund = {.id = "r1", .charged_at = {}, .age = {}}});
    EXPECT_EQ(refund.applied, again ? Applied::kNo : Applied::kYes);
  }
  EXPECT_EQ(redis_.Text({"HGET", "tg:fw:r:{a}", "count"}), "2");
  EXPECT_EQ(redis_.Text({"HGET", "tg:fw:r:{acme}:a", "count"}), "0");

  Charge lease{.rule = "c", .identity = "a", .quota = &leases, .lease = "one", .slot_tag = "acme"};
  EXPECT_TRUE(node_.Apply(lease).allowed);
  EXPECT_EQ(redis_.Text({"ZCARD", "tg:cc:c:{acme}:a"}), "1");
  Charge elsewhere = lease;
  elsewhere.slot_tag = {};
  EXPECT_EQ(node_.Ask({.charges = {elsewhere}, .kind = Call::Kind::kRelease}).applied,
            Applied::kNo);
  EXPECT_EQ(node_.Ask({.charges = {lease}, .kind = Call::Kind::kRelease}).applied, Applied::kYes);
  EXPECT_EQ(redis_.Text({"EXISTS", "tg:cc:c:{acme}:a"}), "0");
}

TEST_F(RedisStoreTest, CachesDenialsBySlotTagAndInvalidatesThem) {
  const Quota quota = Of({.limit = 1, .period = 1h});
  const auto ask = [&](std::string_view tag) {
    return node_.Apply({.rule = "r", .identity = "a", .quota = &quota, .slot_tag = tag});
  };
  EXPECT_TRUE(ask("acme").allowed);
  EXPECT_EQ(ask("acme").decisions[0].decided_by, DecidedBy::kStore);
  EXPECT_EQ(ask("acme").decisions[0].decided_by, DecidedBy::kCache);
  EXPECT_TRUE(ask("other").allowed) << "another key";
  EXPECT_TRUE(ask("").allowed) << "another key";
  node_.Run([&](RedisStore& redis_store) { redis_store.ForgetDenials("r", "a"); });
  EXPECT_EQ(ask("acme").decisions[0].decided_by, DecidedBy::kStore)
      << "ForgetDenials must drop the denial under every slot tag";
  EXPECT_EQ(ask("acme").decisions[0].decided_by, DecidedBy::kCache);
  const CallResult refund =
      node_.Ask({.charges = {{.rule = "r", .identity = "a", .quota = &quota, .slot_tag = "acme"}},
                 .kind = Call::Kind::kRefund,
                 .refund = {.id = "r1", .charged_at = {}, .age = {}}});
  EXPECT_EQ(refund.applied, Applied::kYes);
  EXPECT_TRUE(ask("acme").allowed) << "the refund invalidates the denial";
}

TEST_F(RedisStoreTest, RejectsSameKeyTwiceUnderDifferentSlotTags) {
  const Quota quota = Of({.limit = 5});
  const Charge plain{.rule = "r", .identity = "a", .quota = &quota};
  Charge tagged = plain;
  tagged.slot_tag = "acme";
  EXPECT_THAT(node_.Ask({.charges = {plain, tagged}}).error->message, HasSubstr("the same key"));
}

TEST_F(RedisStoreTest, GrantsRenewsAndReleasesLeases) {
  const Quota quota = Of({Algorithm::kConcurrency, 2, 1h});
  const auto lease = [&](std::string_view id) {
    return Charge{"c", "db", &quota, 1, Mode::kEnforce, id};
  };
  EXPECT_TRUE(node_.Apply(lease("one")).allowed);
  EXPECT_TRUE(node_.Apply(lease("two")).allowed);
  EXPECT_TRUE(node_.Apply(lease("two")).allowed) << "acquiring a held lease again must renew it";
  EXPECT_FALSE(node_.Apply(lease("three")).allowed);
  EXPECT_EQ(node_.Ask({.charges = {lease("one")}, .kind = Call::Kind::kRelease}).applied,
            Applied::kYes);
  // Denials of leases are never cached.
  EXPECT_TRUE(node_.Apply(lease("three")).allowed);
  EXPECT_EQ(node_.Ask({.charges = {lease("two")}, .kind = Call::Kind::kRenew}).applied,
            Applied::kYes);
  EXPECT_EQ(node_.Ask({.charges = {lease("one")}, .kind = Call::Kind::kRenew}).applied,
            Applied::kNo);
}

TEST_F(RedisStoreTest, AnswersCachedDenialWithoutRedis) {
  const Quota quota = Of({.limit = 1, .period = 1h});
  EXPECT_TRUE(node_.Apply({"r", "a", &quota}).allowed);
  const CallResult first = node_.Apply({"r", "a", &quota});
  EXPECT_EQ(first.decisions[0].decided_by, DecidedBy::kStore);
  const std::uint64_t batches = node_.redis_store().redis_stats().batches.get();
  for (int i = 0; i < 1000; ++i) {
    const CallResult again = node_.Apply({"r", "a", &quota});
    ASSERT_FALSE(again.allowed);
    ASSERT_EQ(again.decisions[0].decided_by, DecidedBy::kCache);
    ASSERT_LE(again.decisions[0].retry_after, first.decisions[0].retry_after);
    ASSERT_GT(again.decisions[0].retry_after, 59min);
  }
  EXPECT_EQ(node_.redis_store().redis_stats().batches.get(), batches);
  // The cached denial does not apply to another cost or another quota.
  const Quota raised = Of({.limit = 5, .period = 1h});
  EXPECT_EQ(node_.Apply({"r", "a", &raised}).decisions[0].decided_by, DecidedBy::kStore);
  EXPECT_EQ(node_.Apply({"r", "a", &quota, 2}).decisions[0].decided_by, DecidedBy::kStore);
}

TEST_F(RedisStoreTest, RefundOnAnotherNodeInvalidatesDenial) {
  Node other{Node::To(redis_)};
  const Quota quota = Of({.limit = 1, .period = 1h});
  for (int round = 0; round < 50; ++round) {
    const std::string identity = "client-" + std::to_string(round);
    const Charge charge{"r", identity, &quota};
    ASSERT_TRUE(node_.Apply(charge).allowed);
    ASSERT_FALSE(node_.Apply(charge).allowed);
    ASSERT_FALSE(node_.Apply(charge).allowed);
    const CallResult given =
        other.Ask({.charges = {charge},
                   .kind = round % 2 ? Call::Kind::kReset : Call::Kind::kRefund,
                   .refund = {.id = "x", .charged_at = {}, .age = {}}});
    ASSERT_EQ(given.applied, Applied::kYes);
    // The invalidation message may still be in flight, but the next reply of Redis arrives after
    // it.
    (void)node_.Apply({"r", "another-client", &quota});
    (void)node_.Ask({.charges = {{"r", "another-client", &quota}}, .kind = Call::Kind::kPeek});
    ASSERT_TRUE(node_.Apply(charge).allowed) << round;
  }
}

TEST_F(RedisStoreTest, IdentitiesCannotForgeRedisKeys) {
  const Quota quota = Of({.limit = 5, .period = 1h});
  const std::string evil[] = {"a}{b",
                              "x\r\nDEL tg",
                              std::string("nul\0byte", 8),
                              "{}",
                              std::string(100'000, 'a'),
                              "\xff\xfe",
                              "~",
                              " "};
  for (const std::string& identity : evil) {
    ASSERT_TRUE(node_.Apply({"r", identity, &quota}).allowed);
  }
  EXPECT_EQ(redis_.Text({"DBSIZE"}), std::to_string(std::size(evil)));
  const std::string keys = redis_.Text({"KEYS", "*"});
  EXPECT_THAT(keys, testing::MatchesRegex("(tg:tb:r:.~[0-9a-f]*. ?)*"));
}

TEST_F(RedisStoreTest, UsesConfiguredDatabaseOverUnixSocket) {
  RedisStore::Options options = Node::To(redis_);
  options.redis.url.hosts = {{.path = redis_.unix_socket()}};
  options.redis.url.database = 3;
  options.redis.prefix = "other:";
  Node node{options};
  const Quota quota = Of({.limit = 1, .period = 1h});
  EXPECT_EQ(node.Apply({"r", "a", &quota}).decisions[0].decided_by, DecidedBy::kStore);
  EXPECT_EQ(redis_.Text({"DBSIZE"}), "0");
  RedisClient client = redis_.Connect();
  (void)client.Text({"SELECT", "3"});
  EXPECT_EQ(client.Text({"KEYS", "*"}), "other:tb:r:{a}");
  EXPECT_THAT(client.Text({"CLIENT", "LIST"}), HasSubstr("name=tidegate"));
}

/// Four nodes charge and refund the same six keys. Nothing refills during the test, and a lock per
/// key serializes its calls, so a decision is wrong exactly if it does not match the number of
/// charged units.
TEST(DenialCacheTest, NeverDeniesWhileUnitsRemain) {
  RedisServer redis;
  constexpr int kKeys = 6;
  constexpr std::int64_t kLimit = 4;
  const Quota quota = Of({.limit = kLimit, .period = 24h * 365});
  // The expected state of one key; `mutex` guards it and serializes the calls of the key.
  struct Key {
    std::mutex mutex;
    std::int64_t charged = 0;  // Number of units admitted and not refunded.
    std::int64_t returned = 0;
  };
  std::array<Key, kKeys> keys;
  std::atomic<int> wrong = 0;
  std::atomic<int> cached = 0;
  const auto run = [&](unsigned seed) {
    Node node{Node::To(redis)};
    node.WaitUntilReady();
    std::mt19937 random(seed);
    for (int i = 0; i < 400; ++i) {
      const auto number = random() % kKeys;
      Key& key = keys[number];
      const std::string identity = "k" + std::to_string(number);
      const Charge charge{"r", identity, &quota};
      if (random() % 5 == 0) {
        const std::lock_guard lock(key.mutex);
        if (key.charged == 0) continue;
        const std::string id = std::to_string(seed) + "-" + std::to_string(i);
        const CallResult given = node.Ask({.charges = {charge},
                                           .kind = Call::Kind::kRefund,
                                           .refund = {.id = id, .charged_at = {}, .age = {}}});
        if (given.applied == Applied::kYes) --key.charged;
        continue;
      }
      // No other thread changes this key while the lock is held, so its free units are known
      // exactly.
      const std::lock_guard lock(key.mutex);
      // When Redis has answered this peek, the node has received every earlier invalidation
      // message.
      (void)node.Ask({.charges = {{"sync", identity, &quota}}, .kind = Call::Kind::kPeek});
      const CallResult result = node.Apply(charge);
      if (result.decisions[0].decided_by == DecidedBy::kCache) ++cached;
      if (result.allowed != (key.charged < kLimit)) ++wrong;
      if (result.allowed) ++key.charged;
    }
  };
  std::vector<std::thread> nodes;
  for (unsigned seed = 1; seed <= 4; ++seed) nodes.emplace_back(run, seed);
  for (std::thread& node : nodes) node.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(cached, 50) << "the cache was hardly used, so this run proves nothing";
}

}  // namespace
}  // namespace tidegate::redis_test
