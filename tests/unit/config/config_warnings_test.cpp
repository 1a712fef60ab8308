// SPDX-License-Identifier: Apache-2.0
#include <chrono>

#include "rules/match_cover.hpp"
#include "unit/config/config_reading.hpp"

namespace tidegate {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr std::string_view kFresh = "a client can get a fresh limit";
constexpr std::string_view kShared = "many people may share one address";

/// Returns the warnings about a valid configuration.
std::string Warned(std::string_view yaml) {
  const ConfigReading reading = Read(yaml);
  EXPECT_TRUE(reading.config) << ProblemText(reading);
  return ProblemText(reading);
}

std::string Rules(std::initializer_list<std::string_view> rules) {
  std::string yaml = "rules:\n";
  int i = 0;
  for (const std::string_view rule : rules) {
    yaml += "  - { id: r" + std::to_string(i++) + ", limit: 10/s, " + std::string{rule} + " }\n";
  }
  return yaml;
}

TEST(ConfigWarningsTest, WarnsWhenClientsCanInventKeysWithoutCeiling) {
  for (const char* per : {"header:x-api-key", "cookie:s", "query:k", "path", "method", "host",
                          "header:x-api-key | client_ip", "[client_ip, path]"}) {
    EXPECT_THAT(Warned(Rules({"per: " + std::string{per}})), HasSubstr(kFresh)) << per;
    EXPECT_THAT(Warned(Rules({"per: " + std::string{per}, "per: client_ip"})),
                Not(HasSubstr(kFresh)))
        << per;
  }
  EXPECT_THAT(Warned(Rules({"per: 'header:x | client_ip'"})),
              HasSubstr("2:33: warning: rules[0].per: a client can get a fresh limit with every "
                        "new `header:x`"));
  for (const char* per : {"const", "route", "[const, route]"}) {
    EXPECT_EQ(Warned(Rules({"per: " + std::string{per}})), "") << per;
  }
}

TEST(ConfigWarningsTest, DoesNotWarnWhenMatchAllowsOnlyListedKeys) {
  EXPECT_THAT(Warned(Rules({"per: path, match: { path: [/a, /b] }"})), Not(HasSubstr(kFresh)));
  EXPECT_THAT(Warned(Rules({"per: path, match: { path: [/a, /b/**] }"})), HasSubstr(kFresh));
  EXPECT_THAT(Warned(Rules({"per: path, match: { path: '/a/:id' }"})), HasSubstr(kFresh));
  EXPECT_THAT(Warned(Rules({"per: path, match: { any: [ { path: /a }, { path: /b } ] }"})),
              Not(HasSubstr(kFresh)));
  EXPECT_THAT(Warned(Rules({"per: path, match: { any: [ { path: /a }, { method: GET } ] }"})),
              HasSubstr(kFresh));
  EXPECT_THAT(Warned(Rules({"per: method, match: { method: [GET] }"})), Not(HasSubstr(kFresh)));
  EXPECT_THAT(Warned(Rules({"per: host, match: { host: a.b }"})), Not(HasSubstr(kFresh)));
  EXPECT_THAT(Warned(Rules({"per: host, match: { host: '*.b' }"})), HasSubstr(kFresh));
}

TEST(ConfigWarningsTest, WarnsUnlessCeilingCoversRuleAndCountsByAddress) {
  const std::string rule = "per: header:x, match: { host: a.b, path: /v1/**, method: GET }";
  for (const char* wide : {"per: client_ip", "per: client_ip, match: { host: a.b }",
                           "per: client_ip, match: { host: '*.b', path: /v1/** }",
                           "per: client_ip, match: { path: /**, method: [GET, POST] }"}) {
    EXPECT_THAT(Warned(Rules({rule, wide})), Not(HasSubstr(kFresh))) << wide;
  }
  for (const char* narrow :
       {"per: client_ip, mode: shadow", "per: client_ip, match: { host: c.b }",
        "per: client_ip, match: { path: /v1 }", "per: client_ip, match: { path: /v1/x/** }",
        "per: client_ip, match: { method: POST }", "per: [client_ip, host]",
        "per: client_ip, match: { header: { y: z } }",
        "per: client_ip, match: { client_ip: 10.0.0.0/8 }", "per: client_ip | const"}) {
    EXPECT_THAT(Warned(Rules({rule, narrow})), HasSubstr(kFresh)) << narrow;
  }
}

TEST(ConfigWarningsTest, WarnsAboutUnverifiedTokensAsKeys) {
  const std::string rule = Rules({"per: jwt:sub"});
  EXPECT_THAT(Warned("identity: { jwt: { unverified: true } }\n" + rule), HasSubstr(kFresh));
  EXPECT_EQ(Warned("identity: { jwt: { secret: 01234567890123456789012345678901 } }\n" + rule), "");
}

TEST(ConfigWarningsTest, WarnsAboutLimitsPerSharedAddress) {
  EXPECT_THAT(Warned(Rules({"per: client_ip"})),
              HasSubstr("2:33: warning: rules[0].per: many people may share one address"));
  const std::string rule = "per: client_ip, match: { host: a.b, path: /v1/** }";
  for (const char* finer :
       {"per: header:x", "per: header:x, match: { host: a.b }", "per: 'cookie:s | client_ip'",
        "per: query:k, match: { host: '*.b' }", "per: header:x, match: { path: /v1/login }",
        "per: header:x, match: { path: '/:version/login' }"}) {
    EXPECT_THAT(Warned(Rules({rule, finer})), Not(HasSubstr(kShared))) << finer;
  }
  for (const char* other :
       {"per: path", "per: header:x, mode: shadow", "per: header:x, match: { host: c.d }",
        "per: header:x, match: { path: /v2/** }", "per: header:x, match: { path: /v1x }"}) {
    EXPECT_THAT(Warned(Rules({rule, other})), HasSubstr(kShared)) << other;
  }
  EXPECT_EQ(Warned(Rules({"per: client_ip, mode: shadow"})), "");
}

TEST(ConfigWarningsTest, WarnsAboutTrustInAllAddresses) {
  EXPECT_THAT(Warned("client_ip: { trusted_proxies: [10.0.0.0/8, 0.0.0.0/0] }\n"),
              HasSubstr("1:44: warning: client_ip.trusted_proxies[1]: trusts every address"));
  EXPECT_THAT(Warned("client_ip: { trusted_proxies: ['::/0'] }\n"),
              HasSubstr("trusts every address"));
  EXPECT_THAT(Warned("client_ip: { trusted_proxies: [10.0.0.0/8] }\n"),
              Not(HasSubstr("trusts every address")));
  EXPECT_THAT(Warned("client_ip: { hops: 1 }\n"),
              HasSubstr("1:20: warning: client_ip.hops: has no effect without"));
  EXPECT_THAT(Warned("client_ip: { hops: 1, trusted_proxies: [10.0.0.1] }\n"),
              Not(HasSubstr("has no effect")));
}

TEST(ConfigWarningsTest, WarnsAboutCostsThatCannotTakeEffect) {
  const std::string rule = Rules({"per: const, cost: 'header:x-cost'"});
  EXPECT_THAT(Warned(rule), HasSubstr("2:46: warning: rules[0].cost: is accepted from trusted"));
  EXPECT_EQ(Warned("client_ip: { trusted_proxies: [10.0.0.1] }\n" + rule), "");
  EXPECT_THAT(Warned(Rules({"per: const, cost: 'response:x'"})),
              HasSubstr("2:46: warning: rules[0].cost: has no effect without a gateway"));
}

TEST(ConfigWarningsTest, WarnsWhenThereAreNoRules) {
  EXPECT_EQ(Warned("rules: []\n"),
            "warning: rules: no rules are configured, so every request passes\n");
  EXPECT_EQ(Warned("api: { inline_quotas: true }\n"), "");
}

MatchSpec OnPath(std::string path) {
  MatchSpec match;
  match.paths.push_back(std::move(path));
  return match;
}

TEST(MatchCoverTest, ComparesPathsSegmentBySegment) {
  const struct {
    const char* a;
    const char* b;
    bool covers;
    bool overlap;
  } cases[] = {
      {"/**", "/", true, true},         {"/**", "/a/b", true, true},
      {"/a/**", "/a", true, true},      {"/a/**", "/ab", false, false},
      {"/a/**", "/a/b/**", true, true}, {"/a/b/**", "/a/**", false, true},
      {"/a", "/a", true, true},         {"/a", "/a/", false, false},
      {"/a", "/a/**", false, true},     {"/:x", "/a", true, true},
      {"/a", "/:x", false, true},       {"/:x", "/:y", true, true},
      {"/:x/b", "/a/:y", false, true},  {"/:x/b", "/a/c", false, false},
      {"/:x", "/a/b", false, false},    {"/:x/**", "/a/b/c", true, true},
      {"/a/b", "/a/c", false, false},   {"/:x", "/", false, true},
  };
  for (const auto& [a, b, covers, overlap] : cases) {
    EXPECT_EQ(Covers(OnPath(a), OnPath(b)), covers) << a << " " << b;
    EXPECT_EQ(Overlap(OnPath(a), OnPath(b)), overlap) << a << " " << b;
    EXPECT_EQ(Overlap(OnPath(b), OnPath(a)), overlap) << b << " " << a;
  }
}

/// The lookup of rules is an optimization: it must find what comparing all rules with all rules
/// would find.
TEST(CoveringRuleLookupTest, AgreesWithExhaustiveComparison) {
  const char* const hosts[] = {"", "a.b", "*.b", "c.a.b", "*.a.b", "x"};
  const char* const paths[] = {"", "/**", "/", "/v1", "/v1/**", "/v1/x", "/:a", "/v2/:b", "/v2"};
  std::vector<std::string> matches;
  std::vector<MatchSpec> specs;
  for (const std::string host : hosts) {
    for (const std::string path : paths) {
      MatchSpec spec;
      std::string match;
      if (!host.empty()) match += "host: '" + host + "'", spec.hosts.push_back(host);
      if (!path.empty()) {
        match += (match.empty() ? "path: '" : ", path: '") + path + "'";
        spec.paths.push_back(path);
      }
      matches.push_back("match: { " + match + " }");
      specs.push_back(spec);
    }
  }
  for (std::size_t i = 0; i < specs.size(); ++i) {
    for (std::size_t j = 0; j < specs.size(); ++j) {
      const std::string problems =
          Warned(Rules({"per: client_ip, " + matches[i], "per: header:x, " + matches[j]}));
      EXPECT_EQ(problems.find(kFresh) == std::string::npos, Covers(specs[i], specs[j]))
          << matches[i] << " " << matches[j];
      EXPECT_EQ(problems.find(kShared) == std::string::npos, Overlap(specs[i], specs[j]))
          << matches[i] << " " << matches[j];
    }
  }
}

TEST(ConfigWarningsTest, WarnsWhenRulesCannotBeCompared) {
  const auto rule = [](const std::string& id, const char* per, const std::string& path) {
    return "  - { id: " + id + ", per: " + per + ", limit: 1/s, match: { path: " + path + " } }\n";
  };
  std::string yaml = "rules:\n" + rule("finer", "header:x", "/v/**");
  for (int i = 0; i < 3'000; ++i) {
    const std::string n = std::to_string(i);
    yaml += rule("a" + n, "client_ip", "/v/a" + n) + rule("b" + n, "header:x", "/v/b" + n);
  }
  // The check finds this rule last, after comparing 3,000 others, each time.
  yaml += rule("ceiling", "client_ip", "/v/**");
  EXPECT_THAT(Warned(yaml), HasSubstr("too many overlapping rules to check"));
}

}  // namespace
}  // namespace tidegate
