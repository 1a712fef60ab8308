// SPDX-License-Identifier: Apache-2.0
// Tests what operators can change on a node without Redis, and the rights that they need.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "service/admin_case.hpp"
#include "support/resp_client.hpp"

namespace tidegate::service {
namespace {

using namespace std::chrono_literals;
namespace json = boost::json;
using testing::HasSubstr;
using testing::Not;

constexpr std::string_view kYaml = R"(
rules:
  - { id: per-key, match: { path: /v1/** }, per: header:x-api-key | client_ip, limit: 2/h }
  - { id: shadow, match: { path: /v1/** }, per: client_ip, limit: 1/h, mode: shadow }
  - { id: slots, match: { path: /slow }, per: client_ip, limit: 1/10s, algorithm: concurrency }
)";

std::string KeyBody(std::string_view more = {}) { return ByRule("per-key", "abc", more); }

/// Uses up all units of the key.
void Exhaust(Service& service) {
  while (service.Decide(KeyBody()).status == 200) {
  }
}

TEST(AdminTest, BanExpiresOrIsLifted) {
  Service service(kYaml, 2);
  const HttpResponse banned =
      AskAdmin(service, "/v1/ban", KeyBody(R"(,"ttl":"10s","reason":"scraping")"));
  ASSERT_EQ(banned.status, 200) << banned.body;
  EXPECT_TRUE(banned.Json().at("applied").as_bool());
  // The other reactor applies the ban a moment later.
  HttpResponse refused = service.Decide(KeyBody());
  for (int i = 0; i < 500 && refused.status != 403; ++i) refused = service.Decide(KeyBody());
  EXPECT_EQ(refused.status, 403);
  EXPECT_EQ(refused.Field("Retry-After"), "10");
  EXPECT_EQ(refused.Json().at("rule").as_string(), "per-key");
  EXPECT_TRUE(refused.Json().at("banned").as_bool());
  EXPECT_EQ(refused.Json().at("decided_by").as_string(), "operator");
  EXPECT_EQ(refused.Json().at("reason").as_string(), "banned");
  EXPECT_EQ(refused.Field("X-Tidegate-Decided-By"), "operator");
  service.Advance(10s - 1us);
  EXPECT_EQ(service.Decide(KeyBody()).status, 403);
  service.Advance(1us);
  EXPECT_EQ(service.Decide(KeyBody()).status, 200);
  EXPECT_EQ(ReadAdmin(service, "/v1/overrides").body, "{\"overrides\":[]}\n");
}

TEST(AdminTest, LiftRemovesOverride) {
  Service service(kYaml);
  (void)AskAdmin(service, "/v1/ban", KeyBody());
  EXPECT_EQ(service.Decide(KeyBody()).status, 403);
  EXPECT_FALSE(service.Decide(KeyBody()).Has("Retry-After"))
      << "a ban without an end has no Retry-After";
  EXPECT_TRUE(AskAdmin(service, "/v1/lift", KeyBody()).Json().at("applied").as_bool());
  EXPECT_EQ(service.Decide(KeyBody()).status, 200);
  EXPECT_FALSE(AskAdmin(service, "/v1/lift", KeyBody()).Json().at("applied").as_bool());
}

TEST(AdminTest, BanAppliesOnEveryListener) {
  Config config = Service::ConfigOf(kYaml);
  config.listen.resp = "127.0.0.1:0";
  config.client_ip.policy = ClientAddressPolicy{};
  config.client_ip.policy.trusted_proxies = {Network::Parse("127.0.0.1/32").value()};
  Service service(config);
  (void)AskAdmin(service, "/v1/ban", KeyBody(R"(,"ttl":"1h")"));
  test::RespClient resp(service.server().resp());
  EXPECT_EQ(resp.Ask({"TG.DECIDE", "per-key", "abc"}),
            "[1,-1,-1,3600000,-1,\"operator\",\"banned\"]");
  HttpClient auth(service.api());
  auth.Send(
      "GET /v1/auth HTTP/1.1\r\nHost: x\r\nX-Forwarded-Method: GET\r\nX-Forwarded-Uri: /v1/x\r\n"
      "X-Forwarded-For: 192.0.2.1\r\nX-Api-Key: abc\r\n\r\n");
  EXPECT_EQ(auth.Read().status, 403);
  EXPECT_EQ(
      service.Metric(
          R"(tidegate_decisions_total{rule="per-key",outcome="banned",decided_by="operator"})"),
      2);
}

TEST(AdminTest, AllowedKeyIsNotCounted) {
  Service service(kYaml);
  Exhaust(service);
  (void)AskAdmin(service, "/v1/allow", KeyBody());
  for (int i = 0; i < 5; ++i) {
    const HttpResponse answer = service.Decide(KeyBody());
    EXPECT_EQ(answer.status, 200);
    EXPECT_TRUE(answer.Json().at("exempt").as_bool());
    EXPECT_EQ(answer.Json().at("rule").as_string(), "per-key");
    EXPECT_EQ(answer.Json().at("decided_by").as_string(), "operator");
    EXPECT_EQ(answer.Json().at("reason").as_string(), "exempt");
  }
  EXPECT_EQ(
      service.Metric(
          R"(tidegate_decisions_total{rule="per-key",outcome="exempted",decided_by="operator"})"),
      5);
  (void)AskAdmin(service, "/v1/lift", KeyBody());
  EXPECT_EQ(service.Decide(KeyBody()).status, 429);
}

TEST(AdminTest, OverrideKeepsStateOfTheKey) {
  Service service(kYaml);
  ASSERT_EQ(service.Decide(KeyBody()).status, 200);
  ASSERT_EQ(AskAdmin(service, "/v1/override", KeyBody(R"(,"limit":"9/h","burst":9)")).status, 200);
  EXPECT_EQ(service.Decide(KeyBody()).Json().at("limit").to_number<int>(), 9);
  const auto overrides = ReadAdmin(service, "/v1/overrides").Json();
  const auto& one = overrides.at("overrides").as_array().at(0).as_object();
  EXPECT_EQ(one.at("kind").as_string(), "quota");
  EXPECT_EQ(one.at("limit").as_string(), "9/h");
  EXPECT_TRUE(one.at("in_force").as_bool());
  // A rule whose algorithm has changed ignores the override and reports this.
  ASSERT_TRUE(service.Reload(
      "rules: [ { id: per-key, per: header:x-api-key, limit: 3/h, algorithm: fixed_window } ]"));
  EXPECT_EQ(service.Decide(KeyBody()).Json().at("limit").to_number<int>(), 3);
  EXPECT_THAT(ReadAdmin(service, "/v1/overrides").body, HasSubstr("counts by fixed_window now"));
}

TEST(AdminTest, GrantRefundAndResetReturnUnits) {
  Service service(kYaml);
  Exhaust(service);
  EXPECT_TRUE(
      AskAdmin(service, "/v1/grant", KeyBody(R"(,"amount":1)")).Json().at("applied").as_bool());
  EXPECT_EQ(service.Decide(KeyBody()).status, 200);
  EXPECT_EQ(service.Decide(KeyBody()).status, 429);
  EXPECT_TRUE(
      AskAdmin(service, "/v1/refund", KeyBody(R"(,"id":"r1")")).Json().at("applied").as_bool());
  EXPECT_FALSE(
      AskAdmin(service, "/v1/refund", KeyBody(R"(,"id":"r1")")).Json().at("applied").as_bool());
  EXPECT_EQ(service.Decide(KeyBody()).status, 200);
  EXPECT_TRUE(AskAdmin(service, "/v1/reset", KeyBody()).Json().at("applied").as_bool());
  EXPECT_EQ(service.Decide(KeyBody()).Json().at("remaining").to_number<int>(), 1);
  EXPECT_EQ(service.Metric("tidegate_admin_changes_total{action=\"refund\"}"), 2);
}

TEST(AdminTest, InspectShowsStoredState) {
  Service service(kYaml);
  const auto fresh = AskAdmin(service, "/v1/inspect", KeyBody()).Json();
  EXPECT_FALSE(fresh.at("tracked").as_bool());
  (void)service.Decide(KeyBody());
  const HttpResponse answer = AskAdmin(service, "/v1/inspect", KeyBody());
  const auto seen = answer.Json();
  EXPECT_TRUE(seen.at("tracked").as_bool());
  EXPECT_EQ(seen.at("remaining").to_number<int>(), 1);
  EXPECT_THAT(answer.body, HasSubstr(R"({"name":"tokens","value":"1"})"));
  EXPECT_TRUE(seen.at("override").is_null());
  // The key may also be given in the form in which it is shown.
  const std::string key(seen.at("key").as_string());
  EXPECT_EQ(AskAdmin(service, "/v1/inspect", R"({"rule":"per-key","key":")" + key + "\"}").body,
            answer.body);
}

TEST(AdminTest, InspectAndRulesShowOverrides) {
  Service service(kYaml);
  const auto allowed = [&] {
    return AskAdmin(service, "/v1/inspect", KeyBody()).Json().at("allowed").as_bool();
  };
  EXPECT_TRUE(allowed());
  (void)AskAdmin(service, "/v1/ban", KeyBody());
  EXPECT_FALSE(allowed());
  EXPECT_THAT(ReadAdmin(service, "/v1/rules").body, HasSubstr(R"("overrides":1)"));
  Exhaust(service);
  (void)AskAdmin(service, "/v1/allow", KeyBody());
  EXPECT_TRUE(allowed());
}

TEST(AdminTest, AuditRecordsEveryChange) {
  Service service(kYaml);
  (void)AskAdmin(service, "/v1/ban", KeyBody(R"(,"ttl":"1h","reason":"scraping")"));
  (void)AskAdmin(service, "/v1/reset", KeyBody());
  (void)AskAdmin(service, "/v1/lift", KeyBody());
  const auto audit = ReadAdmin(service, "/v1/audit").Json();
  const auto& entries = audit.at("entries").as_array();
  ASSERT_EQ(entries.size(), 3u);
  EXPECT_EQ(entries[0].as_object().at("action").as_string(), "lift");
  const auto& ban = entries[2].as_object();
  EXPECT_EQ(ban.at("detail").as_string(), "for 1 h: scraping");
  EXPECT_EQ(ban.at("by").as_string(), "(loopback)");
  EXPECT_EQ(ban.at("from").as_string(), "127.0.0.1");
  EXPECT_TRUE(ban.at("applied").as_bool());
  EXPECT_FALSE(entries[1].as_object().at("applied").as_bool()) << "the reset found no state";
  EXPECT_EQ(ReadAdmin(service, "/v1/audit?limit=1").Json().at("entries").as_array().size(), 1u);
}

TEST(AdminTest, HotKeysAreHashedUnlessConfigured) {
  const std::string request = R"({"request":{"path":"/v1/x","client_ip":"203.0.113.7"}})";
  for (const bool plain : {false, true}) {
    Service service(std::string(kYaml) +
                    (plain ? "metrics: { key_names: plain }\n" : "metrics: { hot_keys: 10 }\n"));
    for (int i = 0; i < 5; ++i) (void)service.Decide(request);
    std::string hot;
    for (int i = 0; i < 1000 && hot.find("\"count\":5") == std::string::npos; ++i) {
      hot = ReadAdmin(service, "/v1/hot?limit=3").body;
      std::this_thread::sleep_for(5ms);
    }
    EXPECT_THAT(hot, HasSubstr("\"count\":5"));
    EXPECT_EQ(hot.find("203.0.113.7") != std::string::npos, plain) << hot;
    // Anyone who knows the client's address can compute the hashed name.
    const auto seen =
        AskAdmin(service, "/v1/inspect", R"({"rule":"shadow","identity":"203.0.113.7"})").Json();
    const std::string shown(seen.at(plain ? "key" : "shown_as").as_string());
    EXPECT_THAT(hot, HasSubstr(shown));
  }
}

TEST(AdminTest, ReloadChangesHowKeysAreShown) {
  Service service(kYaml);
  const auto names = [&] { return ReadAdmin(service, "/v1/hot").Json().at("names"); };
  EXPECT_EQ(names(), "hashed");
  const Config shown = Service::ConfigOf(std::string(kYaml) + "metrics: { key_names: plain }\n");
  EXPECT_THAT(service.server().NeedsRestart(shown), testing::IsEmpty());
  ASSERT_TRUE(service.Reload(std::string(kYaml) + "metrics: { key_names: plain }\n"));
  EXPECT_EQ(names(), "plain");
  ASSERT_TRUE(service.Reload(kYaml));
  EXPECT_EQ(names(), "hashed");
}

TEST(AdminTest, StatusAndRulesReportCounts) {
  Service service(kYaml);
  Exhaust(service);
  const auto status = ReadAdmin(service, "/v1/status").Json();
  EXPECT_EQ(status.at("store").as_object().at("kind").as_string(), "memory");
  EXPECT_EQ(status.at("decisions").as_object().at("allowed").to_number<int>(), 2);
  EXPECT_EQ(status.at("decisions").as_object().at("denied").to_number<int>(), 1);
  EXPECT_EQ(status.at("decided_by").as_object().at("store").to_number<int>(), 3);
  const auto rules = ReadAdmin(service, "/v1/rules").Json();
  const auto& first = rules.at("rules").as_array().at(0).as_object();
  EXPECT_EQ(first.at("limit").as_string(), "2/h");
  EXPECT_EQ(first.at("decisions").as_object().at("denied").to_number<int>(), 1);
}

TEST(AdminTest, RejectsInvalidRequestsWithoutChanges) {
  Service service(kYaml);
  struct Bad {
    const char* path;
    std::string body;
    const char* pointer;
  };
  const std::string k256(256, 'x');
  const Bad cases[] = {
      {"/v1/ban", "{}", "/rule"},
      {"/v1/ban", R"({"rule":"per-key"})", "/identity"},
      {"/v1/ban", R"({"rule":"per-key","key":"abc"})", "/key"},
      {"/v1/ban", R"({"rule":"per-key","identity":"a","key":"client_ip=1.2.3.4"})", "/key"},
      {"/v1/ban", KeyBody(R"(,"ttl":"soon")"), "/ttl"},
      {"/v1/ban", KeyBody(R"(,"ttl":"0s")"), "/ttl"},
      {"/v1/ban", KeyBody(R"(,"ttl":"1us")"), "/ttl"},
      {"/v1/ban", KeyBody(R"(,"ttl":"99999d")"), "/ttl"},
      {"/v1/ban", KeyBody(R"(,"ttl":3600)"), "/ttl"},
      {"/v1/ban", KeyBody(",\"reason\":\"" + k256 + "\""), "/reason"},
      {"/v1/ban", KeyBody(R"(,"limit":"1/s")"), "/limit"},
      {"/v1/override", KeyBody(), "/limit"},
      {"/v1/override", KeyBody(R"(,"limit":"0/s")"), "/limit"},
      {"/v1/override", KeyBody(R"(,"limit":"5/s","burst":0)"), "/burst"},
      {"/v1/override", KeyBody(R"(,"limit":"9007199254740993/s")"), "/limit"},
      {"/v1/grant", KeyBody(), "/amount"},
      {"/v1/grant", KeyBody(R"(,"amount":0)"), "/amount"},
      {"/v1/grant", KeyBody(R"(,"amount":-5)"), "/amount"},
      {"/v1/grant", KeyBody(R"(,"amount":2147483648)"), "/amount"},
      {"/v1/grant", KeyBody(R"(,"amount":1.5)"), "/amount"},
      {"/v1/grant", ByRule("slots", "192.0.2.1", R"(,"amount":1)"), "/rule"},
      {"/v1/refund", KeyBody(), "/id"},
      {"/v1/refund", KeyBody(R"(,"id":"")"), "/id"},
      {"/v1/reset", KeyBody(R"(,"amount":1)"), "/amount"},
      {"/v1/inspect", KeyBody(R"(,"cost":1)"), "/cost"},
  };
  for (const Bad& bad : cases) {
    const HttpResponse answer = AskAdmin(service, bad.path, bad.body);
    EXPECT_EQ(answer.status, 400) << bad.path << bad.body << answer.body;
    EXPECT_EQ(answer.Json().at("pointer").as_string(), bad.pointer) << bad.body << answer.body;
  }
  EXPECT_EQ(AskAdmin(service, "/v1/ban", ByRule("per-kay", "x")).status, 404);
  // A hashed key without the identity behind it cannot be banned.
  EXPECT_THAT(AskAdmin(service, "/v1/ban", R"({"rule":"per-key","key":"client_ip=#k3Jx0"})").body,
              HasSubstr("name it by its `identity`"));
  EXPECT_EQ(ReadAdmin(service, "/v1/hot?limit=0").status, 400);
  EXPECT_EQ(ReadAdmin(service, "/v1/hot?limit=1e3").status, 400);
  EXPECT_EQ(ReadAdmin(service, "/v1/audit?limit=1001").status, 400);
  EXPECT_EQ(ReadAdmin(service, "/v1/ban").status, 405);
  EXPECT_THAT(ReadAdmin(service, "/v1/statu").body, HasSubstr("/v1/status"));
  EXPECT_EQ(ReadAdmin(service, "/v1/overrides").body, "{\"overrides\":[]}\n");
  const auto audit = ReadAdmin(service, "/v1/audit").Json();
  EXPECT_TRUE(audit.at("entries").as_array().empty());
  EXPECT_EQ(audit.at("history").at("kept_in"), "memory");
  EXPECT_TRUE(audit.at("history").at("complete").as_bool());
}

TEST(AdminTest, ExpiredOverridesAreNotCounted) {
  Service service(kYaml);
  for (int i = 0; i < 100; ++i) {
    const std::string body =
        R"({"rule":"shadow","key":"client_ip=10.0.0.)" + std::to_string(i) + R"(","ttl":"1h"})";
    ASSERT_EQ(AskAdmin(service, "/v1/ban", body).status, 200);
  }
  EXPECT_EQ(service.Metric("tidegate_overrides{kind=\"ban\"}"), 100);
  service.Advance(1h);
  EXPECT_EQ(service.Metric("tidegate_overrides{kind=\"ban\"}"), 0);
}

TEST(AdminTest, RejectsBodyWithContentCoding) {
  Service service(kYaml);
  const std::string body = KeyBody();
  HttpClient client(service.admin());
  client.Send(
      "POST /v1/ban HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
      "Content-Encoding: gzip\r\nContent-Length: " +
      std::to_string(body.size()) + "\r\n\r\n" + body);
  const HttpResponse answer = client.Read();
  EXPECT_EQ(answer.status, 415);
  EXPECT_EQ(answer.Field("Accept-Encoding"), "identity");
  EXPECT_THAT(answer.body, HasSubstr("`Content-Encoding: gzip`"));
  EXPECT_EQ(service.Metric("tidegate_overrides{kind=\"ban\"}"), 0);
}

// --- Access rights -------------------------------------------------------------

TEST(AdminAccessTest, RejectsRequestsOfWebPages) {
  Service service(kYaml);
  const auto ask = [&](const std::string& request) {
    HttpClient client(service.admin());
    client.Send(request);
    return client.Read().status;
  };
  const std::string body = KeyBody();
  const std::string length = "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  const std::string json = "Content-Type: application/json\r\n";
  // Forms and text, which web pages may send without a preflight request.
  EXPECT_EQ(
      ask("POST /v1/ban HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: text/plain\r\n" + length),
      415);
  EXPECT_EQ(ask("POST /v1/ban HTTP/1.1\r\nHost: 127.0.0.1\r\n" + length), 415);
  // A request from another origin.
  EXPECT_EQ(ask("POST /v1/ban HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: http://evil.example\r\n" +
                json + length),
            403);
  EXPECT_EQ(ask("GET /v1/hot HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: null\r\n\r\n"), 403);
  // A host name that resolves to this machine (DNS rebinding).
  EXPECT_EQ(ask("GET /v1/hot HTTP/1.1\r\nHost: evil.example\r\n\r\n"), 403);
  EXPECT_EQ(ask("GET /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n"), 403);
  EXPECT_EQ(ask("GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: http://evil.example\r\n\r\n"),
            403);
  EXPECT_EQ(ask("POST /v1/ban HTTP/1.1\r\nHost: evil.example\r\nOrigin: http://evil.example\r\n" +
                json + length),
            403);
  EXPECT_EQ(service.Decide(KeyBody()).status, 200) << "the rejected requests must not ban";
  // Requests from the origin of the server itself, as the console sends them.
  EXPECT_EQ(ask("GET /v1/hot HTTP/1.1\r\nHost: localhost:9180\r\nOrigin: http://localhost:9180"
                "\r\n\r\n"),
            200);
  EXPECT_EQ(ask("POST /v1/ban HTTP/1.1\r\nHost: [::1]:9180\r\nOrigin: http://[::1]:9180\r\n" +
                json + length),
            200);
  // A preflight request gets no permission.
  HttpClient preflight(service.admin());
  preflight.Send(
      "OPTIONS /v1/ban HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: http://evil.example\r\n"
      "Access-Control-Request-Method: POST\r\n\r\n");
  const HttpResponse answer = preflight.Read();
  EXPECT_EQ(answer.status, 405);
  EXPECT_FALSE(answer.Has("Access-Control-Allow-Origin"));
}

TEST(AdminAccessTest, TokensGiveRightsToReadAndToChange) {
  Config config = Service::ConfigOf(kYaml);
  config.listen.admin.auth = ListenSpec::Auth::kRequired;
  config.access.tokens = {{"alice", "0123456789abcdef-all", TokenSpec::May::kAll},
                          {"robot", "0123456789abcdef-ask", TokenSpec::May::kAsk}};
  Service service(config);
  const auto as = [](const std::string& token) {
    return "Authorization: Bearer " + token + "\r\n";
  };
  const std::string all = as("0123456789abcdef-all");
  const std::string asks = as("0123456789abcdef-ask");
  EXPECT_EQ(AskAdmin(service, "/v1/ban", KeyBody()).status, 401);
  EXPECT_EQ(AskAdmin(service, "/v1/ban", KeyBody(), as("0123456789abcdef-alk")).status, 401);
  EXPECT_EQ(AskAdmin(service, "/v1/explain", KeyBody()).status, 401);
  for (const char* path :
       {"/v1/status", "/v1/rules", "/v1/hot", "/v1/overrides", "/v1/audit", "/metrics"}) {
    EXPECT_EQ(ReadAdmin(service, path).status, 401) << path;
  }
  EXPECT_EQ(ReadAdmin(service, "/healthz").status, 200);
  EXPECT_EQ(AskAdmin(service, "/v1/explain", KeyBody(), asks).status, 200);
  for (const char* path : {"/v1/reset", "/v1/ban", "/v1/allow", "/v1/lift"}) {
    EXPECT_EQ(AskAdmin(service, path, KeyBody(), asks).status, 403) << path;
  }
  EXPECT_EQ(AskAdmin(service, "/v1/ban", KeyBody(), all).status, 200);
  {
    HttpClient scrape(service.admin());
    scrape.Send("GET /metrics HTTP/1.1\r\nHost: tidegate.example\r\n" + asks + "\r\n");
    const std::string metrics = scrape.Read().body;
    EXPECT_THAT(metrics,
                HasSubstr(R"(tidegate_auth_failures_total{listener="admin",reason="missing"} 8)"));
    EXPECT_THAT(metrics,
                HasSubstr(R"(tidegate_auth_failures_total{listener="admin",reason="wrong"} 1)"));
    EXPECT_THAT(metrics,
                HasSubstr(R"(tidegate_auth_failures_total{listener="admin",reason="rights"} 4)"));
  }
  HttpClient client(service.admin());
  client.Send("GET /v1/audit HTTP/1.1\r\nHost: tidegate.example\r\n" + all + "\r\n");
  const HttpResponse audit = client.Read();
  EXPECT_THAT(audit.body, HasSubstr(R"("by":"alice")"));
  EXPECT_THAT(audit.body, Not(HasSubstr("0123456789abcdef")));
}

}  // namespace
}  // namespace tidegate::service
