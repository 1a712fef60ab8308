// SPDX-License-Identifier: Apache-2.0
// Requests of operators that could mislead them or reveal secrets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "service/admin_case.hpp"
#include "support/resp_client.hpp"

namespace tidegate::service {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

constexpr std::string_view kYaml = R"(
rules:
  - { id: per-key, match: { path: /v1/** }, per: header:x-api-key, limit: 2/h }
  - { id: per-ip, match: { path: /ip }, per: client_ip, limit: 100/h }
  - { id: both, match: { path: /both }, per: [header:x-api-key, client_ip], limit: 100/h }
  - { id: slots, match: { path: /slow }, per: client_ip, limit: 1/10s, algorithm: concurrency }
)";

std::string Request(std::string_view ip) {
  return R"({"request":{"path":"/ip","client_ip":")" + std::string(ip) + "\"}}";
}

/// Returns the key of the first entry of /v1/hot, as it is shown; empty if none appears within 10
/// s.
std::string HottestKey(Service& service) {
  for (int i = 0; i < 2000; ++i) {
    const auto hot = ReadAdmin(service, "/v1/hot").Json();
    const auto& keys = hot.at("requests").as_object().at("keys").as_array();
    if (!keys.empty()) return std::string(keys[0].as_object().at("key").as_string());
    std::this_thread::sleep_for(5ms);
  }
  return {};
}

TEST(AdminInputTest, BanOfHotKeyTakesEffectOrIsRejected) {
  Service service(kYaml);
  for (int i = 0; i < 5; ++i) (void)service.Decide(Request("203.0.113.7"));
  const std::string key = HottestKey(service);
  const HttpResponse ban =
      AskAdmin(service, "/v1/ban", R"({"rule":"per-ip","key":")" + key + "\"}");
  const int now = service.Decide(Request("203.0.113.7")).status;
  EXPECT_TRUE(ban.status >= 400 || now == 403) << key << " " << ban.body << now;
}

TEST(AdminInputTest, SecretGivenAsKeyIsNotLogged) {
  Service service(kYaml);
  const HttpResponse ban = AskAdmin(
      service, "/v1/ban", R"({"rule":"per-key","key":"header:x-api-key=sk_live_51Secret"})");
  EXPECT_EQ(ban.status, 400) << ban.body;
  EXPECT_THAT(ReadAdmin(service, "/v1/audit").body, Not(HasSubstr("sk_live_51Secret")));
  EXPECT_THAT(ReadAdmin(service, "/v1/overrides").body, Not(HasSubstr("sk_live_51Secret")));
}

TEST(AdminInputTest, NamesInvalidMemberOfQuota) {
  Service service("rules: [{id: w, per: client_ip, limit: 5/s, algorithm: sliding_window}]\n");
  const auto pointer = [&](std::string_view more) {
    const HttpResponse answer = AskAdmin(service, "/v1/override", ByRule("w", "192.0.2.1", more));
    EXPECT_EQ(answer.status, 400) << answer.body;
    return std::string(answer.Json().at("pointer").as_string());
  };
  EXPECT_EQ(pointer(R"(,"limit":"5/s","burst":10)"), "/burst");
  EXPECT_EQ(pointer(R"(,"limit":"0/s","burst":10)"), "/limit");
  EXPECT_EQ(pointer(R"(,"limit":"0/s")"), "/limit");
  // The response names the invalid member, whichever it is.
  EXPECT_EQ(pointer(R"(,"limit":"5/s","listener":"api")"), "/listener");
}

TEST(AdminInputTest, MasksAddressGivenAsKey) {
  Service service(kYaml);
  const HttpResponse ban =
      AskAdmin(service, "/v1/ban", R"({"rule":"per-ip","key":"client_ip=2001:db8::1"})");
  const int now = service.Decide(Request("2001:db8::1")).status;
  EXPECT_TRUE(ban.status >= 400 || now == 403) << ban.body << now;
}

TEST(AdminInputTest, RejectsPartOfCompoundKey) {
  Service service(kYaml);
  const HttpResponse ban =
      AskAdmin(service, "/v1/ban", R"({"rule":"both","key":"client_ip=203.0.113.7"})");
  EXPECT_EQ(ban.status, 400) << ban.body;
}

TEST(AdminInputTest, AllowedKeyCanRenewItsLease) {
  Service service(kYaml);
  const std::string key_body = ByRule("slots", "192.0.2.1", R"(,"lease":"a")");
  ASSERT_EQ(AskAdmin(service, "/v1/allow", ByRule("slots", "192.0.2.1")).status, 200);
  ASSERT_EQ(service.Ask("/v1/acquire", key_body).status, 200);
  const HttpResponse renewed = service.Ask("/v1/renew", key_body);
  EXPECT_EQ(renewed.status, 200) << renewed.body;
}

TEST(AdminInputTest, BannedKeyCannotRenewItsLease) {
  Service service(kYaml);
  const std::string key_body = ByRule("slots", "192.0.2.1", R"(,"lease":"a")");
  ASSERT_EQ(service.Ask("/v1/acquire", key_body).status, 200);
  ASSERT_EQ(AskAdmin(service, "/v1/ban", ByRule("slots", "192.0.2.1")).status, 200);
  EXPECT_EQ(service.Ask("/v1/renew", key_body).status, 403);
  EXPECT_EQ(service.Ask("/v1/release", key_body).status, 200)
      << "a banned key may release its lease";
}

TEST(AdminInputTest, AuditKeepsWholeReason) {
  Service service(kYaml);
  const HttpResponse ban =
      AskAdmin(service, "/v1/ban", ByRule("per-ip", "192.0.2.1", R"(,"reason":"a\u0000b")"));
  EXPECT_EQ(ban.status, 400) << "a reason must be one line of printable characters";
  const std::string reason = R"(it's \"so\", 50 % & more)";
  (void)AskAdmin(service, "/v1/ban",
                 ByRule("per-ip", "192.0.2.1", ",\"reason\":\"" + reason + "\""));
  EXPECT_THAT(ReadAdmin(service, "/v1/audit").body, HasSubstr(reason + "\",\"applied\""));
}

TEST(AdminInputTest, AnswersInvalidUtf8WithValidJson) {
  Config config = Service::ConfigOf(kYaml);
  config.listen.resp = "127.0.0.1:0";
  Service service(config);
  test::RespClient resp(service.server().resp());
  (void)resp.Ask({"TG.ACQUIRE", "slots", "192.0.2.1", "\xff\xfe"});
  const HttpResponse seen = AskAdmin(service, "/v1/inspect", ByRule("slots", "192.0.2.1"));
  ASSERT_EQ(seen.status, 200) << seen.body;
  boost::system::error_code bad;
  (void)boost::json::parse(seen.body, bad);
  EXPECT_FALSE(bad) << seen.body;
  const HttpResponse ban =
      AskAdmin(service, "/v1/ban", ByRule("per-ip", "192.0.2.1", ",\"reason\":\"\xff\""));
  EXPECT_EQ(ban.status, 400) << ban.body;
}

TEST(AdminInputTest, HidesPrefixesOfSecretHeaders) {
  Service service(R"(
rules:
  - { id: partner, match: { header: { x-api-key: "sk_live_51Secret*" } }, per: client_ip, limit: 2/h }
)");
  EXPECT_THAT(ReadAdmin(service, "/v1/rules").body, Not(HasSubstr("sk_live_51Secret")));
  EXPECT_THAT(AskAdmin(service, "/v1/explain", Request("192.0.2.1")).body,
              Not(HasSubstr("sk_live_51Secret")));
}

TEST(AdminInputTest, ExplainRejectsWhatDecideRejects) {
  Service service(kYaml);
  // The body contains `lease`, but no matching rule has leases.
  const std::string body = R"({"request":{"path":"/ip","client_ip":"192.0.2.1"},"lease":"a"})";
  EXPECT_EQ(AskAdmin(service, "/v1/explain", body).status, service.Ask("/v1/acquire", body).status);
}

TEST(AdminInputTest, ReportsBanWithoutEffectAsNotInForce) {
  Service service(kYaml);
  ASSERT_EQ(AskAdmin(service, "/v1/ban", ByRule("per-key", "abc")).status, 200);
  // After the reload, the rule counts by another source, so no key has the banned text.
  ASSERT_TRUE(service.Reload("rules: [ { id: per-key, per: cookie:session, limit: 3/h } ]"));
  const auto listed = ReadAdmin(service, "/v1/overrides").Json();
  const auto& one = listed.at("overrides").as_array().at(0).as_object();
  EXPECT_FALSE(one.at("in_force").as_bool());
  EXPECT_EQ(one.at("why").as_string(),
            "the rule counts by cookie:session now and has no key with this name");
}

TEST(AdminInputTest, LiftsOverrideOfRemovedRule) {
  Service service(kYaml);
  ASSERT_EQ(AskAdmin(service, "/v1/ban", ByRule("per-ip", "192.0.2.1")).status, 200);
  ASSERT_EQ(AskAdmin(service, "/v1/ban", ByRule("per-key", "abc")).status, 200);
  ASSERT_TRUE(service.Reload("rules: [ { id: per-key, per: host, limit: 3/h } ]"));
  const auto listed = ReadAdmin(service, "/v1/overrides").Json();
  for (const auto& each : listed.at("overrides").as_array()) {
    const auto& one = each.as_object();
    const HttpResponse lifted = AskAdmin(service, "/v1/lift",
                                         boost::json::serialize(boost::json::object{
                                             {"rule", one.at("rule")}, {"key", one.at("key")}}));
    EXPECT_EQ(lifted.status, 200) << lifted.body;
  }
}

TEST(AdminInputTest, RejectsKeyThatNoRequestCanHave) {
  Service service("rules: [ { id: pair, per: [client_ip, path], limit: 100/h } ]\n");
  for (const char* const key_body :
       {R"("identity":"203.0.113.9")", R"("identity":{"client_ip":"203.0.113.9","path":"p"})",
        R"("identity":{"client_ip":"203.0.113.9","path":"/p?x=1"})",
        R"("identity":{"client_ip":"203.0.113.9","path":"/p#"})",
        R"("key":"client_ip=203.0.113.9&path=p")",
        R"("key":"client_ip=203.0.113.9&client_ip=203.0.113.9")"}) {
    const HttpResponse ban =
        AskAdmin(service, "/v1/ban", R"({"rule":"pair",)" + std::string(key_body) + "}");
    EXPECT_EQ(ban.status, 400) << key_body << ban.body;
  }
  const std::string whole = R"({"rule":"pair","identity":{"client_ip":"203.0.113.9","path":"/p"}})";
  ASSERT_EQ(AskAdmin(service, "/v1/ban", whole).status, 200);
  EXPECT_EQ(service.Decide(R"({"request":{"path":"/p","client_ip":"203.0.113.9"}})").status, 403);
}

constexpr std::string_view kDear = R"(
rules:
  - { id: dear, per: client_ip, limit: 10/h, cost: 4, overrides: [ { identity: 192.0.2.8, limit: 99/h } ] }
)";

TEST(AdminInputTest, RefundWithoutCostReturnsCostOfTheRule) {
  Service service(kDear);
  const std::string key_body = ByRule("dear", "192.0.2.1");
  EXPECT_EQ(service.Decide(key_body).Json().at("remaining"), 6);
  ASSERT_EQ(AskAdmin(service, "/v1/refund", ByRule("dear", "192.0.2.1", R"(,"id":"a")")).status,
            200);
  EXPECT_EQ(AskAdmin(service, "/v1/inspect", key_body).Json().at("remaining"), 10);
}

TEST(AdminInputTest, InspectUsesCostOfTheRule) {
  Service service(kDear);
  const std::string key_body = ByRule("dear", "192.0.2.1");
  (void)service.Decide(key_body);
  (void)service.Decide(key_body);
  const auto seen = AskAdmin(service, "/v1/inspect", key_body).Json();
  EXPECT_EQ(seen.at("remaining"), 2);
  EXPECT_EQ(seen.at("cost"), 4);
  EXPECT_FALSE(seen.at("allowed").as_bool());
  EXPECT_EQ(service.Decide(key_body).status, 429);
}

TEST(AdminInputTest, ShowsOverrideOfTheConfiguration) {
  Service service(kDear);
  const std::string key_body = ByRule("dear", "192.0.2.8");
  for (const auto& shown :
       {AskAdmin(service, "/v1/inspect", key_body).Json().at("override"),
        AskAdmin(service, "/v1/explain", key_body).Json().at("rules").at(0).at("override")}) {
    EXPECT_EQ(shown.at("from"), "configuration");
    EXPECT_EQ(shown.at("limit"), "99/h");
  }
  const auto rule = ReadAdmin(service, "/v1/rules").Json().at("rules").at(0);
  EXPECT_EQ(rule.at("overrides"), 0);
  EXPECT_EQ(rule.at("configured_overrides"), 1);
  // An override of an operator takes precedence.
  (void)AskAdmin(service, "/v1/ban", key_body);
  EXPECT_EQ(AskAdmin(service, "/v1/inspect", key_body).Json().at("override").at("kind"), "ban");
}

TEST(AdminInputTest, ExplainAcceptsKeyInDisplayedForm) {
  Service service(kYaml);
  const auto explain = [&](std::string_view more = {}) {
    const std::string key = "client_ip=203.0.113.7";
    return AskAdmin(service, "/v1/explain",
                    R"({"rule":"per-ip","key":")" + key + "\"" + std::string(more) + "}");
  };
  (void)service.Decide(Request("203.0.113.7"));
  EXPECT_EQ(explain().Json().at("rules").at(0).at("before").at("remaining"), 99);
  EXPECT_EQ(explain(R"(,"cost":99)").Json().at("allowed"), true);
  EXPECT_EQ(explain(R"(,"cost":100)").Json().at("allowed"), false);
  EXPECT_EQ(explain(R"(,"cost":0)").status, 400);
  EXPECT_EQ(explain(R"(,"identity":"203.0.113.7")").status, 400);
  (void)AskAdmin(service, "/v1/ban", ByRule("per-ip", "203.0.113.7"));
  EXPECT_EQ(explain().Json().at("outcome"), "banned");
  EXPECT_EQ(explain().Json().at("status"), 403);
  (void)AskAdmin(service, "/v1/allow", ByRule("per-ip", "203.0.113.7"));
  EXPECT_EQ(explain().Json().at("outcome"), "uncounted");
  EXPECT_EQ(explain().Json().at("allowed"), true);
}

TEST(AdminInputTest, ReportsReplacedOverride) {
  Service service(kYaml);
  const std::string key_body = ByRule("per-ip", "192.0.2.1");
  const auto ask = [&](const char* path, std::string_view more = {}) {
    return AskAdmin(service, path, ByRule("per-ip", "192.0.2.1", more)).Json();
  };
  EXPECT_FALSE(ask("/v1/override", R"(,"limit":"50/m","ttl":"1h")").contains("replaced"));
  const auto banned = ask("/v1/ban");
  EXPECT_EQ(banned.at("replaced").at("limit"), "50/m");
  EXPECT_EQ(ask("/v1/lift").at("lifted").at("kind"), "ban");
  EXPECT_FALSE(ask("/v1/lift").contains("lifted"));
  const std::string audit = ReadAdmin(service, "/v1/audit").body;
  EXPECT_THAT(audit, HasSubstr("until it is lifted, instead of quota 50/m"));
}

TEST(AdminInputTest, BatchAnswersEachRequest) {
  Service service(kYaml);
  ASSERT_EQ(AskAdmin(service, "/v1/ban", ByRule("per-ip", "192.0.2.1")).status, 200);
  ASSERT_EQ(AskAdmin(service, "/v1/allow", ByRule("per-ip", "192.0.2.2")).status, 200);
  const auto answers =
      service
          .Ask("/v1/decide/batch", R"({"requests":[)" + ByRule("per-ip", "192.0.2.1") + "," +
                                       ByRule("per-ip", "192.0.2.2") + "," +
                                       ByRule("per-ip", "192.0.2.3") + "]}")
          .Json();
  const auto status = [&](std::size_t i) {
    return answers.at("results").as_array().at(i).as_object().at("status").to_number<int>();
  };
  EXPECT_EQ(status(0), 403);
  EXPECT_EQ(status(1), 200);
  EXPECT_EQ(status(2), 200);
}

}  // namespace
}  // namespace tidegate::service
