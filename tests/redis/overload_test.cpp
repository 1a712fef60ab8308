// SPDX-License-Identifier: Apache-2.0
// Tests with a Redis that is busy, slow or out of memory: what callers get, and what waiting calls
// cost.
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

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

using namespace std::chrono_literals;
using SteadyClock = std::chrono::steady_clock;

/// Calls of all kinds that start further calls when they finish, while the connection misbehaves.
/// Counts calls that finish twice. Run under the sanitizers.
struct Storm {
  struct One : Call {
    Storm* storm = nullptr;
    std::array<Charge, 4> own;
    std::array<Decision, 4> answers;
    std::string lease;
    std::string id;
    int open = 0;
  };
  Storm(RedisStore& of, unsigned seed) : redis_store(of), random(seed) {}

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
    one.decisions = std::span(one.answers).first(count);
    one.refund = {.id = one.id, .charged_at = {}, .age = {}};
    one.open = 1;
    one.finished = [](Call& call) noexcept {
      One& mine = static_cast<One&>(call);
      Storm& of = *mine.storm;
      if (--mine.open != 0) ++of.twice;
      ++of.finished;
      if (mine.error) ++of.errors;
      // Starts the next call at once, as a pipelined connection does, or in the next round.
      if (of.random() % 3 == 0 && of.depth < 8) {
        ++of.depth;
        of.Begin(mine);
        --of.depth;
      } else {
        of.idle.push_back(&mine);
      }
    };
    redis_store.Start(one);
  }
  void Round() {
    auto all = std::exchange(idle, {});
    for (One* const one : all) Begin(*one);
  }

  RedisStore& redis_store;
  std::mt19937 random;
  const std::array<Quota, 12> quotas = {
      Of({Algorithm::kTokenBucket, 50, 1s}), Of({Algorithm::kSlidingLog, 50, 1s}),
      Of({Algorithm::kSlidingWindow, 50, 1s}), Of({Algorithm::kFixedWindow, 50, 1s}),
      Of({Algorithm::kGcra, 50, 1s}), Of({Algorithm::kConcurrency, 10, 1s}),
      // The same algorithms with other quotas for the same keys.
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

/// Runs `callers` callers; each sends its next call, for another key, as soon as the last one is
/// answered. Returns the decisions of Redis per second.
double Goodput(RedisServer& redis, int callers, std::chrono::microseconds deadline) {
  struct One : Call {
    RedisStore* redis_store = nullptr;
    std::atomic<bool>* over = nullptr;
    std::uint64_t* answered = nullptr;
    std::vector<One*>* idle = nullptr;
    std::string identity;
    std::array<Charge, 1> own;
    std::array<Decision, 1> answers;
  };
  static const Quota quota = Of({.limit = 5, .period = 1s});
  RedisStore::Options options = Node::To(redis);
  options.redis.deadline = deadline;
  std::atomic<bool> over = false;
  std::uint64_t answered = 0;
  std::uint64_t number = 0;
  std::vector<std::unique_ptr<One>> ones;
  std::vector<One*> idle;
  Node node{options};
  node.WaitUntilReady();
  node.Run([&](RedisStore& redis_store) {
    for (int i = 0; i < callers; ++i) {
      One& one = *ones.emplace_back(std::make_unique<One>());
      one.redis_store = &redis_store;
      one.over = &over;
      one.answered = &answered;
      one.idle = &idle;
      one.charges = one.own;
      one.decisions = one.answers;
      one.finished = [](Call& call) noexcept {
        One& mine = static_cast<One&>(call);
        if (mine.answers[0].decided_by == DecidedBy::kStore) ++*mine.answered;
        mine.idle->push_back(&mine);
      };
      idle.push_back(&one);
    }
  });
  const auto began = SteadyClock::now();
  while (SteadyClock::now() - began < 500ms) {
    node.Run([&](RedisStore& redis_store) {
      for (One* const one : std::exchange(idle, {})) {
        one->identity = std::to_string(number++ * 7919 % 1'000'003);
        one->own[0] = {.rule = "r",
                       .identity = one->identity,
                       .quota = &quota,
                       .on_failure = OnFailure::kClosed};
        redis_store.Start(*one);
      }
    });
    std::this_thread::sleep_for(100us);
  }
  double rate = 0;
  node.Run([&](RedisStore&) { rate = static_cast<double>(answered) * 2; });
  return rate;
}

// A probe that meets BUSY returns to the queue while the breaker is half-open and `probing_` is
// set. Then no call is in flight, so nothing would ever clear `probing_`.
TEST(OverloadTest, ClosesBreakerAfterProbeMeetsBusyRedis) {
  RedisServer redis({.arguments = {"--busy-reply-threshold", "10"}});
  RedisStore::Options options = Node::To(redis);
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
  EXPECT_TRUE(answered) << "no decision five seconds after Redis recovered; breaker state "
                        << node.redis_store().redis_stats().breaker.get() << ", connected "
                        << node.redis_store().redis_stats().connected.get();
}

// Every reply of Redis arrives slightly after the deadline: no call gets a decision, but every
// caller waits for the deadline and is charged. The breaker must not count a late reply as a
// success.
TEST(OverloadTest, OpensBreakerWhenEveryReplyIsLate) {
  RedisServer redis;
  FaultProxy proxy(redis.port());
  RedisStore::Options options = Node::To(proxy.port());
  options.redis.deadline = 20ms;
  Node node{options};
  node.WaitUntilReady();
  proxy.Set({.kind = Fault::Kind::kDelayReplies, .delay = 30ms});
  const Quota quota = Of({.limit = 1'000'000, .period = 1s});
  int calls = 0;
  int answered = 0;
  const auto until = SteadyClock::now() + 1s;
  while (SteadyClock::now() < until) {
    const CallResult one = node.Apply(
        {.rule = "r", .identity = "a", .quota = &quota, .on_failure = OnFailure::kClosed});
    ++calls;
    if (one.decisions[0].decided_by == DecidedBy::kStore) ++answered;
  }
  ASSERT_LE(answered, 1);
  std::uint64_t at_once = 0;
  for (const auto& decided_by : node.redis_store().stats().failures) {
    at_once += decided_by[static_cast<std::size_t>(redis::Reason::kBreakerOpen)].get();
  }
  EXPECT_GT(at_once, 0u) << calls << " calls waited for their deadline";
}

// If waiting calls were sent in their order of arrival, however little time they have left, then
// with more calls than Redis can answer within the deadline, every reply would be late.
TEST(OverloadTest, StillAnswersWhatRedisCanServe) {
  if (kSanitized) GTEST_SKIP() << "the sanitizers distort time and memory";
  RedisServer redis;
  const double most = Goodput(redis, 500, 5s);
  for (const int callers : {500, 1000, 2000, 4000, 8000}) {
    const double rate = Goodput(redis, callers, 20ms);
    std::printf("%d callers, 20 ms: %.0f answers a second; without a deadline %.0f\n", callers,
                rate, most);
    EXPECT_GT(rate, most / 4) << callers;
  }
}

// docs/redis.md: "With memory used up, denials are still answered and new charges fall to the
// failure policy." Three such failures open the breaker for all calls, including releases of
// leases.
TEST(OverloadTest, ReleasesLeasesWhenRedisIsOutOfMemory) {
  RedisServer redis;
  RedisStore::Options options = Node::To(redis);
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

// While the first connection is not yet established, batches whose calls have all timed out must
// not stay in the queue.
TEST(OverloadTest, KeepsNoMemoryForExpiredCallsWhileConnecting) {
  if (kSanitized) GTEST_SKIP() << "the sanitizers distort time and memory";
  RedisServer redis;
  redis.Signal(SIGSTOP);  // The system accepts the connection; Redis does not reply.
  RedisStore::Options options = Node::To(redis);
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
    std::vector<CallResult> many;
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

TEST(OverloadTest, FinishesEveryCallOnce) {
  RedisServer redis;
  FaultProxy proxy(redis.port());
  RedisStore::Options options = Node::To(proxy.port());
  options.redis.deadline = 8ms;
  options.redis.connect_timeout = 30ms;
  options.nodes = [] { return 3; };
  Node node{options};
  node.WaitUntilReady();
  std::unique_ptr<Storm> storm;
  std::vector<std::unique_ptr<Storm::One>> ones;
  node.Run([&](RedisStore& redis_store) {
    storm = std::make_unique<Storm>(redis_store, 7);
    for (int i = 0; i < 300; ++i) {
      ones.push_back(std::make_unique<Storm::One>());
      storm->idle.push_back(ones.back().get());
    }
  });
  std::mt19937 random(3);
  const auto until = SteadyClock::now() + 2s;
  bool over = false;
  for (int i = 0; !over && SteadyClock::now() < until; ++i) {
    node.Run([&](RedisStore&) {
      storm->Round();
      over = storm->left == 0;
    });
    std::this_thread::sleep_for(500us);
    if (i % 100 != 0) continue;
    switch (i % 200 == 0 ? random() % 10 : 99) {
      case 0: proxy.Set({.kind = Fault::Kind::kDelayReplies, .delay = 10ms}); break;
      case 1: proxy.Set({.kind = Fault::Kind::kDropReplies, .share = 0.2}); break;
      case 2:
        proxy.Set({.kind = Fault::Kind::kCutReplies, .bytes = random() % 200, .share = 0.3});
        break;
      case 3: proxy.Set({.kind = Fault::Kind::kGarble, .share = 0.3}); break;
      case 4: proxy.Set({.kind = Fault::Kind::kStall}); break;
      case 5: proxy.CutAll(); break;
      case 6: (void)redis.Text({"SCRIPT", "FLUSH"}); break;
      case 7: (void)redis.Text({"FLUSHALL"}); break;
      default: proxy.Pass();
    }
  }
  proxy.Pass();
  node.Run([&](RedisStore&) { storm->left = 0; });
  std::this_thread::sleep_for(300ms);
  node.Run([&](RedisStore& redis_store) {
    EXPECT_EQ(storm->started, storm->finished);
    EXPECT_EQ(storm->twice, 0);
    EXPECT_EQ(storm->errors, 0);
    EXPECT_EQ(redis_store.redis_stats().waiting.get(), 0u);
    std::printf("%d calls, %llu batches, %llu connections, %llu answered by Redis\n",
                storm->started,
                static_cast<unsigned long long>(redis_store.redis_stats().batches.get()),
                static_cast<unsigned long long>(redis_store.redis_stats().connections.get()),
                static_cast<unsigned long long>(redis_store.redis_stats().calls.get()));
  });
}

/// The node accepts every reply, whichever calls time out before or after they are sent.
TEST(OverloadTest, AcceptsEveryReplyOfAHealthyRedis) {
  for (const auto deadline : {3ms, 8ms, 5000ms}) {
    RedisServer redis;
    FaultProxy proxy(redis.port());
    RedisStore::Options options = Node::To(proxy.port());
    options.redis.deadline = deadline;
    Node node{options};
    node.WaitUntilReady();
    if (deadline < 1s) proxy.Set({.kind = Fault::Kind::kDelayReplies, .delay = 2ms});
    std::unique_ptr<Storm> storm;
    std::vector<std::unique_ptr<Storm::One>> ones;
    node.Run([&](RedisStore& redis_store) {
      storm = std::make_unique<Storm>(redis_store, 11);
      for (int i = 0; i < 300; ++i) {
        ones.push_back(std::make_unique<Storm::One>());
        storm->idle.push_back(ones.back().get());
      }
    });
    const auto until = SteadyClock::now() + 1s;
    while (SteadyClock::now() < until) {
      node.Run([&](RedisStore&) { storm->Round(); });
      std::this_thread::sleep_for(300us);
    }
    node.Run([&](RedisStore&) { storm->left = 0; });
    for (bool over = false; !over;) {
      node.Run([&](RedisStore&) { over = storm->started == storm->finished; });
    }
    node.Run([&](RedisStore& redis_store) {
      std::uint64_t refused = 0;
      std::uint64_t timeouts = 0;
      for (const auto& decided_by : redis_store.stats().failures) {
        refused += decided_by[static_cast<std::size_t>(redis::Reason::kBadResponse)].get();
        refused += decided_by[static_cast<std::size_t>(redis::Reason::kBadTypes)].get();
        timeouts += decided_by[static_cast<std::size_t>(redis::Reason::kTimeout)].get();
      }
      EXPECT_EQ(refused, 0u);
      EXPECT_EQ(redis_store.redis_stats()
                    .errors[static_cast<std::size_t>(redis::ErrorKind::kOther)]
                    .get(),
                0u);
      EXPECT_EQ(storm->started, storm->finished);
      std::printf("%d calls, %llu answered by Redis, %llu timeouts\n", storm->started,
                  static_cast<unsigned long long>(redis_store.redis_stats().calls.get()),
                  static_cast<unsigned long long>(timeouts));
    });
  }
}

}  // namespace
}  // namespace tidegate::redis_test
