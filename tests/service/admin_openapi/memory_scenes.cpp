// SPDX-License-Identifier: Apache-2.0
// Scenes on a node without Redis.
#include <gtest/gtest.h>

#include "service/admin_openapi/operator.hpp"
#include "service/admin_openapi/scenes.hpp"
#include "support/wait.hpp"

namespace tidegate::openapi_test {
namespace {

using namespace std::chrono_literals;
namespace json = boost::json;
using service::ByRule;
using service::Service;

constexpr std::string_view kMemoryYaml = R"(
deny: [ { header: { user-agent: "Bad*" } } ]
exempt: [ { client_ip: [192.0.2.9] } ]
exempt_preflights: true
rules:
  - id: bucket
    match: { host: api.example.com, path: /v1/**, method: [GET, POST], header: { x-a: "b*" }, client_ip: [192.0.2.0/24] }
    per: header:x-api-key | client_ip
    limit: 2/h
    burst: 4
    cost: header:x-cost
    on_failure: open
  - { id: gcra, match: { path: /gcra }, per: client_ip, limit: 2/h, algorithm: gcra, on_failure: closed }
  - { id: log, match: { path: /log }, per: client_ip, limit: 2/h, algorithm: sliding_log, on_failure: local }
  - { id: window, match: { path: /window, any: [ { path: /window }, { method: POST } ], not: { header: { x-skip: "1" } } }, per: client_ip, limit: 2/h, algorithm: sliding_window, mode: shadow }
  - { id: fixed, match: { path: /fixed }, per: client_ip, limit: 2/h, algorithm: fixed_window }
  - id: dear
    match: { path: /dear }
    per: client_ip
    limit: 4/h
    cost: 2
    overrides: [ { identity: 192.0.2.8, limit: 8/h } ]
  - { id: slots, match: { path: /slots }, per: client_ip, limit: 2/1h, algorithm: concurrency }
)";
constexpr std::string_view kCounting[] = {"bucket", "gcra", "log", "window", "fixed"};
constexpr std::string_view kIp = "192.0.2.1";

std::string KeyBody(std::string_view rule, std::string_view more = {}) {
  if (rule != "bucket") return ByRule(rule, kIp, more);
  return R"({"rule":"bucket","identity":{"client_ip":")" + std::string(kIp) + "\"}" +
         std::string(more) + "}";
}

}  // namespace

void EveryKindOfRule(ResponseCoverage& coverage) {
  Service service(kMemoryYaml);
  Operator op(service, coverage);
  for (const char* const path :
       {"/healthz", "/readyz", "/openapi.json", "/metrics", "/v1/status", "/v1/rules", "/v1/hot",
        "/v1/hot?limit=1", "/v1/overrides", "/v1/audit", "/v1/audit?limit=1000"}) {
    op.Get(path);
  }
  for (const std::string_view rule : kCounting) {
    SCOPED_TRACE(rule);
    const std::string key_body = KeyBody(rule);
    EXPECT_FALSE(op.MemberOf("/v1/inspect", key_body, "tracked").as_bool());
    while (service.Decide(key_body).Json().at("remaining").to_number<int>() > 0) {
    }
    EXPECT_TRUE(op.MemberOf("/v1/inspect", key_body, "tracked").as_bool());
    EXPECT_FALSE(op.MemberOf("/v1/inspect", key_body, "state").as_array().empty());
    EXPECT_FALSE(op.MemberOf("/v1/inspect", key_body, "allowed").as_bool());
    op.Post("/v1/explain", key_body);
    op.Post("/v1/explain", KeyBody(rule, R"(,"cost":1000)"));
    EXPECT_TRUE(op.MemberOf("/v1/grant", KeyBody(rule, R"(,"amount":1)"), "applied").as_bool());
    const std::string refund = KeyBody(rule, R"(,"id":"a","cost":1,"age_ms":0)");
    EXPECT_TRUE(op.MemberOf("/v1/refund", refund, "applied").as_bool());
    EXPECT_FALSE(op.MemberOf("/v1/refund", refund, "applied").as_bool());
    EXPECT_TRUE(op.MemberOf("/v1/reset", key_body, "applied").as_bool());
    EXPECT_FALSE(op.MemberOf("/v1/reset", key_body, "applied").as_bool());
  }
  const std::string lease = KeyBody("slots", R"(,"lease":"a")");
  op.Post("/v1/explain", lease);
  EXPECT_EQ(service.Ask("/v1/acquire", lease).status, 200);
  EXPECT_EQ(op.MemberOf("/v1/inspect", KeyBody("slots"), "state").as_array().size(), 1u);
  op.Post("/v1/explain", lease);
  EXPECT_TRUE(op.MemberOf("/v1/reset", KeyBody("slots"), "applied").as_bool());
  for (const char* const path : {"/metrics", "/v1/status", "/v1/rules", "/v1/audit"}) op.Get(path);
}

void EveryKindOfOverride(ResponseCoverage& coverage) {
  Service service(kMemoryYaml);
  Operator op(service, coverage);
  struct Decree {
    const char* path;
    const char* more;
  };
  constexpr Decree kDecrees[] = {
      {"/v1/ban", R"(,"ttl":"1h","reason":"scraping")"},
      {"/v1/ban", ""},
      {"/v1/allow", R"(,"ttl":"1h","reason":"load test")"},
      {"/v1/allow", ""},
      {"/v1/override", R"(,"limit":"9/h","ttl":"1h","reason":"partner")"},
      {"/v1/override", R"(,"limit":"9/h")"},
  };
  for (const Decree& decree : kDecrees) {
    for (const std::string_view rule : {"bucket", "gcra", "log", "window", "fixed", "slots"}) {
      SCOPED_TRACE(rule);
      op.Post(decree.path, KeyBody(rule, decree.more));
      op.Post("/v1/inspect", KeyBody(rule));
      if (rule != "slots") op.Post("/v1/explain", KeyBody(rule));
    }
    op.Get("/v1/overrides");
  }
  op.Post("/v1/override", KeyBody("gcra", R"(,"limit":"9/h","burst":20)"));
  EXPECT_EQ(
      op.MemberOf("/v1/override", KeyBody("gcra", R"(,"limit":"9/h")"), "replaced").at("burst"),
      20);
  EXPECT_EQ(op.MemberOf("/v1/lift", KeyBody("gcra"), "lifted").at("limit"), "9/h");
  op.Post("/v1/override", KeyBody("gcra", R"(,"limit":"9/h")"));
  const std::string configured = ByRule("dear", "192.0.2.8");
  EXPECT_EQ(op.MemberOf("/v1/inspect", configured, "override").at("from"), "configuration");
  op.Post("/v1/explain", configured);
  op.Post("/v1/explain", R"({"rule":"dear","key":"client_ip=192.0.2.8"})");
  op.Post("/v1/override", KeyBody("dear", R"(,"limit":"1/h")"));
  EXPECT_TRUE(op.MemberOf("/v1/inspect", KeyBody("dear"), "never").as_bool());
  EXPECT_TRUE(op.MemberOf("/v1/lift", KeyBody("log"), "applied").as_bool());
  EXPECT_FALSE(op.MemberOf("/v1/lift", KeyBody("log"), "applied").as_bool());
  for (const char* const path : {"/v1/status", "/v1/rules", "/v1/audit", "/metrics"}) op.Get(path);
  // Overrides of rules that were removed, and of one rule that has another algorithm.
  ASSERT_TRUE(service.Reload(
      "rules: [ { id: gcra, per: client_ip, limit: 2/h, algorithm: fixed_window } ]"));
  op.Get("/v1/overrides");
  const std::string gone = R"({"rule":"fixed","key":"client_ip=)" + std::string(kIp) + "\"}";
  EXPECT_TRUE(op.MemberOf("/v1/lift", gone, "applied").as_bool());
}

void EveryOutcome(ResponseCoverage& coverage) {
  Service service(kMemoryYaml);
  Operator op(service, coverage);
  const auto outcome = [&](std::string_view request) {
    return op.MemberOf("/v1/explain", R"({"request":)" + std::string(request) + "}", "outcome");
  };
  constexpr std::string_view kGcra = R"({"path":"/gcra","client_ip":"192.0.2.1"})";
  EXPECT_EQ(outcome(R"({"headers":{"user-agent":"BadBot"}})"), "deny");
  EXPECT_EQ(outcome(R"({"client_ip":"192.0.2.9"})"), "exempt");
  EXPECT_EQ(outcome(R"({"method":"OPTIONS","path":"/gcra","client_ip":"192.0.2.1",
                        "headers":{"origin":"https://a","access-control-request-method":"PUT"}})"),
            "exempt");
  EXPECT_EQ(outcome(R"({"path":"/nowhere"})"), "uncounted");
  EXPECT_EQ(outcome(R"({"host":"api.example.com","path":"/v1/x?y=z","client_ip":"192.0.2.1",
                        "headers":{"x-a":"bc","x-api-key":"secret","x-cost":"2"}})"),
            "rules");
  EXPECT_EQ(outcome(R"({"path":"/window","peer":"192.0.2.1"})"), "rules");
  EXPECT_EQ(outcome(kGcra), "rules");
  op.Post("/v1/ban", KeyBody("gcra", R"(,"ttl":"1h")"));
  EXPECT_EQ(outcome(kGcra), "banned");
  op.Post("/v1/allow", KeyBody("gcra"));
  EXPECT_EQ(outcome(kGcra), "uncounted");
}

void HotKeys(ResponseCoverage& coverage) {
  for (const std::string_view names : {"hashed", "plain"}) {
    SCOPED_TRACE(names);
    Service service(std::string(kMemoryYaml) + "metrics: { key_names: " + std::string(names) +
                    " }\n");
    Operator op(service, coverage);
    for (int i = 0; i < 5; ++i) (void)service.Decide(KeyBody("fixed"));
    EXPECT_TRUE(test::WaitUntil([&] {
      const json::value hot = json::parse(op.Get("/v1/hot").body);
      EXPECT_EQ(hot.at("names").as_string(), names);
      return !hot.at("requests").at("keys").as_array().empty() &&
             !hot.at("denials").at("keys").as_array().empty();
    }));
  }
}

void EveryListener(ResponseCoverage& coverage) {
  const ConfigReading reading = ParseConfig(std::string(kMemoryYaml) + R"(
listen: { api: "127.0.0.1:0", admin: "127.0.0.1:0", gateway: "127.0.0.1:0", resp: "127.0.0.1:0" }
routes: [ { id: gcra, match: { path: /gcra }, upstream: one } ]
upstreams: { one: { targets: ["http://127.0.0.1:9"] } }
)");
  Service service(reading.config.value(), 2);
  Operator op(service, coverage);
  const json::value status = json::parse(op.Get("/v1/status").body);
  EXPECT_EQ(status.at("listeners").as_array().size(), 4u);
  op.Get("/metrics");
  const auto request = [](std::string_view path, std::string_view listener) {
    return R"({"request":{"path":")" + std::string(path) +
           R"(","client_ip":"192.0.2.1"},"listener":")" + std::string(listener) + "\"}";
  };
  op.Post("/v1/explain", request("/gcra", "api"));
  EXPECT_EQ(op.MemberOf("/v1/explain", request("/gcra", "gateway"), "route"), "gcra");
  EXPECT_EQ(json::parse(op.Post("/v1/explain", request("/log", "gateway")).body).at("status"), 404);
  op.Post("/v1/explain", request("/gcra", "resp"), 400);
  op.Post("/v1/explain", KeyBody("gcra", R"(,"listener":"gateway")"), 400);
}

void Draining(ResponseCoverage& coverage) {
  Service service(kMemoryYaml);
  Operator op(service, coverage);
  service.server().NotReady();
  op.Get("/readyz", 503);
  EXPECT_TRUE(json::parse(op.Get("/v1/status").body).at("draining").as_bool());
}

/// The responses to reload requests: with warnings, with errors, and when no reload takes place.
void Reloads(ResponseCoverage& coverage) {
  Service service(kMemoryYaml);
  Operator op(service, coverage);
  op.Post("/v1/reload", "{}", 409);
  ReloadReport report;
  service.server().SetReloader([&](const std::string&, const auto& done) { done(report); });
  using Outcome = ReloadReport::Outcome;
  report = {.outcome = Outcome::kApplied,
            .rules = 1,
            .needs_restart = {"limits"},
            .problems = ParseConfig("rules: [ { id: r, per: header:x, limit: 1/s } ]").problems};
  EXPECT_EQ(report.problems.size(), 1u) << "the warning that clients can invent header values";
  report.problems.push_back({.at = {.line = 3, .column = 5, .file = SourceFile("rules/a.yaml", 1)},
                             .where = "rules[1].limit",
                             .message = "in an included file"});
  EXPECT_TRUE(test::WaitUntil(
      [&] { return AskAdmin(service.admin(), "POST", "/v1/reload", "{}").status == 200; }));
  op.Post("/v1/reload", "{}");
  op.Get("/v1/audit");
  report = {.outcome = Outcome::kRefused, .problems = ParseConfig("rules: 5").problems};
  op.Post("/v1/reload", "{}", 422);
  report = {.outcome = Outcome::kNoFile};
  op.Post("/v1/reload", "{}", 409);
  report = {.outcome = Outcome::kStopping};
  op.Post("/v1/reload", "{}", 503);
}

}  // namespace tidegate::openapi_test
