// SPDX-License-Identifier: Apache-2.0
// Compares the explanations of /v1/explain with the decisions that follow them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "service/admin_case.hpp"

namespace tidegate::service {
namespace {

using namespace std::chrono_literals;
namespace json = boost::json;
using testing::HasSubstr;

std::string TextOf(const json::object& object, const char* name) {
  const json::value* const value = object.if_contains(name);
  return value == nullptr ? "" : std::string(value->as_string());
}

/// A random history of rules, requests and changes by operators, all derived from one seed.
class History {
 public:
  explicit History(std::uint64_t seed) : random_(seed), service_(Yaml()) {}

  void Run(int steps) {
    for (int i = 0; i < steps && !testing::Test::HasFailure(); ++i) {
      service_.Advance(Micros{Below(90'000)});
      if (Below(8) == 0) Operate();
      Compare(RandomRequest());
    }
  }
  [[nodiscard]] int passed() const noexcept { return passed_; }
  [[nodiscard]] int limited() const noexcept { return limited_; }
  [[nodiscard]] int refused() const noexcept { return refused_; }

 private:
  int Below(int end) { return std::uniform_int_distribution<int>(0, end - 1)(random_); }
  std::string One(std::initializer_list<const char*> of) {
    return *(of.begin() + Below(static_cast<int>(of.size())));
  }

  std::string Yaml() {
    std::string yaml =
        "api: { hidden_rules: true }\n"
        "deny: [ { header: { user-agent: \"Bad*\" } } ]\n"
        "exempt: [ { client_ip: [192.0.2.9] } ]\nrules:\n";
    const int count = 1 + Below(5);
    for (int i = 0; i < count; ++i) {
      const std::string algorithm =
          One({"token_bucket", "gcra", "sliding_log", "sliding_window", "fixed_window"});
      yaml += "  - { id: r" + std::to_string(i) + ", per: " +
              One({"client_ip", "header:x-key | client_ip", "const", "[client_ip, path]"}) +
              ", limit: " + std::to_string(2 + Below(6)) + One({"/s", "/3s", "/500ms"}) +
              ", algorithm: " + algorithm + ", match: " +
              One({"{}", "{ path: /a/** }", "{ path: [/a/b, /c], method: GET }",
                   "{ header: { x-key: \"k*\" } }", "{ host: \"*.example.com\" }"}) +
              One({"", "", ", mode: shadow"}) + One({"", ", cost: 2"}) + " }\n";
    }
    return yaml;
  }

  std::string RandomRequest() {
    std::string request = R"({"request":{"path":")" + One({"/a/b", "/a/c/d", "/c", "/"}) +
                          R"(","method":")" + One({"GET", "POST"}) + R"(","host":")" +
                          One({"api.example.com", "example.com"}) + R"(","client_ip":"192.0.2.)" +
                          std::to_string(7 + Below(3)) + R"(","headers":{)";
    if (Below(2) == 0) request += R"("x-key":")" + One({"k1", "k2", "other"}) + "\"";
    if (Below(12) == 0) {
      if (request.back() == '"') request += ",";
      request += R"("user-agent":"BadBot")";
    }
    request += "}}";
    if (Below(4) == 0) request += R"(,"cost":)" + std::to_string(1 + Below(9));
    return request + "}";
  }

  void Operate() {
    const std::string action = One({"ban", "allow", "override", "lift", "lift", "reset"});
    std::string body = R"({"rule":"r)" + std::to_string(Below(3)) +
                       R"(","key":"client_ip=192.0.2.)" + std::to_string(7 + Below(2)) + "\"";
    if (action == "override") body += R"(,"limit":"3/2s")";
    if (action != "lift" && action != "reset" && Below(2) == 0) body += R"(,"ttl":"700ms")";
    // The server rejects a change of a rule that does not exist or counts by another source, which
    // is fine here.
    (void)AskAdmin(service_, "/v1/" + action, body + "}");
  }

  void Compare(const std::string& request) {
    SCOPED_TRACE(request);
    const HttpResponse explained = AskAdmin(service_, "/v1/explain", request);
    ASSERT_EQ(explained.status, 200) << explained.body;
    // Explaining a second time gives the same result, because an explanation changes nothing.
    ASSERT_EQ(AskAdmin(service_, "/v1/explain", request).body, explained.body);
    const HttpResponse decided = service_.Decide(request);
    SCOPED_TRACE("explained: " + explained.body + "decided: " + decided.body);
    const json::object explanation = explained.Json();
    const json::object done = decided.Json();
    ASSERT_EQ(explanation.at("status").to_number<int>(), decided.status);
    ASSERT_EQ(explanation.at("allowed"), done.at("allowed"));
    ASSERT_EQ(TextOf(explanation, "rule"), TextOf(done, "rule"));
    for (const char* name : {"retry_after_ms", "never"}) {
      ASSERT_EQ(explanation.contains(name), done.contains(name)) << name;
      if (explanation.contains(name)) {
        ASSERT_EQ(explanation.at(name), done.at(name)) << name;
      }
    }
    std::size_t counted = 0;
    for (const json::value& value : explanation.at("rules").as_array()) {
      const json::object& rule = value.as_object();
      if (!rule.contains("allowed")) continue;
      ++counted;
      CompareRule(rule, done);
    }
    ASSERT_EQ(counted, done.at("rules").as_array().size());
    ++(decided.status == 200 ? passed_ : decided.status == 429 ? limited_ : refused_);
  }

  static void CompareRule(const json::object& explanation, const json::object& done) {
    for (const json::value& value : done.at("rules").as_array()) {
      const json::object& rule = value.as_object();
      if (rule.at("rule") != explanation.at("rule")) continue;
      ASSERT_EQ(rule.at("allowed"), explanation.at("allowed"));
      ASSERT_EQ(rule.at("limit"), explanation.at("capacity"));
      ASSERT_EQ(rule.at("remaining"), explanation.at("after").as_object().at("remaining"));
      return;
    }
    FAIL() << "the rule was not evaluated: " << explanation.at("rule");
  }

  std::mt19937_64 random_;
  Service service_;
  int passed_ = 0;
  int limited_ = 0;
  int refused_ = 0;
};

TEST(ExplainTest, AgreesWithDecide) {
  int passed = 0;
  int limited = 0;
  int refused = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    History history(seed);
    history.Run(60);
    if (HasFailure()) return;
    passed += history.passed();
    limited += history.limited();
    refused += history.refused();
  }
  // The comparison proves something only if all outcomes have occurred.
  EXPECT_GT(passed, 300);
  EXPECT_GT(limited, 200);
  EXPECT_GT(refused, 40);
}

constexpr std::string_view kYaml = R"(
client_ip: { trusted_proxies: [10.0.0.0/8] }
rules:
  - { id: per-key, match: { path: /v1/** }, per: header:x-api-key | client_ip, limit: 2/s }
  - { id: logins, match: { path: /v1/login, method: POST }, per: client_ip, limit: 5/m, algorithm: sliding_log }
  - { id: slots, match: { path: /slow }, per: client_ip, limit: 2/10s, algorithm: concurrency }
)";

TEST(ExplainTest, ReportsWhyRulesDoNotMatchAndTheAddress) {
  Service service(kYaml);
  const auto explanation =
      AskAdmin(service, "/v1/explain", R"({"request":{"path":"/v1/.//x?y","peer":"10.1.1.1",
    "headers":{"X-Forwarded-For":"203.0.113.7"}}})")
          .Json();
  EXPECT_EQ(explanation.at("request").as_object().at("path").as_string(), "/v1/x");
  EXPECT_EQ(explanation.at("request").as_object().at("client_ip").as_string(), "203.0.113.7");
  const auto& rules = explanation.at("rules").as_array();
  ASSERT_EQ(rules.size(), 3u);
  EXPECT_EQ(TextOf(rules[0].as_object(), "counted_by"), "client_ip");
  EXPECT_EQ(TextOf(rules[0].as_object(), "key"), "client_ip=203.0.113.7");
  EXPECT_EQ(TextOf(rules[1].as_object(), "why"), "its path is /v1/login, the request's is /v1/x");
  EXPECT_EQ(explanation.at("considered").to_number<int>(), 3);
}

TEST(ExplainTest, ExplainsRulesAndLeases) {
  Service service(kYaml);
  const auto by_rule =
      AskAdmin(service, "/v1/explain", R"({"rule":"per-key","identity":"abc","cost":3})").Json();
  EXPECT_EQ(by_rule.at("status").to_number<int>(), 429);
  EXPECT_TRUE(by_rule.at("never").as_bool());
  // An explanation of a leased rule needs no lease id; it is made for a new client.
  const std::string slow = R"({"request":{"path":"/slow","client_ip":"192.0.2.1"}})";
  EXPECT_TRUE(AskAdmin(service, "/v1/explain", slow).Json().at("allowed").as_bool());
  for (const char* lease : {"a", "b"}) {
    EXPECT_EQ(service
                  .Ask("/v1/acquire", R"({"rule":"slots","identity":"192.0.2.1","lease":")" +
                                          std::string(lease) + "\"}")
                  .status,
              200);
  }
  EXPECT_FALSE(AskAdmin(service, "/v1/explain", slow).Json().at("allowed").as_bool());
}

TEST(ExplainTest, ShowsNoSecret) {
  Service service(kYaml);
  const HttpResponse answer = AskAdmin(
      service, "/v1/explain", R"({"request":{"path":"/v1/x","headers":{"x-api-key":"hunter2"}}})");
  EXPECT_THAT(answer.body, Not(HasSubstr("hunter2")));
  EXPECT_THAT(answer.body, HasSubstr("header:x-api-key=~"));
}

TEST(ExplainTest, ShowsValuesOfTheConfiguration) {
  Service service(R"(
paths: { ignore_case: true }
deny:
  - { path: /health }
  - { path: /Admin/**, header: { x-team: "red*" } }
exempt: [ { client_ip: [192.0.2.0/24], header: { x-api-key: sk_live_partner } } ]
rules:
  - { id: tier, match: { path: /V1/**, header: { x-tier: gold } }, per: header:x-user | client_ip,
      limit: 1000/24h, algorithm: sliding_window }
  - { id: jobs, match: { path: /Jobs }, per: client_ip, limit: 2/60s, algorithm: concurrency }
)");
  const auto explain = [&](std::string_view path, std::string_view headers) {
    return AskAdmin(service, "/v1/explain",
                    R"({"request":{"client_ip":"192.0.2.7","path":")" + std::string(path) +
                        R"(","headers":{)" + std::string(headers) + "}}}");
  };
  const json::object denied = explain("/admin/x", R"("x-team":"reds")").Json();
  EXPECT_EQ(denied.at("entry").to_number<int>(), 1);
  EXPECT_EQ(json::serialize(denied.at("entry_match")),
            R"({"path":["/Admin/**"],"header":{"x-team":"red*"}})");

  const HttpResponse exempt = explain("/v1/x", R"("x-api-key":"sk_live_partner")");
  EXPECT_EQ(TextOf(exempt.Json(), "outcome"), "exempt");
  EXPECT_THAT(exempt.body, Not(HasSubstr("sk_live")));
  EXPECT_THAT(exempt.body, HasSubstr(R"x("header":{"x-api-key":"(not shown)"})x"));

  const json::object tier = explain("/v1/x", R"("x-tier":"gold")").Json();
  const json::object& matched = tier.at("rules").as_array().at(0).as_object();
  EXPECT_EQ(json::serialize(matched.at("match")),
            R"({"path":["/V1/**"],"header":{"x-tier":"gold"}})");
  EXPECT_EQ(TextOf(matched, "per"), "header:x-user | client_ip");
  EXPECT_EQ(TextOf(matched, "limit"), "1000/24h");
  EXPECT_EQ(TextOf(matched, "quota"), "1000/24h");
  EXPECT_EQ(TextOf(tier.at("rules").as_array().at(1).as_object(), "why"),
            "its path is /Jobs, the request's is /v1/x");

  const json::object other = explain("/v1/x", R"("x-tier":"s3cret")").Json();
  EXPECT_EQ(TextOf(other.at("rules").as_array().at(0).as_object(), "why"),
            "it requires the header x-tier to be gold, and the request's is not");
}

TEST(ExplainTest, ShowsConcurrencyLimitInsteadOfRate) {
  Service service(R"(
rules:
  - { id: jobs, per: client_ip, limit: 2/60s, algorithm: concurrency,
      overrides: [ { identity: 192.0.2.8, limit: 4/m } ] }
)");
  const auto quota = [&](const char* path, const std::string& address) {
    const json::object explanation = AskAdmin(service, path, ByRule("jobs", address)).Json();
    return TextOf(explanation.contains("rules")
                      ? explanation.at("rules").as_array().at(0).as_object()
                      : explanation,
                  "quota");
  };
  for (const char* const path : {"/v1/explain", "/v1/inspect"}) {
    EXPECT_EQ(quota(path, "192.0.2.7"), "2 at once, lease 60s") << path;
    EXPECT_EQ(quota(path, "192.0.2.8"), "4 at once, lease 1m") << path;
  }
  EXPECT_THAT(ReadAdmin(service, "/v1/rules").body,
              HasSubstr(R"("limit":"2/60s","quota":"2 at once, lease 60s")"));
  EXPECT_EQ(
      AskAdmin(service, "/v1/override", ByRule("jobs", "192.0.2.9", R"(,"limit":"9/30s")")).status,
      200);
  EXPECT_THAT(ReadAdmin(service, "/v1/overrides").body,
              HasSubstr(R"("limit":"9/30s","quota":"9 at once, lease 30s")"));
  EXPECT_THAT(ReadAdmin(service, "/v1/audit").body, HasSubstr("9 at once, lease 30s, until"));
}

TEST(ExplainTest, RejectsInvalidRequests) {
  Service service(kYaml);
  for (const char* body :
       {"{}", "[]", "", R"({"request":{},"rule":"per-key"})",
        R"({"rule":"per-key","cost":0,"identity":"x"})", R"({"request":{"path":"x"}})",
        R"({"request":{"client_ip":"no-address"}})", R"({"request":{},"ttl":"1h"})",
        R"({"request":{},"nonsense":1})", R"({"rule":"per-key","identity":{"cookie:x":"y"}})"}) {
    const HttpResponse answer = AskAdmin(service, "/v1/explain", body);
    EXPECT_EQ(answer.status, 400) << body << answer.body;
    EXPECT_TRUE(answer.Json().contains("detail")) << body;
  }
  EXPECT_EQ(AskAdmin(service, "/v1/explain", R"({"rule":"unknown","identity":"x"})").status, 404);
}

}  // namespace
}  // namespace tidegate::service
