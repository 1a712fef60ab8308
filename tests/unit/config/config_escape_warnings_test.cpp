// SPDX-License-Identifier: Apache-2.0
#include "unit/config/config_reading.hpp"

namespace tidegate {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr std::string_view kChosen = "a client chooses the header";
constexpr std::string_view kUnlimited = "pass unlimited";
constexpr std::string_view kCase = "ignore the case of paths";
constexpr std::string_view kStar = "`*` is matched literally";
constexpr std::string_view kDropped = "the gateway drops the header";

std::string WarnedOf(std::string_view yaml) {
  const ConfigReading reading = Read(yaml);
  EXPECT_TRUE(reading.config) << ProblemText(reading);
  return ProblemText(reading);
}

/// Returns a list of rules, one on each line, beginning on line 2.
std::string RuleList(std::initializer_list<std::string> rules) {
  std::string yaml = "rules:\n";
  int i = 0;
  for (const std::string& rule : rules) {
    yaml += "  - { id: r" + std::to_string(i++) + ", limit: 10/s, " + rule + " }\n";
  }
  return yaml;
}

std::string GatewayWith(const std::string& routes, const std::string& more) {
  return more + "listen: { gateway: 127.0.0.1:8080 }\nroutes: " + routes +
         "\nupstreams: { u: { targets: http://127.0.0.1:1 } }\n";
}

TEST(RuleEvasionWarningsTest, WarnsWhenClientHeaderSelectsTheRule) {
  EXPECT_THAT(WarnedOf(RuleList({"per: const, match: { header: { x-plan: pro } }"})),
              HasSubstr("2:47: warning: rules[0].match: a client chooses the header `x-plan`"));
  for (const char* match :
       {"{ path: /v1/**, header: { x-plan: pro } }", "{ header: { cookie: '*plan=pro*' } }",
        "{ path: /v1/**, not: { header: { x-internal: '1' } } }",
        "{ path: /v1/**, any: [ { header: { x-plan: pro } }, { method: POST } ] }"}) {
    const std::string rule = "per: const, match: " + std::string(match);
    EXPECT_THAT(WarnedOf(RuleList({rule})), HasSubstr(kChosen)) << match;
    EXPECT_THAT(WarnedOf(RuleList({rule, "per: const"})), Not(HasSubstr(kChosen))) << match;
    EXPECT_THAT(WarnedOf(RuleList({rule + ", mode: shadow"})), Not(HasSubstr(kChosen))) << match;
    EXPECT_THAT(WarnedOf(RuleList({rule, "per: const, mode: shadow"})), HasSubstr(kChosen));
    EXPECT_THAT(WarnedOf(RuleList({rule, "per: const, match: { path: /v2/** }"})),
                HasSubstr(kChosen));
    EXPECT_THAT(WarnedOf(RuleList({rule, "per: const, match: { header: { x-plan: free } }"})),
                HasSubstr(kChosen));
  }
  EXPECT_THAT(WarnedOf(RuleList({"per: const, match: { path: /v1/a, header: { x: y } }",
                                 "per: const, match: { path: /v1/** }"})),
              Not(HasSubstr(kChosen)));
  // The second rule covers only /v1/**. For any other path, such as /v2, the client chooses with
  // its header whether the first rule applies.
  EXPECT_THAT(
      WarnedOf(RuleList({"per: const, match: { any: [ { path: /v1/** }, { header: { x: y } } ] }",
                         "per: const, match: { path: /v1/** }"})),
      HasSubstr(kChosen));
  EXPECT_THAT(WarnedOf(RuleList({"per: const, match: { path: /v1, method: GET }"})),
              Not(HasSubstr(kChosen)));
}

TEST(RuleEvasionWarningsTest, AllowsHeadersThatTrustedProxiesSet) {
  for (const char* header : {"x-forwarded-proto", "x-forwarded-host", "forwarded", "x-real-ip"}) {
    const std::string rules =
        RuleList({"per: const, match: { header: { " + std::string(header) + ": a } }"});
    EXPECT_THAT(WarnedOf(rules), HasSubstr(kChosen)) << header;
    EXPECT_THAT(WarnedOf("client_ip: { trusted_proxies: [10.0.0.0/8] }\n" + rules),
                Not(HasSubstr(kChosen)))
        << header;
  }
  EXPECT_THAT(WarnedOf("client_ip: { trusted_proxies: [10.0.0.0/8] }\n" +
                       RuleList({"per: const, match: { header: { x-plan: a } }"})),
              HasSubstr(kChosen));
}

TEST(RuleEvasionWarningsTest, WarnsAboutStarInOverrideIdentity) {
  const auto with = [](const std::string& identity) {
    return "rules:\n  - id: r\n    per: header:x-key\n    limit: 1/s\n    overrides:\n"
           "      - { identity: " +
           identity + ", limit: 2/s }\n";
  };
  EXPECT_THAT(WarnedOf(with("'partner-*'")),
              HasSubstr("6:21: warning: rules[0].overrides[0].identity: `*` is matched literally"));
  EXPECT_THAT(WarnedOf(with("{ header:x-key: '*' }")), HasSubstr(kStar));
  EXPECT_THAT(WarnedOf(with("'partner-*'")), Not(HasSubstr("partner")))
      << "the message shows an identity, which may be a secret";
  EXPECT_THAT(WarnedOf(with("partner-7")), Not(HasSubstr(kStar)));
}

TEST(RuleEvasionWarningsTest, WarnsAboutCaseSensitiveLoginPaths) {
  EXPECT_THAT(WarnedOf(RuleList({"per: const, match: { path: /v1/login }"})),
              HasSubstr("2:47: warning: rules[0].match: frameworks such as Express and ASP.NET "
                        "ignore the case of paths, so a request to `/V1/LOGIN` may reach "
                        "`/v1/login` and is not counted by this rule; write `paths: {ignore_case: "
                        "true}`"));
  for (const char* path : {"/login",
                           "/signin",
                           "/sign-in",
                           "/log-in",
                           "/auth",
                           "/oauth2",
                           "/token",
                           "/password",
                           "/password-reset",
                           "/reset",
                           "/otp",
                           "/send-otp",
                           "/2fa",
                           "/mfa",
                           "/verify",
                           "/register",
                           "/signup",
                           "/session",
                           "/sessions",
                           "/v1/:tenant/Login",
                           "/login/",
                           "/v1/login/**",
                           "/authorize"}) {
    EXPECT_THAT(WarnedOf(RuleList({"per: const, match: { path: '" + std::string(path) + "' }"})),
                HasSubstr(kCase))
        << path;
  }
  for (const char* path :
       {"/v1/**", "/login/:id", "/users", "/", "/login/info", "/authors", "/v1/author", "/presets",
        "/footprint", "/2fast", "/v1/tokenizer", "/images/authentic"}) {
    EXPECT_THAT(WarnedOf(RuleList({"per: const, match: { path: '" + std::string(path) + "' }"})),
                Not(HasSubstr(kCase)))
        << path;
  }
  EXPECT_THAT(
      WarnedOf(RuleList({"per: const, match: { any: [ { path: /a }, { path: /login } ] }"})),
      HasSubstr(kCase));
  EXPECT_THAT(WarnedOf(RuleList({"per: const, match: { not: { path: /login } }"})),
              Not(HasSubstr(kCase)));
  EXPECT_THAT(WarnedOf(RuleList({"per: const, mode: shadow, match: { path: /login }"})),
              Not(HasSubstr(kCase)));
  EXPECT_THAT(WarnedOf("deny: [ { path: /auth/login } ]\n" + RuleList({"per: const"})),
              HasSubstr("1:9: warning: deny[0]: frameworks"));
  EXPECT_THAT(WarnedOf("deny: [ { path: /admin/** } ]\n" + RuleList({"per: const"})),
              HasSubstr("1:9: warning: deny[0]: frameworks"));
  EXPECT_THAT(WarnedOf("paths: { ignore_case: true }\ndeny: [ { path: /admin/** } ]\n" +
                       RuleList({"per: const, match: { path: /login } "})),
              Not(HasSubstr(kCase)));
  EXPECT_THAT(WarnedOf("exempt: [ { path: /auth/login } ]\n" + RuleList({"per: const"})),
              Not(HasSubstr(kCase)));
  const std::string two = WarnedOf(RuleList({"per: const, match: { path: [/login, /token] }"}));
  EXPECT_EQ(two.find(kCase), two.rfind(kCase)) << "more than one warning for the same rule";
}

TEST(RuleEvasionWarningsTest, WarnsAboutRoutesThatNoRuleCovers) {
  const std::string rule = RuleList({"per: const, match: { path: /v1/** }"});
  EXPECT_THAT(WarnedOf(GatewayWith("[ { id: all, upstream: u } ]", rule)),
              HasSubstr("4:11: warning: routes[0]: requests of route `all` may match no enforced "
                        "rule, and then pass unlimited; add a rule that matches all of them"));
  for (const char* route :
       {"{ path: /v1/** }", "{ path: [/v1/a, /v1/b] }", "{ path: /v1, method: GET }",
        "{ any: [ { path: /v1/a }, { path: /v1/b } ] }"}) {
    EXPECT_THAT(
        WarnedOf(GatewayWith("[ { match: " + std::string(route) + ", upstream: u } ]", rule)),
        Not(HasSubstr(kUnlimited)))
        << route;
  }
  for (const char* route : {"{ path: /** }", "{ path: [/v1/a, /v2/b] }", "{ host: a.b }",
                            "{ any: [ { path: /v1/a }, { path: /v2/b } ] }"}) {
    EXPECT_THAT(
        WarnedOf(GatewayWith("[ { match: " + std::string(route) + ", upstream: u } ]", rule)),
        HasSubstr(kUnlimited))
        << route;
  }
  const std::string all = "[ { upstream: u } ]";
  EXPECT_THAT(WarnedOf(GatewayWith(all, RuleList({"per: const"}))), Not(HasSubstr(kUnlimited)));
  EXPECT_THAT(WarnedOf(GatewayWith(all, RuleList({"per: const, match: { path: /** }"}))),
              Not(HasSubstr(kUnlimited)));
  EXPECT_THAT(WarnedOf(GatewayWith(all, RuleList({"per: const, mode: shadow"}))),
              HasSubstr(kUnlimited));
  EXPECT_THAT(WarnedOf(GatewayWith(all, RuleList({"per: const, match: { not: { path: /a } }"}))),
              HasSubstr(kUnlimited));
  // Two rules together cover all three paths; exempt and denied paths are uncovered on purpose.
  const std::string three = "[ { match: { path: [/v1/a, /v2/b, /v3] }, upstream: u } ]";
  const std::string two =
      RuleList({"per: const, match: { path: /v1/** }", "per: const, match: { path: /v2/** }"});
  EXPECT_THAT(WarnedOf(GatewayWith(three, two)), HasSubstr(kUnlimited));
  EXPECT_THAT(WarnedOf(GatewayWith(three, two + "exempt: [ { path: /v3 } ]\n")),
              Not(HasSubstr(kUnlimited)));
  EXPECT_THAT(WarnedOf(GatewayWith(three, two + "deny: [ { path: /v3 } ]\n")),
              Not(HasSubstr(kUnlimited)));
}

TEST(RuleEvasionWarningsTest, WarnsWhenEnforcedRulesMissSomeRequests) {
  EXPECT_THAT(WarnedOf(RuleList({"per: const, match: { path: /v1/** }"})),
              HasSubstr("2:3: warning: rules: every enforced rule has a `match`"));
  const std::string two = WarnedOf(
      RuleList({"per: const, match: { path: /v1/** }", "per: const, match: { path: /v2/** }"}));
  EXPECT_EQ(two.find(kUnlimited), two.rfind(kUnlimited)) << "once";
  for (const char* rule : {"per: const", "per: const, match: { path: /** }",
                           "per: const, mode: shadow, match: { path: /v1/** }"}) {
    EXPECT_THAT(WarnedOf(RuleList({rule})), Not(HasSubstr(kUnlimited))) << rule;
  }
  EXPECT_THAT(WarnedOf(RuleList({"per: const, match: { path: /a }", "per: const"})),
              Not(HasSubstr(kUnlimited)));
  EXPECT_THAT(WarnedOf(RuleList({"per: const, match: { path: /a }", "per: const, mode: shadow"})),
              HasSubstr(kUnlimited));
}

TEST(RuleEvasionWarningsTest, WarnsAboutExemptionsByClientHeader) {
  const std::string rule = RuleList({"per: const"});
  for (const char* entry : {"{ header: { x-internal: 'yes' } }", "{ header: { user-agent: 'm*' } }",
                            "{ path: /a, header: { x: y } }"}) {
    EXPECT_THAT(WarnedOf("exempt: [ " + std::string(entry) + " ]\n" + rule),
                HasSubstr("1:11: warning: exempt[0]: a client that sends the header"))
        << entry;
  }
  for (const char* entry :
       {"{ header: { x-internal: 'yes' }, client_ip: 10.0.0.0/8 }", "{ path: /health }"}) {
    EXPECT_THAT(WarnedOf("exempt: [ " + std::string(entry) + " ]\n" + rule),
                Not(HasSubstr("a client that sends the header")))
        << entry;
  }
}

TEST(RuleEvasionWarningsTest, AllowsExceptionsThatOtherEntriesCover) {
  const std::string routes =
      "[ { id: v1, match: { path: /v1/**, method: [GET, POST] }, upstream: u } ]";
  const std::string rule = "per: const, match: { path: /v1/**, not: { path: /v1/health } }";
  EXPECT_THAT(WarnedOf(GatewayWith(routes, RuleList({rule}))), HasSubstr(kUnlimited));
  EXPECT_THAT(WarnedOf(GatewayWith(routes, "exempt: [{ path: /v1/health }]\n" + RuleList({rule}))),
              Not(HasSubstr(kUnlimited)));
  EXPECT_THAT(
      WarnedOf(GatewayWith(routes, RuleList({rule, "per: const, match: { path: /v1/health }"}))),
      Not(HasSubstr(kUnlimited)));
  EXPECT_THAT(WarnedOf(GatewayWith(routes, RuleList({"per: const, match: { method: GET }",
                                                     "per: const, match: { method: POST }"}))),
              Not(HasSubstr(kUnlimited)));
}

TEST(RuleEvasionWarningsTest, WarnsAboutHeadersThatTheGatewayDrops) {
  const std::string all = "[ { upstream: u } ]";
  const std::string per = RuleList({"per: 'header:x_key | client_ip'", "per: client_ip"});
  EXPECT_THAT(WarnedOf(GatewayWith(all, per)),
              HasSubstr("2:33: warning: rules[0].per: the gateway drops the header `x_key`"));
  const std::string match = RuleList({"per: const, match: { not: { header: { x_a: b } } }"});
  EXPECT_THAT(WarnedOf(GatewayWith(all, match)),
              HasSubstr("2:47: warning: rules[0].match: the gateway drops the header `x_a`"));
  const std::string deny = "deny: [ { header: { x_a: b } } ]\nexempt: [ { header: { x_b: b } } ]\n";
  EXPECT_THAT(WarnedOf(GatewayWith(all, deny + RuleList({"per: const"}))),
              testing::AllOf(HasSubstr("1:9: warning: deny[0]: the gateway drops"),
                             HasSubstr("2:11: warning: exempt[0]: the gateway drops")));
  for (const std::string& rules : {per, match, deny + RuleList({"per: const"})}) {
    EXPECT_THAT(WarnedOf(rules), Not(HasSubstr(kDropped)))
        << "the warning appears without a gateway";
    EXPECT_THAT(WarnedOf(GatewayWith(all, "gateway: { underscores: true }\n" + rules)),
                Not(HasSubstr(kDropped)));
  }
  EXPECT_THAT(WarnedOf(GatewayWith(all, RuleList({"per: 'header:x-key | client_ip'"}))),
              Not(HasSubstr(kDropped)));
  EXPECT_THAT(WarnedOf(GatewayWith(all, RuleList({"per: 'cookie:x_key | client_ip'"}))),
              Not(HasSubstr(kDropped)));
}

TEST(RuleEvasionWarningsTest, ExampleFilesHaveNoWarnings) {
  for (const char* file :
       {"examples/tidegate.yaml", "examples/gateway.yaml", "examples/demo.yaml"}) {
    const ConfigReading reading = LoadConfig(std::string(TIDEGATE_SOURCE_DIR "/") + file);
    ASSERT_TRUE(reading.config) << file;
    EXPECT_EQ(ProblemText(reading), "") << file;
  }
}

}  // namespace
}  // namespace tidegate
