// SPDX-License-Identifier: Apache-2.0
// What went wrong once, each with what it was like for those who met it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <mutex>
#include <random>
#include <thread>

#include "limiter/local_share.hpp"
#include "redis/fault_proxy.hpp"
#include "redis/node.hpp"
#include "store/redis/batch.hpp"
#include "store/redis/heartbeat.hpp"
#include "store/redis/msgpack.hpp"
#include "store/redis/resp_reader.hpp"

namespace tidegate::redis_test {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif
constexpr std::string_view kTooSlow = "the machine was too slow for what had to meet here";

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;
using SteadyClock = std::chrono::steady_clock;

Quota Of(const QuotaSpec& spec) { return Quota::Make(spec).value(); }

Charge Lease(const Quota& quota, std::string_view id) {
  return {.rule = "c",
          .identity = "db",
          .quota = &quota,
          .lease = id,
          .on_failure = OnFailure::kClosed};
}

/// Keeps Redis from answering anybody, from now on, for so long; on a connection of its own.
std::thread Sleep(const RedisServer& redis, const std::string& seconds) {
  std::thread sleeping([&redis, seconds] {
    (void)redis.Connect().Text({"DEBUG", "SLEEP", seconds});
  });
  std::this_thread::sleep_for(20ms);
  return sleeping;
}

// A probe that is told BUSY goes back into the queue with the breaker half-open and `probing_` set:
// nothing is under way any more, so nothing ever clears it.
TEST(RegressionTest, ABreakerWhoseProbeMetBusyClosesAgain) {
  RedisServer redis({.arguments = {"--busy-reply-threshold", "10"}});
  Guard::Options options = Node::To(redis);
  options.redis.deadline = 200ms;
  Node node{options};
  node.WaitUntilReady();
  const Quota quota = Of({.limit = 1'000'000, .period = 1s});
  const Charge charge{
      .rule = "r", .identity = "a", .quota = &quota, .on_failure = OnFailure::kClosed};
  ASSERT_EQ(node.Apply(charge).decisions[0].decided_by, DecidedBy::kStore);

  std::thread busy([&] { (void)redis.Connect().Text({"EVAL", "while true do end", "0"}); });
  std::this_thread::sleep_for(100ms);
  const auto until = SteadyClock::now() + 2s;
  while (SteadyClock::now() < until) {
    (void)node.Apply(charge);
    std::this_thread::sleep_for(2ms);
  }
  EXPECT_EQ(redis.Connect().Text({"SCRIPT", "KILL"}), "OK");
  busy.join();
  ASSERT_EQ(redis.Connect().Text({"PING"}), "PONG");

  bool answered = false;
  const auto patience = SteadyClock::now() + 5s;
  while (!answered && SteadyClock::now() < patience) {
    answered = node.Apply(charge).decisions[0].decided_by == DecidedBy::kStore;
    std::this_thread::sleep_for(2ms);
  }
  EXPECT_TRUE(answered) << "Redis has been well for five seconds; breaker state "
                        << node.guard().redis_stats().breaker.get() << ", connected "
                        << node.guard().redis_stats().connected.get();
}

// Redis quotes the arguments of commands that it does not know: any Redis before 6, a proxy, or one
// with `rename-command HELLO ""`.
TEST(RegressionTest, ThePasswordIsNotLogged) {
  RedisServer redis({.arguments = {"--rename-command", "HELLO", ""}});
  std::mutex mutex;
  std::string logged;
  Guard::Options options = Node::To(redis);
  options.redis.url.password = "hunter2-very-secret";
  options.log = [&](Guard::Severity, const std::string& what) {
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

// Two calls of one client with one lease: a slow one and its retry. The first times out and is
// refused, the retry is allowed; then what gives the first one's lease back takes the retry's.
TEST(RegressionTest, ALeaseThatARetryWasGrantedIsNotTakenAway) {
  RedisServer redis;
  Guard::Options options = Node::To(redis);
  options.redis.deadline = 200ms;
  Node node{options};
  node.WaitUntilReady();
  const Quota quota = Of({Algorithm::kConcurrency, 1, 1h});
  std::thread sleeping = Sleep(redis, "0.32");
  Asked first;
  std::thread slow([&] { first = node.Apply(Lease(quota, "mine")); });
  std::this_thread::sleep_for(150ms);
  const Asked retry = node.Apply(Lease(quota, "mine"));
  slow.join();
  sleeping.join();
  if (first.allowed || !retry.allowed) GTEST_SKIP() << kTooSlow;
  ASSERT_EQ(retry.decisions[0].decided_by, DecidedBy::kStore);
  std::this_thread::sleep_for(200ms);
  EXPECT_THAT(redis.Text({"ZRANGE", "tg:cc:c:{db}", "0", "-1"}), HasSubstr("mine"))
      << "the caller was told that it has it";
  EXPECT_FALSE(node.Apply(Lease(quota, "another")).allowed) << "two hold a limit of one";
}

// One that is held already, and asked for once more: the refusal of that takes the first away.
TEST(RegressionTest, ALeaseThatIsHeldSurvivesARepeatedAcquireThatTimesOut) {
  RedisServer redis;
  Guard::Options options = Node::To(redis);
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
TEST(RegressionTest, AReleaseThatWaitedDoesNotEndALeaseThatWasGrantedLater) {
  RedisServer redis;
  Guard::Options options = Node::To(redis);
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
  std::vector<Asked> many = {{.charges = {Lease(quota, "mine")}}};
  for (const std::string& name : names) many.push_back({.charges = {{"r", name, &bucket}}});
  node.Ask(many);
  first.join();
  sleeping.join();
  if (many[0].allowed) GTEST_SKIP() << kTooSlow;
  Asked retry;
  for (int i = 0; i < 600 && !retry.allowed; ++i) {  // Until the breaker has closed again.
    retry = node.Apply(Lease(quota, "mine"));
    std::this_thread::sleep_for(5ms);
  }
  ASSERT_TRUE(retry.allowed);
  ASSERT_EQ(retry.decisions[0].decided_by, DecidedBy::kStore);
  ASSERT_EQ(node.Ask({.charges = {Lease(quota, "mine")}, .kind = Call::Kind::kRenew}).done,
            Done::kApplied);
  const auto connections = node.guard().redis_stats().connections.get();
  (void)redis.Text({"CLIENT", "KILL", "TYPE", "pubsub"});
  while (node.guard().redis_stats().connections.get() == connections) {
    std::this_thread::sleep_for(1ms);
  }
  std::this_thread::sleep_for(100ms);
  EXPECT_FALSE(node.Apply(Lease(quota, "another")).allowed) << "two hold a limit of one";
}

// docs/redis.md: "With memory used up, denials are still answered and new charges fall to the
// failure policy." Three of those open the breaker for everybody, releases of leases too.
TEST(RegressionTest, WithMemoryUsedUpLeasesAreStillReleased) {
  RedisServer redis;
  Guard::Options options = Node::To(redis);
  Node node{options};
  node.WaitUntilReady();
  const Quota quota = Of({Algorithm::kConcurrency, 100, 1h});
  const Quota bucket = Of({.limit = 5, .period = 1h});
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(node.Apply(Lease(quota, "l" + std::to_string(i))).allowed);
  }
  (void)redis.Text({"CONFIG", "SET", "maxmemory", "1"});
  for (int i = 0; i < 20; ++i) {
    for (int j = 0; j < 4; ++j) {
      const std::string name = "n" + std::to_string(10 * i + j);
      (void)node.Apply({"r", name, &bucket});
    }
    (void)node.Ask(
        {.charges = {Lease(quota, "l" + std::to_string(i))}, .kind = Call::Kind::kRelease});
  }
  EXPECT_EQ(redis.Text({"ZCARD", "tg:cc:c:{db}"}), "0");
}

// heartbeat.hpp: "Fewer than before is believed after kAlive: a Redis that has just been emptied or
// restarted knows only those that have told it since". Not after an outage that lasted that long.
TEST(RegressionTest, ARedisThatWasAwayForLongDoesNotMakeTheShareGrowAtOnce) {
  RedisServer redis;
  redis::Fleet fleet;
  Node node{Node::To(redis)};
  node.WaitUntilReady();
  std::unique_ptr<redis::Heartbeat> heartbeat;
  node.Run([&](Guard& guard) {
    heartbeat = std::make_unique<redis::Heartbeat>(
        node.reactor(), guard.client(), fleet,
        redis::Heartbeat::Options{.node = "me", .key_id = "k", .secret = ""});
  });
  const auto clock = std::chrono::system_clock::now().time_since_epoch();
  const auto ahead =
      std::chrono::duration_cast<std::chrono::microseconds>(clock).count() + 3'000'000;
  for (const std::string other : {"a k", "b k", "c k"}) {
    (void)redis.Text({"ZADD", "tg:nodes:{fleet}", std::to_string(ahead), other});
  }
  node.Run([&](Guard&) { heartbeat->Start(); });
  while (fleet.nodes != 4) std::this_thread::sleep_for(5ms);
  redis.Kill();
  std::this_thread::sleep_for(5500ms);
  const auto before = fleet.heartbeats.load();
  redis.Start();
  while (fleet.heartbeats == before) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(fleet.nodes, 4) << "the others had no time to come back";
  node.Run([&](Guard&) { heartbeat.reset(); });
}

// docs/redis.md: a state that makes no sense is "never an error for a caller". The sum of units
// without leases: Lua does arithmetic on nil.
TEST(RegressionTest, LeasesWhoseSumIsALieAreHealed) {
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
TEST(RegressionTest, LeasesWhoseSumIsALieAreHealedWhenTheyAreLookedAt) {
  RedisServer redis;
  Node node{Node::To(redis)};
  const Quota quota = Of({Algorithm::kConcurrency, 5, 1h});
  (void)redis.Text({"ZADD", "tg:cc:c:{db}", "-3", "#"});
  EXPECT_EQ(
      node.Ask({.charges = {Lease(quota, "x")}, .kind = Call::Kind::kPeek}).decisions[0].decided_by,
      DecidedBy::kStore);
}

TEST(RegressionTest, AKeyThatSomebodySpoiltHurtsNobodyElse) {
  RedisServer redis;
  Node node{Node::To(redis)};
  node.WaitUntilReady();
  const Quota leases = Of({Algorithm::kConcurrency, 5, 1h});
  const Quota bucket = Of({.limit = 5, .period = 1h});
  (void)redis.Text({"ZADD", "tg:cc:c:{db}", "-3", "#"});
  std::vector<Asked> both = {{.charges = {{.rule = "r",
                                           .identity = "neighbour",
                                           .quota = &bucket,
                                           .on_failure = OnFailure::kClosed}}},
                             {.charges = {Lease(leases, "x")}, .kind = Call::Kind::kPeek}};
  node.Ask(both);
  EXPECT_EQ(both[0].decisions[0].decided_by, DecidedBy::kStore);
}

// A score that is no whole number comes back as a double: `badtypes`, and a new connection for all.
TEST(RegressionTest, LeasesThatEndAtAFractionAreHealed) {
  RedisServer redis;
  Node node{Node::To(redis)};
  const Quota quota = Of({Algorithm::kConcurrency, 2, 1h});
  const auto clock = std::chrono::system_clock::now().time_since_epoch();
  const auto now = std::chrono::duration_cast<std::chrono::microseconds>(clock).count();
  (void)redis.Text({"ZADD", "tg:cc:c:{db}", std::to_string(now + 60'000'000) + ".5", "one",
                    std::to_string(now + 90'000'000), "two"});
  EXPECT_EQ(node.Apply(Lease(quota, "three")).decisions[0].decided_by, DecidedBy::kStore);
  EXPECT_EQ(node.guard().redis_stats().connections.get(), 1u);
}
TEST(RegressionTest, LogsWithTimesThatAreFractionsAreHealed) {
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
  EXPECT_EQ(node.guard().redis_stats().connections.get(), 1u);
}

// A denial and, behind it in the same batch, the refund: is what was denied before kept after it?
TEST(RegressionTest, ARefundInTheBatchOfADenialInvalidatesIt) {
  RedisServer redis;
  Node node{Node::To(redis)};
  node.WaitUntilReady();
  const Quota quota = Of({.limit = 1, .period = 1h});
  for (int i = 0; i < 20; ++i) {
    const std::string identity = std::to_string(i);
    const Charge charge{"r", identity, &quota};
    ASSERT_TRUE(node.Apply(charge).allowed);
    std::vector<Asked> both = {{.charges = {charge}},
                               {.charges = {charge},
                                .kind = Call::Kind::kRefund,
                                .refund = {.id = "x", .charged_at = {}, .age = {}}}};
    node.Ask(both);
    ASSERT_FALSE(both[0].allowed);
    ASSERT_EQ(both[1].done, Done::kApplied);
    // Whatever was published has come by then.
    std::this_thread::sleep_for(50ms);
    (void)node.Ask({.charges = {{"sync", "x", &quota}}, .kind = Call::Kind::kPeek});
    const Asked again = node.Apply(charge);
    ASSERT_TRUE(again.allowed) << i << ": one is there; decided_by "
                               << static_cast<int>(again.decisions[0].decided_by);
  }
}

/// Calls of all kinds that start others when they finish, while the wire misbehaves: each is
/// finished exactly once. For the sanitizers.
struct Storm {
  struct One : Call {
    Storm* storm = nullptr;
    std::array<Charge, 4> own;
    std::array<Decision, 4> told;
    std::string lease;
    std::string id;
    int open = 0;
  };
  Storm(Guard& of, unsigned seed) : guard(of), random(seed) {}

  void Begin(One& one) {
    if (left == 0) return;
    --left;
    ++started;
    const auto kind = random() % 12;
    one.kind = kind < 6 ? Call::Kind::kApply : static_cast<Call::Kind>(kind - 5);
    const bool leases = one.kind == Call::Kind::kRenew || one.kind == Call::Kind::kRelease ||
                        (one.kind == Call::Kind::kApply && random() % 4 == 0);
    const std::size_t count = 1 + random() % 4;
    one.lease = "l" + std::to_string(random() % 20);
    one.id = std::to_string(random() % 50);
    for (std::size_t i = 0; i < count; ++i) {
      const auto which = leases ? 5 : random() % 5;
      one.own[i] = {.rule = rules[i],
                    .identity = identities[random() % 6],
                    .quota = &quotas[which + (random() % 3 == 0 ? 6 : 0)],
                    .cost = static_cast<std::int64_t>(1 + random() % 3),
                    .mode = random() % 5 == 0 ? Mode::kShadow : Mode::kEnforce,
                    .lease = leases ? std::string_view(one.lease) : std::string_view{},
                    .on_failure = static_cast<OnFailure>(random() % 3)};
    }
    one.storm = this;
    one.charges = std::span(one.own).first(count);
    one.decisions = std::span(one.told).first(count);
    one.refund = {.id = one.id, .charged_at = {}, .age = {}};
    one.open = 1;
    one.finished = [](Call& call) noexcept {
      One& mine = static_cast<One&>(call);
      Storm& of = *mine.storm;
      if (--mine.open != 0) ++of.twice;
      ++of.finished;
      if (mine.error) ++of.errors;
      // Now, as a pipelined connection does, or in the next round.
      if (of.random() % 3 == 0 && of.depth < 8) {
        ++of.depth;
        of.Begin(mine);
        --of.depth;
      } else {
        of.idle.push_back(&mine);
      }
    };
    guard.Start(one);
  }
  void Round() {
    auto all = std::exchange(idle, {});
    for (One* const one : all) Begin(*one);
  }

  Guard& guard;
  std::mt19937 random;
  const std::array<Quota, 12> quotas = {
      Of({Algorithm::kTokenBucket, 50, 1s}), Of({Algorithm::kSlidingLog, 50, 1s}),
      Of({Algorithm::kSlidingWindow, 50, 1s}), Of({Algorithm::kFixedWindow, 50, 1s}),
      Of({Algorithm::kGcra, 50, 1s}), Of({Algorithm::kConcurrency, 10, 1s}),
      // The same keys, other quotas.
      Of({Algorithm::kTokenBucket, 7, 300ms}), Of({Algorithm::kSlidingLog, 7, 300ms}),
      Of({Algorithm::kSlidingWindow, 7, 300ms}), Of({Algorithm::kFixedWindow, 7, 300ms}),
      Of({Algorithm::kGcra, 7, 300ms}), Of({Algorithm::kConcurrency, 3, 300ms})};
  const std::array<std::string, 6> identities = {"a", "b", "c", "d", "e", "f"};
  const std::array<std::string, 4> rules = {"r0", "r1", "r2", "r3"};
  std::vector<One*> idle;
  int depth = 0;
  int left = 100'000'000;
  int started = 0;
  int finished = 0;
  int twice = 0;
  int errors = 0;
};

TEST(RegressionTest, EveryCallIsFinishedOnceInAStorm) {
  RedisServer redis;
  FaultProxy proxy(redis.port());
  Guard::Options options = Node::To(proxy.port());
  options.redis.deadline = 8ms;
  options.redis.connect_timeout = 30ms;
  options.nodes = [] { return 3; };
  Node node{options};
  node.WaitUntilReady();
  std::unique_ptr<Storm> storm;
  std::vector<std::unique_ptr<Storm::One>> ones;
  node.Run([&](Guard& guard) {
    storm = std::make_unique<Storm>(guard, 7);
    for (int i = 0; i < 300; ++i) {
      ones.push_back(std::make_unique<Storm::One>());
      storm->idle.push_back(ones.back().get());
    }
  });
  std::mt19937 random(3);
  const auto until = SteadyClock::now() + 2s;
  bool over = false;
  for (int i = 0; !over && SteadyClock::now() < until; ++i) {
    node.Run([&](Guard&) {
      storm->Round();
      over = storm->left == 0;
    });
    std::this_thread::sleep_for(500us);
    if (i % 100 != 0) continue;
    switch (i % 200 == 0 ? random() % 10 : 99) {
      case 0:
        proxy.Set({.kind = Fault::Kind::kDelayReplies, .delay = 10ms});
        break;
      case 1:
        proxy.Set({.kind = Fault::Kind::kDropReplies, .share = 0.2});
        break;
      case 2:
        proxy.Set({.kind = Fault::Kind::kCutReplies, .bytes = random() % 200, .share = 0.3});
        break;
      case 3:
        proxy.Set({.kind = Fault::Kind::kGarble, .share = 0.3});
        break;
      case 4:
        proxy.Set({.kind = Fault::Kind::kStall});
        break;
      case 5:
        proxy.CutAll();
        break;
      case 6:
        (void)redis.Text({"SCRIPT", "FLUSH"});
        break;
      case 7:
        (void)redis.Text({"FLUSHALL"});
        break;
      default:
        proxy.Pass();
    }
  }
  proxy.Pass();
  node.Run([&](Guard&) { storm->left = 0; });
  std::this_thread::sleep_for(300ms);
  node.Run([&](Guard& guard) {
    EXPECT_EQ(storm->started, storm->finished);
    EXPECT_EQ(storm->twice, 0);
    EXPECT_EQ(storm->errors, 0);
    EXPECT_EQ(guard.redis_stats().waiting.get(), 0u);
    std::printf("%d calls, %llu batches, %llu connections, %llu answered by Redis\n",
                storm->started, static_cast<unsigned long long>(guard.redis_stats().batches.get()),
                static_cast<unsigned long long>(guard.redis_stats().connections.get()),
                static_cast<unsigned long long>(guard.redis_stats().calls.get()));
  });
}

/// What is answered makes sense to us, whoever leaves before or after it is sent.
TEST(RegressionTest, NoReplyOfARedisThatIsWellIsRefused) {
  for (const auto deadline : {3ms, 8ms, 5000ms}) {
    RedisServer redis;
    FaultProxy proxy(redis.port());
    Guard::Options options = Node::To(proxy.port());
    options.redis.deadline = deadline;
    Node node{options};
    node.WaitUntilReady();
    if (deadline < 1s) proxy.Set({.kind = Fault::Kind::kDelayReplies, .delay = 2ms});
    std::unique_ptr<Storm> storm;
    std::vector<std::unique_ptr<Storm::One>> ones;
    node.Run([&](Guard& guard) {
      storm = std::make_unique<Storm>(guard, 11);
      for (int i = 0; i < 300; ++i) {
        ones.push_back(std::make_unique<Storm::One>());
        storm->idle.push_back(ones.back().get());
      }
    });
    const auto until = SteadyClock::now() + 1s;
    while (SteadyClock::now() < until) {
      node.Run([&](Guard&) { storm->Round(); });
      std::this_thread::sleep_for(300us);
    }
    node.Run([&](Guard&) { storm->left = 0; });
    for (bool over = false; !over;) {
      node.Run([&](Guard&) { over = storm->started == storm->finished; });
    }
    node.Run([&](Guard& guard) {
      std::uint64_t refused = 0;
      std::uint64_t timeouts = 0;
      for (const auto& decided_by : guard.stats().failures) {
        refused += decided_by[static_cast<std::size_t>(redis::Reason::kBadResponse)].get();
        refused += decided_by[static_cast<std::size_t>(redis::Reason::kBadTypes)].get();
        timeouts += decided_by[static_cast<std::size_t>(redis::Reason::kTimeout)].get();
      }
      EXPECT_EQ(refused, 0u);
      EXPECT_EQ(
          guard.redis_stats().errors[static_cast<std::size_t>(redis::ErrorKind::kOther)].get(), 0u);
      EXPECT_EQ(storm->started, storm->finished);
      std::printf("%d calls, %llu answered by Redis, %llu timeouts\n", storm->started,
                  static_cast<unsigned long long>(guard.redis_stats().calls.get()),
                  static_cast<unsigned long long>(timeouts));
    });
  }
}

/// So many callers, each asking again as soon as it was answered, each time for another key: how
/// many answers of Redis's come a second.
double Goodput(RedisServer& redis, int callers, std::chrono::microseconds deadline) {
  struct One : Call {
    Guard* guard = nullptr;
    std::atomic<bool>* over = nullptr;
    std::uint64_t* answered = nullptr;
    std::vector<One*>* idle = nullptr;
    std::string identity;
    std::array<Charge, 1> own;
    std::array<Decision, 1> told;
  };
  static const Quota quota = Of({.limit = 5, .period = 1s});
  Guard::Options options = Node::To(redis);
  options.redis.deadline = deadline;
  std::atomic<bool> over = false;
  std::uint64_t answered = 0;
  std::uint64_t number = 0;
  std::vector<std::unique_ptr<One>> ones;
  std::vector<One*> idle;
  Node node{options};
  node.WaitUntilReady();
  node.Run([&](Guard& guard) {
    for (int i = 0; i < callers; ++i) {
      One& one = *ones.emplace_back(std::make_unique<One>());
      one.guard = &guard;
      one.over = &over;
      one.answered = &answered;
      one.idle = &idle;
      one.charges = one.own;
      one.decisions = one.told;
      one.finished = [](Call& call) noexcept {
        One& mine = static_cast<One&>(call);
        if (mine.told[0].decided_by == DecidedBy::kStore) ++*mine.answered;
        mine.idle->push_back(&mine);
      };
      idle.push_back(&one);
    }
  });
  const auto began = SteadyClock::now();
  while (SteadyClock::now() - began < 500ms) {
    node.Run([&](Guard& guard) {
      for (One* const one : std::exchange(idle, {})) {
        one->identity = std::to_string(number++ * 7919 % 1'000'003);
        one->own[0] = {.rule = "r",
                       .identity = one->identity,
                       .quota = &quota,
                       .on_failure = OnFailure::kClosed};
        guard.Start(*one);
      }
    });
    std::this_thread::sleep_for(100us);
  }
  double rate = 0;
  node.Run([&](Guard&) { rate = static_cast<double>(answered) * 2; });
  return rate;
}

// Waiting calls are sent in the order in which they came, however little time they have left: with
// more of them than Redis answers within the deadline, all are answered too late.
TEST(RegressionTest, MoreCallsThanRedisCanAnswerDoNotKeepItFromAnsweringAny) {
  if (kSanitized) GTEST_SKIP() << "sanitizers take time and memory of their own";
  RedisServer redis;
  const double most = Goodput(redis, 500, 5s);
  for (const int callers : {500, 1000, 2000, 4000, 8000}) {
    const double rate = Goodput(redis, callers, 20ms);
    std::printf("%d callers, 20 ms: %.0f answers a second; without a deadline %.0f\n", callers,
                rate, most);
    EXPECT_GT(rate, most / 4) << callers;
  }
}

// What Redis says of the number of nodes is not bounded. For the sanitizers.
TEST(RegressionTest, AnyNumberOfNodesHasAShare) {
  for (const std::int64_t nodes : {std::int64_t{10'000'000}, INT64_MAX / 2, INT64_MAX}) {
    for (const Algorithm algorithm : {Algorithm::kTokenBucket, Algorithm::kFixedWindow}) {
      const Quota share = ShareOf(Of({algorithm, 5, 1h}), nodes);
      EXPECT_EQ(share.capacity(), 1);
      EXPECT_GE(share.period(), 1h);
    }
  }
}

// What Lua checks (whole numbers within 2^53) C++ takes as it comes. For the sanitizers.
TEST(RegressionTest, ARepliesNumbersMayBeAnything) {
  const redis::KeyNames names("tg:");
  const Fingerprinter fingerprinter;
  const std::array<std::int64_t, 4> extremes = {INT64_MIN, -1, 1'800'000'000'000'000, INT64_MAX};
  for (const Algorithm algorithm : {Algorithm::kTokenBucket, Algorithm::kGcra,
                                    Algorithm::kFixedWindow, Algorithm::kSlidingWindow}) {
    const Quota quota = Of({algorithm, 5, 1h});
    for (int way = 0; way < 256; ++way) {
      redis::Batch batch(names, fingerprinter);
      const std::array<Charge, 1> charges = {Charge{"r", "a", &quota}};
      std::array<Decision, 1> told;
      Call call;
      call.charges = charges;
      call.decisions = told;
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

// A Redis that answers everything, but each time a little too late: nobody is answered by it,
// everybody waits for the deadline and is charged, and the breaker takes each reply for a success.
TEST(RegressionTest, ABreakerOpensWhenEveryReplyIsTooLate) {
  RedisServer redis;
  FaultProxy proxy(redis.port());
  Guard::Options options = Node::To(proxy.port());
  options.redis.deadline = 20ms;
  Node node{options};
  node.WaitUntilReady();
  proxy.Set({.kind = Fault::Kind::kDelayReplies, .delay = 30ms});
  const Quota quota = Of({.limit = 1'000'000, .period = 1s});
  int asked = 0;
  int answered = 0;
  const auto until = SteadyClock::now() + 1s;
  while (SteadyClock::now() < until) {
    const Asked one = node.Apply(
        {.rule = "r", .identity = "a", .quota = &quota, .on_failure = OnFailure::kClosed});
    ++asked;
    if (one.decisions[0].decided_by == DecidedBy::kStore) ++answered;
  }
  ASSERT_LE(answered, 1);
  std::uint64_t at_once = 0;
  for (const auto& decided_by : node.guard().stats().failures) {
    at_once += decided_by[static_cast<std::size_t>(redis::Reason::kBreakerOpen)].get();
  }
  EXPECT_GT(at_once, 0u) << asked << " calls waited for their deadline in vain";
}

// Until the first connection stands, batches whose callers have all left stay in the queue.
TEST(RegressionTest, CallsThatHaveLeftCostNoMemoryWhileItConnects) {
  if (kSanitized) GTEST_SKIP() << "sanitizers take time and memory of their own";
  RedisServer redis;
  redis.Signal(SIGSTOP);  // The system accepts; nobody greets.
  Guard::Options options = Node::To(redis);
  options.redis.deadline = 1ms;
  options.redis.connect_timeout = 10s;
  const auto resident = [] {
    std::ifstream in("/proc/self/statm");
    std::size_t size = 0;
    std::size_t pages = 0;
    in >> size >> pages;
    return pages * 4096 >> 20;
  };
  Node node{options};
  const Quota quota = Of({.limit = 5, .period = 1h});
  std::vector<std::string> names;
  for (int i = 0; i < 1000; ++i) names.push_back("name-" + std::to_string(i));
  const auto ask = [&] {
    std::vector<Asked> many;
    for (const std::string& name : names) many.push_back({.charges = {{"r", name, &quota}}});
    node.Ask(many);
  };
  for (int i = 0; i < 10; ++i) ask();
  const std::size_t before = resident();
  const auto until = SteadyClock::now() + 1s;
  int rounds = 0;
  for (; SteadyClock::now() < until; ++rounds) ask();
  EXPECT_LT(resident(), before + 20) << rounds << "000 calls, " << before << " MiB before";
  redis.Signal(SIGCONT);
}

// A reply that grew was parsed from its beginning with every piece that came, so only short ones
// could be allowed.
TEST(RegressionTest, AnArrayWithoutAnEndCostsNoMoreThanItsBytes) {
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

}  // namespace
}  // namespace tidegate::redis_test
