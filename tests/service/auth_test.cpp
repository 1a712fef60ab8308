// SPDX-License-Identifier: Apache-2.0
// Tests /v1/auth, which reverse proxies request before they forward a request. The test acts as the
// proxy.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "service/fixture.hpp"

namespace tidegate::service {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr std::string_view kRules = R"(
client_ip: { trusted_proxies: [127.0.0.1] }
deny:
  - { header: { user-agent: "BadBot*" } }
exempt:
  - { client_ip: [192.0.2.0/24] }
rules:
  - { id: address, match: { path: /api/** }, per: client_ip, limit: 3/m }
  - { id: key, match: { path: /keys }, per: header:x-api-key, limit: 3/m }
  - { id: session, match: { path: /session }, per: cookie:sid, limit: 3/m }
  - { id: posts, match: { path: /posts, method: [POST] }, per: client_ip, limit: 1/m }
  - { id: hosted, match: { host: api.example.com, path: /hosted }, per: client_ip, limit: 1/m }
  - { id: search, match: { path: /search }, per: query:q, limit: 1/m }
  - { id: priced, match: { path: /priced }, per: client_ip, limit: 10/m, cost: "header:x-cost" }
  - { id: jobs, match: { path: /jobs }, per: client_ip, limit: 1/30s, algorithm: concurrency }
  - { id: starts, match: { path: /jobs }, per: client_ip, limit: 3/m }
)";

constexpr std::string_view kClient = "X-Forwarded-For: 203.0.113.7\r\n";

/// Returns the header fields that a proxy with X-Forwarded-* sends.
std::string Forwarded(std::string_view uri, std::string_view method = "GET") {
  std::string text = "X-Forwarded-Uri: ";
  text.append(uri).append("\r\nX-Forwarded-Method: ").append(method).append("\r\n");
  return text.append(kClient);
}

/// Returns the header fields that a proxy with X-Original-* sends.
std::string Original(std::string_view uri, std::string_view method = "GET") {
  std::string text = "X-Original-URI: ";
  text.append(uri).append("\r\nX-Original-Method: ").append(method).append("\r\n");
  return text.append(kClient);
}

class AuthTest : public testing::Test {
 protected:
  explicit AuthTest(std::string_view yaml = kRules) : service_(yaml), client_(service_.api()) {}

  HttpResponse Auth(std::string_view fields, std::string_view target = "/v1/auth",
                    std::string_view method = "GET", std::string_view body = {}) {
    std::string text(method);
    text.append(" ").append(target).append(" HTTP/1.1\r\nHost: api.example.com\r\n");
    text.append(fields);
    if (!body.empty()) {
      text.append("Content-Length: ").append(std::to_string(body.size())).append("\r\n");
    }
    client_.Send(text.append("\r\n").append(body));
    return client_.Read(method == "HEAD" ? HttpClient::Body::kNo : HttpClient::Body::kYes);
  }
  /// Returns how many units `rule` has left for `identity`.
  std::int64_t Left(std::string_view rule, std::string_view identity = "203.0.113.7") {
    return service_.Ask("/v1/peek", ByRule(rule, identity)).Json().at("remaining").to_number<int>();
  }

  Service service_;
  HttpClient client_;
};

// --- Allowed and denied ---------------------------------------------------------

TEST_F(AuthTest, Returns200UntilQuotaIsEmptyThen429) {
  for (int left = 2; left >= 0; --left) {
    const HttpResponse answer = Auth(Forwarded("/api/x?a=b"));
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.body, "");
    EXPECT_EQ(answer.Field("Content-Length"), "0");
    EXPECT_FALSE(answer.Has("Content-Type"));
    EXPECT_FALSE(answer.Has("X-RateLimit-Status"));
    EXPECT_EQ(answer.Field("RateLimit"), "\"address\";r=" + std::to_string(left) + ";t=20");
    EXPECT_EQ(answer.Field("RateLimit-Policy"), R"("address";q=3;w=60)");
  }
  const HttpResponse denied = Auth(Forwarded("/api/x"));
  EXPECT_EQ(denied.status, 429);
  EXPECT_EQ(denied.Field("Retry-After"), "20");
  EXPECT_EQ(denied.Field("RateLimit"), R"("address";r=0;t=20)");
  EXPECT_EQ(denied.Field("X-RateLimit-Status"), "429");
  EXPECT_EQ(denied.Field("Cache-Control"), "no-store");
  EXPECT_EQ(denied.Field("Content-Type"), "application/problem+json");
  // The body has the members of a /v1/decide response without `decided_by` and `reason`: proxies
  // pass denials on to clients.
  const HttpResponse decided =
      service_.Decide(R"({"request":{"path":"/api/x","client_ip":"203.0.113.7"}})");
  boost::json::object expected = decided.Json();
  for (const char* const member : {"decided_by", "reason"}) EXPECT_EQ(expected.erase(member), 1u);
  EXPECT_EQ(denied.Json(), expected);
  service_.Advance(20s);
  EXPECT_EQ(Auth(Forwarded("/api/x")).status, 200);
}

TEST_F(AuthTest, DeniesWithStatusFromDenyStatusParameter) {
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Auth(Original("/api"), "/v1/auth?deny_status=403").status, 200);
  }
  const HttpResponse limited = Auth(Original("/api"), "/v1/auth?deny_status=403");
  EXPECT_EQ(limited.status, 403);
  EXPECT_EQ(limited.Field("X-RateLimit-Status"), "429");
  EXPECT_EQ(limited.Field("Retry-After"), "20");
  EXPECT_EQ(limited.Json().at("status"), 429);
  const std::string bot = "User-Agent: BadBot/1\r\n";
  const HttpResponse denied = Auth(Original("/x") + bot, "/v1/auth?deny_status=401");
  EXPECT_EQ(denied.status, 401);
  EXPECT_EQ(denied.Field("X-RateLimit-Status"), "403");
  const HttpResponse bad = Auth(Original("no-path"), "/v1/auth?deny_status=403");
  EXPECT_EQ(bad.status, 403);
  EXPECT_EQ(bad.Field("X-RateLimit-Status"), "400");
  EXPECT_EQ(bad.Json().at("status"), 400);
}

TEST_F(AuthTest, DenyAndExemptComeBeforeAllRules) {
  const HttpResponse denied = Auth(Forwarded("/api") + "User-Agent: BadBot/1\r\n");
  EXPECT_EQ(denied.status, 403);
  EXPECT_EQ(denied.Field("X-RateLimit-Status"), "403");
  EXPECT_EQ(Left("address"), 3);
  for (int i = 0; i < 5; ++i) {
    const HttpResponse answer =
        Auth("X-Forwarded-Uri: /api\r\nX-Forwarded-Method: GET\r\nX-Forwarded-For: 192.0.2.1\r\n");
    EXPECT_EQ(answer.status, 200);
    EXPECT_FALSE(answer.Has("RateLimit"));
  }
}

TEST_F(AuthTest, IgnoresContentCodingOfTheClient) {
  EXPECT_EQ(Auth(Forwarded("/api/x", "POST") + "Content-Encoding: gzip\r\n", "/v1/auth", "POST",
                 "\x1f\x8b not JSON")
                .status,
            200);
}

TEST_F(AuthTest, AcceptsAnyMethodBodyAndOrigin) {
  int left = 3;
  for (const char* method : {"POST", "OPTIONS", "PATCH"}) {
    const HttpResponse answer = Auth(Forwarded("/api") + "Origin: https://web.example\r\n",
                                     "/v1/auth", method, "not JSON at all");
    EXPECT_EQ(answer.status, 200) << method;
    EXPECT_EQ(Left("address"), --left);
  }
  const HttpResponse head = Auth(Forwarded("/api"), "/v1/auth", "HEAD");
  EXPECT_EQ(head.status, 429);
  EXPECT_EQ(head.Field("Retry-After"), "20");
  EXPECT_EQ(Auth(Forwarded("/elsewhere"), "/v1/auth", "HEAD").status, 200);
}

TEST_F(AuthTest, CountsDecisionsInMetrics) {
  for (int i = 0; i < 5; ++i) (void)Auth(Forwarded("/api"));
  const std::string metrics = service_.Metrics();
  EXPECT_THAT(metrics, HasSubstr(R"(rule="address",outcome="allowed",decided_by="store"} 3)"));
  EXPECT_THAT(metrics, HasSubstr(R"(rule="address",outcome="denied",decided_by="store"} 2)"));
}

// --- The attributes of the client's request ----------------------------------------

TEST_F(AuthTest, IdentifiesClientByHeaderCookieOrQuery) {
  EXPECT_EQ(Auth(Forwarded("/keys") + "X-Api-Key: alice\r\n").status, 200);
  EXPECT_EQ(Left("key", "alice"), 2);
  EXPECT_EQ(Auth(Forwarded("/session") + "Cookie: a=b; sid=s1\r\n").status, 200);
  EXPECT_EQ(Left("session", "s1"), 2);
  EXPECT_EQ(Auth(Forwarded("/search?x=y&q=term")).status, 200);
  EXPECT_EQ(Left("search", "term"), 0);
}

TEST_F(AuthTest, UsesRightmostUntrustedForwardedAddress) {
  const std::string about = "X-Forwarded-Uri: /api\r\nX-Forwarded-Method: GET\r\n";
  EXPECT_EQ(Auth(about + "X-Forwarded-For: 198.51.100.1, 203.0.113.7\r\n").status, 200);
  EXPECT_EQ(Left("address"), 2);
  EXPECT_EQ(Left("address", "198.51.100.1"), 3);
  EXPECT_EQ(Auth(about + "X-Forwarded-For: 203.0.113.7, 127.0.0.1\r\n").status, 200);
  EXPECT_EQ(Left("address"), 1);
}

TEST_F(AuthTest, UsesMethodHostAndPathOfTheClient) {
  EXPECT_EQ(Auth(Forwarded("/posts", "POST")).status, 200);
  EXPECT_EQ(Auth(Forwarded("/posts", "POST")).status, 429);
  EXPECT_EQ(Auth(Forwarded("/posts", "GET"), "/v1/auth", "POST").status, 200);
  // Matches the Host of the request to Tidegate itself.
  EXPECT_EQ(Auth(Original("/hosted")).status, 200);
  EXPECT_EQ(Auth(Forwarded("/hosted") + "X-Forwarded-Host: API.example.com:443\r\n").status, 429);
  EXPECT_EQ(Auth(Forwarded("/hosted") + "X-Forwarded-Host: other.example\r\n").status, 200);
  EXPECT_EQ(Auth(Forwarded("/api/.//%61")).status, 200);
  EXPECT_EQ(Left("address"), 2);
}

TEST_F(AuthTest, RefusesEncodedSlashes) {
  for (const char* path : {"/api/group%2fproject/..x", "/api%2fx", "/api%5Cx", "/x\\y"}) {
    const HttpResponse answer = Auth(Forwarded(path));
    EXPECT_EQ(answer.status, 400) << path;
    EXPECT_THAT(answer.body, HasSubstr("encoded slash")) << path;
  }
  EXPECT_EQ(Left("address"), 3);
}

TEST_F(AuthTest, MatchesEveryInterpretationOfThePath) {
  EXPECT_EQ(Auth(Forwarded("/api;x/y")).status, 200);
  EXPECT_EQ(Left("address"), 2);
  EXPECT_EQ(Auth(Forwarded("/posts/", "POST")).status, 200);
  EXPECT_EQ(Auth(Forwarded("/posts;x", "POST")).status, 429);
  EXPECT_EQ(Auth(Forwarded("/posts%20", "POST")).status, 429);
}

TEST_F(AuthTest, RefusesMethodsInLowerCase) {
  const HttpResponse answer = Auth(Forwarded("/posts", "post"));
  EXPECT_EQ(answer.status, 400);
  EXPECT_THAT(answer.body, HasSubstr("method `post` is not in upper case"));
}

TEST_F(AuthTest, RefusesAnotherPathInXRewriteUrl) {
  EXPECT_EQ(Auth(Forwarded("/api") + "X-Rewrite-URL: /admin\r\n").status, 400);
  EXPECT_EQ(Auth(Forwarded("/api") + "X-Rewrite-URL: /api\r\n").status, 200);
}

TEST_F(AuthTest, ReadsClientRequestFromEnvoyPathSuffix) {
  EXPECT_EQ(Auth(kClient, "/v1/auth/posts?x=1", "POST").status, 200);
  EXPECT_EQ(Left("posts"), 0);
  EXPECT_EQ(Auth(kClient, "/v1/auth/posts", "GET").status, 200);
  EXPECT_EQ(Auth(kClient, "/v1/auth/posts?deny_status=403", "POST").status, 429)
      << "the query belongs to the client's request";
  EXPECT_EQ(Auth(kClient, "/v1/auth/hosted").status, 200);
  EXPECT_EQ(Left("hosted"), 0);
  EXPECT_EQ(Auth(kClient, "/v1/auth/").status, 200);
}

TEST_F(AuthTest, IgnoresCostHeaderOfTheClient) {
  EXPECT_EQ(Auth(Forwarded("/priced") + "X-Cost: 10\r\n").status, 200);
  EXPECT_EQ(Left("priced"), 9);
}

TEST_F(AuthTest, SkipsConcurrencyRules) {
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Auth(Forwarded("/jobs")).status, 200);
  EXPECT_EQ(Left("jobs"), 1);
  const HttpResponse denied = Auth(Forwarded("/jobs"));
  EXPECT_EQ(denied.status, 429);
  EXPECT_EQ(denied.Field("RateLimit-Policy"), R"("starts";q=3;w=60)");
}

// --- Invalid requests --------------------------------------------------------------

struct BadCase {
  std::string fields;
  int status = 400;
  std::string message;
  std::string target = "/v1/auth";
};

TEST_F(AuthTest, RejectsInvalidRequestsWithoutCharge) {
  const std::vector<BadCase> cases = {
      {std::string(kClient), 400, "X-Forwarded-Uri and X-Forwarded-Method"},
      {"X-Forwarded-Uri: /api\r\n" + std::string(kClient), 400, "not described"},
      {"X-Original-URI: /api\r\n" + std::string(kClient), 400, "not described"},
      {Forwarded("/api") + "X-Original-URI: /other\r\n", 400, "smuggled"},
      {Forwarded("/api") + "X-Original-Method: PUT\r\n", 400, "smuggled"},
      {Forwarded("/api") + "X-Forwarded-Uri: /api\r\n", 400, "twice"},
      {Forwarded("api"), 400, "path"},
      {Forwarded(""), 400, "path"},
      {Forwarded("*"), 400, "path"},
      {Forwarded("/api/../.."), 400, "path"},
      {Forwarded("/api/%00"), 400, "path"},
      {Forwarded("/api/%zz"), 400, "path"},
      {Forwarded("http://h/api"), 400, "path"},
      {Forwarded("/api", "G E T"), 400, "not a method"},
      {Forwarded("/api") + "X-Forwarded-Host: a b\r\n", 400, "host"},
      {Forwarded("/api") + "X-Forwarded-Host: a, b\r\n", 400, "host"},
      {Forwarded("/api") + "X-Forwarded-Host:\r\n", 400, "empty"},
      {Forwarded("/free/..%2fapi/x"), 400, "ambiguous path"},
      {Forwarded("/free%2F../api/x"), 400, "ambiguous path"},
      {Forwarded("/api%2fx/../free"), 400, "ambiguous path"},
      {Forwarded("/free/..%5Capi/x"), 400, "ambiguous path"},
      {Forwarded("/free%5c%2e%2e/api"), 400, "ambiguous path"},
      {Forwarded("/free/..;/api/x"), 400, "ambiguous path"},
      {Forwarded("/free/..\\api/x"), 400, "path"},
      {Original("/free/..%2fapi/x"), 400, "ambiguous path"},
      {std::string(kClient), 400, "ambiguous path", "/v1/auth/free/..%2fapi/x"},
      {std::string(kClient), 400, "path", "/v1/auth/../api"},
      {Forwarded("/api"), 400, "smuggled", "/v1/auth/other"},
      {Forwarded("/keys") + "X-Api-Key: a\r\nX-Api-Key: b\r\n", 400, "x-api-key"},
      {Forwarded("/api"), 500, "deny_status", "/v1/auth?deny_status=200"},
      {Forwarded("/api"), 500, "deny_status", "/v1/auth?deny_status=403&deny_status=429"},
      {Forwarded("/api"), 500, "\\\"rule\\\"", "/v1/auth?rule=address"},
  };
  for (const BadCase& one : cases) {
    const HttpResponse answer = Auth(one.fields, one.target);
    EXPECT_EQ(answer.status, one.status) << one.fields << answer.body;
    EXPECT_THAT(answer.body, HasSubstr(one.message)) << one.fields;
    EXPECT_EQ(answer.Field("X-RateLimit-Status"), one.status == 500 ? "" : "400") << one.fields;
    EXPECT_EQ(answer.Field("Cache-Control"), "no-store");
  }
  EXPECT_EQ(Left("address"), 3);
  EXPECT_EQ(Left("address", "127.0.0.1"), 3);
  EXPECT_THAT(service_.Metrics(), testing::Not(HasSubstr(R"(rule="address",outcome="allowed")")));
}

TEST_F(AuthTest, Returns404ForOtherPaths) {
  EXPECT_EQ(Auth(Forwarded("/api"), "/v1/authorise").status, 404);
  EXPECT_EQ(Auth(Forwarded("/api"), "/v1").status, 404);
}

class UntrustedProxyTest : public AuthTest {
 protected:
  UntrustedProxyTest()
      : AuthTest(R"(
client_ip: { trusted_proxies: [10.0.0.0/8] }
rules: [ { id: address, match: { path: /api/** }, per: client_ip, limit: 3/m } ]
)") {}
};

TEST_F(UntrustedProxyTest, Returns500WithTheMissingSetting) {
  for (const char* target : {"/v1/auth", "/v1/auth?deny_status=403", "/v1/auth/api"}) {
    const HttpResponse answer = Auth(Forwarded("/api"), target);
    EXPECT_EQ(answer.status, 500) << "nginx treats 403 as a denial";
    EXPECT_THAT(answer.Json().at("detail").as_string().c_str(),
                HasSubstr(R"(`client_ip: {trusted_proxies: ["127.0.0.1"]}`)"));
    EXPECT_FALSE(answer.Has("X-RateLimit-Status"));
  }
  EXPECT_EQ(Left("address"), 3);
  EXPECT_EQ(Left("address", "127.0.0.1"), 3);
}

}  // namespace
}  // namespace tidegate::service
