// SPDX-License-Identifier: Apache-2.0
// The response to a denied request, for clients of the gateway and for clients of a proxy that uses
// /v1/auth.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "gateway/behaviour/gateway_fixture.hpp"
#include "service/admin_case.hpp"

namespace tidegate::behaviour {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

constexpr std::string_view kOneAnHour = "rules: [{id: one, per: client_ip, limit: 1/h}]\n";

/// Returns a configuration with one route, which has the additional keys `route_keys`, and the
/// additional sections `more`.
std::string Configured(std::string_view upstream, std::string_view route_keys,
                       std::string_view more) {
  return "upstreams: {up: {targets: " + std::string(upstream) +
         "}}\nroutes: [{id: all, upstream: up" + std::string(route_keys) + "}]\n" +
         std::string(more);
}

/// Sends a forward-auth request for a client's request to `uri` and returns the response.
service::HttpResponse Forwarded(Gate& gate, std::string_view uri, std::string_view lines = {},
                                std::string_view query = {}) {
  service::HttpClient client(gate.server().api());
  client.Send("GET /v1/auth" + std::string(query) +
              " HTTP/1.1\r\nHost: test\r\nX-Forwarded-Method: " + "GET\r\nX-Forwarded-Uri: " +
              std::string(uri) + "\r\nX-Forwarded-For: 203.0.113.7\r\n" + std::string(lines) +
              "\r\n");
  return client.Read();
}

class DenialTest : public testing::Test {
 protected:
  ScriptedUpstream up_{ScriptedUpstream::Ok()};
};

TEST_F(DenialTest, FillsInEveryPlaceholderOfTheBody) {
  Gate gate(Configured(up_.url(), "",
                       "client_ip: {trusted_proxies: [127.0.0.1]}\n"
                       "rules:\n"
                       "  - id: one\n"
                       "    per: client_ip\n"
                       "    limit: 1/h\n"
                       "    denial:\n"
                       "      status: 420\n"
                       "      content_type: text/plain\n"
                       "      link: https://example.com/limits\n"
                       "      headers: {X-Denied-By: tidegate}\n"
                       "      body: '{rule}|{limit}|{remaining}|{retry_after}|{request_id}|{link}|"
                       "{status}|{title}|{method}|{path}'\n"));
  EXPECT_EQ(gate.Get("/a").status, 200);
  const HttpResponse denied = gate.Get("/a?q=1", "X-Request-Id: id-7\r\n");
  EXPECT_EQ(denied.status, 420);
  EXPECT_EQ(denied.body, "one|1|0|3600|id-7|https://example.com/limits|420|Quota exceeded|GET|/a");
  EXPECT_EQ(denied.Field("Content-Type"), "text/plain; charset=utf-8");
  EXPECT_EQ(denied.Field("Link"), "<https://example.com/limits>; rel=\"help\"");
  EXPECT_EQ(denied.Field("X-Denied-By"), "tidegate");
  EXPECT_EQ(denied.Field("Retry-After"), "3600");
  EXPECT_EQ(denied.Field("Cache-Control"), "no-store");
  EXPECT_EQ(denied.Field("X-Content-Type-Options"), "nosniff");
  EXPECT_EQ(denied.Count("Content-Type"), 1);

  EXPECT_EQ(Forwarded(gate, "/b").status, 200);
  const service::HttpResponse auth = Forwarded(gate, "/b?q=1", "X-Request-Id: id-8\r\n");
  EXPECT_EQ(auth.status, 420);
  EXPECT_EQ(auth.body, "one|1|0|3600|id-8|https://example.com/limits|420|Quota exceeded|GET|/b");
  EXPECT_EQ(auth.Field("X-RateLimit-Status"), "420");
  EXPECT_EQ(auth.Field("Link"), "<https://example.com/limits>; rel=\"help\"");
  const service::HttpResponse nginx = Forwarded(gate, "/b", "", "?deny_status=403");
  EXPECT_EQ(nginx.status, 403);
  EXPECT_EQ(nginx.Field("X-RateLimit-Status"), "420");
}

TEST_F(DenialTest, EscapesClientDataInJsonAndHtmlBodies) {
  Gate gate(Configured(
      up_.url(), "",
      "client_ip: {trusted_proxies: [127.0.0.1]}\n"
      "rules:\n"
      "  - {id: json, match: {path: /j/**}, per: const, limit: 1/h, denial: {content_type: "
      "application/json, body: "
      "'{\"path\":\"{path}\",\"id\":\"{request_id}\",\"method\":\"{method}\"}'}}\n"
      "  - {id: html, match: {path: /h/**}, per: const, limit: 1/h, denial: {content_type: "
      "text/html, body: '<a href=\"{path}\" title={request_id}>{path}</a>{method}'}}\n"));
  EXPECT_EQ(gate.Get("/j/").status, 200);
  EXPECT_EQ(gate.Get("/h/").status, 200);
  for (const std::string_view evil :
       {"\"},\"x\":{\"a\":\"", "%22%7D", "<script>alert(1)</script>", "'onload='x", "\"onload=\"x",
        "&lt;", "\xff\xfe", "`x`", "a%0d%0ab", "${x}", "{path}", "%3Cb%3E"}) {
    const std::string value(evil);
    for (const bool through_auth : {false, true}) {
      const std::string id = "X-Request-Id: " + value + "\r\n";
      const std::string json =
          through_auth ? Forwarded(gate, "/j/" + value, id).body : gate.Get("/j/" + value, id).body;
      boost::system::error_code error;
      const boost::json::value parsed = boost::json::parse(json, error);
      ASSERT_FALSE(error) << json;
      EXPECT_THAT(json, Not(HasSubstr("<"))) << json;
      const bool rejected = parsed.as_object().contains("title");
      EXPECT_TRUE(rejected || parsed.as_object().size() == 3) << json;
      const std::string html =
          through_auth ? Forwarded(gate, "/h/" + value, id).body : gate.Get("/h/" + value, id).body;
      // The gateway rejects these with 400 and a problem document.
      if (html.starts_with('{')) continue;
      EXPECT_THAT(html, StartsWith("<a href=\"/h/"));
      EXPECT_EQ(std::ranges::count(html, '<'), 2) << html;
      EXPECT_EQ(std::ranges::count(html, '>'), 2) << html;
      EXPECT_EQ(std::ranges::count(html, '"'), 2) << html;
      EXPECT_EQ(std::ranges::count(html, ' '), 2) << html;
    }
  }
}

TEST_F(DenialTest, SendsDenialOfRuleElseOfRouteElseDefault) {
  const auto denial = [](std::string_view name) {
    return "denial: {content_type: text/plain, body: '" + std::string(name) + "'}";
  };
  Gate gate("upstreams: {up: {targets: " + up_.url() + "}}\nresponses: {" + denial("default") +
            "}\nroutes:\n  - {id: special, match: {path: /special/**}, upstream: up, " +
            denial("route") + "}\n  - {id: rest, upstream: up}\n" +
            "rules:\n  - {id: own, match: {path: [/special/own, /own]}, per: const, limit: 1/h, " +
            denial("rule") + "}\n" +
            "  - {id: plain, match: {path: [/special/plain, /plain]}, per: const, limit: 1/h}\n" +
            "deny: [{path: [/special/deny, /deny]}]\n");
  (void)gate.Get("/own");
  (void)gate.Get("/plain");
  EXPECT_EQ(gate.Get("/special/own").body, "rule");
  EXPECT_EQ(gate.Get("/own").body, "rule");
  EXPECT_EQ(gate.Get("/special/plain").body, "route");
  EXPECT_EQ(gate.Get("/plain").body, "default");
  const HttpResponse denied = gate.Get("/special/deny");
  EXPECT_EQ(denied.status, 403);
  EXPECT_EQ(denied.body, "route");
  EXPECT_EQ(gate.Get("/deny").body, "default");
}

// A configured status applies to exceeded quotas only. A ban keeps status 403, a store failure 503.
TEST_F(DenialTest, AppliesConfiguredStatusToExceededQuotasOnly) {
  Gate gate(
      Configured(up_.url(), "", "responses: {denial: {status: 418}}\n" + std::string(kOneAnHour)));
  EXPECT_EQ(gate.Get("/").status, 200);
  const HttpResponse denied = gate.Get("/");
  EXPECT_EQ(denied.status, 418);
  EXPECT_EQ(denied.Json().at("status"), 418);
  EXPECT_THAT(std::string(denied.Json().at("type").as_string()), HasSubstr("#quota-exceeded"));
  ASSERT_EQ(service::AskAdmin(gate.server().admin(), "/v1/ban", service::ByRule("one", "127.0.0.1"))
                .status,
            200);
  EXPECT_EQ(gate.Get("/").status, 403);
}

TEST_F(DenialTest, ReportsBanAsAbnormalUsage) {
  Gate gate(Configured(up_.url(), "",
                       "client_ip: {trusted_proxies: [127.0.0.1]}\n" + std::string(kOneAnHour)));
  for (const std::string_view address : {"127.0.0.1", "203.0.113.7"}) {
    ASSERT_EQ(service::AskAdmin(gate.server().admin(), "/v1/ban",
                                service::ByRule("one", address, R"(,"ttl":"90s")"))
                  .status,
              200);
  }
  const auto expect = [](int status, const boost::json::object& body, const std::string& wait) {
    EXPECT_EQ(status, 403);
    EXPECT_EQ(body.at("type"),
              "https://iana.org/assignments/http-problem-types#abnormal-usage-detected");
    EXPECT_EQ(body.at("violated-policies"), boost::json::parse(R"(["one"])"));
    EXPECT_EQ(wait, "90");
  };
  const HttpResponse gateway = gate.Get("/");
  expect(gateway.status, gateway.Json(), gateway.Field("Retry-After"));
  const service::HttpResponse auth = Forwarded(gate, "/");
  expect(auth.status, auth.Json(), auth.Field("Retry-After"));
  service::HttpClient api(gate.server().api());
  const service::HttpResponse decided =
      api.Ask("/v1/decide", service::ByRule("one", "203.0.113.7"));
  expect(decided.status, decided.Json(), decided.Field("Retry-After"));
}

TEST_F(DenialTest, SendsResponseHeadersOfRouteOnDenial) {
  Gate gate(Configured(
      up_.url(),
      ", response_headers: {set: {Access-Control-Allow-Origin: 'https://app.example', "
      "Access-Control-Expose-Headers: 'Retry-After, RateLimit', Cache-Control: 'max-age=60', "
      "X-A: route}, remove: [X-B]}, body_bytes: 10, denial: {headers: {X-A: denial}}",
      kOneAnHour));
  const HttpResponse passed = gate.Get("/");
  EXPECT_EQ(passed.Field("X-A"), "route");
  EXPECT_EQ(passed.Field("Cache-Control"), "max-age=60");
  const HttpResponse denied = gate.Get("/");
  EXPECT_EQ(denied.status, 429);
  EXPECT_EQ(denied.Field("Access-Control-Allow-Origin"), "https://app.example");
  EXPECT_EQ(denied.Field("Access-Control-Expose-Headers"), "Retry-After, RateLimit");
  EXPECT_EQ(denied.Field("Cache-Control"), "no-store");
  EXPECT_EQ(denied.Count("Cache-Control"), 1);
  EXPECT_EQ(denied.Field("X-A"), "denial");
  EXPECT_EQ(denied.Count("X-A"), 1);
  gate.Advance(std::chrono::hours{2});
  const HttpResponse too_long =
      Client(gate.at()).Ask(RequestText("POST", "/", "", "more than ten bytes"));
  EXPECT_EQ(too_long.status, 413);
  EXPECT_EQ(too_long.Field("Access-Control-Allow-Origin"), "https://app.example");
}

// Fields that describe the upstream's body, and fields that let caches store the response, are
// wrong on a denial.
TEST_F(DenialTest, OmitsHeaderFieldsThatDescribeTheUpstreamBody) {
  Gate gate(Configured(up_.url(),
                       ", response_headers: {set: {Content-Encoding: gzip, CDN-Cache-Control: "
                       "max-age=600, ETag: x, Expires: never, Grpc-Status: '0', X-A: route, "
                       "Content-Security-Policy: none}}",
                       kOneAnHour));
  EXPECT_EQ(gate.Get("/").Field("Content-Encoding"), "gzip");
  for (const std::string_view lines : {"", "Content-Type: application/grpc\r\n"}) {
    const HttpResponse denied = gate.Get("/", lines);
    for (const char* const name : {"Content-Encoding", "CDN-Cache-Control", "ETag", "Expires"}) {
      EXPECT_FALSE(denied.Has(name)) << name;
    }
    EXPECT_EQ(denied.fields.List("grpc-status"), lines.empty() ? "" : "8");
    EXPECT_EQ(denied.Field("X-A"), "route");
    EXPECT_EQ(denied.Field("Content-Security-Policy"), "none");
  }
}

// `t` of RateLimit must not be later than Retry-After (draft-ietf-httpapi-ratelimit-headers).
TEST_F(DenialTest, OmitsRateLimitTimeBesideUpstreamRetryAfter) {
  ScriptedUpstream busy(ScriptedUpstream::Each(
      [](const HttpRequest&) { return Http("503 Service Unavailable", "Retry-After: 1\r\n"); }));
  Gate gate(Configured(busy.url(), "", "rules: [{id: ten, per: client_ip, limit: 10/h}]\n"));
  const HttpResponse answer = gate.Get("/");
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(answer.Field("RateLimit"), "\"ten\";r=9");
}

TEST_F(DenialTest, CountsPreflightRequestsUnlessExempt) {
  const std::string preflight = RequestText(
      "OPTIONS", "/", "Origin: https://app.example\r\nAccess-Control-Request-Method: PUT\r\n", "");
  for (const bool exempt : {false, true}) {
    Gate gate(Configured(up_.url(), "",
                         std::string(exempt ? "exempt_preflights: true\n" : "") +
                             "client_ip: {trusted_proxies: [127.0.0.1]}\n" +
                             std::string(kOneAnHour)));
    EXPECT_EQ(Client(gate.at()).Ask(preflight).status, 200);
    EXPECT_EQ(Client(gate.at()).Ask(preflight).status, exempt ? 200 : 429);
    EXPECT_EQ(gate.Get("/").status, exempt ? 200 : 429);
    // An OPTIONS request without both fields of a CORS preflight is not a preflight.
    for (const std::string_view lines :
         {"", "Origin: https://app.example\r\n", "Access-Control-Request-Method: PUT\r\n",
          "Origin: https://a\r\nOrigin: https://b\r\nAccess-Control-Request-Method: PUT\r\n"}) {
      EXPECT_EQ(Client(gate.at()).Ask(RequestText("OPTIONS", "/", lines, "")).status, 429) << lines;
    }
    const std::string both =
        "Origin: https://app.example\r\nAccess-Control-Request-Method: PUT\r\n";
    EXPECT_EQ(gate.Get("/", both).status, 429) << "only OPTIONS is exempt";
    EXPECT_EQ(Client(gate.at()).Ask(RequestText("OPTIONS", "/", both, "a body")).status, 429);
    service::HttpClient proxy(gate.server().api());
    for (int i = 0; i < 2; ++i) {
      proxy.Send(
          "GET /v1/auth HTTP/1.1\r\nHost: test\r\nX-Forwarded-Method: OPTIONS\r\nX-Forwarded-Uri: "
          "/\r\n"
          "X-Forwarded-For: 203.0.113.7\r\nOrigin: https://app.example\r\n"
          "Access-Control-Request-Method: PUT\r\n\r\n");
      EXPECT_EQ(proxy.Read().status, exempt || i == 0 ? 200 : 429);
    }
  }
}

TEST_F(DenialTest, SendsDecidedByHeaderToTrustedPeersOrIfConfigured) {
  struct Row {
    std::string_view option;
    std::string_view trusted;  ///< Value of client_ip.trusted_proxies.
    bool gateway;              ///< A client of the gateway receives X-Tidegate-Decided-By.
    bool auth_denied;          ///< A client behind a proxy receives X-Tidegate-Decided-By.
  };
  for (const Row& row :
       {Row{"", "[10.0.0.1]", false, false}, Row{"", "[127.0.0.1]", true, false},
        Row{"always", "[127.0.0.1]", true, true}, Row{"always", "[10.0.0.1]", true, true},
        Row{"never", "[127.0.0.1]", false, false}}) {
    const std::string option =
        row.option.empty() ? "" : "responses: {decided_by: " + std::string(row.option) + "}\n";
    Gate gate(Configured(up_.url(), "",
                         option + "client_ip: {trusted_proxies: " + std::string(row.trusted) +
                             "}\n" + std::string(kOneAnHour)));
    for (const std::string_view address : {"127.0.0.1", "203.0.113.7"}) {
      ASSERT_EQ(service::AskAdmin(gate.server().admin(), "/v1/ban", service::ByRule("one", address))
                    .status,
                200);
    }
    const HttpResponse denied = gate.Get("/");
    EXPECT_EQ(denied.status, 403);
    EXPECT_EQ(denied.Has("X-Tidegate-Decided-By"), row.gateway) << row.option << row.trusted;
    EXPECT_EQ(denied.Json().contains("decided_by"), row.gateway) << row.option << row.trusted;
    EXPECT_EQ(denied.Json().contains("reason"), row.gateway) << row.option << row.trusted;
    // The API always sends the field, because its callers are programs that act on it.
    service::HttpClient api(gate.server().api());
    const service::HttpResponse decided =
        api.Ask("/v1/decide", service::ByRule("one", "203.0.113.7"));
    EXPECT_EQ(decided.Field("X-Tidegate-Decided-By"), "operator");
    EXPECT_EQ(decided.Json().at("decided_by"), "operator");
    if (row.trusted != "[127.0.0.1]") continue;
    const service::HttpResponse auth = Forwarded(gate, "/");
    EXPECT_EQ(auth.status, 403);
    EXPECT_EQ(auth.Has("X-Tidegate-Decided-By"), row.auth_denied) << row.option;
    EXPECT_EQ(auth.Json().contains("decided_by"), row.auth_denied) << row.option;
  }
}

TEST_F(DenialTest, SendsDecidedByHeaderToProxyOnAllowedRequest) {
  Gate gate(Configured(up_.url(), "",
                       "client_ip: {trusted_proxies: [127.0.0.1]}\n" + std::string(kOneAnHour)));
  ASSERT_EQ(
      service::AskAdmin(gate.server().admin(), "/v1/allow", service::ByRule("one", "203.0.113.7"))
          .status,
      200);
  const service::HttpResponse auth = Forwarded(gate, "/");
  EXPECT_EQ(auth.status, 200);
  EXPECT_EQ(auth.Field("X-Tidegate-Decided-By"), "operator");
}

TEST_F(DenialTest, SendsPartitionKeyAsHash) {
  const auto fields = [&](std::string_view option, std::string_view key) {
    Gate gate(Configured(up_.url(), "",
                         "identity: {hmac_key: 0123456789abcdef0123456789abcdef}\nresponses: {" +
                             std::string(option) +
                             "}\nrules: [{id: k, per: header:x-key, limit: 9/h}]\n"));
    const HttpResponse answer = gate.Get("/", "X-Key: " + std::string(key) + "\r\n");
    return answer.Field("RateLimit-Policy") + "\n" + answer.Field("RateLimit");
  };
  EXPECT_EQ(fields("", "alice"), "\"k\";q=9;w=3600\n\"k\";r=8;t=400");
  const std::string alice = fields("partition_key: true", "alice");
  EXPECT_THAT(alice, testing::MatchesRegex("\"k\";q=9;w=3600;pk=:[A-Za-z0-9+/]{12}:\n"
                                           "\"k\";r=8;t=400;pk=:[A-Za-z0-9+/]{12}:"));
  EXPECT_EQ(alice, fields("partition_key: true", "alice"))
      << "the hash differs between two gateways";
  EXPECT_NE(alice, fields("partition_key: true", "bob"));
  EXPECT_THAT(alice, Not(HasSubstr("alice")));
}

TEST_F(DenialTest, SendsNoBodyWhenHeadRequestIsDenied) {
  Gate gate(Configured(up_.url(), "", kOneAnHour));
  EXPECT_EQ(gate.Get("/").status, 200);
  Client client(gate.at());
  client.Send("HEAD / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
  const HttpResponse denied = client.Read(Client::Body::kNo);
  EXPECT_EQ(denied.status, 429);
  EXPECT_THAT(client.stream().ReadRest(), IsEmpty());
}

}  // namespace
}  // namespace tidegate::behaviour
