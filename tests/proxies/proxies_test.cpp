// SPDX-License-Identifier: Apache-2.0
// Clients of nginx, HAProxy and Caddy when these proxies send their requests to /v1/auth first,
// with the files of docs/recipes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "proxies/rig.hpp"

namespace tidegate::proxies_test {
namespace {

using namespace std::chrono_literals;
using gateway_test::Message;
using gateway_test::ProxyProcess;
using testing::AnyOf;
using testing::HasSubstr;

class ForwardAuthProxyTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!ProxyProcess::Installed(GetParam())) GTEST_SKIP() << GetParam() << " is not installed";
  }
  static void UseUp(const Rig& rig, const Client& client) {
    for (int i = 0; i < 5; ++i) EXPECT_EQ(rig.Ask(client).status, 200);
    EXPECT_EQ(rig.Ask(client).status, 429);
  }
  static std::int64_t Left(const Message& answer) {
    const std::string field = answer.Field("ratelimit");
    const std::size_t at = field.find(";r=");
    return at == std::string::npos ? -1 : std::stol(field.substr(at + 3));
  }
};

INSTANTIATE_TEST_SUITE_P(All, ForwardAuthProxyTest, testing::Values("nginx", "haproxy", "caddy"),
                         [](const auto& which) { return std::string(which.param); });

constexpr std::string_view kPolicy = R"("per-key";q=5;w=3600, "per-address";q=500;w=1)";

TEST_P(ForwardAuthProxyTest, AllowsUntilLimitAndThenDenies) {
  Rig rig(GetParam());
  for (int left = 4; left >= 0; --left) {
    const Message answer = rig.Ask({});
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.body, "hello");
    EXPECT_EQ(answer.Field("x-answer-to"), "/api/x");
    EXPECT_EQ(answer.Field("ratelimit"), "\"per-key\";r=" + std::to_string(left) + ";t=720");
    EXPECT_EQ(answer.Field("ratelimit-policy"), kPolicy);
    EXPECT_EQ(answer.Count("retry-after"), 0);
  }
  const Message denied = rig.Ask({});
  EXPECT_EQ(denied.status, 429);
  EXPECT_EQ(denied.Field("retry-after"), "720");
  EXPECT_EQ(denied.Field("ratelimit"), R"("per-key";r=0;t=720)");
  EXPECT_EQ(denied.Field("ratelimit-policy"), kPolicy);
  EXPECT_EQ(denied.Field("cache-control"), "no-store");
  EXPECT_EQ(denied.Field("content-type"), "application/problem+json");
  EXPECT_THAT(denied.body, HasSubstr("#quota-exceeded"));
  EXPECT_THAT(denied.body, HasSubstr("\"status\":429"));
  EXPECT_EQ(rig.Ask({.method = "HEAD"}).status, 429);
  EXPECT_EQ(rig.Passed().size(), 5u);
}

TEST_P(ForwardAuthProxyTest, CountsPathsAndClientsSeparately) {
  const Rig rig(GetParam());
  UseUp(rig, {});
  const Message elsewhere = rig.Ask({.target = "/elsewhere"});
  EXPECT_EQ(elsewhere.status, 200);
  EXPECT_EQ(elsewhere.Field("ratelimit-policy"), R"("per-address";q=500;w=1)");
  EXPECT_EQ(Left(rig.Ask({.address = "127.0.0.3"})), 4);
  // The proxy's own machine is counted as a client like any other.
  EXPECT_EQ(Left(rig.Ask({.address = "127.0.0.1"})), 4);
}

TEST_P(ForwardAuthProxyTest, ForgedHeadersAndPathsDoNotEvadeLimit) {
  const Rig rig(GetParam());
  UseUp(rig, {});
  for (const char* const fields : {
           "X-Forwarded-Uri: /free\r\n",
           "X-Forwarded-Uri: /free\r\nX-Forwarded-Method: GET\r\n",
           "X-Forwarded-Uri: /free\r\nX-Forwarded-Uri: /free\r\nX-Forwarded-Method: GET\r\n",
           "X-Forwarded-Method: OPTIONS\r\n",
           "X-Forwarded-Host: free.example\r\n",
           "X-Original-URI: /free\r\n",
           "X-Original-URI: /free\r\nX-Original-Method: GET\r\n",
           "X-Original-URL: http://free.example/free\r\nX-Original-Method: GET\r\n",
           "X_Forwarded_Uri: /free\r\nX_Original_URI: /free\r\n",
           "X-Forwarded-For: 203.0.113.9\r\n",
           "X-Forwarded-For: 203.0.113.9\r\nX-Forwarded-For: 203.0.113.9\r\n",
           "X_Forwarded_For: 203.0.113.9\r\n",
           "Forwarded: for=203.0.113.9\r\n",
           "X-Real-IP: 203.0.113.9\r\n",
           "Connection: close, X-Forwarded-For\r\n",
           "Connection: close, X-Forwarded-Uri, X-Forwarded-Method, X-Original-URI\r\n",
           "X-Cost: 0\r\n",
       }) {
    EXPECT_THAT(rig.Ask({.fields = fields}).status, AnyOf(429, 400)) << fields;
  }
  // Forms of one path that all servers read as the same path, or that the upstream may read as the
  // same path.
  for (const char* const target :
       {"/api/x?", "/api/x?/../../free", "/api/./x", "/free/../api/x", "/free/..%2fapi/x",
        "/free%2F../api/x", "/free/..%5capi/x", "/free/..;/api/x", "/api%2fy/../x"}) {
    EXPECT_THAT(rig.Ask({.target = target}).status, AnyOf(429, 400)) << target;
  }
}

std::string ShortFields(int count) {
  std::string fields;
  for (int i = 0; i < count; ++i) fields += "a" + std::to_string(i) + ": 1\r\n";
  return fields;
}

/// Returns field lines of at most a kilobyte each, because some proxies limit the length of a line.
std::string LongFields(std::size_t bytes) {
  std::string fields;
  for (int i = 0; fields.size() < bytes; ++i) {
    const std::string name = "a" + std::to_string(i) + ": ";
    const std::size_t left = bytes - fields.size();
    fields += name + std::string(std::min<std::size_t>(left, 1000), 'x') + "\r\n";
  }
  return fields;
}

// If a head is too long for Tidegate's parser, the response does not come from the /v1/auth
// handler. And if the request to /v1/auth is too long for the proxy to send, the proxy must not
// treat that as a missing response. Neither may let the client pass.
TEST_P(ForwardAuthProxyTest, HeadsOfAnySizeDoNotEvadeLimit) {
  Rig rig(GetParam());
  UseUp(rig, {});
  const auto refused = AnyOf(429, 431, 414, 413, 400, 500);
  for (int count = 85; count < 105; ++count) {
    EXPECT_THAT(rig.Ask({.fields = ShortFields(count)}).status, refused) << count;
  }
  for (std::size_t bytes = 13'000; bytes < 17'000; bytes += 50) {
    EXPECT_THAT(rig.Ask({.fields = LongFields(bytes)}).status, refused) << bytes;
    const std::string target = "/api/x?" + std::string(bytes, 'a');
    EXPECT_THAT(rig.Ask({.target = target}).status, refused) << bytes;
  }
  EXPECT_THAT(rig.Ask({.fields = LongFields(20'000)}).status, refused);
  if (std::string_view(GetParam()) != "haproxy") {
    EXPECT_THAT(rig.Ask({.fields = LongFields(30'000)}).status, refused);
  }
  // Caddy accepts a megabyte, and would send the request elsewhere if Tidegate closed the
  // connection before reading all of it.
  if (std::string_view(GetParam()) == "caddy") {
    for (const std::size_t bytes : {100'000u, 500'000u, 1'000'000u, 1'040'000u}) {
      EXPECT_EQ(rig.Ask({.fields = LongFields(bytes)}).status, 431) << bytes;
    }
  }
  EXPECT_EQ(rig.Passed().size(), 5u);
  EXPECT_EQ(Left(rig.Ask({.address = "127.0.0.3", .fields = ShortFields(80)})), 4);
}

TEST(HaproxyRecipeTest, Returns431WhenHeadHasTooManyFields) {
  if (!ProxyProcess::Installed("haproxy")) GTEST_SKIP() << "haproxy is not installed";
  const Rig rig("haproxy");
  // The script rejects 94 fields, since HAProxy's HTTP client crashes at 98.
  for (const int count : {94, 98}) {
    const Message answer = rig.Ask({.fields = ShortFields(count)});
    EXPECT_EQ(answer.status, 431);
    EXPECT_EQ(answer.Field("content-type"), "application/problem+json");
    EXPECT_EQ(answer.Field("cache-control"), "no-store");
    EXPECT_THAT(answer.body, HasSubstr("\"status\":431"));
  }
  EXPECT_EQ(rig.Ask({.fields = ShortFields(93)}).status, 200);
}

TEST(HaproxyRecipeTest, ForwardsParserErrorsOfTidegate) {
  if (!ProxyProcess::Installed("haproxy")) GTEST_SKIP() << "haproxy is not installed";
  const Changes few = {{"listen:\n", "limits: { header_count: 20 }\nlisten:\n"}};
  Rig rig("haproxy", {.tidegate = few});
  const Message answer = rig.Ask({.fields = ShortFields(20)});
  EXPECT_EQ(answer.status, 431);
  EXPECT_THAT(answer.body, HasSubstr("\"status\":431"));
  // A status without its own line in the recipe does not let the request pass either.
  Rig without(
      "haproxy",
      {.tidegate = few, .proxy = {{"tidegate_status) -m str 431", "tidegate_status) -m str 432"}}});
  EXPECT_EQ(without.Ask({.fields = ShortFields(20)}).status, 400);
  EXPECT_TRUE(rig.Passed().empty());
  EXPECT_TRUE(without.Passed().empty());
}

// The behaviour that nginx.md documents for a client with more header fields than Tidegate accepts.
TEST(NginxRecipeTest, CanBeConfiguredWithTheLimitsOfTidegate) {
  if (!ProxyProcess::Installed("nginx")) GTEST_SKIP() << "nginx is not installed";
  const Rig as_it_is("nginx");
  EXPECT_EQ(as_it_is.Ask({.fields = LongFields(20'000)}).status, 500);
  EXPECT_EQ(as_it_is.Ask({.fields = ShortFields(100)}).status, 500);
  const Rig strict("nginx", {.proxy = {{"  server {\n    listen",
                                        "  large_client_header_buffers 2 7k;\n"
                                        "  server {\n    listen"}}});
  for (std::size_t bytes = 12'000; bytes < 20'000; bytes += 100) {
    EXPECT_THAT(strict.Ask({.target = "/", .fields = LongFields(bytes)}).status, AnyOf(200, 400));
  }
  const Rig wide("nginx", {.tidegate = {{"listen:\n",
                                         "limits: { header_bytes: 40KiB, header_count: 128 }\n"
                                         "listen:\n"}}});
  for (std::size_t bytes = 16'000; bytes < 34'000; bytes += 100) {
    EXPECT_THAT(wide.Ask({.target = "/", .fields = LongFields(bytes)}).status, AnyOf(200, 400));
  }
  EXPECT_EQ(wide.Ask({.fields = LongFields(20'000)}).status, 200);
  EXPECT_EQ(wide.Ask({.fields = ShortFields(120)}).status, 200);
}

// nginx decodes the path if proxy_pass has a URI part.
TEST(NginxRecipeTest, RejectsEncodedSlashes) {
  if (!ProxyProcess::Installed("nginx")) GTEST_SKIP() << "nginx is not installed";
  const std::pair<std::string, std::string> decodes{"proxy_pass http://app;",
                                                    "proxy_pass http://app/;"};
  Rig rig("nginx", {.proxy = {decodes}});
  EXPECT_EQ(rig.Ask({.target = "/free/..%2fapi/x"}).status, 400);
  EXPECT_EQ(rig.Ask({.target = "/api%2fx"}).status, 400);
  EXPECT_EQ(rig.Ask({.target = "/api/x?a%2fb"}).status, 200);
}

TEST_P(ForwardAuthProxyTest, EmptyHostDoesNotEvadeLimit) {
  const Rig rig(GetParam());
  UseUp(rig, {});
  EXPECT_THAT(rig.Ask({.host = ""}).status, AnyOf(429, 400));
  // Caddy forwards the empty Host to Tidegate, which rejects it; nginx rejects it itself.
  const int status = rig.Ask({.address = "127.0.0.3", .host = ""}).status;
  EXPECT_EQ(status, std::string_view(GetParam()) == "haproxy" ? 200 : 400);
}

TEST_P(ForwardAuthProxyTest, CountsClientsSeparately) {
  const Rig rig(GetParam());
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(rig.Ask({.fields = "X-Forwarded-For: 127.0.0.9\r\nX-Real-IP: 127.0.0.9\r\n"}).status,
              200);
  }
  EXPECT_EQ(Left(rig.Ask({.address = "127.0.0.9"})), 4);
}

constexpr std::string_view kMore = R"(
  - { id: posts, match: { path: /posts, method: [POST] }, per: client_ip, limit: 1/h }
  - { id: hosted, match: { host: one.example, path: /hosted }, per: client_ip, limit: 1/h }
  - { id: search, match: { path: /search }, per: query:q, limit: 1/h }
  - { id: keys, match: { path: /keys }, per: header:x-api-key, limit: 1/h }
  - { id: session, match: { path: /session }, per: cookie:sid, limit: 1/h }
deny:
  - { path: /secret }
)";

TEST_P(ForwardAuthProxyTest, RulesSeeRequestOfClient) {
  Rig rig(GetParam(), {.more = std::string(kMore)});
  const auto once = [&](const Client& client) {
    EXPECT_EQ(rig.Ask(client).status, 200) << client.target;
    EXPECT_EQ(rig.Ask(client).status, 429) << client.target;
  };
  once({.method = "POST", .target = "/posts", .body = "a body"});
  ASSERT_FALSE(rig.Passed().empty());
  EXPECT_EQ(rig.Passed().back().method, "POST");
  EXPECT_EQ(rig.Passed().back().body, "a body");
  EXPECT_EQ(rig.Ask({.target = "/posts"}).status, 200);
  once({.target = "/hosted", .host = "one.example"});
  EXPECT_EQ(rig.Ask({.target = "/hosted", .host = "two.example"}).status, 200);
  once({.target = "/search?a=b&q=one"});
  once({.target = "/search?q=two"});
  once({.target = "/keys", .fields = "X-Api-Key: one\r\n"});
  once({.target = "/keys", .fields = "X-Api-Key: two\r\n"});
  once({.target = "/session", .fields = "Cookie: a=b; sid=one\r\n"});
  EXPECT_EQ(rig.Ask({.target = "/secret"}).status, 403);
  EXPECT_EQ(rig.Ask({.target = "/keys", .fields = "X-Api-Key: 1\r\nX-Api-Key: 2\r\n"}).status, 400);
}

// --- Failures of Tidegate and of its store --------------------------------------------

TEST_P(ForwardAuthProxyTest, AllowsEverythingWhileTidegateIsStopped) {
  Rig rig(GetParam());
  UseUp(rig, {});
  rig.tidegate().End();
  for (const char* const method : {"POST", "GET"}) {
    for (int i = 0; i < 6; ++i) {
      const Message answer = rig.Ask({.method = method, .body = "a body"});
      EXPECT_EQ(answer.status, 200);
      EXPECT_EQ(answer.body, "hello");
      EXPECT_EQ(answer.Count("ratelimit"), 0);
    }
    ASSERT_FALSE(rig.Passed().empty());
    EXPECT_EQ(rig.Passed().back().body, "a body");
  }
  rig.StartTidegate();
  const auto deadline = std::chrono::steady_clock::now() + 10s;
  std::int64_t left = -1;
  while (left < 0 && std::chrono::steady_clock::now() < deadline) {
    left = Left(rig.Ask({.address = "127.0.0.3"}));
    if (left < 0) std::this_thread::sleep_for(10ms);
  }
  EXPECT_EQ(left, 4) << "the proxy sent a second forward-auth request";
}

TEST_P(ForwardAuthProxyTest, AllowsEverythingWhileTidegateHangs) {
  Rig rig(GetParam(), {.patience = Patience::kOfTheRecipe});
  rig.tidegate().Pause();
  for (const char* const method : {"POST", "GET"}) {
    const auto begin = std::chrono::steady_clock::now();
    const Message answer = rig.Ask({.method = method, .body = "a body"});
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.Count("ratelimit"), 0);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 3s)
        << "the request took far longer than the proxy's timeout of 250 ms";
    ASSERT_FALSE(rig.Passed().empty());
    EXPECT_EQ(rig.Passed().back().body, "a body");
  }
}

/// Returns the changes that the pages describe for operators who prefer to deny requests during a
/// failure.
Changes ToRefuse(std::string_view proxy) {
  if (proxy == "nginx") return {{"error_page 502 504 = @unlimited;", ""}};
  if (proxy == "haproxy")
    return {{"# http-request return status 503", "http-request return status 503"}};
  return {{"127.0.0.1:8081 127.0.0.1:8099 {", "127.0.0.1:8081 { # without 127.0.0.1:8099"},
          {"lb_policy first\n", "\n"},
          {"lb_try_duration 500ms\n", "\n"},
          {"lb_try_interval 10ms\n", "\n"},
          {"fail_duration 1s\n", "\n"}};
}

TEST_P(ForwardAuthProxyTest, DeniesEverythingWithoutTidegateIfConfigured) {
  Rig rig(GetParam(), {.proxy = ToRefuse(GetParam()), .patience = Patience::kOfTheRecipe});
  const std::string proxy = GetParam();
  rig.tidegate().Pause();
  EXPECT_EQ(rig.Ask({}).status, proxy == "nginx" ? 500 : proxy == "haproxy" ? 503 : 504);
  rig.tidegate().End();
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(rig.Ask({}).status, proxy == "nginx" ? 500 : proxy == "haproxy" ? 503 : 502);
  }
  EXPECT_TRUE(rig.Passed().empty());
}

TEST_P(ForwardAuthProxyTest, DeniesRequestsOfFailClosedRulesDuringOutage) {
  const Rig rig(GetParam(),
                {.tidegate = {{"listen:\n",
                               "store: { url: \"redis://127.0.0.1:1\", on_failure: closed }\n"
                               "listen:\n"},
                              {"limit: 500/s", "limit: 500/s\n    on_failure: open"}}});
  const Message answer = rig.Ask({});
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(answer.Field("retry-after"), "1");
  EXPECT_THAT(answer.body, HasSubstr("#temporary-reduced-capacity"));
  EXPECT_EQ(rig.Ask({.target = "/elsewhere"}).status, 200);
}

TEST_P(ForwardAuthProxyTest, ReportsUntrustedProxies) {
  const Rig rig(GetParam(),
                {.tidegate = {{"trusted_proxies: [127.0.0.1]", "trusted_proxies: [10.0.0.0/8]"}}});
  EXPECT_EQ(rig.Ask({}).status, 500);
  EXPECT_TRUE(rig.Passed().empty());
}

}  // namespace
}  // namespace tidegate::proxies_test
