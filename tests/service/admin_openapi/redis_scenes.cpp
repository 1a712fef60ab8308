// SPDX-License-Identifier: Apache-2.0
// What a node of a fleet tells, and what it cannot tell or do while its Redis is away.
#include <gtest/gtest.h>

#include <csignal>

#include "redis/redis_server.hpp"
#include "redis/soon.hpp"
#include "service/admin_openapi/operator.hpp"
#include "service/admin_openapi/scenes.hpp"

namespace tidegate::openapi_test {
namespace {

namespace json = boost::json;
using redis_test::RedisServer;
using redis_test::Soon;
using service::ByRule;
using service::Service;

/// Each of them says something else while Redis does not answer.
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

std::string Whom(std::string_view rule, std::string_view more = {}) {
  return ByRule(rule, "192.0.2.1", more);
}

/// The changes, each with what it needs to be understood.
struct Change {
  const char* path;
  const char* more;
};
constexpr Change kOnKeys[] = {
    {"/v1/reset", ""}, {"/v1/grant", R"(,"amount":1)"}, {"/v1/refund", R"(,"id":"i")"}};
constexpr Change kOverrides[] = {
    {"/v1/ban", ""}, {"/v1/allow", ""}, {"/v1/override", R"(,"limit":"9/h")"}};

/// Redis has answered, and so the register has been read.
void AwaitRedis(Service& service) {
  EXPECT_TRUE(Soon([&] {
    return AskAdmin(service.admin(), "GET", "/readyz").status == 200 &&
           AskAdmin(service.admin(), "POST", "/v1/lift", Whom("closed")).status == 200;
  }));
}

}  // namespace

void WithRedis(Witness& witness) {
  RedisServer redis;
  Service service(Yaml(redis.port()));
  AwaitRedis(service);
  Operator op(service, witness);
  for (const std::string_view rule : {"closed", "log"}) {
    op.Post("/v1/inspect", Whom(rule));
    while (service.Decide(Whom(rule)).status == 200) {
    }
    EXPECT_FALSE(op.Told("/v1/inspect", Whom(rule), "state").as_array().empty());
    op.Post("/v1/explain", Whom(rule));
  }
  for (const Change& change : kOnKeys) op.Post(change.path, Whom("closed", change.more));
  for (const Change& change : kOverrides) {
    op.Post(change.path, Whom("closed", change.more));
    op.Post(change.path, Whom("closed", std::string(change.more) + R"(,"ttl":"1h")"));
    op.Post("/v1/inspect", Whom("closed"));
    op.Get("/v1/overrides");
  }
  op.Post("/v1/lift", Whom("closed"));
  for (const char* const path : {"/readyz", "/v1/status", "/v1/rules", "/v1/audit", "/metrics"}) {
    op.Get(path);
  }
  service.server().SetReloader([](const std::string&, const auto& done) {
    done({.outcome = ReloadReport::Outcome::kApplied});
  });
  EXPECT_TRUE(
      Soon([&] { return AskAdmin(service.admin(), "POST", "/v1/reload", "{}").status == 200; }));
  redis.Text({"FLUSHALL"});
  EXPECT_FALSE(json::parse(op.Get("/v1/audit").body).at("history").at("complete").as_bool());
  // The key can be written, the audit cannot.
  redis.Text({"ACL", "SETUSER", "default", "resetkeys", "~tg:tb:*", "~tg:rf:*"});
  for (const Change& change : kOnKeys) {
    EXPECT_FALSE(op.Told(change.path, Whom("open", change.more), "recorded").as_bool());
  }
  EXPECT_FALSE(op.Told("/v1/reload", "{}", "recorded").as_bool());
}

void FullTable(Witness& witness) {
  RedisServer redis;
  Service service(Yaml(redis.port()));
  AwaitRedis(service);
  redis.Text({"EVAL", "for i = 1, 1000 do redis.call('HSET', KEYS[1], 'r x' .. i, '1 0 {}') end",
              "1", "tg:overrides:{fleet}"});
  Operator op(service, witness);
  for (const Change& change : kOverrides) op.Post(change.path, Whom("closed", change.more), 409);
}

void RedisGone(Witness& witness) {
  RedisServer redis;
  Service service(Yaml(redis.port()));
  AwaitRedis(service);
  Operator op(service, witness);
  redis.Signal(SIGSTOP);
  op.Post("/v1/ban", Whom("closed"), 503);  // Sent, and not answered: the outcome is unknown.
  redis.Kill();
  for (const Change& change : kOnKeys) op.Post(change.path, Whom("closed", change.more), 503);
  for (const Change& change : kOverrides) op.Post(change.path, Whom("closed", change.more), 503);
  op.Post("/v1/lift", Whom("closed"), 503);
  op.Post("/v1/inspect", Whom("closed"), 503);
  op.Get("/v1/audit", 503);
  for (const std::string_view rule : kRules) {
    (void)service.Decide(Whom(rule));
    const json::value told = op.Told("/v1/explain", Whom(rule), "rules");
    EXPECT_EQ(told.as_array().at(0).at("decided_by").as_string(), rule);
  }
  EXPECT_EQ(op.Get("/readyz").body, "ready, but the store does not answer\n");
  EXPECT_TRUE(Soon(
      [&] { return json::parse(op.Get("/v1/status").body).at("store").at("breaker") == "open"; }));
  EXPECT_TRUE(Soon([&] {
    const json::value told = op.Told("/v1/explain", Whom("closed"), "rules");
    return told.as_array().at(0).at("reason") == "breaker_open";
  }));
  EXPECT_FALSE(json::parse(op.Get("/v1/status").body)
                   .at("store")
                   .at("last_error")
                   .at("message")
                   .as_string()
                   .empty());
  op.Get("/metrics");
}

void RedisNeverThere(Witness& witness) {
  Service service(Yaml(redis_test::LowPort()));
  Operator op(service, witness);
  op.Get("/readyz", 503);
  op.Post("/v1/explain", Whom("closed"), 503);
  op.Post("/v1/inspect", Whom("closed"), 503);
  const json::value status = json::parse(op.Get("/v1/status").body);
  EXPECT_FALSE(status.at("overrides").at("known").as_bool());
  EXPECT_FALSE(json::parse(op.Get("/v1/overrides").body).at("known").as_bool());
  for (const char* const path : {"/v1/rules", "/v1/overrides", "/metrics"}) op.Get(path);
}

}  // namespace tidegate::openapi_test
