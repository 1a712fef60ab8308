// SPDX-License-Identifier: Apache-2.0
// Checks that every frontend gives the same decision for the same request, in whatever order the
// frontends are used. One service, whose frontends share their buckets, is compared with the
// library on a separate store with the same clock. The frontends are: HTTP by rule, HTTP by
// request, both versions of the Redis protocol, and forward-auth.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "library.hpp"
#include "rules/rule_set.hpp"
#include "service/fixture.hpp"
#include "support/resp_client.hpp"

namespace tidegate::service {
namespace {

namespace json = boost::json;

constexpr std::string_view kConfig = R"(
identity: {hmac_key: "0123456789abcdef0123456789abcdef"}
client_ip: {trusted_proxies: [127.0.0.1]}
api: {inline_quotas: true, hidden_rules: true}
rules:
  - { id: tb, match: { path: /tb }, per: client_ip, limit: 7/3s, burst: 11 }
  - { id: gc, match: { path: /gc }, per: client_ip, limit: 13/7s, burst: 9, algorithm: gcra }
  - { id: sl, match: { path: /sl }, per: client_ip, limit: 9/4s, algorithm: sliding_log }
  - { id: sw, match: { path: /sw }, per: client_ip, limit: 12/5s, algorithm: sliding_window }
  - { id: fw, match: { path: /fw }, per: client_ip, limit: 8/2s, algorithm: fixed_window,
      overrides: [ { identity: 203.0.113.1, limit: 20/2s } ] }
  - { id: shadow, match: { path: /shadow }, per: client_ip, limit: 4/5s, mode: shadow }
)";

std::int64_t Ceil(Micros time, std::int64_t unit) { return (time.count() + unit - 1) / unit; }

std::string Number(std::int64_t number) { return std::to_string(number); }

class FrontendsAgreeTest : public testing::TestWithParam<std::uint64_t> {
 protected:
  FrontendsAgreeTest() {
    Problems problems;
    rules_ = RuleSet::Compile(config_.rule_set(),
                              std::make_shared<Identifier>(Identifier::Options{
                                  .hmac_key = config_.identity.hmac_key, .jwt = nullptr}),
                              problems);
    EXPECT_EQ(resp3_.Ask({"HELLO", "3"}).substr(0, 1), "{");
  }

  static Config MakeConfig() {
    Config config = Service::ConfigOf(kConfig);
    config.listen.resp = "127.0.0.1:0";
    return config;
  }

  std::int64_t Pick(std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random_);
  }

  // --- Expected response of each frontend to a verdict --------------------------------------

  static std::string Resp2(const Verdict& verdict) {
    const Decision& of = verdict.governing;
    const bool waits = !verdict.allowed && !of.never;
    return "[" + Number(verdict.allowed ? 0 : 1) + "," + Number(of.limit) + "," +
           Number(of.remaining) + "," + Number(waits ? Ceil(of.retry_after, 1000) : -1) + "," +
           Number(Ceil(of.reset_after, 1000)) + ",\"store\",\"quota\"]";
  }

  static std::string Resp3Map(const Verdict& verdict) {
    const Decision& of = verdict.governing;
    std::string text = "{\"allowed\":" + Number(verdict.allowed ? 1 : 0) + ",\"rule\":\"" +
                       std::string(of.rule) + "\",\"limit\":" + Number(of.limit) +
                       ",\"remaining\":" + Number(of.remaining);
    if (!verdict.allowed) {
      text +=
          of.never ? ",\"never\":1" : ",\"retry_after_ms\":" + Number(Ceil(of.retry_after, 1000));
    }
    return text + ",\"reset_after_ms\":" + Number(Ceil(of.reset_after, 1000)) +
           ",\"decided_by\":\"store\",\"reason\":\"quota\"}";
  }

  static void CheckJson(const HttpResponse& answer, const Verdict& verdict) {
    const Decision& of = verdict.governing;
    const json::object body = answer.Json();
    ASSERT_EQ(answer.status, verdict.allowed ? 200 : 429) << answer.body;
    ASSERT_EQ(body.at("limit"), of.limit);
    ASSERT_EQ(body.at("remaining"), of.remaining);
    ASSERT_EQ(body.at("reset_after_ms"), Ceil(of.reset_after, 1000));
    const bool waits = !verdict.allowed && !of.never;
    ASSERT_EQ(body.contains("retry_after_ms"), waits);
    if (waits) {
      ASSERT_EQ(body.at("retry_after_ms"), Ceil(of.retry_after, 1000));
    }
  }

  /// Checks the header fields only, because an allowed response has no body.
  static void CheckFields(const HttpResponse& answer, const Verdict& verdict) {
    const Decision& of = verdict.governing;
    ASSERT_EQ(answer.status, verdict.allowed ? 200 : 429) << answer.body;
    const std::string wanted =
        of.rule == "shadow" ? "" : "\"" + std::string(of.rule) + "\";r=" + Number(of.remaining);
    ASSERT_EQ(answer.Field("RateLimit").substr(0, wanted.size()), wanted);
    if (!verdict.allowed) {
      ASSERT_EQ(answer.Field("Retry-After"),
                Number(std::max<std::int64_t>(1, Ceil(of.retry_after, 1'000'000))));
      ASSERT_EQ(answer.Field("X-RateLimit-Status"), "429");
    }
  }

  // --- Sending requests -----------------------------------------------------------------

  void AskRandomFrontend() {
    const Rule& rule = rules_->rules()[static_cast<std::size_t>(Pick(0, 5))];
    const std::string address = "203.0.113." + Number(Pick(0, 2));
    std::int64_t cost = 1;
    const std::int64_t frontend = Pick(0, 4);
    // The client behind a proxy cannot set the cost.
    if (frontend != 4 && Pick(0, 2) == 0) cost = Pick(0, 9) == 0 ? Pick(10, 30) : Pick(1, 4);
    std::pmr::monotonic_buffer_resource memory;
    Charges charges(memory);
    const std::array<NamedValue, 1> identity{{{{}, address}}};
    ASSERT_TRUE(rules_->Resolve({rule.id, identity, cost, {}}, {}, charges, memory).has_value());
    const auto decided = library_.Decide(charges.charges);
    ASSERT_TRUE(decided.has_value());
    const Verdict& verdict = *decided;
    (verdict.allowed ? allowed_ : denied_)++;
    ++counts_[frontend];
    const std::string cost_text = Number(cost);
    const std::string json_cost = ",\"cost\":" + cost_text + "}";
    switch (frontend) {
      case 0:
        return CheckJson(service_.Decide(R"({"rule":")" + rule.id + R"(","identity":")" + address +
                                         "\"" + json_cost),
                         verdict);
      case 1:
        return CheckJson(service_.Decide(R"({"request":{"path":"/)" + rule.id +
                                         R"(","client_ip":")" + address + "\"}" + json_cost),
                         verdict);
      case 2:
        ASSERT_EQ(resp2_.Ask({"TG.DECIDE", rule.id, address, "COST", cost_text}), Resp2(verdict));
        return;
      case 3:
        ASSERT_EQ(resp3_.Ask({"tg.decide", rule.id, address, "cost", cost_text, "map"}),
                  Resp3Map(verdict));
        return;
      default:
        proxy_.Send(
            "GET /v1/auth HTTP/1.1\r\nHost: t\r\nX-Forwarded-Method: GET\r\nX-Forwarded-Uri: /" +
            rule.id + "\r\nX-Forwarded-For: " + address + "\r\n\r\n");
        return CheckFields(proxy_.Read(), verdict);
    }
  }

  /// Sends an inline quota: CL.THROTTLE and the HTTP API charge the same bucket.
  void AskInline() {
    const std::string key = "k" + Number(Pick(0, 1));
    const std::int64_t quantity = Pick(1, 3);
    const Quota quota = Quota::Make({.algorithm = Algorithm::kGcra,
                                     .limit = 5,
                                     .period = std::chrono::seconds{2},
                                     .burst = 7})
                            .value();
    const Charge charge{.rule = "inline", .identity = key, .quota = &quota, .cost = quantity};
    const auto verdict = library_.Decide({&charge, 1});
    ASSERT_TRUE(verdict.has_value());
    if (Pick(0, 1) == 0) {
      return CheckJson(service_.Decide(R"({"algorithm":"gcra","limit":"5/2s","burst":7,"key":")" +
                                       key + R"(","cost":)" + Number(quantity) + "}"),
                       *verdict);
    }
    const auto seconds = [](Micros time) {
      const std::int64_t millis = time.count() / 1000;
      return Number(millis / 1000 + (millis % 1000 == 0 ? 0 : 1));
    };
    const Decision& of = verdict->governing;
    ASSERT_EQ(resp2_.Ask({"CL.THROTTLE", key, "6", "5", "2", Number(quantity)}),
              "[" + Number(verdict->allowed ? 0 : 1) + ",7," + Number(of.remaining) + "," +
                  (verdict->allowed ? "-1" : seconds(of.retry_after)) + "," +
                  seconds(of.reset_after) + "]");
  }

  const Config config_ = MakeConfig();
  Service service_{config_};
  Library library_{service_.clock()};
  std::shared_ptr<const RuleSet> rules_;
  test::RespClient resp2_{service_.server().resp()};
  test::RespClient resp3_{service_.server().resp()};
  HttpClient proxy_{service_.api()};
  std::mt19937_64 random_{GetParam()};
  std::map<std::int64_t, int> counts_;
  int allowed_ = 0;
  int denied_ = 0;
};

TEST_P(FrontendsAgreeTest, EveryFrontendDecidesLikeTheLibrary) {
  for (int i = 0; i < 2000; ++i) {
    if (Pick(0, 2) == 0) {
      service_.Advance(Micros{Pick(0, 1) == 0 ? Pick(0, 3) : Pick(0, 150'000)});
    }
    Pick(0, 4) == 0 ? AskInline() : AskRandomFrontend();
    if (HasFatalFailure()) {
      ADD_FAILURE() << "at request " << i << " of seed " << GetParam();
      return;
    }
  }
  EXPECT_GT(allowed_, 200);
  EXPECT_GT(denied_, 200);
  for (std::int64_t frontend = 0; frontend < 5; ++frontend)
    EXPECT_GT(counts_[frontend], 200) << frontend;
}

INSTANTIATE_TEST_SUITE_P(Seeds, FrontendsAgreeTest, testing::Values(1, 2, 3, 4));

}  // namespace
}  // namespace tidegate::service
