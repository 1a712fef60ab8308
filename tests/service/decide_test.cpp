// SPDX-License-Identifier: Apache-2.0
// The life of a quota, as a client of the HTTP API sees it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <set>

#include "service/fixture.hpp"
#include "service/sandbox.hpp"

namespace tidegate::service {
namespace {

using namespace std::chrono_literals;
using boost::json::value_to;
using testing::HasSubstr;
namespace json = boost::json;

constexpr std::string_view kRules = R"(
api: {inline_quotas: true, hidden_rules: true}
deny:
  - { header: { user-agent: "BadBot*" } }
exempt:
  - { client_ip: [192.0.2.0/24] }
rules:
  - { id: bucket, match: { path: /bucket }, per: header:x-api-key, limit: 5/10s,
      overrides: [ { identity: partner-7, limit: 20/10s, burst: 40 } ] }
  - { id: slow, match: { path: /both }, per: header:x-api-key, limit: 3/m }
  - { id: address, match: { path: /both }, per: client_ip, limit: 2/s }
  - { id: watched, match: { path: /watched }, per: client_ip, limit: 3/m }
  - { id: ghost, match: { path: /watched }, per: client_ip, limit: 1/m, mode: shadow }
  - { id: priced, match: { path: /priced }, per: client_ip, limit: 10/m, cost: "header:x-cost" }
  - { id: jobs, match: { path: /jobs }, per: client_ip, limit: 2/30s, algorithm: concurrency }
  - { id: starts, match: { path: /jobs }, per: client_ip, limit: 100/m }
)";

class DecideTest : public testing::Test {
 protected:
  std::int64_t Remaining(std::string_view rule, std::string_view identity) {
    return Number(service_.Ask("/v1/peek", ByRule(rule, identity)), "remaining");
  }
  static std::int64_t Number(const HttpResponse& answer, std::string_view member) {
    const json::object body = answer.Json();
    const json::value* const value = body.if_contains(member);
    if (value == nullptr || !value->is_int64()) return -1;
    return value->get_int64();
  }
  static bool Is(const HttpResponse& answer, std::string_view member) {
    const json::object body = answer.Json();
    const json::value* const value = body.if_contains(member);
    return value != nullptr && value->is_bool() && value->get_bool();
  }
  static std::string Text(const HttpResponse& answer, std::string_view member) {
    const json::object body = answer.Json();
    const json::value* const value = body.if_contains(member);
    return value != nullptr && value->is_string() ? value_to<std::string>(*value) : "";
  }
  static std::string Part(const HttpResponse& answer, std::string_view member) {
    const json::object body = answer.Json();
    const json::value* const value = body.if_contains(member);
    return value == nullptr ? "" : json::serialize(*value);
  }
  HttpResponse DecideFor(std::string_view path, std::string_view client,
                         std::string_view more = {}) {
    return service_.Decide(R"({"request":{"path":")" + std::string(path) + R"(","client_ip":")" +
                           std::string(client) + "\"" + std::string(more) + "}}");
  }

  Service service_{kRules};
};

// --- Buckets ------------------------------------------------------------------

TEST_F(DecideTest, CountsRemainingDownToZero) {
  for (int left = 4; left >= 0; --left) {
    const HttpResponse answer = service_.Decide(ByRule("bucket", "alice"));
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.Field("RateLimit"), "\"bucket\";r=" + std::to_string(left) + ";t=2");
    EXPECT_EQ(answer.Field("RateLimit-Policy"), R"("bucket";q=5;w=10)");
    EXPECT_EQ(answer.Field("Content-Type"), "application/json");
    EXPECT_FALSE(answer.Has("Retry-After"));
    const std::string reset = std::to_string((5 - left) * 2000);
    const std::string numbers =
        R"("limit":5,"remaining":)" + std::to_string(left) + R"(,"reset_after_ms":)" + reset;
    std::string wanted = R"({"allowed":true,"rule":"bucket",)";
    wanted.append(numbers).append(
        R"(,"decided_by":"store","reason":"quota","rules":[{"rule":"bucket","mode":"enforce",)");
    wanted.append(R"("allowed":true,)").append(numbers).append("}]}");
    EXPECT_EQ(json::value(answer.Json()), json::parse(wanted));
  }
}

TEST_F(DecideTest, DeniesWithProblemAndRetryAfter) {
  for (int i = 0; i < 5; ++i) EXPECT_EQ(service_.Decide(ByRule("bucket", "alice")).status, 200);
  const HttpResponse answer = service_.Decide(ByRule("bucket", "alice"));
  EXPECT_EQ(answer.status, 429);
  EXPECT_EQ(answer.reason, "Too Many Requests");
  EXPECT_EQ(answer.Field("Retry-After"), "2");
  EXPECT_EQ(answer.Field("Cache-Control"), "no-store");
  EXPECT_EQ(answer.Field("Content-Type"), "application/problem+json");
  EXPECT_EQ(answer.Field("RateLimit"), R"("bucket";r=0;t=2)");
  EXPECT_EQ(answer.Field("RateLimit-Policy"), R"("bucket";q=5;w=10)");
  EXPECT_FALSE(Text(answer, "title").empty());
  json::object body = answer.Json();
  body.erase("title");
  EXPECT_EQ(json::value(body), json::parse(R"({
      "type":"https://iana.org/assignments/http-problem-types#quota-exceeded",
      "status":429,"violated-policies":["bucket"],
      "allowed":false,"rule":"bucket","limit":5,"remaining":0,"retry_after_ms":2000,
      "reset_after_ms":10000,"decided_by":"store","reason":"quota",
      "rules":[{"rule":"bucket","mode":"enforce","allowed":false,"limit":5,"remaining":0,
                "retry_after_ms":2000,"reset_after_ms":10000}]})"));
}

TEST_F(DecideTest, RetryAfterIsExactButAtLeastOneSecond) {
  for (int i = 0; i < 5; ++i) (void)service_.Decide(ByRule("bucket", "alice"));
  service_.Advance(1'999'999us);
  const HttpResponse early = service_.Decide(ByRule("bucket", "alice"));
  EXPECT_EQ(early.status, 429);
  EXPECT_EQ(early.Field("Retry-After"), "1");  // One microsecond, rounded up to a second.
  EXPECT_EQ(Number(early, "retry_after_ms"), 1);
  service_.Advance(1us);
  EXPECT_EQ(service_.Decide(ByRule("bucket", "alice")).status, 200);
  EXPECT_EQ(service_.Decide(ByRule("bucket", "alice")).status, 429);
}

TEST_F(DecideTest, RetryAfterIsRoundedUp) {
  for (int i = 0; i < 5; ++i) (void)service_.Decide(ByRule("bucket", "alice"));
  service_.Advance(999'999us);  // 1,000,001 us remain until the next unit.
  const HttpResponse answer = service_.Decide(ByRule("bucket", "alice"));
  EXPECT_EQ(answer.Field("Retry-After"), "2");
  EXPECT_EQ(answer.Field("RateLimit"), R"("bucket";r=0;t=2)");
  EXPECT_EQ(Number(answer, "retry_after_ms"), 1001);
}

TEST_F(DecideTest, OmitsTimeParameterForFullBucket) {
  EXPECT_EQ(service_.Ask("/v1/peek", ByRule("bucket", "alice")).Field("RateLimit"),
            R"("bucket";r=5)");
}

TEST_F(DecideTest, CountsIdentitiesSeparately) {
  for (int i = 0; i < 5; ++i) (void)service_.Decide(ByRule("bucket", "alice"));
  EXPECT_EQ(service_.Decide(ByRule("bucket", "alice")).status, 429);
  EXPECT_EQ(service_.Decide(ByRule("bucket", "bob")).status, 200);
}

TEST_F(DecideTest, IdentityAndMatchingRequestHeaderShareABucket) {
  (void)service_.Decide(ByRule("bucket", "alice"));
  const HttpResponse answer =
      service_.Decide(R"({"request":{"path":"/bucket","headers":{"X-Api-Key":"alice"}}})");
  EXPECT_EQ(Number(answer, "remaining"), 3);
  EXPECT_EQ(Remaining("bucket", "alice"), 3);
}

TEST_F(DecideTest, OverrideAppliesOnlyToItsIdentity) {
  const HttpResponse partner = service_.Decide(ByRule("bucket", "partner-7"));
  EXPECT_EQ(Number(partner, "limit"), 40);
  EXPECT_EQ(Number(partner, "remaining"), 39);
  EXPECT_EQ(partner.Field("RateLimit-Policy"), R"("bucket";q=40;w=20)");
  EXPECT_EQ(Number(service_.Decide(ByRule("bucket", "partner-8")), "limit"), 5);
}

TEST_F(DecideTest, ChargesTheGivenCost) {
  EXPECT_EQ(Number(service_.Decide(ByRule("bucket", "alice", R"(,"cost":3)")), "remaining"), 2);
  const HttpResponse denied = service_.Decide(ByRule("bucket", "alice", R"(,"cost":3)"));
  EXPECT_EQ(denied.status, 429);
  EXPECT_EQ(Number(denied, "remaining"), 2);  // A denied request consumes nothing.
  EXPECT_EQ(Number(denied, "retry_after_ms"), 2000);
  EXPECT_EQ(service_.Decide(ByRule("bucket", "alice", R"(,"cost":2)")).status, 200);
}

TEST_F(DecideTest, DeniesCostAboveBurstPermanently) {
  for (const std::string_view path : {"/v1/decide", "/v1/peek"}) {
    const HttpResponse answer = service_.Ask(path, ByRule("bucket", "alice", R"(,"cost":6)"));
    EXPECT_EQ(answer.status, 429);
    EXPECT_TRUE(Is(answer, "never"));
    EXPECT_FALSE(answer.Has("Retry-After"));
    EXPECT_FALSE(answer.Json().contains("retry_after_ms"));
    EXPECT_EQ(answer.Field("Cache-Control"), "no-store");
  }
  EXPECT_EQ(Remaining("bucket", "alice"), 5);
}

TEST_F(DecideTest, PeekChargesNothing) {
  for (int i = 0; i < 3; ++i) {
    const HttpResponse look = service_.Ask("/v1/peek", ByRule("bucket", "alice"));
    EXPECT_EQ(look.status, 200);
    EXPECT_EQ(Number(look, "remaining"), 5);
  }
  for (int i = 0; i < 5; ++i) (void)service_.Decide(ByRule("bucket", "alice"));
  const HttpResponse look = service_.Ask("/v1/peek", ByRule("bucket", "alice"));
  EXPECT_EQ(look.status, 429);
  EXPECT_EQ(look.Field("Retry-After"), "2");
}

TEST_F(DecideTest, DebitsBlockAKeyForABoundedTime) {
  const std::string body = ByRule("bucket", "alice", R"(,"cost":2147483647)");
  for (int i = 0; i < 3; ++i) {
    const HttpResponse debit = service_.Ask("/v1/debit", body);
    EXPECT_EQ(debit.status, 200);
    // 50 units of debt and 5 until the bucket is full.
    EXPECT_EQ(Number(debit, "reset_after_ms"), 110'000);
  }
  EXPECT_EQ(service_.Decide(ByRule("bucket", "alice")).Field("Retry-After"), "102");
  service_.Advance(102s);
  EXPECT_EQ(service_.Decide(ByRule("bucket", "alice")).status, 200);
}

TEST_F(DecideTest, DebitMayGoBelowZeroAndIsRepaidFirst) {
  const HttpResponse debit = service_.Ask("/v1/debit", ByRule("bucket", "alice", R"(,"cost":7)"));
  EXPECT_EQ(debit.status, 200);
  EXPECT_EQ(Number(debit, "remaining"), 0);
  EXPECT_EQ(Number(debit, "reset_after_ms"), 14'000);
  const HttpResponse denied = service_.Decide(ByRule("bucket", "alice"));
  EXPECT_EQ(denied.status, 429);
  EXPECT_EQ(denied.Field("Retry-After"), "6");  // Two units of debt, then one unit to spend.
  EXPECT_EQ(denied.Field("RateLimit"), R"("bucket";r=0;t=6)");
  service_.Advance(6s);
  EXPECT_EQ(service_.Decide(ByRule("bucket", "alice")).status, 200);
}

TEST_F(DecideTest, RefundAppliesOncePerIdAndNeverBeyondCapacity) {
  for (int i = 0; i < 4; ++i) (void)service_.Decide(ByRule("bucket", "alice"));
  const std::string refund = ByRule("bucket", "alice", R"(,"cost":2,"id":"r1")");
  HttpResponse answer = service_.Ask("/v1/refund", refund);
  EXPECT_EQ(answer.status, 200);
  EXPECT_TRUE(Is(answer, "applied"));
  EXPECT_EQ(Number(answer, "remaining"), 3);
  answer = service_.Ask("/v1/refund", refund);
  EXPECT_EQ(answer.status, 200);
  EXPECT_FALSE(Is(answer, "applied"));
  EXPECT_EQ(Remaining("bucket", "alice"), 3);
  answer = service_.Ask("/v1/refund", ByRule("bucket", "alice", R"(,"cost":5,"id":"r2")"));
  EXPECT_TRUE(Is(answer, "applied"));
  EXPECT_EQ(Remaining("bucket", "alice"), 5);
}

TEST_F(DecideTest, RejectsRefundWithoutId) {
  const HttpResponse answer = service_.Ask("/v1/refund", ByRule("bucket", "alice"));
  EXPECT_EQ(answer.status, 400);
  EXPECT_EQ(Text(answer, "pointer"), "/id");
}

/// Without authentication, no remote caller may give quota back.
TEST(PublicListenerTest, RejectsRefundWithoutAuthenticationOnPublicAddress) {
  Config config = Service::ConfigOf("rules: [{id: a, per: header:x-api-key, limit: 5/10s}]");
  config.listen.api = "0.0.0.0:0";
  Problems problems;
  ManualClock clock;
  auto server = Server::Make(
      config, {.threads = 1, .clock = &clock, .version = "", .on_thread_start = SandboxedThread()},
      problems);
  ASSERT_TRUE(server.has_value());
  (*server)->Start();
  HttpClient client(
      net::Endpoint::Parse("127.0.0.1:" + std::to_string((*server)->api().port())).value());
  EXPECT_EQ(client.Ask("/v1/decide", ByRule("a", "x")).status, 200);
  EXPECT_EQ(client.Ask("/v1/refund", ByRule("a", "x", R"(,"id":"1")")).status, 403);
  EXPECT_EQ(client.Ask("/v1/peek", ByRule("a", "x")).Json().at("remaining"), 4);
}

// --- Requests -----------------------------------------------------------------

TEST_F(DecideTest, ChargesAllMatchingRulesOrNone) {
  const std::string alice = R"(,"headers":{"x-api-key":"alice"})";
  EXPECT_EQ(DecideFor("/both", "203.0.113.7", alice).status, 200);
  const HttpResponse second = DecideFor("/both", "203.0.113.7", alice);
  EXPECT_EQ(second.status, 200);
  EXPECT_EQ(second.Field("RateLimit-Policy"), R"("slow";q=3;w=60, "address";q=2;w=1)");
  // The rule with the smallest remaining share.
  EXPECT_EQ(second.Field("RateLimit"), R"("address";r=0;t=1)");
  for (int i = 0; i < 3; ++i) {
    const HttpResponse denied = DecideFor("/both", "203.0.113.7", alice);
    EXPECT_EQ(denied.status, 429);
    EXPECT_EQ(Part(denied, "violated-policies"), R"(["address"])");
    EXPECT_EQ(Text(denied, "rule"), "address");
    EXPECT_EQ(Number(denied, "retry_after_ms"), 500);
    EXPECT_EQ(denied.Field("Retry-After"), "1");
    const json::object body = denied.Json();
    EXPECT_EQ(body.at("rules").as_array().size(), 2u);
    EXPECT_TRUE(body.at("rules").as_array()[0].at("allowed").as_bool());
    EXPECT_FALSE(body.at("rules").as_array()[1].at("allowed").as_bool());
  }
  EXPECT_EQ(Remaining("slow", "alice"), 1);  // The denied requests consumed nothing.
}

TEST_F(DecideTest, DenyingRuleWithTheLongestWaitGoverns) {
  const std::string alice = R"(,"headers":{"x-api-key":"alice"})";
  EXPECT_EQ(DecideFor("/both", "203.0.113.7", alice).status, 200);
  EXPECT_EQ(DecideFor("/both", "203.0.113.8", alice).status, 200);
  EXPECT_EQ(DecideFor("/both", "203.0.113.9", alice).status, 200);
  (void)service_.Decide(ByRule("address", "203.0.113.7", R"(,"cost":1)"));
  const HttpResponse denied = DecideFor("/both", "203.0.113.7", alice);
  EXPECT_EQ(Part(denied, "violated-policies"), R"(["slow","address"])");
  EXPECT_EQ(Text(denied, "rule"), "slow");
  EXPECT_EQ(denied.Field("Retry-After"), "20");
}

TEST_F(DecideTest, ShadowRuleCountsButNeverDenies) {
  for (int i = 0; i < 3; ++i) {
    const HttpResponse answer = DecideFor("/watched", "203.0.113.7");
    EXPECT_EQ(answer.status, 200) << i;
    const json::object body = answer.Json();
    const json::object& ghost = body.at("rules").as_array()[1].as_object();
    EXPECT_EQ(ghost.at("mode"), "shadow");
    EXPECT_EQ(ghost.at("allowed").as_bool(), i == 0);
    EXPECT_EQ(Text(answer, "rule"), "watched");
  }
  const HttpResponse denied = DecideFor("/watched", "203.0.113.7");
  EXPECT_EQ(denied.status, 429);
  EXPECT_EQ(Part(denied, "violated-policies"), R"(["watched"])");
  EXPECT_EQ(
      service_.Metric(
          R"(tidegate_decisions_total{rule="ghost",outcome="shadow_denied",decided_by="store"})"),
      3);
}

TEST_F(DecideTest, ShadowDenialHasNoRetryAfter) {
  EXPECT_EQ(service_.Decide(ByRule("ghost", "203.0.113.7")).status, 200);
  for (const std::string_view cost : {R"(,"cost":1)", R"(,"cost":2)"}) {
    const HttpResponse answer = service_.Decide(ByRule("ghost", "203.0.113.7", cost));
    EXPECT_EQ(answer.status, 200);
    EXPECT_TRUE(Is(answer, "allowed"));
    EXPECT_FALSE(answer.Has("Retry-After"));
    // The response omits these members, because the request was allowed.
    EXPECT_FALSE(answer.Json().contains("retry_after_ms")) << answer.body;
    EXPECT_FALSE(answer.Json().contains("never")) << answer.body;
    const json::object body = answer.Json();
    EXPECT_FALSE(body.at("rules").as_array()[0].at("allowed").as_bool());
  }
}

TEST_F(DecideTest, DenyEntryReturns403WhateverTheQuota) {
  const HttpResponse answer =
      DecideFor("/both", "192.0.2.1", R"(,"headers":{"User-Agent":"BadBot/1.0"})");
  EXPECT_EQ(answer.status, 403);
  EXPECT_EQ(answer.Field("Content-Type"), "application/problem+json");
  EXPECT_FALSE(answer.Has("Retry-After"));
  EXPECT_FALSE(answer.Has("RateLimit"));
  EXPECT_FALSE(Is(answer, "allowed"));
  EXPECT_EQ(Number(answer, "status"), 403);
}

TEST_F(DecideTest, DoesNotCountExemptRequests) {
  for (int i = 0; i < 10; ++i) {
    const HttpResponse answer = DecideFor("/both", "192.0.2.9", R"(,"headers":{"x-api-key":"a"})");
    EXPECT_EQ(answer.status, 200);
    EXPECT_TRUE(Is(answer, "allowed"));
    EXPECT_TRUE(Is(answer, "exempt"));
    EXPECT_FALSE(answer.Has("RateLimit"));
  }
  EXPECT_EQ(Remaining("slow", "a"), 3);
}

TEST_F(DecideTest, AllowsRequestThatNoRuleMatches) {
  const HttpResponse answer = DecideFor("/elsewhere", "203.0.113.7");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(Part(answer, "rules"), "[]");
  EXPECT_FALSE(answer.Has("RateLimit"));
}

TEST_F(DecideTest, ReadsCostFromRequestHeader) {
  EXPECT_EQ(
      Number(DecideFor("/priced", "203.0.113.7", R"(,"headers":{"X-Cost":"4"})"), "remaining"), 6);
  EXPECT_EQ(Number(DecideFor("/priced", "203.0.113.7"), "remaining"), 5);
  EXPECT_EQ(DecideFor("/priced", "203.0.113.7", R"(,"headers":{"X-Cost":"-4"})").status, 400);
  EXPECT_EQ(Remaining("priced", "203.0.113.7"), 5);
}

TEST_F(DecideTest, NormalizesPathBeforeMatching) {
  EXPECT_EQ(Number(DecideFor("/./%77atched/?y=1", "203.0.113.7"), "remaining"), 2);
  EXPECT_EQ(Number(DecideFor("/watched;x", "203.0.113.7"), "remaining"), 1);
  for (const char* path : {"/x/../watched", "/watched%2f", "/..;/watched"}) {
    EXPECT_EQ(DecideFor(path, "203.0.113.7").status, 400) << path;
  }
}

// --- Leases -------------------------------------------------------------------

TEST_F(DecideTest, LeasesLastUntilReleasedOrExpired) {
  const auto ask = [&](std::string_view path, std::string_view lease) {
    return service_.Ask(path,
                        ByRule("jobs", "203.0.113.7", R"(,"lease":")" + std::string(lease) + "\""));
  };
  const HttpResponse first = ask("/v1/acquire", "a");
  EXPECT_EQ(first.status, 200);
  EXPECT_EQ(Number(first, "remaining"), 1);
  EXPECT_THAT(first.Field("RateLimit-Policy"), HasSubstr(R"("jobs";q=2)"));
  EXPECT_THAT(first.Field("RateLimit-Policy"), HasSubstr(R"(;qu="concurrent-requests")"));
  // Acquires the same lease again, which takes no second unit.
  EXPECT_EQ(ask("/v1/acquire", "a").status, 200);
  EXPECT_EQ(ask("/v1/acquire", "b").status, 200);
  const HttpResponse denied = ask("/v1/acquire", "c");
  EXPECT_EQ(denied.status, 429);
  EXPECT_EQ(denied.Field("Retry-After"), "30");

  EXPECT_TRUE(Is(ask("/v1/release", "a"), "applied"));
  const HttpResponse again = ask("/v1/release", "a");
  EXPECT_EQ(again.status, 200);
  EXPECT_FALSE(Is(again, "applied"));
  EXPECT_EQ(ask("/v1/acquire", "c").status, 200);

  service_.Advance(29s);
  const HttpResponse renewed = ask("/v1/renew", "b");
  EXPECT_EQ(renewed.status, 200);
  EXPECT_TRUE(Is(renewed, "applied"));
  service_.Advance(1s);  // Lease c has expired; lease b was renewed.
  EXPECT_EQ(ask("/v1/acquire", "d").status, 200);
  EXPECT_EQ(ask("/v1/acquire", "e").status, 429);
  const HttpResponse lost = ask("/v1/renew", "c");
  EXPECT_EQ(lost.status, 404);
  EXPECT_FALSE(Is(lost, "applied"));
  EXPECT_FALSE(Is(ask("/v1/release", "c"), "applied"));
}

TEST_F(DecideTest, LeaseExpiresAtTheExactMicrosecond) {
  const std::string a = ByRule("jobs", "203.0.113.7", R"(,"lease":"a")");
  const std::string b = ByRule("jobs", "203.0.113.7", R"(,"lease":"b")");
  const std::string c = ByRule("jobs", "203.0.113.7", R"(,"lease":"c")");
  EXPECT_EQ(service_.Ask("/v1/acquire", a).status, 200);
  EXPECT_EQ(service_.Ask("/v1/acquire", b).status, 200);
  service_.Advance(30s - 1us);
  EXPECT_EQ(service_.Ask("/v1/acquire", c).Field("Retry-After"), "1");
  service_.Advance(1us);
  EXPECT_EQ(service_.Ask("/v1/acquire", c).status, 200);
}

TEST_F(DecideTest, DeniedLeaseDoesNotChargeOtherRules) {
  const auto acquire = [&](std::string_view lease) {
    return service_.Ask("/v1/acquire",
                        R"({"request":{"path":"/jobs","client_ip":"203.0.113.7"},"lease":")" +
                            std::string(lease) + "\"}");
  };
  EXPECT_EQ(acquire("a").status, 200);
  EXPECT_EQ(acquire("b").status, 200);
  EXPECT_EQ(acquire("c").status, 429);
  EXPECT_EQ(Remaining("starts", "203.0.113.7"), 98);
}

TEST_F(DecideTest, DecideOnConcurrencyRulePointsToAcquire) {
  const HttpResponse answer = service_.Decide(ByRule("jobs", "203.0.113.7"));
  EXPECT_EQ(answer.status, 400);
  EXPECT_THAT(Text(answer, "detail"), HasSubstr("/v1/acquire"));
}

TEST_F(DecideTest, PeekReportsFreeLeaseCount) {
  (void)service_.Ask("/v1/acquire", ByRule("jobs", "203.0.113.7", R"(,"lease":"a")"));
  const HttpResponse look = service_.Ask("/v1/peek", ByRule("jobs", "203.0.113.7"));
  EXPECT_EQ(look.status, 200) << look.body;
  EXPECT_EQ(Number(look, "remaining"), 1);
}

TEST_F(DecideTest, RejectsOperationsThatTheAlgorithmLacks) {
  const std::string lease = R"(,"lease":"a")";
  EXPECT_EQ(service_.Ask("/v1/acquire", ByRule("bucket", "alice", lease)).status, 400);
  EXPECT_EQ(service_.Ask("/v1/renew", ByRule("bucket", "alice", lease)).status, 400);
  EXPECT_EQ(service_.Ask("/v1/release", ByRule("bucket", "alice", lease)).status, 400);
  EXPECT_EQ(service_.Ask("/v1/debit", ByRule("jobs", "203.0.113.7", R"(,"cost":1)")).status, 400);
  EXPECT_EQ(service_.Ask("/v1/refund", ByRule("jobs", "203.0.113.7", R"(,"id":"a")")).status, 400);
  EXPECT_EQ(service_.Decide(ByRule("bucket", "alice", lease)).status, 400);
}

// --- Batches ------------------------------------------------------------------

TEST_F(DecideTest, BatchReturnsAStatusPerRequestInOrder) {
  std::string batch = R"({"requests":[)";
  for (int i = 0; i < 7; ++i) batch += ByRule("bucket", "alice") + ",";
  batch += R"({"request":{"path":"/both","client_ip":"192.0.2.1"}},)";
  batch += R"({"request":{"path":"/both","headers":{"user-agent":"BadBot"}}},)";
  batch += R"({"key":"k","limit":"1/s"}]})";
  const HttpResponse answer = service_.Ask("/v1/decide/batch", batch);
  EXPECT_EQ(answer.status, 200);
  const json::object body = answer.Json();
  const json::array& results = body.at("results").as_array();
  ASSERT_EQ(results.size(), 10u);
  for (std::size_t i = 0; i < 7; ++i) {
    EXPECT_EQ(results[i].at("status"), i < 5 ? 200 : 429);
    EXPECT_EQ(results[i].at("decision").at("allowed"), i < 5);
    EXPECT_EQ(results[i].at("decision").at("remaining"), i < 5 ? 4 - static_cast<int>(i) : 0);
  }
  EXPECT_EQ(results[7].at("status"), 200);
  EXPECT_EQ(results[8].at("status"), 403);
  EXPECT_EQ(results[9].at("decision").at("limit"), 1);
}

TEST_F(DecideTest, InvalidRequestInABatchChargesNothing) {
  const std::string good = ByRule("bucket", "alice");
  const std::vector<std::pair<std::string, std::string>> bad = {
      {ByRule("buckett", "alice"), "/requests/1/rule"},
      {ByRule("bucket", ""), "/requests/1/identity"},
      {ByRule("bucket", "alice", R"(,"cost":0)"), "/requests/1/cost"},
      {ByRule("bucket", "alice", R"(,"cots":1)"), "/requests/1/cots"},
      {R"({"rule":7})", "/requests/1/rule"},
      {ByRule("bucket", "alice", R"(,"lease":"x")"), "/requests/1/lease"},
  };
  for (const auto& [question, pointer] : bad) {
    std::string batch = R"({"requests":[)";
    batch.append(good).append(",").append(question).append(",").append(good).append("]}");
    const HttpResponse answer = service_.Ask("/v1/decide/batch", batch);
    EXPECT_GE(answer.status, 400) << question;
    EXPECT_LT(answer.status, 500) << question;
    EXPECT_EQ(Text(answer, "pointer"), pointer);
  }
  EXPECT_EQ(Remaining("bucket", "alice"), 5);
}

TEST_F(DecideTest, BatchAcceptsOneTo256Requests) {
  EXPECT_EQ(service_.Ask("/v1/decide/batch", R"({"requests":[]})").status, 400);
  EXPECT_EQ(service_.Ask("/v1/decide/batch", "{}").status, 400);
  std::string batch = R"({"requests":[)";
  for (int i = 0; i < 256; ++i) batch += (i == 0 ? "" : ",") + ByRule("bucket", "x");
  EXPECT_EQ(service_.Ask("/v1/decide/batch", batch + "]}").status, 200);
  EXPECT_EQ(service_.Ask("/v1/decide/batch", batch + "," + ByRule("bucket", "y") + "]}").status,
            400);
  EXPECT_EQ(Remaining("bucket", "y"), 5);
}

// --- Inline quotas ------------------------------------------------------------

TEST_F(DecideTest, InlineQuotaNeedsNoRule) {
  const std::string body = R"({"key":"job-42","limit":"2/m"})";
  EXPECT_EQ(service_.Decide(body).Field("RateLimit-Policy"), R"("inline";q=2;w=60)");
  EXPECT_EQ(service_.Decide(body).status, 200);
  EXPECT_EQ(service_.Decide(body).status, 429);
  EXPECT_EQ(service_.Decide(R"({"key":"job-43","limit":"2/m"})").status, 200);
  const HttpResponse burst = service_.Decide(R"({"key":"b","limit":"2/m","burst":9})");
  EXPECT_EQ(Number(burst, "limit"), 9);
  for (const std::string_view algorithm :
       {"gcra", "sliding_log", "sliding_window", "fixed_window"}) {
    const HttpResponse answer = service_.Decide(R"({"key":"a","limit":"3/m","algorithm":")" +
                                                std::string(algorithm) + "\"}");
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(Number(answer, "remaining"), 2) << algorithm;  // Each algorithm counts separately.
  }
}

TEST(InlineQuotaTest, RejectsInlineQuotaUnlessConfigured) {
  Service service("rules: [{id: a, per: client_ip, limit: 1/s}]");
  const HttpResponse answer = service.Decide(R"({"key":"job-42","limit":"2/m"})");
  EXPECT_EQ(answer.status, 403);
  EXPECT_THAT(answer.body, HasSubstr("inline_quotas"));
}

// --- Header fields ------------------------------------------------------------

TEST(RateLimitPolicyHeaderTest, ReportsQuotaAndWindowOfEachAlgorithm) {
  Service service(R"(
rules:
  - { id: tb, per: client_ip, limit: 100/s, burst: 200 }
  - { id: gc, per: client_ip, limit: 100/s, burst: 250, algorithm: gcra }
  - { id: sl, per: client_ip, limit: 7/10s, algorithm: sliding_log }
  - { id: sw, per: client_ip, limit: 100000/24h, algorithm: sliding_window }
  - { id: fw, per: client_ip, limit: 60/1500ms, algorithm: fixed_window }
  - { id: cc, per: client_ip, limit: 2/30s, algorithm: concurrency }
)");
  const auto policy = [&](std::string_view rule) {
    const bool leases = rule == "cc";
    return service
        .Ask(leases ? "/v1/acquire" : "/v1/decide",
             ByRule(rule, "203.0.113.7", leases ? R"(,"lease":"x")" : ""))
        .Field("RateLimit-Policy");
  };
  EXPECT_EQ(policy("tb"), R"("tb";q=200;w=2)");
  // 2.5 s, rounded up so that the window is never too short.
  EXPECT_EQ(policy("gc"), R"("gc";q=250;w=3)");
  EXPECT_EQ(policy("sl"), R"("sl";q=7;w=10)");
  EXPECT_EQ(policy("sw"), R"("sw";q=100000;w=86400)");
  EXPECT_EQ(policy("fw"), R"("fw";q=60;w=2)");
  EXPECT_THAT(policy("cc"), HasSubstr(R"("cc";q=2)"));
  EXPECT_THAT(policy("cc"), HasSubstr(R"(;qu="concurrent-requests")"));
}

constexpr std::string_view kOneRule = "rules: [{id: a, per: client_ip, limit: 2/10s}]\n";

TEST(LegacyHeaderTest, LegacyHeadersCountSeconds) {
  Service service("responses: {headers: [ratelimit, ratelimit-legacy]}\n" + std::string(kOneRule));
  const HttpResponse answer = service.Decide(ByRule("a", "203.0.113.7"));
  EXPECT_EQ(answer.Field("RateLimit-Limit"), "2");
  EXPECT_EQ(answer.Field("RateLimit-Remaining"), "1");
  EXPECT_EQ(answer.Field("RateLimit-Reset"), "5");
  EXPECT_EQ(answer.Field("RateLimit"), R"("a";r=1;t=5)");
  EXPECT_FALSE(answer.Has("X-RateLimit-Limit"));
}

TEST(LegacyHeaderTest, XRateLimitResetCountsSecondsByDefault) {
  Service service("responses: {headers: [x-ratelimit]}\n" + std::string(kOneRule));
  (void)service.Decide(ByRule("a", "203.0.113.7"));
  service.Advance(1ms);
  const HttpResponse answer = service.Decide(ByRule("a", "203.0.113.7"));
  EXPECT_EQ(answer.Field("X-RateLimit-Limit"), "2");
  EXPECT_EQ(answer.Field("X-RateLimit-Remaining"), "0");
  EXPECT_EQ(answer.Field("X-RateLimit-Reset"), "10");  // 9.999 s, rounded up.
  EXPECT_FALSE(answer.Has("RateLimit"));
  EXPECT_FALSE(answer.Has("RateLimit-Policy"));
  EXPECT_FALSE(answer.Has("RateLimit-Limit"));
}

TEST(LegacyHeaderTest, XRateLimitResetIsEpochTimeIfConfigured) {
  Service service("responses: {headers: [x-ratelimit], x_ratelimit_reset: epoch}\n" +
                  std::string(kOneRule));
  const std::int64_t before = std::time(nullptr);
  const HttpResponse answer = service.Decide(ByRule("a", "203.0.113.7"));
  const std::int64_t after = std::time(nullptr);
  const std::int64_t reset = std::stoll("0" + answer.Field("X-RateLimit-Reset"));
  EXPECT_GE(reset, before + 5);
  EXPECT_LE(reset, after + 5);
}

TEST(LegacyHeaderTest, OmitsRateLimitHeadersIfConfigured) {
  Service service("responses: {headers: []}\n" + std::string(kOneRule));
  (void)service.Decide(ByRule("a", "203.0.113.7"));
  (void)service.Decide(ByRule("a", "203.0.113.7"));
  const HttpResponse answer = service.Decide(ByRule("a", "203.0.113.7"));
  EXPECT_EQ(answer.status, 429);
  for (const auto& [name, value] : answer.fields) {
    EXPECT_EQ(name.find("RateLimit"), std::string::npos) << name;
  }
  EXPECT_EQ(answer.Field("Retry-After"), "5");
}

TEST(JitterTest, SpreadsRetryAfterWithoutShorteningIt) {
  Service service("responses: {retry_after_jitter: 10s}\n" + std::string(kOneRule));
  for (int i = 0; i < 2; ++i) (void)service.Decide(ByRule("a", "203.0.113.7"));
  std::set<int> seen;
  for (int i = 0; i < 300; ++i) {
    const HttpResponse answer = service.Decide(ByRule("a", "203.0.113.7"));
    ASSERT_EQ(answer.status, 429);
    const int retry = std::stoi("0" + answer.Field("Retry-After"));
    EXPECT_GE(retry, 5);
    EXPECT_LE(retry, 15);
    seen.insert(retry);
    // The body contains the exact time without jitter.
    EXPECT_THAT(answer.body, HasSubstr(R"("retry_after_ms":5000)"));
  }
  // Of 11 possible values: 300 responses miss a given one with (10/11)^300 < 10^-12.
  EXPECT_GE(seen.size(), 8u);
}

// --- Methods, paths, types ----------------------------------------------------

TEST_F(DecideTest, Returns405ForMethodsOtherThanPost) {
  HttpClient client(service_.api());
  for (const std::string_view method : {"GET", "PUT", "DELETE", "OPTIONS"}) {
    client.Send(Get("/v1/decide", method));
    const HttpResponse answer = client.Read();
    EXPECT_EQ(answer.status, 405) << method;
    EXPECT_EQ(answer.Field("Allow"), "POST");
    EXPECT_FALSE(Text(answer, "detail").empty());
  }
  client.Send(Get("/v1/decide", "HEAD"));
  const HttpResponse head = client.Read(HttpClient::Body::kNo);
  EXPECT_EQ(head.status, 405);
  EXPECT_EQ(client.Ask("/v1/decide", ByRule("bucket", "alice")).status, 200);
}

TEST_F(DecideTest, Returns404ForUnknownPath) {
  for (const std::string_view path : {"/", "/v1", "/v1/decide/", "/v1/decidE", "/v2/decide"}) {
    EXPECT_EQ(service_.Ask(path, ByRule("bucket", "alice")).status, 404) << path;
  }
  EXPECT_EQ(Remaining("bucket", "alice"), 5);
}

TEST_F(DecideTest, IgnoresQueryString) {
  EXPECT_EQ(service_.Ask("/v1/decide?x=1", ByRule("bucket", "alice")).status, 200);
}

TEST(ApiListenerTest, RejectsRequestsOfWebPages) {
  Service service("rules: [{id: a, per: const, limit: 5/m}]\n");
  HttpClient client(service.api());
  client.Send(Post("/v1/decide", R"({"rule":"a"})", "Origin: http://evil.example\r\n"));
  EXPECT_EQ(client.Read().status, 403);
  EXPECT_EQ(client.Ask("/v1/peek", R"({"rule":"a"})").Json().at("remaining"), 5)
      << "the rejected request must charge nothing";
}

/// The client address comes from the peer and, if the peer is trusted, from its headers.
TEST(ApiListenerTest, TrustsForwardedForOnlyFromTrustedPeers) {
  Service service(
      "client_ip: {trusted_proxies: [10.0.0.0/8]}\n"
      "rules: [{id: a, per: client_ip, limit: 5/m}]\n");
  const auto ask = [&](std::string_view peer, std::string_view forwarded) {
    std::string body = R"({"request":{"peer":")";
    body.append(peer).append(R"(","headers":{"X-Forwarded-For":")").append(forwarded);
    return service.Decide(body.append("\"}}}")).Json().at("remaining");
  };
  EXPECT_EQ(ask("10.0.0.1", "203.0.113.7"), 4);
  EXPECT_EQ(ask("10.0.0.2", "6.6.6.6, 203.0.113.7, 10.9.9.9"), 3)
      << "the address behind both trusted proxies";
  EXPECT_EQ(ask("198.51.100.1", "203.0.113.7"), 4)
      << "an untrusted peer counts as the client itself";
  EXPECT_EQ(service.Ask("/v1/peek", ByRule("a", "203.0.113.7")).Json().at("remaining"), 3);
  EXPECT_EQ(service.Decide(R"({"request":{"peer":"10.0.0.1","client_ip":"1.2.3.4"}})").status, 400);
  EXPECT_EQ(service.Decide(R"({"request":{"peer":"10.0.0.1:80"}})").status, 400);
}

TEST(ApiListenerTest, ReadyzReturns503WhileDraining) {
  Service service("rules: [{id: a, per: const, limit: 5/m}]\n");
  HttpClient open(service.api());
  EXPECT_EQ(open.Ask("/v1/decide", R"({"rule":"a"})").status, 200);
  service.server().Drain([] {});
  HttpClient probe(service.admin());
  probe.Send(Get("/readyz"));
  EXPECT_EQ(probe.Read().status, 503);
}

TEST_F(DecideTest, RejectsContentTypesOtherThanJson) {
  HttpClient client(service_.api());
  const std::string body = ByRule("bucket", "alice");
  const auto ask = [&](const std::string& field) {
    client.Send("POST /v1/decide HTTP/1.1\r\nHost: localhost\r\n" + field +
                "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
    return client.Read().status;
  };
  EXPECT_EQ(ask(""), 415);
  EXPECT_EQ(ask("Content-Type: text/plain\r\n"), 415);
  EXPECT_EQ(ask("Content-Type: application/x-www-form-urlencoded\r\n"), 415);
  EXPECT_EQ(ask("Content-Type: application/jsonp\r\n"), 415);
  EXPECT_EQ(Remaining("bucket", "alice"), 5);
  EXPECT_EQ(ask("Content-Type: application/json\r\n"), 200);
  EXPECT_EQ(ask("content-type: Application/JSON ; charset=utf-8\r\n"), 200);
}

TEST_F(DecideTest, RejectsBodyWithContentCoding) {
  HttpClient client(service_.api());
  const std::string body = ByRule("bucket", "alice");
  const auto ask = [&](const std::string& coding, const std::string& path = "/v1/decide") {
    client.Send("POST " + path +
                " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" + coding +
                "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
    return client.Read();
  };
  // The bodies are plain JSON: the service must trust the field and charge nothing.
  for (const char* const coding :
       {"gzip", "GZip", "br", "deflate", "zstd", "identity, gzip", "gzip, identity", "x y"}) {
    const HttpResponse answer = ask("Content-Encoding: " + std::string(coding) + "\r\n");
    EXPECT_EQ(answer.status, 415) << coding;
    EXPECT_EQ(answer.Field("Accept-Encoding"), "identity") << coding;
    EXPECT_THAT(answer.body, testing::HasSubstr("`Content-Encoding: " + std::string(coding) + "`"));
  }
  EXPECT_EQ(ask("content-encoding: identity\r\nCONTENT-ENCODING: gzip\r\n").status, 415);
  for (const char* const path : {"/v1/peek", "/v1/debit", "/v1/decide/batch"}) {
    EXPECT_EQ(ask("Content-Encoding: gzip\r\n", path).status, 415) << path;
  }
  EXPECT_EQ(Remaining("bucket", "alice"), 5);
  EXPECT_EQ(ask("Content-Encoding: identity\r\n").status, 200);
  EXPECT_EQ(ask("Content-Encoding: , Identity ,\r\n").status, 200);
  EXPECT_EQ(ask("Content-Encoding:\r\n").status, 200);
  EXPECT_EQ(ask("Accept-Encoding: gzip\r\n").status, 200);
}

TEST_F(DecideTest, RejectsContentCodingBeforeTheBodyArrives) {
  HttpClient client(service_.api());
  client.Send(
      "POST /v1/decide HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
      "Content-Encoding: gzip\r\nContent-Length: 500\r\n\r\n");
  const HttpResponse answer = client.Read();
  EXPECT_EQ(answer.status, 415);
  EXPECT_EQ(answer.Field("Accept-Encoding"), "identity");
  EXPECT_EQ(answer.Field("Connection"), "close");
}

TEST_F(DecideTest, ServesOpenApiDocument) {
  HttpClient client(service_.api());
  client.Send(Get("/openapi.json"));
  const HttpResponse answer = client.Read();
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.Field("Content-Type"), "application/json");
  EXPECT_TRUE(answer.Json().contains("openapi"));
  client.Send(Get("/openapi.json", "HEAD"));
  const HttpResponse head = client.Read(HttpClient::Body::kNo);
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.Field("Content-Length"), std::to_string(answer.body.size()));
  client.Send(Get("/openapi.json", "POST"));
  EXPECT_EQ(client.Read().status, 405);
}

TEST_F(DecideTest, EveryResponseHasADateHeader) {
  EXPECT_THAT(service_.Decide(ByRule("bucket", "alice")).Field("Date"),
              testing::MatchesRegex("[A-Z][a-z][a-z], [0-9][0-9] [A-Z][a-z][a-z] [0-9]+ "
                                    "[0-9][0-9]:[0-9][0-9]:[0-9][0-9] GMT"));
}

TEST_F(DecideTest, SuggestsNearestNameForUnknownRule) {
  const HttpResponse answer = service_.Decide(ByRule("buckett", "alice"));
  EXPECT_EQ(answer.status, 404);
  EXPECT_EQ(Text(answer, "pointer"), "/rule");
  EXPECT_THAT(Text(answer, "detail"), HasSubstr("bucket"));
}

}  // namespace
}  // namespace tidegate::service
