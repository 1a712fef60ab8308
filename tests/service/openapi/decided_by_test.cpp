// SPDX-License-Identifier: Apache-2.0
// Responses while the store does not answer: checks each failure policy at every path against the
// document.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <map>

#include "frontends/api_frontend.hpp"
#include "service/late_store.hpp"
#include "service/late_support.hpp"
#include "service/openapi/client.hpp"
#include "service/openapi/document.hpp"

namespace tidegate::openapi_test {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

/// A store that makes the decision for each rule as the source given in `sources`, like a store
/// that has lost its Redis.
class FailureStore final : public Store {
 public:
  std::map<std::string, DecidedBy, std::less<>> sources;
  Applied applied = Applied::kYes;

  void Start(Call& call) noexcept override {
    call.allowed = true;
    call.applied = applied;
    for (std::size_t i = 0; i < call.charges.size(); ++i) {
      const Charge& charge = call.charges[i];
      Decision& decision = call.decisions[i];
      const auto found = sources.find(charge.rule);
      decision = {
          .allowed = true, .limit = 10, .remaining = 9, .reset_after = 1s, .rule = charge.rule};
      if (found != sources.end()) {
        decision.decided_by = found->second;
        decision.reason = Reason::kTimeout;
      }
      if (decision.decided_by == DecidedBy::kClosed) {
        decision.allowed = false;
        decision.retry_after = 1s;
        if (charge.mode == Mode::kEnforce) call.allowed = false;
      }
    }
    call.finished(call);
  }

  Result<std::int64_t> Apply(std::span<const Charge>, std::int64_t, std::span<Decision>) override {
    return 0;
  }
  Result<Decision> Apply(const Charge&) override { return Decision{}; }
  Result<Decision> Peek(const Charge&) override { return Decision{}; }
  Result<Decision> Debit(const Charge&) override { return Decision{}; }
  Result<Applied> Refund(const Charge&, const RefundRequest&) override { return applied; }
  Result<Applied> Reset(const Charge&) override { return applied; }
  Result<Inspection> Inspect(const Charge&) override { return Inspection{}; }
  Result<Applied> Renew(const Charge&) override { return applied; }
  Result<Applied> Release(const Charge&) override { return applied; }
  StoreStats Stats() const override { return {}; }
};

/// `a` and `b` count units, `c` and `d` leases; a request matches all four.
constexpr std::string_view kConfig = R"(
listen: { api: 127.0.0.1:0 }
api: { inline_quotas: true }
client_ip: { trusted_proxies: [127.0.0.1] }
rules:
  - { id: a, per: client_ip, limit: 10/s }
  - { id: b, per: client_ip, limit: 10/s }
  - { id: c, per: client_ip, limit: 10/s, algorithm: concurrency }
  - { id: d, per: client_ip, limit: 10/s, algorithm: concurrency }
)";

class DecidedByTest : public testing::Test {
 protected:
  void SetUp() override { service_.Start(); }
  /// Sends a request and checks that the response is documented.
  Reply Ask(const std::string& path, std::string_view body) {
    const auto server =
        net::Endpoint::Parse("127.0.0.1:" + std::to_string(service_.port())).value();
    Reply reply = Exchange(server, RequestText("POST", path, body));
    CheckDocumented(reply, Operation(path, "post"));
    return reply;
  }
  /// Sends a request that matches all rules; for acquire, renew and release it names a lease.
  Reply AskAll(const std::string& path) {
    json::object request{{"request", {{"client_ip", "192.0.2.1"}}}};
    if (path == "/v1/acquire" || path == "/v1/renew" || path == "/v1/release") {
      request["lease"] = "l";
    }
    if (path == "/v1/debit") request["cost"] = 1;
    if (path == "/v1/refund") request["id"] = "i";
    return Ask(path, json::serialize(request));
  }

  FailureStore store_;
  net::Timers timers_;
  DecisionMetrics metrics_{timers_, {}};
  const RealClock clock_;
  DecisionPipeline pipeline_{store_, metrics_, service::SnapshotOf(kConfig),
                             OverrideTable::Make({}, clock_)};
  FailureThrottle throttle_{1};
  AuthFailures failures_{"api", throttle_};
  ApiFrontend frontend_{pipeline_, failures_};
  service::Service service_{frontend_};
};

constexpr const char* kPaths[] = {"/v1/peek",   "/v1/acquire", "/v1/debit",
                                  "/v1/refund", "/v1/renew",   "/v1/release"};

TEST_F(DecidedByTest, OpenDecisionHasNoLimitOrRemaining) {
  for (const char* const rule : {"a", "b", "c", "d"}) store_.sources[rule] = DecidedBy::kOpen;
  for (const char* const path : kPaths) {
    SCOPED_TRACE(path);
    const Reply reply = AskAll(path);
    EXPECT_EQ(reply.status, 200);
    EXPECT_FALSE(reply.fields.contains("RateLimit"));
    EXPECT_FALSE(reply.fields.contains("RateLimit-Policy"));
    EXPECT_EQ(reply.fields.at("X-Tidegate-Decided-By"), "open");
    const json::object body = json::parse(reply.body).as_object();
    EXPECT_EQ(body.at("decided_by"), "open");
    EXPECT_EQ(body.at("reason"), "timeout");
    EXPECT_FALSE(body.contains("limit"));
    for (const json::value& rule : body.at("rules").as_array()) {
      // The three members are rule, mode and allowed.
      EXPECT_EQ(rule.as_object().size(), 3u) << reply.body;
    }
  }
}

TEST_F(DecidedByTest, ClosedRuleReturns503AtEveryPath) {
  store_.sources = {{"a", DecidedBy::kLocal},
                    {"b", DecidedBy::kClosed},
                    {"c", DecidedBy::kOpen},
                    {"d", DecidedBy::kClosed}};
  for (const char* const path : kPaths) {
    SCOPED_TRACE(path);
    const Reply reply = AskAll(path);
    EXPECT_EQ(reply.status, 503);
    EXPECT_EQ(reply.fields.at("Retry-After"), "1");
    EXPECT_EQ(reply.fields.at("X-Tidegate-Decided-By"), "closed");
    EXPECT_FALSE(reply.fields.contains("RateLimit-Policy"));
    const json::object body = json::parse(reply.body).as_object();
    EXPECT_EQ(body.at("decided_by"), "closed");
    EXPECT_EQ(body.at("reason"), "timeout");
    EXPECT_EQ(body.at("retry_after_ms"), 1000);
    EXPECT_EQ(body.at("allowed"), false);
  }
}

TEST_F(DecidedByTest, ReportsLimitsOfLocalButNotOfOpenRules) {
  store_.sources = {{"a", DecidedBy::kOpen},
                    {"b", DecidedBy::kLocal},
                    {"c", DecidedBy::kLocal},
                    {"d", DecidedBy::kOpen}};
  for (const char* const path : kPaths) {
    SCOPED_TRACE(path);
    const Reply reply = AskAll(path);
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.fields.at("X-Tidegate-Decided-By"), "local");
    EXPECT_EQ(reply.fields.at("RateLimit-Policy").find("\"a\""), std::string::npos);
    EXPECT_EQ(reply.fields.at("RateLimit-Policy").find("\"d\""), std::string::npos);
    const json::value body = json::parse(reply.body);
    for (const json::value& rule : body.at("rules").as_array()) {
      const bool open = rule.at("rule") == "a" || rule.at("rule") == "d";
      EXPECT_EQ(rule.as_object().contains("decided_by"), open) << reply.body;
      EXPECT_EQ(rule.as_object().contains("reason"), open) << reply.body;
      EXPECT_EQ(rule.as_object().contains("limit"), !open) << reply.body;
    }
  }
}

TEST_F(DecidedByTest, BatchReportsFailurePolicyPerRequest) {
  store_.sources = {
      {"a", DecidedBy::kClosed}, {"b", DecidedBy::kOpen}, {"inline", DecidedBy::kLocal}};
  const Reply reply = Ask("/v1/decide/batch",
                          R"({"requests":[{"rule":"a","identity":"192.0.2.1"},)"
                          R"({"rule":"b","identity":"192.0.2.1"},{"key":"k","limit":"10/s"}]})");
  EXPECT_EQ(reply.status, 200);
  const json::value body = json::parse(reply.body);
  const json::array& results = body.at("results").as_array();
  EXPECT_EQ(json::serialize(results[0]),
            R"({"status":503,"decision":{"allowed":false,"rule":"a","retry_after_ms":1000,)"
            R"("decided_by":"closed","reason":"timeout","rules":[{"rule":"a","mode":"enforce",)"
            R"("allowed":false,"retry_after_ms":1000}]}})");
  EXPECT_EQ(json::serialize(results[1]),
            R"({"status":200,"decision":{"allowed":true,"rule":"b","decided_by":"open",)"
            R"("reason":"timeout","rules":[{"rule":"b","mode":"enforce","allowed":true}]}})");
  EXPECT_EQ(results[2].at("status"), 200);
  EXPECT_EQ(results[2].at("decision").at("decided_by"), "local");
  EXPECT_EQ(results[2].at("decision").at("reason"), "timeout");
}

TEST_F(DecidedByTest, ForwardAuthReportsOpenAndClosedDecisions) {
  const auto auth = [&](const std::string& path) {
    const auto server =
        net::Endpoint::Parse("127.0.0.1:" + std::to_string(service_.port())).value();
    return Exchange(server, RequestText("GET", path, "", "",
                                        "X-Original-URI: /\r\nX-Original-Method: GET\r\n"));
  };
  store_.sources = {{"a", DecidedBy::kOpen}, {"b", DecidedBy::kOpen}, {"c", DecidedBy::kClosed}};
  const Reply open = auth("/v1/auth");
  EXPECT_EQ(open.status, 200) << "forward-auth skips concurrency rules";
  EXPECT_EQ(open.fields.at("X-Tidegate-Decided-By"), "open");
  EXPECT_FALSE(open.fields.contains("RateLimit"));
  CheckDocumented(open, Operation("/v1/auth", "get"));
  store_.sources["b"] = DecidedBy::kClosed;
  const Reply closed = auth("/v1/auth");
  EXPECT_EQ(closed.status, 503);
  EXPECT_EQ(closed.fields.at("X-RateLimit-Status"), "503");
  EXPECT_EQ(closed.fields.at("Retry-After"), "1");
  CheckDocumented(closed, Operation("/v1/auth", "get"));
  const Reply masked = auth("/v1/auth?deny_status=403");
  EXPECT_EQ(masked.status, 403);
  EXPECT_EQ(masked.fields.at("X-RateLimit-Status"), "503");
}

/// A 404 to a renewal tells the holder to stop its work, so only a store that has checked the lease
/// may return it.
TEST_F(DecidedByTest, RenewReturns404OnlyWhenTheLeaseWasChecked) {
  constexpr std::string_view kRenew = R"({"rule":"c","identity":"192.0.2.1","lease":"l"})";
  store_.applied = Applied::kNo;
  EXPECT_EQ(Ask("/v1/renew", kRenew).status, 404);
  store_.sources["c"] = DecidedBy::kLocal;
  EXPECT_EQ(Ask("/v1/renew", kRenew).status, 404);
  store_.sources["c"] = DecidedBy::kOpen;
  EXPECT_EQ(Ask("/v1/renew", kRenew).status, 200);
  store_.sources["c"] = DecidedBy::kClosed;
  EXPECT_EQ(Ask("/v1/renew", kRenew).status, 503);
}

}  // namespace
}  // namespace tidegate::openapi_test
