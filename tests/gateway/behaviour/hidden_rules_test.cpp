// SPDX-License-Identifier: Apache-2.0
// No client receives the name of a shadow rule or of a rule with `announce: false`, whatever the
// request and the response are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <charconv>
#include <set>
#include <sstream>

#include "gateway/behaviour/gateway_fixture.hpp"
#include "service/admin_case.hpp"
#include "support/resp_client.hpp"

namespace tidegate::behaviour {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr std::string_view kRules = R"(
client_ip: { trusted_proxies: [ "127.0.0.0/8" ] }
identity: { duplicate_cookies: count_all }
responses: { headers: [ ratelimit, ratelimit-legacy, x-ratelimit ], decided_by: always, partition_key: true }
rules:
  - { id: zzghost-all, per: client_ip, limit: 1/h, mode: shadow }
  - { id: zzghost-key, match: { path: [ /key/**, /only/** ] }, per: header:x-key, limit: 1/h, mode: shadow }
  - { id: zzsecret-a, match: { path: /a/** }, per: client_ip, limit: 1/h, announce: false }
  - { id: zzsecret-b, match: { path: /b/** }, per: header:x-key, limit: 2/h, announce: false, cost: "header:x-cost" }
  - { id: zzsecret-both, match: { path: /both/** }, per: client_ip, limit: 1/h, announce: false }
  - { id: zzsecret-window, match: { path: /w/** }, per: client_ip, limit: 1/h, algorithm: sliding_log, announce: false }
  - { id: zzsecret-lease, match: { path: /lease/** }, per: client_ip, limit: 1/h, algorithm: concurrency, announce: false }
  - { id: zzghost-lease, match: { path: /shadowlease/** }, per: client_ip, limit: 1/h, algorithm: concurrency, mode: shadow }
  - { id: zzsecret-cookie, match: { path: /cookie/** }, per: cookie:c, limit: 1/h, announce: false }
  - { id: shown, match: { path: [ /both/**, /shown/**, /b/** ] }, per: client_ip, limit: 4/h }
)";

std::string Configuration(std::string_view upstream) { return Routed(upstream, {}, kRules); }

/// Sends one request on a new connection and returns all bytes of the response.
std::string Bytes(const net::Endpoint& to, std::string_view method, std::string_view target,
                  std::string_view lines, std::string_view body = {}) {
  Client client(to);
  // The API listens on a loopback address and accepts only IP addresses as Host.
  std::string text(method);
  text.append(" ").append(target).append(" HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n");
  text.append(lines).append("Content-Length: ").append(std::to_string(body.size()));
  client.Send(text.append("\r\n\r\n").append(body));
  return client.stream().ReadRest();
}

int StatusIn(std::string_view bytes) {
  int status = 0;
  if (bytes.size() >= 12) (void)std::from_chars(bytes.data() + 9, bytes.data() + 12, status);
  return status;
}

class HiddenRulesTest : public testing::Test {
 protected:
  /// Expects that a response arrived and names no hidden rule.
  void ExpectNoHiddenName(std::string_view bytes, std::string_view what) {
    ++responses_;
    statuses_.insert(StatusIn(bytes));
    EXPECT_NE(bytes, "") << what;
    EXPECT_THAT(std::string(bytes), Not(HasSubstr("zz"))) << what;
  }

  ScriptedUpstream up_{ScriptedUpstream::Ok()};
  Gate gate_{Configuration(up_.url())};
  int responses_ = 0;
  std::set<int> statuses_;
};

constexpr std::array<std::string_view, 13> kPaths = {
    "/",        "/key/x",    "/only/x",  "/a/x",   "/b/x",    "/both/x", "/w/x", "/shadowlease/x",
    "/lease/x", "/cookie/x", "/shown/x", "/a/%qq", "/a/b%2Fc"};
constexpr std::array<std::string_view, 6> kLines = {
    "",
    "X-Key: alice\r\n",
    "X-Cost: 99999999999\r\n",
    "X-Key: a\r\nX-Key: b\r\n",
    "Cookie: c=1; c=2\r\n",
    "Content-Type: application/grpc\r\nTE: trailers\r\n"};

TEST_F(HiddenRulesTest, GatewayResponsesDoNotNameHiddenRules) {
  for (int round = 0; round < 6; ++round) {
    for (const std::string_view path : kPaths) {
      for (const std::string_view lines : kLines) {
        for (const std::string_view method : {"GET", "POST", "HEAD", "OPTIONS", "TRACE", "get"}) {
          ExpectNoHiddenName(
              Bytes(gate_.at(), method, path, lines),
              std::string(method) + " " + std::string(path) + " " + std::string(lines));
        }
      }
    }
  }
  EXPECT_THAT(statuses_, testing::IsSupersetOf({200, 400, 405, 429}));
  // A rule that is not hidden is named. Otherwise this test would pass on a server that names no
  // rule at all.
  EXPECT_THAT(Bytes(gate_.at(), "GET", "/shown/x", ""), HasSubstr("\"shown\""));
}

TEST_F(HiddenRulesTest, ForwardAuthResponsesDoNotNameHiddenRules) {
  for (int round = 0; round < 6; ++round) {
    for (const std::string_view path : kPaths) {
      for (const std::string_view lines : kLines) {
        for (const std::string_view query : {"", "?deny_status=403"}) {
          const std::string fields =
              "X-Forwarded-Method: GET\r\nX-Forwarded-For: 203.0.113.7\r\n"
              "X-Forwarded-Uri: " +
              std::string(path) + "\r\n" + std::string(lines);
          ExpectNoHiddenName(
              Bytes(gate_.server().api(), "GET", "/v1/auth" + std::string(query), fields), fields);
        }
      }
    }
  }
  EXPECT_THAT(statuses_, testing::IsSupersetOf({200, 400, 403, 429}));
}

TEST_F(HiddenRulesTest, ApiNamesHiddenRulesOnlyToCallersThatNameThem) {
  const net::Endpoint api = gate_.server().api();
  const auto ask = [&](std::string_view endpoint, const std::string& body) {
    return Bytes(api, "POST", endpoint, "Content-Type: application/json\r\n", body);
  };
  for (int round = 0; round < 4; ++round) {
    for (const std::string_view path : kPaths) {
      for (const std::string_view headers :
           {"{}", R"({"x-key":"alice"})", R"({"x-cost":"nine"})", R"({"x-key":["a","b"]})"}) {
        const std::string request = R"({"request":{"client_ip":"203.0.113.9","path":")" +
                                    std::string(path) + R"(","headers":)" + std::string(headers) +
                                    "}}";
        for (const std::string_view endpoint : {"/v1/decide", "/v1/peek", "/v1/debit"}) {
          std::string body = request;
          if (endpoint == "/v1/debit") body.insert(1, "\"cost\":1,");
          ExpectNoHiddenName(ask(endpoint, body), std::string(endpoint) + body);
        }
        std::string batch = R"({"requests":[)";
        batch.append(request).append(",").append(request).append("]}");
        ExpectNoHiddenName(ask("/v1/decide/batch", batch), batch);
      }
    }
  }
  EXPECT_THAT(statuses_, testing::IsSupersetOf({200, 400, 429}));
  // A "did you mean" hint for a misspelt name must not reveal a hidden rule.
  const std::string unknown = ask("/v1/decide", R"({"rule":"zsecret-a","identity":"x"})");
  EXPECT_THAT(unknown, HasSubstr(" 404 "));
  EXPECT_THAT(unknown, Not(HasSubstr("zzsecret-a")));
  // The body names the rule because the caller named it. The header fields do not, because programs
  // copy them to other responses.
  const std::string named = ask("/v1/decide", R"({"rule":"zzsecret-a","identity":"203.0.113.1"})");
  const std::size_t end = named.find("\r\n\r\n");
  EXPECT_THAT(named.substr(0, end), Not(HasSubstr("zz")));
  EXPECT_THAT(named.substr(end), HasSubstr(R"("rule":"zzsecret-a")"));
}

TEST_F(HiddenRulesTest, RedisProtocolRepliesDoNotNameHiddenRules) {
  test::RespClient client(gate_.server().resp());
  std::string all;
  for (int round = 0; round < 4; ++round) {
    all += client.Ask({"TG.DECIDE", "zzsecret-a", "203.0.113.3"}) + "\n";
    all += client.Ask({"TG.PEEK", "zzghost-all", "203.0.113.3"}) + "\n";
    all += client.Ask({"TG.DEBIT", "zzsecret-a", "203.0.113.3", "COST", "1"}) + "\n";
    all += client.Ask({"TG.REFUND", "zzsecret-a", "203.0.113.3", "ID", "1"}) + "\n";
    all += client.Ask({"TG.DECIDE", "zsecret-a", "203.0.113.3"}) + "\n";
    all += client.Ask({"CL.THROTTLE", "zz", "1", "1", "60"}) + "\n";
    all += client.Ask({"TG.DECIDE", "zzsecret-a", "203.0.113.3", "COST", "0"}) + "\n";
  }
  EXPECT_THAT(all, HasSubstr("[1,1,0,"));
  EXPECT_THAT(all, HasSubstr("-ERR"));
  // Only error replies may contain a hidden name, because they repeat the name that the client
  // sent.
  std::string reply;
  for (std::istringstream lines(all); std::getline(lines, reply);) {
    EXPECT_TRUE(reply.starts_with("-ERR") || reply.find("zz") == std::string::npos) << reply;
    EXPECT_THAT(reply, Not(HasSubstr("did you mean"))) << reply;
  }
}

TEST_F(HiddenRulesTest, ResponsesForBannedOrAllowedKeysDoNotNameHiddenRules) {
  for (const std::string_view change : {"/v1/ban", "/v1/allow"}) {
    for (const std::string_view rule : {"zzghost-all", "zzsecret-a"}) {
      const std::string body = service::ByRule(rule, "127.0.0.1", R"(,"ttl":"1h")");
      ASSERT_EQ(service::AskAdmin(gate_.server().admin(), change, body).status, 200);
      ExpectNoHiddenName(Bytes(gate_.at(), "GET", "/a/x", ""), change);
      ExpectNoHiddenName(Bytes(gate_.server().api(), "GET", "/v1/auth",
                               "X-Forwarded-Method: GET\r\nX-Forwarded-Uri: /a/x\r\n"),
                         change);
      ExpectNoHiddenName(
          Bytes(gate_.server().api(), "POST", "/v1/decide", "Content-Type: application/json\r\n",
                R"({"request":{"client_ip":"127.0.0.1","path":"/a/x"}})"),
          change);
      ASSERT_EQ(
          service::AskAdmin(gate_.server().admin(), "/v1/lift", service::ByRule(rule, "127.0.0.1"))
              .status,
          200);
    }
  }
  EXPECT_THAT(statuses_, testing::IsSupersetOf({200, 403}));
}

TEST(HiddenRuleDenialTest, ContainsOnlyTheTimeToRetry) {
  ScriptedUpstream up(ScriptedUpstream::Ok());
  Gate gate(Configuration(up.url()));
  EXPECT_EQ(gate.Get("/both/x").status, 200);
  const HttpResponse denied = gate.Get("/both/x");
  EXPECT_EQ(denied.status, 429);
  EXPECT_EQ(denied.Field("Retry-After"), "3600");
  EXPECT_THAT(denied.Field("RateLimit-Policy"), HasSubstr("\"shown\";q=4"));
  EXPECT_THAT(denied.Field("RateLimit"), HasSubstr("\"shown\";r=3"));
  const boost::json::object body = denied.Json();
  EXPECT_TRUE(body.at("violated-policies").as_array().empty());
  EXPECT_FALSE(body.contains("rule"));
  EXPECT_FALSE(body.contains("limit"));
  EXPECT_EQ(body.at("retry_after_ms"), 3'600'000);
  EXPECT_EQ(body.at("rules").as_array().size(), 1u);
}

TEST(HiddenRuleDenialTest, ApiListsHiddenRulesIfConfigured) {
  service::Service service(
      "api: { hidden_rules: true }\n"
      "rules: [ { id: ghost, per: client_ip, limit: 1/h, mode: shadow } ]\n");
  const service::HttpResponse answer =
      service.Decide(R"({"request":{"client_ip":"203.0.113.9","path":"/"}})");
  EXPECT_THAT(answer.body, HasSubstr(R"({"rule":"ghost","mode":"shadow")"));
  EXPECT_FALSE(answer.Has("RateLimit"));
}

}  // namespace
}  // namespace tidegate::behaviour
