// SPDX-License-Identifier: Apache-2.0
// Faults during the admin requests of operators, such as a Redis that hangs or loses its data.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <functional>
#include <memory>
#include <thread>

#include "redis/redis_server.hpp"
#include "service/admin_case.hpp"
#include "service/captured_stderr.hpp"
#include "store/shared_overrides.hpp"
#include "support/wait.hpp"

namespace tidegate::redis_test {
namespace {

using namespace std::chrono_literals;
using service::AskAdmin;
using service::ByRule;
using service::HttpClient;
using service::HttpResponse;
using service::ReadAdmin;
using service::Service;
using testing::HasSubstr;
using Clock = std::chrono::steady_clock;

std::string EdgeYaml(int port, std::string_view more = {}) {
  return "store: { url: \"redis://127.0.0.1:" + std::to_string(port) +
         "\", on_failure: closed, deadline: 2s, connect_timeout: 2s }\n" + std::string(more) +
         "rules:\n"
         "  - { id: r, per: header:x-user, limit: 200000/h }\n"
         "  - { id: ip, per: client_ip, limit: 2/h }\n";
}

std::string EdgeAlice(std::string_view more = {}) { return ByRule("r", "alice", more); }

void AwaitReady(Service& service) {
  const auto began = Clock::now();
  while (AskAdmin(service, "/v1/lift", EdgeAlice()).status != 200 && Clock::now() - began < 5s) {
  }
}

std::string AdminPost(std::string_view path, const std::string& body) {
  return "POST " + std::string(path) +
         " HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + body;
}

/// Waits until the server has read what the clients sent.
void Settle(Service& service) {
  for (int i = 0; i < 3; ++i) (void)service.Metric("tidegate_rules");
}

constexpr const char* kPaths[] = {"/v1/ban", "/v1/lift", "/v1/reset", "/v1/inspect", "/v1/explain"};

/// Under the address sanitizer: a client that disconnects early, or that the server disconnects,
/// must not leave a dangling pointer.
TEST(OverrideFaultsTest, SurvivesAdminClientsThatDisconnectEarly) {
  RedisServer redis;
  Service service(EdgeYaml(redis.port()), 2);
  AwaitReady(service);
  redis.Signal(SIGSTOP);
  for (const char* path : kPaths) {
    HttpClient client(service.admin());
    client.Send(AdminPost(path, EdgeAlice()));
    client.Send("GET /v1/audit HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
  }
  {
    HttpClient client(service.admin());
    client.Send("GET /v1/audit HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
  }
  Settle(service);
  redis.Signal(SIGCONT);
  AwaitReady(service);
  EXPECT_EQ(AskAdmin(service, "/v1/inspect", EdgeAlice()).status, 200);
}

TEST(OverrideFaultsTest, ShutdownAnswersPendingChanges) {
  for (int round = 0; round < 6; ++round) {
    RedisServer redis;
    auto node = std::make_unique<Service>(EdgeYaml(redis.port()), 2);
    AwaitReady(*node);
    if (round % 2 == 0) redis.Signal(SIGSTOP);
    std::vector<std::unique_ptr<HttpClient>> clients;
    for (int i = 0; i < 4; ++i) {
      for (const char* path : kPaths) {
        clients.push_back(std::make_unique<HttpClient>(node->admin()));
        clients.back()->Send(AdminPost(path, EdgeAlice()));
      }
      clients.push_back(std::make_unique<HttpClient>(node->admin()));
      clients.back()->Send("GET /v1/audit HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
    }
    if (round % 2 == 0) Settle(*node);
    node.reset();
    redis.Signal(SIGCONT);
  }
}

TEST(OverrideFaultsTest, AnswersUnavailableWhenRedisDiesDuringAChange) {
  RedisServer redis;
  Service service(EdgeYaml(redis.port()), 2);
  AwaitReady(service);
  redis.Signal(SIGSTOP);
  std::vector<std::unique_ptr<HttpClient>> clients;
  for (const char* path : kPaths) {
    clients.push_back(std::make_unique<HttpClient>(service.admin()));
    clients.back()->Send(AdminPost(path, EdgeAlice()));
  }
  Settle(service);
  redis.Kill();
  for (std::size_t i = 0; i < clients.size(); ++i) {
    EXPECT_EQ(clients[i]->Read().status, std::string_view(kPaths[i]) == "/v1/explain" ? 200 : 503)
        << kPaths[i];
  }
}

TEST(OverrideFaultsTest, RestoresBansAfterRedisWasFlushed) {
  RedisServer redis;
  Service one(EdgeYaml(redis.port()), 2);
  Service two(EdgeYaml(redis.port()), 2);
  AwaitReady(one);
  AwaitReady(two);
  ASSERT_EQ(AskAdmin(one, "/v1/ban", EdgeAlice(R"(,"reason":"scraping")")).status, 200);
  ASSERT_EQ(
      AskAdmin(one, "/v1/override", ByRule("r", "bob", R"(,"limit":"7/h","ttl":"1h")")).status,
      200);
  ASSERT_TRUE(test::WaitUntil([&] { return two.Decide(EdgeAlice()).status == 403; }));
  const auto known = ReadAdmin(two, "/v1/overrides").Json().at("overrides");
  const auto restored = [&] {
    return one.Metric("tidegate_overrides_restored_total") +
           two.Metric("tidegate_overrides_restored_total");
  };
  redis.Text({"FLUSHALL"});
  const auto banned = [&] {
    return one.Decide(EdgeAlice()).status == 403 && two.Decide(EdgeAlice()).status == 403;
  };
  ASSERT_TRUE(test::WaitUntil([&] {
    EXPECT_TRUE(banned()) << "the ban must hold until a node has restored it";
    return restored() > 0;
  }));
  EXPECT_TRUE(banned());
  EXPECT_EQ(restored(), 1) << "only one node must restore the table";
  // A node that starts now learns the bans with their reasons and times.
  Service three(EdgeYaml(redis.port()));
  ASSERT_TRUE(test::WaitUntil([&] { return three.Decide(EdgeAlice()).status == 403; }));
  const auto learnt = ReadAdmin(three, "/v1/overrides").Json().at("overrides");
  for (const auto& before : known.as_array()) {
    const auto same = [&](const boost::json::value& after) {
      return after.at("key") == before.at("key") && after.at("reason") == before.at("reason") &&
             after.at("since_ms") == before.at("since_ms") &&
             after.as_object().contains("expires_ms") == before.as_object().contains("expires_ms");
    };
    EXPECT_TRUE(std::ranges::any_of(learnt.as_array(), same)) << boost::json::serialize(learnt);
  }
  // A string in place of the table is not a valid table.
  redis.Text({"DEL", "tg:overrides:{fleet}"});
  redis.Text({"SET", "tg:overrides:{fleet}", "nonsense"});
  ASSERT_TRUE(test::WaitUntil([&] {
    EXPECT_TRUE(banned());
    return restored() >= 2;
  }));
  // A ban that is lifted is not restored.
  ASSERT_EQ(AskAdmin(two, "/v1/lift", EdgeAlice()).status, 200);
  EXPECT_TRUE(test::WaitUntil([&] { return one.Decide(EdgeAlice()).status == 200; }));
}

TEST(OverrideFaultsTest, ReportsWhyRedisRefusesConnection) {
  RedisServer redis({.arguments = {"--requirepass", "right"}});
  Service service(EdgeYaml(redis.port()));
  ASSERT_TRUE(test::WaitUntil([&] {
    const auto store = ReadAdmin(service, "/v1/status").Json().at("store");
    return store.as_object().contains("last_error");
  }));
  const auto error = ReadAdmin(service, "/v1/status").Json().at("store").at("last_error");
  EXPECT_THAT(std::string(error.at("message").as_string()), HasSubstr("requires a password"));
  EXPECT_FALSE(ReadAdmin(service, "/v1/overrides").Json().at("known").as_bool());
  const auto explained = AskAdmin(service, "/v1/explain", EdgeAlice());
  EXPECT_EQ(explained.status, 503);
  EXPECT_THAT(explained.body, HasSubstr("requires a password"));
}

/// Returns a Lua script that stores `count` bans, with keys and reasons of the greatest allowed
/// length.
std::string Fill(int count) {
  return R"(local pad, why = string.rep('a', 1000), string.rep('w', 200)
    for i = 1, )" +
         std::to_string(count) + R"( do
      local id = 'path=/' .. pad .. i
      redis.call('HSET', KEYS[1], 'p ' .. id, '1 0 {"kind":"ban","rule":"p","key":"' .. id ..
                 '","by":"x","reason":"' .. why .. '"}')
    end
    redis.call('HSET', KEYS[1], 'v', '9999999999999.filled'))";
}

/// A table of the greatest allowed size is read and changed without an effect on decisions.
TEST(OverrideFaultsTest, ReadsFullOverrideTable) {
  RedisServer redis;
  Service service("store: { url: \"redis://127.0.0.1:" + std::to_string(redis.port()) +
                  "\", on_failure: closed, deadline: 2s, connect_timeout: 2s }\n"
                  "rules: [ { id: r, per: header:x-user, limit: 200000/h },\n"
                  "         { id: p, per: path, limit: 2/h } ]\n");
  AwaitReady(service);
  redis.Text({"EVAL", Fill(999), "1", "tg:overrides:{fleet}"});
  ASSERT_TRUE(test::WaitUntil([&] {
    return ReadAdmin(service, "/v1/status").body.find("\"overrides\":{\"count\":999") !=
           std::string::npos;
  }));
  EXPECT_EQ(service.Decide(EdgeAlice()).status, 200);
  const HttpResponse ban = AskAdmin(service, "/v1/ban", EdgeAlice());
  EXPECT_EQ(ban.status, 200) << ban.body;
  EXPECT_TRUE(test::WaitUntil([&] { return service.Decide(EdgeAlice()).status == 403; }));
  EXPECT_EQ(AskAdmin(service, "/v1/ban", ByRule("r", "bob")).status, 409);
  EXPECT_EQ(AskAdmin(service, "/v1/lift", EdgeAlice()).status, 200);
}

/// A table that another client has overfilled affects nothing but itself.
TEST(OverrideFaultsTest, IgnoresOverrideTableThatIsTooLarge) {
  RedisServer redis;
  Service service(EdgeYaml(redis.port()), 2);
  AwaitReady(service);
  ASSERT_EQ(AskAdmin(service, "/v1/ban", EdgeAlice()).status, 200);
  const service::CapturedStderr captured;
  redis.Text({"EVAL", Fill(2500), "1", "tg:overrides:{fleet}"});
  EXPECT_TRUE(test::WaitUntil([&] { return captured.Text().contains("cannot read overrides"); }));
  EXPECT_THAT(captured.Text(), HasSubstr("too many fields"));
  EXPECT_EQ(service.Decide(EdgeAlice()).status, 403) << "known bans must stay in force";
  EXPECT_EQ(service.Decide(ByRule("r", "bob")).status, 200);
}

/// An operation that gives quota back is recorded in the audit log, or the response says that it
/// was not.
TEST(OverrideFaultsTest, ReportsResetThatCannotBeRecorded) {
  RedisServer redis;
  Service service(EdgeYaml(redis.port()));
  AwaitReady(service);
  (void)service.Decide(EdgeAlice());
  redis.Text({"ACL", "SETUSER", "default", "resetkeys", "~tg:tb:*"});
  const HttpResponse reset = AskAdmin(service, "/v1/reset", EdgeAlice());
  redis.Text({"ACL", "SETUSER", "default", "allkeys"});
  EXPECT_EQ(reset.status, 200);
  EXPECT_FALSE(reset.Json().at("recorded").as_bool()) << reset.body;
}

/// A failure policy never applies to a change by an operator.
TEST(OverrideFaultsTest, RefusedChangeHasNoLocalEffect) {
  RedisServer redis;
  Service service("store: { url: \"redis://127.0.0.1:" + std::to_string(redis.port()) +
                  "\", on_failure: local, deadline: 200ms }\n"
                  "rules: [ { id: r, per: header:x-user, limit: 2/h } ]\n");
  AwaitReady(service);
  redis.Kill();
  const auto began = Clock::now();
  while (service.Decide(EdgeAlice()).status == 200 && Clock::now() - began < 5s) {
  }
  ASSERT_EQ(service.Decide(EdgeAlice()).status, 429);
  ASSERT_EQ(AskAdmin(service, "/v1/reset", EdgeAlice()).status, 503);
  EXPECT_EQ(service.Decide(EdgeAlice()).status, 429) << "the refused reset was applied";
}

struct OperatorChange {
  const char* path;
  const char* more;
};
constexpr OperatorChange kChanges[] = {
    {"/v1/reset", ""},
    {"/v1/grant", R"(,"amount":1)"},
    {"/v1/refund", R"(,"id":"i")"},
    {"/v1/ban", ""},
    {"/v1/allow", ""},
    {"/v1/override", R"(,"limit":"9/h")"},
    {"/v1/lift", ""},
};

/// Returns the `outcome` of a failed change, or "none".
std::string OutcomeOf(const HttpResponse& answer) {
  const auto json = answer.Json();
  const auto* const outcome = json.if_contains("outcome");
  return outcome != nullptr ? std::string(outcome->as_string()) : "none";
}

std::string ImpatientYaml(int port, std::string_view deadline) {
  return "store: { url: \"redis://127.0.0.1:" + std::to_string(port) +
         "\", on_failure: open, deadline: " + std::string(deadline) +
         " }\nrules: [ { id: r, per: header:x-user, limit: 200000/h } ]\n";
}

void ExpectNotApplied(Service& service, const OperatorChange& change) {
  const HttpResponse answer = AskAdmin(service, change.path, EdgeAlice(change.more));
  EXPECT_EQ(answer.status, 503) << change.path;
  EXPECT_EQ(OutcomeOf(answer), "not_applied") << change.path << answer.body;
  EXPECT_THAT(answer.body, HasSubstr("not applied: ")) << change.path;
  EXPECT_THAT(answer.body, HasSubstr("try again")) << change.path;
  EXPECT_THAT(answer.body, testing::Not(HasSubstr("may or may not"))) << change.path;
}

TEST(OperatorChangeTest, ReportsNotAppliedWhenRedisIsNotConnected) {
  RedisServer redis;
  Service service(ImpatientYaml(redis.port(), "50ms"));
  AwaitReady(service);
  redis.Kill();
  ASSERT_TRUE(test::WaitUntil([&] { return service.Metric("tidegate_redis_connected") == 0; }));
  for (const OperatorChange& change : kChanges) ExpectNotApplied(service, change);
}

TEST(OperatorChangeTest, ReportsNotAppliedWhenTheBreakerIsOpen) {
  RedisServer redis;
  // The connection is dropped only after one second, but the breaker opens after three deadlines of
  // 20 ms.
  Service service(ImpatientYaml(redis.port(), "20ms"));
  AwaitReady(service);
  for (const OperatorChange& change : kChanges) {
    redis.Signal(SIGSTOP);
    ASSERT_TRUE(test::WaitUntil([&] {
      const auto json = service.Decide(ByRule("r", "bob")).Json();
      return json.contains("reason") && json.at("reason") == "breaker_open";
    }));
    EXPECT_EQ(service.Metric("tidegate_redis_connected"), 1)
        << "the test was too slow: the connection is closed";
    ExpectNotApplied(service, change);
    redis.Signal(SIGCONT);
    ASSERT_TRUE(test::WaitUntil(
        [&] { return service.Decide(ByRule("r", "bob")).Json().at("decided_by") == "store"; }));
  }
  EXPECT_EQ(ReadAdmin(service, "/v1/overrides").Json().at("overrides").as_array().size(), 0U);
  const auto audit = ReadAdmin(service, "/v1/audit").Json();
  for (const auto& entry : audit.at("entries").as_array()) {
    EXPECT_EQ(entry.at("action"), "lift") << "only AwaitReady makes changes here: " << entry;
  }
}

TEST(OperatorChangeTest, ReportsUnknownOutcomeWhenRedisDoesNotReply) {
  for (const OperatorChange& change : kChanges) {
    RedisServer redis;
    Service service(ImpatientYaml(redis.port(), "50ms"));
    AwaitReady(service);
    redis.Signal(SIGSTOP);
    const HttpResponse answer = AskAdmin(service, change.path, EdgeAlice(change.more));
    EXPECT_EQ(answer.status, 503) << change.path;
    EXPECT_EQ(OutcomeOf(answer), "unknown") << change.path << answer.body;
    EXPECT_THAT(answer.body, HasSubstr("may or may not have been made")) << change.path;
    redis.Signal(SIGCONT);
  }
}

TEST(OperatorChangeTest, ReportsNotAppliedWhenRedisRefusesToWrite) {
  RedisServer redis;
  Service service(ImpatientYaml(redis.port(), "5s"));
  AwaitReady(service);
  redis.Text({"CONFIG", "SET", "maxmemory", "1"});
  for (const char* path : {"/v1/ban", "/v1/allow"}) {
    const HttpResponse answer = AskAdmin(service, path, EdgeAlice());
    EXPECT_EQ(answer.status, 503) << path;
    EXPECT_EQ(OutcomeOf(answer), "not_applied") << path << answer.body;
    EXPECT_THAT(answer.body, HasSubstr("OOM")) << path;
  }
}

boost::json::object AuditOf(Service& service) {
  HttpResponse answer;
  EXPECT_TRUE(test::WaitUntil([&] {
    return (answer = ReadAdmin(service, "/v1/audit?limit=1000")).status == 200;
  })) << answer.body;
  return answer.Json();
}
boost::json::object HistoryOf(Service& service) {
  const auto audit = AuditOf(service);
  return audit.contains("history") ? audit.at("history").as_object() : boost::json::object{};
}
std::size_t EntriesOf(Service& service) { return AuditOf(service).at("entries").as_array().size(); }

TEST(AuditHistoryTest, IsCompleteWhileNoRecordWasLost) {
  RedisServer redis;
  Service service(EdgeYaml(redis.port()), 2);
  AwaitReady(service);
  ASSERT_EQ(AskAdmin(service, "/v1/ban", EdgeAlice()).status, 200);
  ASSERT_EQ(AskAdmin(service, "/v1/reset", EdgeAlice()).status, 200);
  const auto history = HistoryOf(service);
  EXPECT_EQ(history.at("kept_in"), "redis");
  EXPECT_TRUE(history.at("complete").as_bool()) << history;
  EXPECT_EQ(history.at("missing_changes"), 0) << history;
  EXPECT_FALSE(history.contains("lost_ms")) << history;
}

TEST(AuditHistoryTest, ReportsMissingRecordsAfterRedisLostThem) {
  for (const bool restart : {false, true}) {
    RedisServer redis;
    Service one(EdgeYaml(redis.port()), 2);
    Service two(EdgeYaml(redis.port()));
    AwaitReady(one);
    AwaitReady(two);
    ASSERT_EQ(AskAdmin(one, "/v1/ban", EdgeAlice()).status, 200);
    ASSERT_EQ(AskAdmin(two, "/v1/reset", EdgeAlice()).status, 200);
    const auto before = static_cast<std::int64_t>(EntriesOf(one));
    ASSERT_GE(before, 3);
    if (restart) {
      redis.Kill();
      redis.Start();
    } else {
      redis.Text({"FLUSHALL"});
    }
    EXPECT_EQ(EntriesOf(one), 0U);
    const auto history = HistoryOf(one);
    EXPECT_FALSE(history.at("complete").as_bool()) << history;
    EXPECT_EQ(history.at("missing_changes"), before) << history;
    ASSERT_TRUE(history.contains("lost_ms")) << history;
    EXPECT_GE(history.at("since_ms").as_int64(), history.at("lost_ms").as_int64() - 10'000);
    // New records do not hide the loss, on any node, including a node that starts now. WaitUntil
    // covers the reconnect to a restarted Redis.
    ASSERT_TRUE(
        test::WaitUntil([&] { return AskAdmin(two, "/v1/lift", EdgeAlice()).status == 200; }));
    Service three(EdgeYaml(redis.port()));
    AwaitReady(three);
    for (Service* const node : {&one, &two, &three}) {
      EXPECT_GE(EntriesOf(*node), 1U);
      const auto later = HistoryOf(*node);
      EXPECT_FALSE(later.at("complete").as_bool()) << later;
      EXPECT_EQ(later.at("missing_changes"), before) << later;
      EXPECT_EQ(later.at("lost_ms"), history.at("lost_ms")) << later;
    }
  }
}

TEST(AuditHistoryTest, ReportsNumberOfDroppedAndDeletedRecords) {
  RedisServer redis;
  Service service(EdgeYaml(redis.port()));
  AwaitReady(service);
  const std::size_t before = EntriesOf(service);
  for (std::size_t i = before; i < SharedOverrides::kRecords + 3; ++i) {
    ASSERT_EQ(AskAdmin(service, "/v1/reset", EdgeAlice()).status, 200);
  }
  EXPECT_EQ(EntriesOf(service), SharedOverrides::kRecords);
  const auto trimmed = HistoryOf(service);
  EXPECT_FALSE(trimmed.at("complete").as_bool()) << trimmed;
  EXPECT_EQ(trimmed.at("missing_changes"), 3) << trimmed;
  EXPECT_FALSE(trimmed.contains("lost_ms")) << trimmed;
  // Deletes the audit log, as an eviction does.
  redis.Text({"DEL", "tg:audit:{fleet}"});
  EXPECT_EQ(HistoryOf(service).at("missing_changes"), SharedOverrides::kRecords + 3);
}

TEST(AuditHistoryTest, BeginsWithTheOldestRecordOfAnOlderVersion) {
  RedisServer redis;
  redis.Text({"LPUSH", "tg:audit:{fleet}",
              R"(1700000000000 1 {"node":"n","by":"a","from":"f","action":"ban","rule":"r",)"
              R"("key":"k","detail":""})"});
  Service service(EdgeYaml(redis.port()));
  const auto history = HistoryOf(service);
  EXPECT_EQ(EntriesOf(service), 1U);
  EXPECT_EQ(history.at("since_ms"), 1'700'000'000'000) << history;
  EXPECT_TRUE(history.at("complete").as_bool()) << history;
}

/// Until a node knows the identity key of the fleet, its hash of a secret identity matches no
/// client.
TEST(OverrideFaultsTest, BanOnStartingNodeUsesTheFleetKey) {
  RedisServer redis;
  Service first(EdgeYaml(redis.port()));
  AwaitReady(first);
  const auto known = AskAdmin(first, "/v1/inspect", EdgeAlice()).Json();
  const std::string key(known.at("key").as_string());
  int wrong = 0;
  for (int round = 0; round < 3; ++round) {
    redis.Signal(SIGSTOP);
    Service second(EdgeYaml(redis.port()));
    redis.Signal(SIGCONT);
    const auto began = Clock::now();
    HttpResponse ban;
    do {
      ban = AskAdmin(second, "/v1/ban", EdgeAlice());
    } while (ban.status != 200 && Clock::now() - began < 5s);
    ASSERT_EQ(ban.status, 200);
    wrong += std::string(ban.Json().at("key").as_string()) != key ? 1 : 0;
  }
  EXPECT_EQ(wrong, 0);
}

/// Limits how long an operator waits for a Redis that hangs.
TEST(OverrideFaultsTest, FailsFastWhenRedisHangs) {
  RedisServer redis;
  Service service("store: { url: \"redis://127.0.0.1:" + std::to_string(redis.port()) +
                  "\", on_failure: open, deadline: 50ms }\n"
                  "rules: [ { id: r, per: header:x-user, limit: 2/h } ]\n");
  AwaitReady(service);
  redis.Signal(SIGSTOP);
  for (const char* path : {"/v1/reset", "/v1/inspect", "/v1/ban"}) {
    const auto began = Clock::now();
    HttpClient client(service.admin());
    client.Send(AdminPost(path, EdgeAlice()));
    const auto answer = client.TryRead();
    EXPECT_TRUE(answer && answer->status == 503) << path;
    EXPECT_LT(Clock::now() - began, 2s) << path;
  }
  redis.Signal(SIGCONT);
}

/// The largest expiry must not overflow; run under the undefined behaviour sanitizer.
TEST(OverrideFaultsTest, BanWithLargestExpiryNeverEnds) {
  RedisServer redis;
  Service service(EdgeYaml(redis.port()));
  AwaitReady(service);
  redis.Text(
      {"HSET", "tg:overrides:{fleet}", "ip client_ip=192.0.2.1",
       "1 9223372036854775807 {\"kind\":\"ban\",\"rule\":\"ip\",\"key\":\"client_ip=192.0.2.1\"}",
       "v", "9999999999999.other"});
  const auto began = Clock::now();
  int status = 0;
  while (status != 403 && Clock::now() - began < 2s) {
    status = service.Decide(ByRule("ip", "192.0.2.1")).status;
  }
  EXPECT_EQ(status, 403);
}

}  // namespace
}  // namespace tidegate::redis_test
