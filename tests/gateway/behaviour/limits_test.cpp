// SPDX-License-Identifier: Apache-2.0
// Rate-limit fields and denials that clients of the gateway receive, and denied requests that
// upstreams never receive.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gateway/behaviour/gateway_fixture.hpp"
#include "service/admin_case.hpp"

namespace tidegate::behaviour {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr std::string_view kTwoAnHour = "rules: [{id: two, per: header:x-api-key, limit: 2/h}]\n";

TEST(LimitsTest, ReportsRemainingQuotaOnAllowedResponses) {
  ScriptedUpstream up(ScriptedUpstream::Ok());
  Gate gate(Routed(up.url(), {}, kTwoAnHour));
  const HttpResponse answer = gate.Get("/", "x-api-key: a\r\n");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body, "ok");
  EXPECT_EQ(answer.Field("RateLimit-Policy"), R"("two";q=2;w=3600)");
  EXPECT_THAT(answer.Field("RateLimit"), HasSubstr(R"("two";r=1;t=)"));
  EXPECT_FALSE(answer.Has("Retry-After"));
  EXPECT_FALSE(answer.Has("X-RateLimit-Limit"));
}

TEST(LimitsTest, NeverForwardsDeniedRequest) {
  ScriptedUpstream up(ScriptedUpstream::Ok());
  Gate gate(Routed(up.url(), {}, kTwoAnHour));
  Client client(gate.at());
  for (int i = 0; i < 2; ++i) EXPECT_EQ(client.Get("/", "x-api-key: a\r\n").status, 200);
  for (int i = 0; i < 3; ++i) {
    const HttpResponse denied = client.Get("/", "x-api-key: a\r\n");
    EXPECT_EQ(denied.status, 429);
    EXPECT_EQ(denied.Field("Content-Type"), "application/problem+json");
    EXPECT_EQ(denied.Field("Cache-Control"), "no-store");
    EXPECT_EQ(denied.Field("Retry-After"), "1800");
    EXPECT_EQ(denied.Field("RateLimit"), R"("two";r=0;t=1800)");
    EXPECT_TRUE(denied.Has("X-Request-Id"));
    EXPECT_TRUE(denied.Has("Date"));
    const auto problem = denied.Json();
    EXPECT_EQ(problem.at("status"), 429);
    EXPECT_EQ(problem.at("type"), "https://iana.org/assignments/http-problem-types#quota-exceeded");
    EXPECT_EQ(problem.at("violated-policies"), boost::json::array{"two"});
    EXPECT_EQ(problem.at("retry_after_ms"), 1'800'000);
  }
  EXPECT_EQ(up.requests(), 2);
  EXPECT_EQ(client.Get("/", "x-api-key: b\r\n").status, 200)
      << "the limit of one key was applied to another key";
  gate.Advance(1800s);
  EXPECT_EQ(client.Get("/", "x-api-key: a\r\n").status, 200) << "the quota was not refilled";
  EXPECT_EQ(up.requests(), 4);
}

TEST(LimitsTest, RejectsDeniedUploadWithoutReadingIt) {
  ScriptedUpstream up(ScriptedUpstream::Ok());
  Gate gate(Routed(up.url(), {}, kTwoAnHour));
  Client client(gate.at());
  for (int i = 0; i < 2; ++i) (void)client.Get("/", "x-api-key: a\r\n");
  // The gateway reads a short body to its end and keeps the connection.
  const HttpResponse small = client.Ask(RequestText("POST", "/", "x-api-key: a\r\n", "12345"));
  EXPECT_EQ(small.status, 429);
  EXPECT_EQ(client.Get("/", "x-api-key: b\r\n").status, 200);
  // The gateway does not wait for a long body: it closes the connection.
  const HttpResponse large = client.Ask(
      "POST / HTTP/1.1\r\nHost: test\r\nx-api-key: a\r\nContent-Length: 100000000\r\n\r\n");
  EXPECT_EQ(large.status, 429) << large.head << large.body;
  EXPECT_EQ(large.Field("Connection"), "close");
  client.EndSending();
  EXPECT_EQ(client.WaitForEnd(), Client::End::kClosed);
  EXPECT_EQ(up.requests(), 3);
}

TEST(LimitsTest, DeniesWith403AndDoesNotCountExemptRequests) {
  ScriptedUpstream up(ScriptedUpstream::Ok());
  Gate gate(Routed(up.url(), {},
                   "deny: [{header: {user-agent: \"BadBot*\"}}]\n"
                   "exempt: [{header: {x-monitor: \"yes\"}}]\n"
                   "rules: [{id: one, per: client_ip, limit: 1/h}]\n"));
  const HttpResponse denied = gate.Get("/", "User-Agent: BadBot/1.0\r\n");
  EXPECT_EQ(denied.status, 403);
  EXPECT_EQ(denied.Field("Content-Type"), "application/problem+json");
  EXPECT_EQ(denied.Json().at("status"), 403);
  EXPECT_FALSE(denied.Has("RateLimit"));
  EXPECT_EQ(up.requests(), 0);
  for (int i = 0; i < 5; ++i) {
    const HttpResponse exempt = gate.Get("/", "X-Monitor: yes\r\n");
    EXPECT_EQ(exempt.status, 200);
    EXPECT_FALSE(exempt.Has("RateLimit"));
  }
  EXPECT_EQ(gate.Get("/", "X-Monitor: yes\r\nUser-Agent: BadBot\r\n").status, 403)
      << "`exempt` was applied before `deny`";
  EXPECT_EQ(gate.Get("/").status, 200);
  EXPECT_EQ(gate.Get("/").status, 429);
}

TEST(LimitsTest, ShadowRuleCountsRequestsButDeniesNone) {
  ScriptedUpstream up(ScriptedUpstream::Ok());
  Gate gate(Routed(up.url(), {}, "rules: [{id: s, per: client_ip, limit: 1/h, mode: shadow}]\n"));
  for (int i = 0; i < 4; ++i) EXPECT_EQ(gate.Get("/").status, 200);
  EXPECT_EQ(gate.Remaining("s", "127.0.0.1"), 0);
}

TEST(LimitsTest, EncodedOrDottedPathDoesNotEvadeRule) {
  ScriptedUpstream up(ScriptedUpstream::Ok());
  Gate gate(Routed(up.url(), {},
                   "rules: [{id: login, match: {path: /v1/login}, per: client_ip, limit: 1/h}]\n"));
  EXPECT_EQ(gate.Get("/v1/login").status, 200);
  for (const std::string_view path :
       {"/v1/login", "/v1/%6cogin", "/v1/./login", "/v1/x/../login", "//v1//login", "/v1/%2e/login",
        "/v1/x/%2E%2e/login", "/v1/login?a=b", "/%76%31/login", "http://other/v1/login"}) {
    EXPECT_EQ(gate.Get(path).status, 429) << path;
  }
  EXPECT_EQ(up.requests(), 1);
  EXPECT_EQ(up.last().target(), "/v1/login");
}

// --- RateLimit fields of the upstream -------------------------------------------------

std::string UpstreamFields(std::string_view prefix, int remaining) {
  const std::string name(prefix);
  return Http("200 OK", name + "Limit: 1000\r\n" + name + "Remaining: " +
                            std::to_string(remaining) + "\r\n" + name + "Reset: 7\r\n");
}

struct Older {
  std::string_view option;
  std::string_view prefix;
};
class LegacyRateLimitFieldsTest : public testing::TestWithParam<Older> {};

TEST_P(LegacyRateLimitFieldsTest, SendsTighterOfOwnAndUpstreamQuota) {
  const auto [option, prefix] = GetParam();
  const std::string name(prefix);
  int theirs = 500;
  ScriptedUpstream up(
      ScriptedUpstream::Each([&](const HttpRequest&) { return UpstreamFields(prefix, theirs); }));
  Gate gate(Routed(up.url(), {},
                   "responses: {headers: [" + std::string(option) +
                       "]}\nrules: [{id: ten, per: client_ip, limit: 10/h}]\n"));
  const HttpResponse ours = gate.Get("/");
  EXPECT_EQ(ours.Count(name + "Remaining"), 1);
  EXPECT_EQ(ours.Field(name + "Remaining"), "9");
  EXPECT_EQ(ours.Field(name + "Limit"), "10");
  EXPECT_EQ(ours.Count(name + "Reset"), 1);
  theirs = 3;
  const HttpResponse upstream = gate.Get("/");
  EXPECT_EQ(upstream.Count(name + "Remaining"), 1);
  EXPECT_EQ(upstream.Field(name + "Remaining"), "3");
  EXPECT_EQ(upstream.Field(name + "Limit"), "1000");
  EXPECT_EQ(upstream.Field(name + "Reset"), "7");
}

TEST_P(LegacyRateLimitFieldsTest, ForwardsUpstreamFieldsWhenOwnOnesAreOff) {
  const std::string name(GetParam().prefix);
  ScriptedUpstream up(
      ScriptedUpstream::Each([&](const HttpRequest&) { return UpstreamFields(name, 500); }));
  Gate gate(Routed(up.url(), {}, "rules: [{id: ten, per: client_ip, limit: 10/h}]\n"));
  const HttpResponse answer = gate.Get("/");
  EXPECT_EQ(answer.Field(name + "Remaining"), "500");
  EXPECT_EQ(answer.Field(name + "Limit"), "1000");
  EXPECT_EQ(answer.Field(name + "Reset"), "7");
}

TEST_P(LegacyRateLimitFieldsTest, ForwardsUpstreamFieldsForAllowedKey) {
  const auto [option, prefix] = GetParam();
  const std::string name(prefix);
  ScriptedUpstream up(
      ScriptedUpstream::Each([&](const HttpRequest&) { return UpstreamFields(prefix, 5); }));
  Gate gate(Routed(up.url(), {},
                   "responses: {decided_by: always, headers: [" + std::string(option) +
                       "]}\nrules: [{id: ten, per: client_ip, limit: 10/h}]\n"));
  ASSERT_EQ(
      service::AskAdmin(gate.server().admin(), "/v1/allow", service::ByRule("ten", "127.0.0.1"))
          .status,
      200);
  const HttpResponse answer = gate.Get("/");
  EXPECT_EQ(answer.Field(name + "Remaining"), "5");
  EXPECT_EQ(answer.Field(name + "Limit"), "1000");
  EXPECT_EQ(answer.Field("X-Tidegate-Decided-By"), "operator");
}

INSTANTIATE_TEST_SUITE_P(Both, LegacyRateLimitFieldsTest,
                         testing::Values(Older{"ratelimit-legacy", "RateLimit-"},
                                         Older{"x-ratelimit", "X-RateLimit-"}),
                         [](const auto& of) { return of.index == 0 ? "Plain" : "X"; });

TEST(LimitsTest, SendsRateLimitFieldsBesideThoseOfUpstream) {
  ScriptedUpstream up(ScriptedUpstream::Each([](const HttpRequest&) {
    return Http("200 OK",
                "RateLimit-Policy: \"theirs\";q=5;w=1\r\nRateLimit: \"theirs\";r=4;t=1\r\n");
  }));
  Gate gate(Routed(up.url(), {}, "rules: [{id: ten, per: client_ip, limit: 10/h}]\n"));
  const HttpResponse answer = gate.Get("/");
  EXPECT_THAT(answer.fields.List("RateLimit"), HasSubstr(R"("theirs";r=4;t=1)"));
  EXPECT_THAT(answer.fields.List("RateLimit"), HasSubstr(R"("ten";r=9)"));
  EXPECT_THAT(answer.fields.List("RateLimit-Policy"), HasSubstr(R"("theirs";q=5;w=1)"));
  EXPECT_THAT(answer.fields.List("RateLimit-Policy"), HasSubstr(R"("ten";q=10;w=3600)"));
}

TEST(LimitsTest, Forwards429OfUpstreamUnchanged) {
  ScriptedUpstream up(ScriptedUpstream::Each([](const HttpRequest&) {
    return Http("429 Slow Down", "Retry-After: 77\r\nContent-Type: text/plain\r\n", "later");
  }));
  Gate gate(Routed(up.url(), {}, "rules: [{id: ten, per: client_ip, limit: 10/h}]\n"));
  const HttpResponse answer = gate.Get("/");
  EXPECT_EQ(answer.status, 429);
  EXPECT_EQ(answer.Count("Retry-After"), 1);
  EXPECT_EQ(answer.Field("Retry-After"), "77");
  EXPECT_EQ(answer.body, "later");
}

// --- gRPC ---------------------------------------------------------------------------

TEST(LimitsTest, DeniesGrpcWithGrpcStatus) {
  ScriptedUpstream up(ScriptedUpstream::Ok());
  Gate gate(Routed(up.url(), {}, kTwoAnHour));
  Client client(gate.at());
  for (int i = 0; i < 2; ++i) (void)client.Get("/", "x-api-key: a\r\n");
  for (const std::string_view type :
       {"application/grpc", "application/grpc+proto", "application/grpc;charset=utf-8"}) {
    const HttpResponse denied = client.Ask(RequestText(
        "POST", "/pkg.Service/Call",
        "x-api-key: a\r\nTE: trailers\r\nContent-Type: " + std::string(type) + "\r\n", "abcde"));
    EXPECT_EQ(denied.status, 200) << type;
    EXPECT_EQ(denied.Field("grpc-status"), "8");
    EXPECT_TRUE(denied.Has("grpc-message"));
    EXPECT_THAT(denied.Field("Content-Type"), HasSubstr("application/grpc"));
    EXPECT_EQ(denied.body, "");
  }
  const HttpResponse web = client.Ask(
      RequestText("POST", "/", "x-api-key: a\r\nContent-Type: application/grpcx\r\n", ""));
  EXPECT_EQ(web.status, 429) << "grpc-web was treated as gRPC";
  EXPECT_EQ(up.requests(), 2);
}

}  // namespace
}  // namespace tidegate::behaviour
