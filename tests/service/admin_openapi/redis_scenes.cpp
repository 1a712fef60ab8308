// SPDX-License-Identifier: Apache-2.0
// Scenes on a node of a fleet, with Redis and while Redis is down.
#include <gtest/gtest.h>

#include <csignal>

#include "redis/redis_server.hpp"
#include "service/admin_openapi/operator.hpp"
#include "service/admin_openapi/scenes.hpp"
#include "support/ports.hpp"
#include "support/wait.hpp"

namespace tidegate::openapi_test {
namespace {

namespace json = boost::json;
using redis_test::RedisServer;
using service::ByRule;
using service::Service;

/// One rule for each failure policy.
constexpr std::string_view kRules[] = {"closed", "open", "local"};

std::string Yaml(int port) {
  std::string yaml = "store: { url: \"redis://127.0.0.1:" + std::to_string(port) +
                     "\", on_failure: closed, deadline: 2s }\nrules:\n";
  for (const std::string_view rule : kRules) {
    yaml += "  - { id: " + std::string(rule) + ", match: { path: /" + std::string(rule) +
            " }, per: client_ip, limit: 2/h, on_failure: " + std::string(rule) + " }\n";
  }
  return yaml +
         "  - { id: log, match: { path: /log }, per: client_ip, limit: 2/h, algorithm: "
         "sliding_log }\n";
}

std::string KeyBody(std::string_view rule, std::string_view more = {}) {
  return ByRule(rule, "192.0.2.1", more);
}

/// A change by an operator: its path, and the members that it needs besides the key.
struct Change {
  const char* path;
  const char* more;
};
constexpr Change kOnKeys[] = {
    {"/v1/reset", ""}, {"/v1/grant", R"(,"amount":1)"}, {"/v1/refund", R"(,"id":"i")"}};
constexpr Change kOverrides[] = {
    {"/v1/ban", ""}, {"/v1/allow", ""}, {"/v1/override", R"(,"limit":"9/h")"}};

/// Waits until Redis has replied and the node has read the overrides.
void AwaitRedis(Service& service) {
  EXPECT_TRUE(test::WaitUntil([&] {
    return AskAdmin(service.admin(), "GET", "/readyz").status == 200 &&
           AskAdmin(service.admin(), "POST", "/v1/lift", KeyBody("closed")).status == 200;
  }));
}

}  // namespace

void WithRedis(ResponseCoverage& coverage) {
  RedisServer redis;
  Service service(Yaml(redis.port()));
  AwaitRedis(service);
  Operator op(service, coverage);
  for (const std::string_view rule : {"closed", "log"}) {
    op.Post("/v1/inspect", KeyBody(rule));
    while (service.Decide(KeyBody(rule)).status == 200) {
    }
    EXPECT_FALSE(op.MemberOf("/v1/inspect", KeyBody(rule), "state").as_array().empty());
    op.Post("/v1/explain", KeyBody(rule));
  }
  for (const Change& change : kOnKeys) op.Post(change.path, KeyBody("closed", change.more));
  for (const Change& change : kOverrides) {
    op.Post(change.path, KeyBody("closed", change.more));
    op.Post(change.path, KeyBody("closed", std::string(change.more) + R"(,"ttl":"1h")"));
    op.Post("/v1/inspect", KeyBody("closed"));
    op.Get("/v1/overrides");
  }
  op.Post("/v1/lift", KeyBody("closed"));
  for (const char* const path : {"/readyz", "/v1/status", "/v1/rules", "/v1/audit", "/metrics"}) {
    op.Get(path);
  }
  service.server().SetReloader([](const std::string&, const auto& done) {
    done({.outcome = ReloadReport::Outcome::kApplied});
  });
  EXPECT_TRUE(test::WaitUntil(
      [&] { return AskAdmin(service.admin(), "POST", "/v1/reload", "{}").status == 200; }));
  redis.Text({"FLUSHALL"});
  EXPECT_FALSE(json::parse(op.Get("/v1/audit").body).at("history").at("complete").as_bool());
  // Redis allows writes to the key but not to the audit log.
  redis.Text({"ACL", "SETUSER", "default", "resetkeys", "~tg:tb:*", "~tg:rf:*"});
  for (const Change& change : kOnKeys) {
    EXPECT_FALSE(op.MemberOf(change.path, KeyBody("open", change.more), "recorded").as_bool());
  }
  EXPECT_FALSE(op.MemberOf("/v1/reload", "{}", "recorded").as_bool());
}

void FullTable(ResponseCoverage& coverage) {
  RedisServer redis;
  Service service(Yaml(redis.port()));
  AwaitRedis(service);
  redis.Text({"EVAL", "for i = 1, 1000 do redis.call('HSET', KEYS[1], 'r x' .. i, '1 0 {}') end",
              "1", "tg:overrides:{fleet}"});
  Operator op(service, coverage);
  for (const Change& change : kOverrides) op.Post(change.path, KeyBody("closed", change.more), 409);
}

void RedisDies(ResponseCoverage& coverage) {
  RedisServer redis;
  Service service(Yaml(redis.port()));
  AwaitRedis(service);
  Operator op(service, coverage);
  redis.Signal(SIGSTOP);
  // The ban was sent and got no reply, so its outcome is unknown.
  op.Post("/v1/ban", KeyBody("closed"), 503);
  redis.Kill();
  for (const Change& change : kOnKeys) op.Post(change.path, KeyBody("closed", change.more), 503);
  for (const Change& change : kOverrides) op.Post(change.path, KeyBody("closed", change.more), 503);
  op.Post("/v1/lift", KeyBody("closed"), 503);
  op.Post("/v1/inspect", KeyBody("closed"), 503);
  op.Get("/v1/audit", 503);
  for (const std::string_view rule : kRules) {
    (void)service.Decide(KeyBody(rule));
    const json::value rules = op.MemberOf("/v1/explain", KeyBody(rule), "rules");
    EXPECT_EQ(rules.as_array().at(0).at("decided_by").as_string(), rule);
  }
  EXPECT_EQ(op.Get("/readyz").body, "ready, but the store does not answer\n");
  EXPECT_TRUE(test::WaitUntil(
      [&] { return json::parse(op.Get("/v1/status").body).at("store").at("breaker") == "open"; }));
  EXPECT_TRUE(test::WaitUntil([&] {
    const json::value rules = op.MemberOf("/v1/explain", KeyBody("closed"), "rules");
    return rules.as_array().at(0).at("reason") == "breaker_open";
  }));
  EXPECT_FALSE(json::parse(op.Get("/v1/status").body)
                   .at("store")
                   .at("last_error")
                   .at("message")
                   .as_string()
                   .empty());
  op.Get("/metrics");
}

void RedisNeverStarts(ResponseCoverage& coverage) {
  Service service(Yaml(test::FreePort()));
  Operator op(service, coverage);
  op.Get("/readyz", 503);
  op.Post("/v1/explain", KeyBody("closed"), 503);
  op.Post("/v1/inspect", KeyBody("closed"), 503);
  const json::value status = json::parse(op.Get("/v1/status").body);
  EXPECT_FALSE(status.at("overrides").at("known").as_bool());
  EXPECT_FALSE(json::parse(op.Get("/v1/overrides").body).at("known").as_bool());
  for (const char* const path : {"/v1/rules", "/v1/overrides", "/metrics"}) op.Get(path);
}

}  // namespace tidegate::openapi_test
