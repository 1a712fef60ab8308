// SPDX-License-Identifier: Apache-2.0
// Checks that the HTTP API gives the same decisions as the library. The two use separate stores
// that share one clock.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory_resource>
#include <random>

#include "library.hpp"
#include "rules/rule_set.hpp"
#include "service/fixture.hpp"

namespace tidegate::service {
namespace {

using namespace std::chrono_literals;
namespace json = boost::json;

constexpr std::string_view kConfig = R"(
identity: {hmac_key: "0123456789abcdef0123456789abcdef"}
api: {hidden_rules: true}
exempt: [ { client_ip: [192.0.2.0/24] } ]
rules:
  - { id: tb, match: { path: [/a, /b] }, per: header:x-api-key, limit: 7/3s, burst: 11,
      overrides: [ { identity: k1, limit: 3/s, burst: 4 } ] }
  - { id: gc, match: { path: [/a, /c] }, per: client_ip, limit: 13/7s, burst: 9, algorithm: gcra }
  - { id: sl, match: { path: [/b, /c] }, per: client_ip, limit: 9/4s, algorithm: sliding_log }
  - { id: sw, match: { path: [/c, /d] }, per: header:x-api-key, limit: 12/5s, algorithm: sliding_window }
  - { id: fw, match: { path: [/d, /a] }, per: client_ip, limit: 8/2s, algorithm: fixed_window,
      overrides: [ { identity: 203.0.113.1, limit: 20/2s } ] }
  - { id: shadow, match: { path: [/a, /d] }, per: header:x-api-key, limit: 4/5s, mode: shadow }
  - { id: cc, match: { path: /e }, per: client_ip, limit: 3/6s, algorithm: concurrency }
  - { id: heavy, match: { path: /e }, per: client_ip, limit: 20/3s, cost: 2 }
)";

std::int64_t Ceil(Micros time, std::int64_t unit) { return (time.count() + unit - 1) / unit; }

void Describe(json::object& out, const Decision& decision, bool allowed) {
  out["limit"] = decision.limit;
  out["remaining"] = decision.remaining;
  if (!allowed && decision.never) out["never"] = true;
  if (!allowed && !decision.never) out["retry_after_ms"] = Ceil(decision.retry_after, 1000);
  out["reset_after_ms"] = Ceil(decision.reset_after, 1000);
}

/// Returns the JSON members that the HTTP API must return for a decision.
json::object Expected(bool allowed, const Decision& governing, std::span<const Charge> charges,
                      std::span<const Decision> decisions) {
  json::object out{
      {"allowed", allowed}, {"rule", governing.rule}, {"decided_by", "store"}, {"reason", "quota"}};
  Describe(out, governing, allowed);
  json::array rules;
  for (std::size_t i = 0; i < charges.size(); ++i) {
    json::object rule{{"rule", charges[i].rule},
                      {"mode", charges[i].mode == Mode::kShadow ? "shadow" : "enforce"},
                      {"allowed", decisions[i].allowed}};
    Describe(rule, decisions[i], decisions[i].allowed);
    rules.push_back(rule);
  }
  out["rules"] = rules;
  return out;
}

class SameAnswersTest : public testing::TestWithParam<std::uint64_t> {
 protected:
  SameAnswersTest() {
    const Config config = Service::ConfigOf(kConfig);
    Problems problems;
    rules_ = RuleSet::Compile(config.rule_set(),
                              std::make_shared<Identifier>(Identifier::Options{
                                  .hmac_key = config.identity.hmac_key, .jwt = nullptr}),
                              problems);
  }

  std::int64_t Pick(std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random_);
  }

  /// Fills body_ and charges_ with the same request.
  void MakeRequest(bool by_request) {
    charges_.emplace(memory_);
    body_.clear();
    const std::string key = "k" + std::to_string(Pick(0, 3));
    const std::string address =
        Pick(0, 19) == 0 ? "192.0.2.7" : "203.0.113." + std::to_string(Pick(0, 2));
    std::optional<std::int64_t> cost;
    if (Pick(0, 2) == 0) cost = Pick(0, 9) == 0 ? Pick(10, 30) : Pick(1, 4);
    if (cost) body_["cost"] = *cost;
    lease_ = "l" + std::to_string(Pick(0, 5));
    if (by_request) {
      path_ = "/";
      path_ += static_cast<char>('a' + Pick(0, 4));
      body_["request"] = {
          {"path", path_}, {"client_ip", address}, {"headers", {{"X-API-Key", key}}}};
      key_ = key;
      const std::array<HeaderField, 1> headers{{{"X-API-Key", key_}}};
      RequestView view;
      view.method = "GET";
      view.path = path_;
      view.headers = headers;
      view.trusted = true;
      view.client = *Address::Parse(address);
      view.has_client = true;
      access_ = rules_->Match(view, cost, lease_, {}, *charges_, memory_).value();
      return;
    }
    const Rule& rule = rules_->rules()[static_cast<std::size_t>(Pick(0, 7))];
    const bool by_key = rule.per.parts[0][0].kind == Source::Kind::kHeader;
    key_ = by_key ? key : address;
    body_["rule"] = rule.id;
    body_["identity"] = key_;
    const std::array<NamedValue, 1> identity{{{{}, key_}}};
    ASSERT_TRUE(
        rules_->Resolve({rule.id, identity, cost, lease_}, {}, *charges_, memory_).has_value());
    access_ = Access::kRules;
  }

  bool leases() const {
    return std::ranges::any_of(charges_->charges, [](const Charge& charge) {
      return charge.quota->algorithm() == Algorithm::kConcurrency;
    });
  }

  void Check(const HttpResponse& answer, int status, const json::object& expected) {
    json::object body = answer.Json();
    if (status >= 400) {
      for (const char* const member : {"type", "title", "status", "violated-policies", "detail"}) {
        body.erase(member);
      }
    }
    ASSERT_EQ(answer.status, status) << json::serialize(body_) << answer.body;
    ASSERT_EQ(json::value(body), json::value(expected)) << json::serialize(body_);
  }

  /// Checks that the header fields agree with the decision.
  void CheckFields(const HttpResponse& answer, const Verdict& verdict) {
    const Decision& governing = verdict.governing;
    std::string wanted =
        "\"" + std::string(governing.rule) + "\";r=" + std::to_string(governing.remaining);
    const std::string field = answer.Field("RateLimit");
    if (governing.rule == "shadow") {
      ASSERT_EQ(field, "") << "a shadow rule governs only if no other rule was charged";
      return;
    }
    ASSERT_EQ(field.substr(0, wanted.size()), wanted);
    const std::size_t t = field.find(";t=");
    if (verdict.allowed || governing.never) {
      ASSERT_FALSE(answer.Has("Retry-After"));
      return;
    }
    const std::int64_t retry = std::max<std::int64_t>(1, Ceil(governing.retry_after, 1'000'000));
    ASSERT_EQ(answer.Field("Retry-After"), std::to_string(retry));
    ASSERT_NE(t, std::string::npos);
    // Retry-After must not be earlier than `t` of RateLimit.
    ASSERT_LE(std::stoll(field.substr(t + 3)), retry);
  }

  void SendDecision() {
    MakeRequest(Pick(0, 1) == 0);
    std::string_view path = "/v1/decide";
    if (leases()) {
      path = "/v1/acquire";
      body_["lease"] = lease_;
    }
    const HttpResponse answer = service_.Ask(path, json::serialize(body_));
    if (access_ == Access::kExempt) {
      return Check(answer, 200, {{"allowed", true}, {"exempt", true}, {"rules", json::array{}}});
    }
    if (charges_->charges.empty()) {
      return Check(answer, 200, {{"allowed", true}, {"rules", json::array{}}});
    }
    const auto verdict = library_.Decide(charges_->charges);
    ASSERT_TRUE(verdict.has_value());
    (verdict->allowed ? allowed_ : denied_)++;
    Check(answer, verdict->allowed ? 200 : 429,
          Expected(verdict->allowed, verdict->governing, charges_->charges, verdict->decisions));
    if (!HasFatalFailure()) CheckFields(answer, *verdict);
  }

  /// Sends an operation on a single charge.
  void SendOtherOperation() {
    MakeRequest(false);
    const Charge& charge = charges_->charges[0];
    const std::int64_t kind = Pick(0, 3);
    if (leases()) {
      body_.erase("cost");
      body_["lease"] = lease_;
      const bool renew = kind % 2 == 0;
      const HttpResponse answer =
          service_.Ask(renew ? "/v1/renew" : "/v1/release", json::serialize(body_));
      Charge held = charge;
      held.cost = 1;
      const Applied applied = renew ? library_.Renew(held) : library_.Release(held);
      return CheckLook(answer, renew && applied == Applied::kNo ? 404 : 200, applied, held);
    }
    if (kind == 0) {
      const HttpResponse answer = service_.Ask("/v1/peek", json::serialize(body_));
      const Decision look = library_.Peek(charge);
      const bool passes = look.allowed || charge.mode == Mode::kShadow;
      return Check(answer, passes ? 200 : 429, Expected(passes, look, {&charge, 1}, {&look, 1}));
    }
    if (kind == 1) {
      body_["cost"] = charge.cost;
      const HttpResponse answer = service_.Ask("/v1/debit", json::serialize(body_));
      const Decision debit = library_.Debit(charge);
      const bool passes = debit.allowed || charge.mode == Mode::kShadow;
      return Check(answer, 200, Expected(passes, debit, {&charge, 1}, {&debit, 1}));
    }
    const std::string id = "r" + std::to_string(Pick(0, 200));
    body_["id"] = id;
    RefundRequest refund{.id = id};
    if (Pick(0, 1) == 0) {
      refund.age = std::chrono::milliseconds{Pick(0, 5000)};
      body_["age_ms"] = refund.age->count() / 1000;
    }
    const HttpResponse answer = service_.Ask("/v1/refund", json::serialize(body_));
    CheckLook(answer, 200, library_.Refund(charge, refund), charge);
  }

  void CheckLook(const HttpResponse& answer, int status, Applied applied, const Charge& charge) {
    Charge smallest = charge;
    smallest.cost = 1;
    const Decision look = library_.Peek(smallest);
    const bool passes = look.allowed || charge.mode == Mode::kShadow;
    json::object expected = Expected(passes, look, {&charge, 1}, {&look, 1});
    expected["applied"] = applied == Applied::kYes;
    Check(answer, status, expected);
  }

  Service service_{kConfig};
  Library library_{service_.clock()};
  std::shared_ptr<const RuleSet> rules_;
  std::mt19937_64 random_{GetParam()};
  std::pmr::monotonic_buffer_resource memory_;
  std::optional<Charges> charges_;
  Access access_ = Access::kRules;
  json::object body_;
  std::string key_;
  std::string path_;
  std::string lease_;
  int allowed_ = 0;
  int denied_ = 0;
};

TEST_P(SameAnswersTest, HttpApiDecidesLikeTheLibrary) {
  for (int i = 0; i < 1500; ++i) {
    if (Pick(0, 2) == 0) service_.Advance(Micros{Pick(0, 1) == 0 ? Pick(0, 3) : Pick(0, 700'000)});
    if (Pick(0, 3) == 0) {
      SendOtherOperation();
    } else {
      SendDecision();
    }
    if (HasFatalFailure()) {
      ADD_FAILURE() << "at request " << i << " of seed " << GetParam();
      return;
    }
  }
  EXPECT_GT(allowed_, 100);  // Both outcomes must occur often enough.
  EXPECT_GT(denied_, 100);
}

INSTANTIATE_TEST_SUITE_P(Seeds, SameAnswersTest, testing::Values(1, 2, 3, 4));

}  // namespace
}  // namespace tidegate::service
