// SPDX-License-Identifier: Apache-2.0
#include "rules/rule_set.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory_resource>

#include "config/config.hpp"

namespace tidegate {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class RuleSetTest : public testing::Test {
 protected:
  std::shared_ptr<const RuleSet> Compile(const std::string& yaml) {
    const ConfigReading reading = ParseConfig(yaml);
    for (const Problem& problem : reading.problems) {
      EXPECT_NE(problem.severity, Problem::Severity::kError) << problem.Text("test");
    }
    problems_.clear();
    return RuleSet::Compile(reading.config.value().rule_set(),
                            std::make_shared<Identifier>(Identifier::Options{
                                .hmac_key = "0123456789abcdef", .jwt = nullptr}),
                            problems_);
  }
  Result<Access> Match(const RuleSet& rules, std::string_view path, std::string_view client,
                       std::vector<HeaderField> headers = {},
                       std::optional<std::int64_t> cost = std::nullopt, bool trusted = true) {
    RequestView view;
    view.method = "GET";
    view.path = path;
    view.headers = headers;
    view.trusted = trusted;
    if (const auto address = Address::Parse(client)) {
      view.client = *address;
      view.has_client = true;
    }
    charges_.emplace(memory_);
    return rules.Match(view, cost, "lease", overrides_, *charges_, memory_);
  }
  /// Returns each charge as `rule identity cost`.
  std::vector<std::string> Charged() const {
    std::vector<std::string> texts;
    for (const Charge& charge : charges_->charges) {
      texts.push_back(std::string(charge.rule) + " " + std::string(charge.identity) + " " +
                      std::to_string(charge.cost));
    }
    return texts;
  }

  Problems problems_;
  std::pmr::monotonic_buffer_resource memory_;
  OverrideView overrides_;
  std::optional<Charges> charges_;
};

TEST_F(RuleSetTest, ChargesMatchingRulesInFileOrder) {
  const auto rules = Compile(R"(
rules:
  - { id: z, match: { path: /a/** }, per: client_ip, limit: 1/s }
  - { id: y, match: { path: /b }, per: client_ip, limit: 1/s }
  - { id: x, per: const, limit: 9/s, cost: 3 }
  - { id: w, match: { path: /a/b, method: POST }, per: client_ip, limit: 1/s }
)");
  ASSERT_EQ(Match(*rules, "/a/b", "1.2.3.4").value(), Access::kRules);
  EXPECT_THAT(Charged(), ElementsAre("z client_ip=1.2.3.4 1", "x const 3"));
  EXPECT_EQ(charges_->rules[1]->id, "x");
  ASSERT_EQ(Match(*rules, "/c", "1.2.3.4").value(), Access::kRules);
  EXPECT_THAT(Charged(), ElementsAre("x const 3"));
}

TEST_F(RuleSetTest, DenyPrecedesExemptAndExemptPrecedesRules) {
  const auto rules = Compile(R"(
deny: [ { header: { user-agent: "Bad*" } } ]
exempt: [ { client_ip: [10.0.0.0/8] } ]
rules: [ { id: r, per: client_ip, limit: 1/s } ]
)");
  EXPECT_EQ(Match(*rules, "/", "10.1.1.1", {{"User-Agent", "BadBot"}}).value(), Access::kDenied);
  EXPECT_TRUE(charges_->charges.empty());
  EXPECT_EQ(Match(*rules, "/", "10.1.1.1", {{"User-Agent", "Good"}}).value(), Access::kExempt);
  EXPECT_TRUE(charges_->charges.empty());
  EXPECT_EQ(Match(*rules, "/", "11.1.1.1").value(), Access::kRules);
  EXPECT_EQ(charges_->charges.size(), 1u);
}

TEST_F(RuleSetTest, FindsOverrideByIdentity) {
  const auto rules = Compile(R"(
rules:
  - id: r
    per: header:x-api-key | client_ip
    limit: 5/s
    overrides:
      - { identity: gold, limit: 50/s }
      - { identity: { client_ip: "1.2.3.4" }, limit: 7/s }
)");
  (void)Match(*rules, "/", "9.9.9.9", {{"X-Api-Key", " gold "}});
  EXPECT_EQ(charges_->charges[0].quota->limit(), 50);
  (void)Match(*rules, "/", "::ffff:1.2.3.4");
  EXPECT_EQ(charges_->charges[0].quota->limit(), 7);
  (void)Match(*rules, "/", "1.2.3.5");
  EXPECT_EQ(charges_->charges[0].quota->limit(), 5);
}

TEST_F(RuleSetTest, RejectsTwoOverridesForOneIdentity) {
  // Built without the reader of configurations, which would reject it.
  Config config = ParseConfig("rules: [ { id: r, per: client_ip, limit: 5/s } ]").config.value();
  const Quota quota = Quota::Make({.limit = 7}).value();
  config.rules[0].overrides = {{{{"", "1.2.3.4"}}, quota, {}},
                               {{{"client_ip", "::ffff:1.2.3.4"}}, quota, {}}};
  EXPECT_EQ(RuleSet::Compile(config.rule_set(),
                             std::make_shared<Identifier>(Identifier::Options{
                                 .hmac_key = "0123456789abcdef", .jwt = nullptr}),
                             problems_),
            nullptr);
  ASSERT_EQ(problems_.size(), 1u);
  EXPECT_EQ(problems_[0].where, "rules[0].overrides[1].identity");
}

/// A rule named `inline` could not be told apart from inline quotas in responses.
TEST_F(RuleSetTest, RejectsRuleNamedInline) {
  const auto reading = ParseConfig("rules: [ { id: inline, per: client_ip, limit: 5/s } ]");
  EXPECT_FALSE(reading.config.has_value());
  ASSERT_FALSE(reading.problems.empty());
  EXPECT_EQ(reading.problems[0].where, "rules[0].id");
}

TEST_F(RuleSetTest, TakesCostFromCallerHeaderOrRule) {
  const auto rules =
      Compile("rules: [ { id: r, per: client_ip, limit: 100/s, cost: 'header:x-cost' } ]");
  const std::vector<HeaderField> seven = {{"X-Cost", "7"}};
  (void)Match(*rules, "/", "1.2.3.4", seven);
  EXPECT_EQ(charges_->charges[0].cost, 7);
  (void)Match(*rules, "/", "1.2.3.4", seven, 3);
  EXPECT_EQ(charges_->charges[0].cost, 3);
  (void)Match(*rules, "/", "1.2.3.4", seven, std::nullopt, /*trusted=*/false);
  EXPECT_EQ(charges_->charges[0].cost, 1);
  for (const std::string_view bad :
       {"0", "-1", "1.5", "2147483648", "x", "7x", "99999999999999999999"}) {
    EXPECT_FALSE(Match(*rules, "/", "1.2.3.4", {{"X-Cost", bad}}).has_value()) << bad;
  }
}

TEST_F(RuleSetTest, SuggestsNearestNameForUnknownRule) {
  const auto rules = Compile("rules: [ { id: per-key, per: client_ip, limit: 1/s } ]");
  Charges charges(memory_);
  const auto unknown = rules->Resolve({"per-kye", {}, {}, {}}, {}, charges, memory_);
  ASSERT_FALSE(unknown.has_value());
  EXPECT_EQ(unknown.error().code, ErrorCode::kUnknownRule);
  EXPECT_THAT(unknown.error().message, HasSubstr("per-key"));
  EXPECT_TRUE(charges.charges.empty());
  EXPECT_EQ(rules->Find("per-key"), &rules->rules()[0]);
  EXPECT_EQ(rules->Find(""), nullptr);
}

TEST_F(RuleSetTest, ResolvesSameIdentityByValueAndByRequest) {
  const auto rules = Compile("rules: [ { id: r, per: header:x-api-key, limit: 1/s } ]");
  (void)Match(*rules, "/", "1.2.3.4", {{"X-API-KEY", "secret"}});
  const std::string by_request(charges_->charges[0].identity);
  const std::array<NamedValue, 1> named{{{{}, "secret"}}};
  Charges charges(memory_);
  ASSERT_TRUE(rules->Resolve({"r", named, 5, {}}, {}, charges, memory_).has_value());
  EXPECT_EQ(charges.charges[0].identity, by_request);
  EXPECT_EQ(charges.charges[0].cost, 5);
  EXPECT_EQ(by_request.find("secret"), std::string::npos);
}

TEST_F(RuleSetTest, RulesInheritFailurePolicyOfStore) {
  const auto rules = Compile(R"(
store: { url: "redis://h", on_failure: closed }
rules:
  - { id: a, per: client_ip, limit: 1/s }
  - { id: b, per: client_ip, limit: 1/s, on_failure: local }
)");
  EXPECT_EQ(rules->on_failure(), OnFailure::kClosed);
  ASSERT_EQ(Match(*rules, "/", "192.0.2.1"), Access::kRules);
  EXPECT_EQ(charges_->charges[0].on_failure, OnFailure::kClosed);
  EXPECT_EQ(charges_->charges[1].on_failure, OnFailure::kLocal);
}

TEST_F(RuleSetTest, PassesLeaseToConcurrencyRulesOnly) {
  const auto rules = Compile(R"(
rules:
  - { id: a, per: client_ip, limit: 1/s }
  - { id: b, per: client_ip, limit: 1/s, algorithm: concurrency }
)");
  (void)Match(*rules, "/", "1.2.3.4");
  EXPECT_EQ(charges_->charges[0].lease, "");
  EXPECT_EQ(charges_->charges[1].lease, "lease");
}

TEST_F(RuleSetTest, RejectsRequestThatMatchesTooManyRules) {
  std::string yaml = "rules:\n";
  for (int i = 0; i < 33; ++i) {
    yaml += "  - { id: r" + std::to_string(i) + ", per: client_ip, limit: 1/s }\n";
  }
  const auto rules = Compile(yaml);
  const auto access = Match(*rules, "/", "1.2.3.4");
  ASSERT_FALSE(access.has_value());
  EXPECT_EQ(access.error().code, ErrorCode::kTooManyRules);
}

class RuleSetOverridesTest : public RuleSetTest {
 protected:
  void Say(Override::Kind kind, const std::string& rule, const std::string& identity,
           const char* limit = "1/s", Algorithm algorithm = Algorithm::kTokenBucket) {
    OverrideTable::Entry entry;
    entry.what = {.kind = kind,
                  .rule = rule,
                  .identity = identity,
                  .algorithm = algorithm,
                  .limit = LimitText::Parse(limit).value(),
                  .reason = {},
                  .by = {}};
    if (kind == Override::Kind::kQuota) entry.quota = entry.what.MakeQuota().value();
    entries_.push_back(std::move(entry));
    table_ = OverrideTable::Make(entries_, clock_);
    overrides_.table = table_.get();
  }

  std::shared_ptr<const RuleSet> rules_ = Compile(R"(
rules:
  - { id: a, per: client_ip, limit: 1/s }
  - { id: b, per: const, limit: 9/s, mode: shadow }
)");
  ManualClock clock_;
  std::vector<OverrideTable::Entry> entries_;
  std::shared_ptr<const OverrideTable> table_;
};

TEST_F(RuleSetOverridesTest, BanDeniesDespiteOtherOverrides) {
  Say(Override::Kind::kBan, "a", "client_ip=1.2.3.4");
  EXPECT_EQ(Match(*rules_, "/", "1.2.3.4").value(), Access::kBanned);
  EXPECT_TRUE(charges_->charges.empty());
  EXPECT_EQ(charges_->ban.rule->id, "a");
  EXPECT_EQ(charges_->ban.identity, "client_ip=1.2.3.4");
  EXPECT_EQ(charges_->ban.left, std::nullopt);
  EXPECT_EQ(Match(*rules_, "/", "1.2.3.5").value(), Access::kRules);
  // Bans do not apply to operations such as refunds, which set quotas_only.
  overrides_.quotas_only = true;
  EXPECT_EQ(Match(*rules_, "/", "1.2.3.4").value(), Access::kRules);
  EXPECT_EQ(charges_->charges.size(), 2u);
}

TEST_F(RuleSetOverridesTest, BansKeysOfShadowRules) {
  Say(Override::Kind::kBan, "b", "const");
  EXPECT_EQ(Match(*rules_, "/", "1.2.3.4").value(), Access::kBanned);
}

TEST_F(RuleSetOverridesTest, AllowanceSkipsChargeOfItsRule) {
  Say(Override::Kind::kAllow, "a", "client_ip=1.2.3.4");
  EXPECT_EQ(Match(*rules_, "/", "1.2.3.4").value(), Access::kRules);
  EXPECT_THAT(Charged(), ElementsAre("b const 1"));
  ASSERT_EQ(charges_->exempted.size(), 1u);
  Say(Override::Kind::kAllow, "b", "const");
  EXPECT_EQ(Match(*rules_, "/", "1.2.3.4").value(), Access::kExempt);
}

TEST_F(RuleSetOverridesTest, QuotaOverrideAppliesOnlyWithAlgorithmOfTheRule) {
  Say(Override::Kind::kQuota, "a", "client_ip=1.2.3.4", "50/s");
  ASSERT_EQ(Match(*rules_, "/", "1.2.3.4").value(), Access::kRules);
  EXPECT_EQ(charges_->charges[0].quota->limit(), 50);
  EXPECT_EQ(charges_->kept, table_) << "the charge does not keep the override table alive";
  ASSERT_EQ(Match(*rules_, "/", "1.2.3.5").value(), Access::kRules);
  EXPECT_EQ(charges_->charges[0].quota->limit(), 1);
  EXPECT_EQ(charges_->kept, nullptr);
  Say(Override::Kind::kQuota, "a", "client_ip=1.2.3.6", "50/s", Algorithm::kFixedWindow);
  ASSERT_EQ(Match(*rules_, "/", "1.2.3.6").value(), Access::kRules);
  EXPECT_EQ(charges_->charges[0].quota->limit(), 1);
}

TEST_F(RuleSetOverridesTest, ResolvesDisplayedKeysAndRejectsOthers) {
  Charges charges(memory_);
  EXPECT_TRUE(rules_->ResolveKey("a", "client_ip=1.2.3.4", {}, charges).has_value());
  EXPECT_EQ(charges.charges[0].identity, "client_ip=1.2.3.4");
  for (const std::string& bad :
       {std::string(), std::string("1.2.3.4"), std::string("path=/x"), std::string("client_ip=1 2"),
        std::string("client_ip=\n"), "client_ip=" + std::string(5000, 'x')}) {
    EXPECT_FALSE(rules_->ResolveKey("a", bad, {}, charges).has_value()) << bad;
  }
  const auto by_path = Compile("rules: [ { id: p, per: path, limit: 1/s } ]");
  EXPECT_TRUE(by_path->ResolveKey("p", "path=/v1/%20x", {}, charges).has_value());
  for (const char* const bad : {"path=/v1&const", "path=/v1%2", "path=", "path=~short", "const"}) {
    EXPECT_FALSE(by_path->ResolveKey("p", bad, {}, charges).has_value()) << bad;
  }
  EXPECT_THAT(rules_->ResolveKey("aa", "client_ip=1.2.3.4", {}, charges).error().message,
              HasSubstr("no rule 'aa'"));
}

TEST_F(RuleSetTest, MatchesEveryFormOfPath) {
  const auto rules = Compile(R"(
deny: [{ path: /admin/** }]
exempt: [{ path: /health }]
rules:
  - { id: login, match: { path: /v1/login }, per: client_ip, limit: 1/s }
  - { id: item, match: { path: /items/:id }, per: client_ip, limit: 1/s }
)");
  const auto access = [&](std::string_view path, EncodedSlashes slashes = EncodedSlashes::kMatch) {
    RequestView view;
    view.method = "GET";
    view.has_client = true;
    view.SetPath(ReadRequestPath(path, {.encoded_slashes = slashes}, memory_).value());
    charges_.emplace(memory_);
    return rules->Match(view, std::nullopt, {}, overrides_, *charges_, memory_).value();
  };
  for (const char* path : {"/admin", "/admin;x/y", "/admin%2fx", "/%2Fadmin/x", "/admin.",
                           "/admin%20/x", "/admin%5cx", "/x/../admin/"}) {
    EXPECT_EQ(access(path), Access::kDenied) << path;
  }
  for (const char* path :
       {"/v1/login/", "/v1/login;a", "/v1/login.", "/v1;a/login%20", "/v1%2flogin"}) {
    EXPECT_EQ(access(path), Access::kRules) << path;
    EXPECT_THAT(charges_->charges.size(), 1u) << path;
  }
  EXPECT_EQ(access("/health/"), Access::kExempt);
  EXPECT_EQ(access("/health;x"), Access::kRules)
      << "exempt although some server may read another path";
  EXPECT_EQ(access("/items/a%2Fb"), Access::kRules);
  EXPECT_EQ(charges_->charges.size(), 1u) << "the encoded slash was not kept as one segment";
}

// A server may read some segments in one form of the path and some in the other, so an exception
// must hold in both forms.
TEST_F(RuleSetTest, ExceptionsMustMatchEveryFormOfPath) {
  const auto rules = Compile(R"(
deny: [{ path: /users/**, not: { path: /users/me/** } }]
exempt: [{ path: /free/**, not: { path: /free/paid/** } }]
rules: [{ id: a, per: client_ip, limit: 1/s }]
)");
  const auto access = [&](std::string_view path, const PathOptions& options = {}) {
    RequestView view;
    view.method = "GET";
    view.has_client = true;
    view.SetPath(ReadRequestPath(path, options, memory_).value());
    charges_.emplace(memory_);
    return rules->Match(view, std::nullopt, {}, overrides_, *charges_, memory_).value();
  };
  EXPECT_EQ(access("/users/x"), Access::kDenied);
  EXPECT_EQ(access("/users/me/x"), Access::kRules);
  EXPECT_EQ(access("/users;a/me./secret"), Access::kDenied);
  EXPECT_EQ(access("/free/x"), Access::kExempt);
  EXPECT_EQ(access("/free/paid/x"), Access::kRules);
  EXPECT_EQ(access("/free/paid;a/x"), Access::kRules);
  // The proxy forwards the path as it received it, which is none of the forms that were compared.
  const PathOptions as_sent{.forwarding = Forwarding::kAsSent};
  EXPECT_EQ(access("/free/x", as_sent), Access::kExempt);
  EXPECT_EQ(access("/free//x", as_sent), Access::kRules);
  EXPECT_EQ(access("/free/./x", as_sent), Access::kRules);
  EXPECT_EQ(access("/free//x", {.forwarded_slashes = Slashes::kKeep}), Access::kRules);
  EXPECT_EQ(access("/free//./x"), Access::kExempt)
      << "not exempt although the path is forwarded as /free/x";
}

TEST_F(RuleSetTest, IgnoresCaseOfPathsWhenConfigured) {
  const std::string yaml =
      "rules: [{ id: a, match: { path: /V1/Login/:Id }, per: path, limit: 1/s }]\n";
  const auto charged = [&](const std::shared_ptr<const RuleSet>& rules, std::string_view path) {
    RequestView view;
    view.method = "GET";
    view.has_client = true;
    view.SetPath(
        ReadRequestPath(path, {.ignore_case = rules->paths().ignore_case}, memory_).value());
    charges_.emplace(memory_);
    EXPECT_TRUE(rules->Match(view, std::nullopt, {}, overrides_, *charges_, memory_));
    return charges_->charges.size();
  };
  const auto exact = Compile(yaml);
  EXPECT_EQ(charged(exact, "/V1/Login/x"), 1u);
  EXPECT_EQ(charged(exact, "/v1/LOGIN/x"), 0u);
  const auto folded = Compile("paths: { ignore_case: true }\n" + yaml);
  EXPECT_EQ(charged(folded, "/v1/LOGIN/X"), 1u);
  EXPECT_EQ(charges_->charges[0].identity, "path=/v1/login/x");
}

TEST_F(RuleSetTest, ChargesEveryValueOfCookie) {
  const auto rules = Compile(R"(
rules:
  - { id: session, per: "cookie:sid", limit: 1/s }
  - { id: address, per: client_ip, limit: 1/s }
)");
  ASSERT_EQ(Match(*rules, "/", "1.2.3.4", {{"cookie", "sid=a; sid=b"}}).value(), Access::kRules);
  ASSERT_EQ(charges_->charges.size(), 3u);
  EXPECT_EQ(charges_->charges[0].rule, "session");
  EXPECT_EQ(charges_->charges[1].rule, "session");
  EXPECT_NE(charges_->charges[0].identity, charges_->charges[1].identity);
  EXPECT_FALSE(Match(*rules, "/", "1.2.3.4", {{"cookie", "sid=1;sid=2;sid=3;sid=4;sid=5"}}));
}

TEST_F(RuleSetTest, ListsHeadersThatRulesRead) {
  const auto rules = Compile(R"(
deny: [{ header: { x-bad: "1" } }]
rules:
  - { id: a, match: { header: { x-plan: pro } }, per: "header:x-key | cookie:sid", limit: 1/s,
      cost: "header:x-cost" }
  - { id: b, match: { not: { any: [{ header: { x-deep: "1" } }] } }, per: const, limit: 1/s }
)");
  for (const char* name : {"X-Bad", "x-plan", "X-KEY", "Cookie", "x-cost", "x-deep"}) {
    EXPECT_TRUE(rules->ReadsHeader(name)) << name;
  }
  EXPECT_FALSE(rules->ReadsHeader("authorization"));
}

}  // namespace
}  // namespace tidegate
