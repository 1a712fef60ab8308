// SPDX-License-Identifier: Apache-2.0
// The service on a real Redis, as clients and operators see it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <csignal>
#include <map>
#include <mutex>
#include <sstream>
#include <thread>

#include "redis/documented_acl.hpp"
#include "redis/redis_server.hpp"
#include "service/captured_stderr.hpp"
#include "service/fixture.hpp"
#include "support/ports.hpp"
#include "support/wait.hpp"

namespace tidegate::redis_test {
namespace {

using namespace std::chrono_literals;
using service::ByRule;
using service::HttpClient;
using service::HttpResponse;
using service::Service;
using testing::HasSubstr;

std::string Yaml(int port, std::string_view store, std::string_view rules) {
  return "store: { url: \"redis://127.0.0.1:" + std::to_string(port) + "\", " + std::string(store) +
         " }\nrules:\n" + std::string(rules);
}
constexpr std::string_view kRules = R"(
  - { id: open, per: header:x-user, limit: 2/h, on_failure: open }
  - { id: closed, per: header:x-user, limit: 2/h, on_failure: closed }
  - { id: local, per: header:x-user, limit: 4/h, on_failure: local }
)";

std::string DecidedBy(const HttpResponse& answer) {
  const auto json = answer.Json();
  const auto* const decided_by = json.if_contains("decided_by");
  return decided_by != nullptr ? std::string(decided_by->as_string()) : "none";
}

/// Sends a decide request on a new connection, which any reactor may accept.
HttpResponse DecideOnNewConnection(Service& service, const std::string& body) {
  HttpClient client(service.api());
  client.Send(service::Post("/v1/decide", body));
  return client.Read();
}

HttpResponse Ready(Service& service) {
  HttpClient client(service.admin());
  client.Send(service::Get("/readyz"));
  return client.Read();
}

TEST(RedisServerTest, DecidesInRedis) {
  RedisServer redis;
  Service service(Yaml(redis.port(), "on_failure: closed, deadline: 5s", kRules));
  EXPECT_EQ(DecidedBy(service.Decide(ByRule("open", "alice"))), "store");
  EXPECT_EQ(service.Decide(ByRule("open", "alice")).status, 200);
  EXPECT_EQ(service.Decide(ByRule("open", "alice")).status, 429);
  const HttpResponse denied = service.Decide(ByRule("open", "alice"));
  EXPECT_EQ(DecidedBy(denied), "cache");
  EXPECT_FALSE(denied.Has("X-Tidegate-Decided-By"));
  EXPECT_EQ(service.Metric("tidegate_cache_hits_total"), 1);
  EXPECT_EQ(service.Metric("tidegate_redis_connected"), 1);
  EXPECT_TRUE(test::WaitUntil([&] { return service.Metric("tidegate_fleet_nodes") == 1; }));
  EXPECT_EQ(Ready(service).status, 200);
  EXPECT_THAT(redis.Text({"KEYS", "tg:tb:*"}), HasSubstr("tg:tb:open:{header:x-user=~"));
}

TEST(RedisServerTest, ConnectsToRedisByHostname) {
  RedisServer redis;
  const std::string url = "redis://localhost:" + std::to_string(redis.port());
  Service service("store: { url: \"" + url + "\", on_failure: closed, deadline: 5s }\nrules:\n" +
                  std::string(kRules));
  EXPECT_EQ(DecidedBy(service.Decide(ByRule("open", "alice"))), "store");
  Service lost("store: { url: \"redis://no-such-host.invalid\", on_failure: closed }\nrules:\n" +
               std::string(kRules));
  EXPECT_EQ(lost.Decide(ByRule("open", "alice")).status, 200);
}

TEST(RedisServerTest, AppliesPoliciesWithoutRedis) {
  const int closed_port = test::FreePort();
  Service service(Yaml(closed_port, "on_failure: closed, connect_timeout: 10ms", kRules));
  EXPECT_EQ(Ready(service).status, 503) << "a node that never reached Redis must not be ready";
  const HttpResponse open = service.Decide(ByRule("open", "alice"));
  EXPECT_EQ(open.status, 200);
  EXPECT_EQ(DecidedBy(open), "open");
  EXPECT_EQ(open.Field("X-Tidegate-Decided-By"), "open");
  EXPECT_FALSE(open.Has("RateLimit"));
  const HttpResponse closed = service.Decide(ByRule("closed", "alice"));
  EXPECT_EQ(closed.status, 503);
  EXPECT_EQ(DecidedBy(closed), "closed");
  EXPECT_EQ(closed.Field("Retry-After"), "1");
  for (int i = 0; i < 4; ++i) EXPECT_EQ(service.Decide(ByRule("local", "alice")).status, 200);
  const HttpResponse local = service.Decide(ByRule("local", "alice"));
  EXPECT_EQ(local.status, 429);
  EXPECT_EQ(local.Field("X-Tidegate-Decided-By"), "local");
  const std::string metrics = service.Metrics();
  EXPECT_THAT(metrics, HasSubstr("tidegate_failures_total{decided_by=\"local\",reason="));
  double failures = 0;
  for (const std::string reason : {"rediserror", "timeout", "breaker_open"}) {
    failures +=
        service.Metric("tidegate_failures_total{decided_by=\"local\",reason=\"" + reason + "\"}");
  }
  EXPECT_EQ(failures, 5);
  // Each metric counts one decision; the peek of the readiness check is not counted.
  for (const std::string name : {"ratelimit_failopen_total", "ratelimit_failclosed_total"}) {
    double count = 0;
    for (const std::string reason : {"rediserror", "timeout", "breaker_open"}) {
      std::string metric = name;
      metric.append("{reason=\"").append(reason).append("\"}");
      count += service.Metric(metric);
    }
    EXPECT_EQ(count, 1) << name;
  }
}

TEST(RedisServerTest, StaysReadyWhenRedisFailsLater) {
  RedisServer redis;
  Service service(Yaml(redis.port(), "on_failure: open", kRules));
  EXPECT_TRUE(test::WaitUntil([&] { return Ready(service).status == 200; }));
  redis.Kill();
  EXPECT_TRUE(test::WaitUntil(
      [&] { return Ready(service).body.find("does not answer") != std::string::npos; }));
  EXPECT_EQ(Ready(service).status, 200);
  redis.Start();
  EXPECT_TRUE(test::WaitUntil([&] { return Ready(service).body == "ready\n"; }));
  EXPECT_EQ(DecidedBy(service.Decide(ByRule("open", "alice"))), "store");
}

/// Starts a node, sends decide requests, and kills or suspends Redis. Returns the node's first
/// /readyz response after that. `probed`: whether the test also requested /readyz before.
HttpResponse FirstReadinessInOutage(bool probed, int signal) {
  RedisServer redis;
  Service service(Yaml(redis.port(), "on_failure: open", kRules), 2);
  if (probed) {
    EXPECT_TRUE(test::WaitUntil([&] { return Ready(service).status == 200; }));
  }
  for (int i = 0; i < 8; ++i) {
    EXPECT_TRUE(test::WaitUntil([&] {
      return DecidedBy(DecideOnNewConnection(service, ByRule("open", std::to_string(i)))) ==
             "store";
    }));
  }
  signal == SIGKILL ? redis.Kill() : redis.Signal(signal);
  EXPECT_TRUE(
      test::WaitUntil([&] { return DecidedBy(service.Decide(ByRule("open", "bob"))) == "open"; }));
  HttpResponse answer = Ready(service);
  if (signal == SIGSTOP) redis.Signal(SIGCONT);
  return answer;
}

TEST(ReadinessTest, StaysReadyInOutageWithoutEarlierProbe) {
  for (const int signal : {SIGKILL, SIGSTOP}) {
    const HttpResponse probed = FirstReadinessInOutage(true, signal);
    const HttpResponse served = FirstReadinessInOutage(false, signal);
    EXPECT_EQ(probed.status, 200) << probed.body;
    EXPECT_EQ(served.status, probed.status) << served.body;
    EXPECT_EQ(served.body, probed.body);
  }
}

/// Returns the lines of a log that contain `text`.
std::vector<std::string> LinesWith(const std::string& log, std::string_view text) {
  std::vector<std::string> lines;
  std::istringstream in(log);
  for (std::string line; std::getline(in, line);) {
    if (line.contains(text)) lines.push_back(line);
  }
  return lines;
}

/// Returns the number in a field of a log line, or -1.
long FieldOf(const std::string& line, const std::string& field) {
  const std::size_t at = line.find("  " + field + "=");
  return at == std::string::npos ? -1 : std::stol(line.substr(at + field.size() + 3));
}

/// Sends decide requests from four threads, each on a new connection, so that all reactors get
/// some. Returns the number of responses by `decided_by`.
std::map<std::string, long> DecideInParallel(Service& service, const std::function<bool()>& last) {
  std::map<std::string, long> answers;
  std::mutex mutex;
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const std::array<std::string, 4> rules{"open", "closed", "local", "open"};
      for (std::size_t i = 0; i == 0 || !last(); ++i) {
        const std::string who = std::to_string(t) + "-" + std::to_string(i);
        const std::string by =
            DecidedBy(DecideOnNewConnection(service, ByRule(rules[(t + i) % 4], who)));
        const std::lock_guard lock(mutex);
        ++answers[by];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return answers;
}

void ExpectOutageLog(int signal) {
  RedisServer redis;
  const service::CapturedStderr captured;
  Service service(Yaml(redis.port(), "on_failure: closed",
                       std::string(kRules) + "  - { id: other, per: const, limit: 1/h, "
                                             "on_failure: open }\n"),
                  3);
  ASSERT_TRUE(test::WaitUntil([&] { return service.Metric("tidegate_redis_connected") == 3; }));
  ASSERT_TRUE(
      test::WaitUntil([&] { return DecidedBy(service.Decide(ByRule("open", "x"))) == "store"; }));
  const auto began = std::chrono::steady_clock::now();
  signal == SIGKILL ? redis.Kill() : redis.Signal(signal);
  const auto answers =
      DecideInParallel(service, [&] { return std::chrono::steady_clock::now() - began > 1500ms; });
  signal == SIGKILL ? redis.Start() : redis.Signal(SIGCONT);
  const auto answers_after = DecideInParallel(service, [&] {
    return !LinesWith(captured.Text(), "Redis answers all calls again").empty() ||
           std::chrono::steady_clock::now() - began > service::kPatience;
  });
  const auto lasted = std::chrono::steady_clock::now() - began;
  const std::string log = captured.Text();
  const auto begins =
      LinesWith(log, "Redis does not answer all calls; failure policies decide the rest");
  const auto ends = LinesWith(log, "Redis answers all calls again");
  ASSERT_EQ(begins.size(), 1U) << log;
  ASSERT_EQ(ends.size(), 1U) << log;
  EXPECT_EQ(FieldOf(begins[0], "rules_open"), 2) << begins[0];
  EXPECT_EQ(FieldOf(begins[0], "rules_closed"), 1) << begins[0];
  EXPECT_EQ(FieldOf(begins[0], "rules_local"), 1) << begins[0];
  for (const std::string policy : {"open", "closed", "local"}) {
    long seen = 0;
    for (const auto* const part : {&answers, &answers_after}) {
      if (const auto found = part->find(policy); found != part->end()) seen += found->second;
    }
    EXPECT_GT(seen, 0) << policy;
    EXPECT_EQ(FieldOf(ends[0], "decisions_" + policy), seen) << policy << ends[0];
  }
  EXPECT_GE(FieldOf(ends[0], "lasted_ms"), 1000) << ends[0];
  EXPECT_LE(FieldOf(ends[0], "lasted_ms"),
            std::chrono::duration_cast<std::chrono::milliseconds>(lasted).count())
      << ends[0];
}

TEST(OutageLogTest, CountsSameDecisionsAsClientsWhenRedisIsKilled) { ExpectOutageLog(SIGKILL); }
TEST(OutageLogTest, CountsSameDecisionsAsClientsWhenRedisHangs) { ExpectOutageLog(SIGSTOP); }

TEST(RedisServerTest, NodesAgreeOnKeyAndCountEachOther) {
  RedisServer redis;
  const std::string yaml = Yaml(redis.port(), "on_failure: closed, deadline: 5s", kRules);
  Service one(yaml);
  Service two(yaml);
  EXPECT_EQ(one.Decide(ByRule("closed", "alice")).status, 200);
  EXPECT_EQ(two.Decide(ByRule("closed", "alice")).status, 200);
  EXPECT_EQ(one.Decide(ByRule("closed", "alice")).status, 429)
      << "both nodes must charge the same bucket";
  EXPECT_TRUE(test::WaitUntil([&] { return one.Metric("tidegate_fleet_nodes") == 2; }));
  EXPECT_EQ(one.Metric("tidegate_fleet_key_mismatches"), 0);
  // After FLUSHALL the nodes write the key again and find each other again.
  redis.Text({"FLUSHALL"});
  EXPECT_TRUE(test::WaitUntil([&] {
    return redis.Text({"EXISTS", "tg:hmac-key:{fleet}"}) == "1";
  }));
  EXPECT_TRUE(test::WaitUntil([&] { return redis.Text({"ZCARD", "tg:nodes:{fleet}"}) == "2"; }));
}

TEST(RedisServerTest, NodeAdoptsTheFleetsKey) {
  RedisServer redis;
  const int port = redis.port();
  redis.Kill();
  const std::string yaml =
      Yaml(port, "on_failure: open, deadline: 5s, connect_timeout: 10ms", kRules);
  Service early(yaml);
  redis.Start();
  // Another node has stored the key of the fleet first.
  redis.Text({"SET", "tg:hmac-key:{fleet}", std::string(64, 'a')});
  Service late(yaml);
  EXPECT_TRUE(test::WaitUntil([&] {
    return early.Metric("tidegate_fleet_nodes") == 2 &&
           early.Metric("tidegate_fleet_key_mismatches") == 0;
  }));
  EXPECT_EQ(late.Decide(ByRule("closed", "alice")).status, 200);
  EXPECT_EQ(late.Decide(ByRule("closed", "alice")).status, 200);
  EXPECT_TRUE(
      test::WaitUntil([&] { return early.Decide(ByRule("closed", "alice")).status == 429; }));
}

TEST(RedisServerTest, CountsNodesWithDifferentIdentityKeys) {
  RedisServer redis;
  const std::string yaml = Yaml(redis.port(), "on_failure: closed", kRules);
  Service one("identity: { hmac_key: aaaaaaaaaaaaaaaaaaaaaaaa }\n" + yaml);
  Service two("identity: { hmac_key: bbbbbbbbbbbbbbbbbbbbbbbb }\n" + yaml);
  EXPECT_TRUE(test::WaitUntil([&] { return one.Metric("tidegate_fleet_key_mismatches") == 1; }));
  EXPECT_EQ(redis.Text({"EXISTS", "tg:hmac-key:{fleet}"}), "0")
      << "a configured key must not be written to Redis";
}

TEST(RedisServerTest, ShutdownAnswersPendingRequests) {
  RedisServer redis;
  auto service =
      std::make_unique<Service>(Yaml(redis.port(), "on_failure: closed, deadline: 10s", kRules));
  EXPECT_EQ(service->Decide(ByRule("closed", "alice")).status, 200);
  redis.Signal(SIGSTOP);
  std::vector<std::unique_ptr<HttpClient>> clients;
  for (int i = 0; i < 20; ++i) {
    clients.push_back(std::make_unique<HttpClient>(service->api()));
    clients.back()->Send(service::Post("/v1/decide", ByRule("closed", std::to_string(i))));
  }
  EXPECT_TRUE(test::WaitUntil([&] { return service->Metric("tidegate_redis_waiting") == 20; }));
  service.reset();
  for (auto& client : clients) {
    const auto answer = client->TryRead();
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, 503);
  }
  redis.Signal(SIGCONT);
}

TEST(RedisServerTest, NeedsOnlyDocumentedPermissions) {
  RedisServer redis;
  ASSERT_EQ(redis.Text(DocumentedAcl("s3cret/")), "OK");
  Service service("store: { url: \"redis://tidegate:s3cret%2F@127.0.0.1:" +
                  std::to_string(redis.port()) + "\", on_failure: closed, deadline: 5s }\n" + R"(
rules:
  - { id: tb, per: header:x-user, limit: 2/h }
  - { id: gc, per: header:x-user, limit: 2/h, algorithm: gcra }
  - { id: sl, per: header:x-user, limit: 2/h, algorithm: sliding_log }
  - { id: sw, per: header:x-user, limit: 2/h, algorithm: sliding_window }
  - { id: fw, per: header:x-user, limit: 2/366d, algorithm: fixed_window }
  - { id: cc, per: header:x-user, limit: 2/h, algorithm: concurrency }
)");
  for (const std::string rule : {"tb", "gc", "sl", "sw", "fw"}) {
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(service.Decide(ByRule(rule, "alice")).status, i < 2 ? 200 : 429) << rule;
    }
    const HttpResponse debit = service.Ask("/v1/debit", ByRule(rule, "alice", R"(,"cost":3)"));
    EXPECT_EQ(debit.status, 200) << debit.body;
    const HttpResponse refund =
        service.Ask("/v1/refund", ByRule(rule, "alice", R"(,"cost":4,"id":"r")"));
    EXPECT_EQ(refund.status, 200) << refund.body;
    EXPECT_THAT(refund.body, HasSubstr("\"applied\":true")) << rule;
  }
  for (const std::string lease : {"a", "b", "c"}) {
    EXPECT_EQ(
        service.Ask("/v1/acquire", ByRule("cc", "alice", R"(,"lease":")" + lease + '"')).status,
        lease == "c" ? 429 : 200);
  }
  EXPECT_EQ(service.Ask("/v1/renew", ByRule("cc", "alice", R"(,"lease":"a")")).status, 200);
  EXPECT_EQ(service.Ask("/v1/release", ByRule("cc", "alice", R"(,"lease":"a")")).status, 200);
  EXPECT_TRUE(test::WaitUntil([&] { return redis.Text({"ZCARD", "tg:nodes:{fleet}"}) == "1"; }));
  EXPECT_EQ(redis.Text({"ACL", "LOG"}), "") << "Redis refused a command";
  EXPECT_EQ(service.Metric("tidegate_redis_failed_writes_total"), 0);
}

TEST(RedisServerTest, ClosedRuleOverridesLocalWhichOverridesOpen) {
  const int closed_port = test::FreePort();
  const std::string common = "on_failure: open, connect_timeout: 10ms";
  Service mixed(Yaml(closed_port, common, R"(
  - { id: closed, match: { path: /closed }, per: const, limit: 9/h, on_failure: closed }
  - { id: local, per: const, limit: 2/h, on_failure: local }
  - { id: open, per: const, limit: 1/h, on_failure: open }
)"));
  const auto ask = [&](std::string_view path) {
    return mixed.Decide(R"({"request":{"path":")" + std::string(path) +
                        R"(","peer":"203.0.113.7"}})");
  };
  const HttpResponse closed = ask("/closed");
  EXPECT_EQ(closed.status, 503);
  EXPECT_EQ(DecidedBy(closed), "closed");
  EXPECT_EQ(ask("/").status, 200) << "the request that `closed` refused must not charge the others";
  const HttpResponse second = ask("/");
  EXPECT_EQ(second.status, 200);
  EXPECT_EQ(DecidedBy(second), "local");
  EXPECT_EQ(ask("/").status, 429);
}

// If a reload removes the configured identity key, the nodes agree on a common key.
TEST(RedisServerTest, ReloadThatRemovesIdentityKeyKeepsBuckets) {
  RedisServer redis;
  const std::string yaml = Yaml(redis.port(), "on_failure: closed, deadline: 5s", kRules);
  const std::string key = "identity: { hmac_key: aaaaaaaaaaaaaaaaaaaaaaaa }\n";
  Service one(key + yaml);
  Service two(key + yaml);
  ASSERT_EQ(one.Decide(ByRule("closed", "alice")).status, 200);
  ASSERT_EQ(two.Decide(ByRule("closed", "alice")).status, 200);
  ASSERT_EQ(one.Decide(ByRule("closed", "alice")).status, 429)
      << "both nodes must charge the same bucket";
  ASSERT_TRUE(one.Reload(yaml));
  ASSERT_TRUE(two.Reload(yaml));
  int admitted = 0;
  for (int i = 0; i < 4; ++i) {
    if (one.Decide(ByRule("closed", "bob")).status == 200) ++admitted;
    if (two.Decide(ByRule("closed", "bob")).status == 200) ++admitted;
  }
  EXPECT_EQ(admitted, 2);
}

// A reload must not add an identity key while the other nodes have none.
TEST(RedisServerTest, ReloadThatAddsIdentityKeyNeedsARestart) {
  RedisServer redis;
  const std::string yaml = Yaml(redis.port(), "on_failure: closed, deadline: 5s", kRules);
  const std::string keyed = "identity: { hmac_key: aaaaaaaaaaaaaaaaaaaaaaaa }\n" + yaml;
  Service one(yaml);
  Service two(yaml);
  ASSERT_TRUE(one.Reload(keyed));
  EXPECT_THAT(one.server().NeedsRestart(Service::ConfigOf(keyed)),
              testing::Contains("identity.hmac_key"));
  EXPECT_EQ(one.Decide(ByRule("closed", "bob")).status, 200);
  EXPECT_EQ(two.Decide(ByRule("closed", "bob")).status, 200);
  EXPECT_EQ(one.Decide(ByRule("closed", "bob")).status, 429);
}

}  // namespace
}  // namespace tidegate::redis_test
