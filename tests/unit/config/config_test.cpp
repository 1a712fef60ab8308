// SPDX-License-Identifier: Apache-2.0
#include "config/config.hpp"

#include <fstream>

#include "unit/config/config_folder.hpp"
#include "unit/config/config_reading.hpp"

namespace tidegate {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(ConfigTest, KeepsValuesAsWritten) {
  const Config c = Good(R"(
rules:
  - { id: a, match: { header: { x-edge: "${KEY}", x-tier: gold } }, per: client_ip, limit: 90/60s }
)");
  EXPECT_EQ(c.rules.at(0).match.headers.at(0).pattern, "hunter2-hunter2-hunter2");
  EXPECT_EQ(c.rules.at(0).match.headers.at(0).written, "${KEY}");
  EXPECT_EQ(c.rules.at(0).match.headers.at(1).written, "");
  EXPECT_EQ(c.rules.at(0).limit, "90/60s");
}

TEST(ConfigTest, ReadsEveryKeyOfTheServer) {
  const Config c = Good(R"(
store: { url: "memory://", max_keys: 5000, max_list_bytes: 64MiB, on_failure: local }
listen: { api: "[::1]:81", admin: localhost:82 }
client_ip:
  trusted_proxies: [10.0.0.0/8, 127.0.0.1, "2001:db8::/32"]
  header: forwarded
  hops: 2
  ipv6_prefix: 56
identity:
  hmac_key: 0123456789abcdef
  jwt: { unverified: true, issuer: me, audience: you }
responses:
  headers: [ratelimit-legacy, x-ratelimit]
  x_ratelimit_reset: epoch
  retry_after_jitter: 250ms
api: { inline_quotas: true }
limits:
  connections: 7
  connections_per_address: 5
  buffer_bytes: 2MiB
  header_bytes: 2KiB
  header_count: 3
  target_bytes: 1KiB
  body_bytes: 0
  header_timeout: 1s
  body_timeout: 2s
  body_rate: 100
  idle_timeout: 3s
  drain_timeout: 0s
log: { format: json, level: debug }
)");
  EXPECT_EQ(c.store, (Config::Store{
                         .max_keys = 5000,
                         .max_list_bytes = 64u << 20,
                         .on_failure = OnFailure::kLocal,
                     }));
  EXPECT_EQ(c.listen, (Config::Listen{.api = "[::1]:81", .admin = "127.0.0.1:82"}));
  ASSERT_EQ(c.client_ip.policy.trusted_proxies.size(), 3u);
  EXPECT_EQ(c.client_ip.policy.trusted_proxies[0], Network::Parse("10.0.0.0/8").value());
  EXPECT_EQ(c.client_ip.policy.header, ClientAddressPolicy::Header::kForwarded);
  EXPECT_EQ(c.client_ip.policy.hops, 2);
  EXPECT_EQ(c.client_ip.ipv6_prefix, 56);
  EXPECT_EQ(c.identity, (Config::Identity{.hmac_key = "0123456789abcdef",
                                          .jwt = Config::Jwt{.hmac_secret = "",
                                                             .public_key_pem = "",
                                                             .unverified = true,
                                                             .issuer = "me",
                                                             .audience = "you",
                                                             .require_exp = false}}));
  EXPECT_EQ(c.responses, (Config::Responses{.ratelimit = false,
                                            .ratelimit_legacy = true,
                                            .x_ratelimit = true,
                                            .x_reset = Config::Responses::XReset::kEpoch,
                                            .retry_after_jitter = 250ms}));
  EXPECT_TRUE(c.api.inline_quotas);
  EXPECT_EQ(c.limits, (Config::Limits{.connections = 7,
                                      .connections_per_address = 5,
                                      .buffer_bytes = 2u << 20,
                                      .header_bytes = 2048,
                                      .header_count = 3,
                                      .target_bytes = 1024,
                                      .body_bytes = 0,
                                      .header_timeout = 1s,
                                      .body_timeout = 2s,
                                      .body_rate = 100,
                                      .idle_timeout = 3s,
                                      .drain_timeout = 0s}));
  EXPECT_EQ(c.log, (Config::Log{.format = Config::Log::Format::kJson,
                                .level = Config::Log::Level::kDebug}));
}

TEST(ConfigTest, HasDefaultsForServerSettings) {
  const Config c = Good("rules: []\n");
  EXPECT_EQ(c.store, Config::Store{});
  EXPECT_EQ(c.listen, Config::Listen{});
  EXPECT_EQ(c.responses, Config::Responses{});
  EXPECT_EQ(c.limits, Config::Limits{});
  EXPECT_FALSE(c.identity.jwt);
}

TEST(ConfigTest, RejectsTargetBytesAboveHeaderBytes) {
  EXPECT_EQ(Good("limits: { connections_per_address: 0 }\n").limits.connections_per_address, 0u);
  EXPECT_EQ(Good("limits: { header_bytes: 2KiB }\n").limits.target_bytes, 2048u)
      << "the default of 8KiB exceeds header_bytes";
  EXPECT_EQ(Good("limits: { target_bytes: 64KiB, header_bytes: 64KiB }\n").limits.target_bytes,
            64u << 10);
  EXPECT_EQ(Good("limits: { target_bytes: 16KiB }\n").limits.target_bytes, 16u << 10);
}

TEST(ConfigTest, ReadsEveryKeyOfARedisStore) {
  const Config c = Good(R"(
store:
  url: redis://app:s3cret@redis.internal:6380/2
  prefix: "staging:"
  deadline: 5ms
  connect_timeout: 1s
  nodes: 4
  max_keys: 5000
  max_list_bytes: 1MiB
  on_failure: closed
)");
  ASSERT_TRUE(c.store.redis);
  EXPECT_EQ(*c.store.redis,
            redis::ParseRedisUrl("redis://app:s3cret@redis.internal:6380/2").value());
  EXPECT_EQ(c.store, (Config::Store{.max_keys = 5000,
                                    .max_list_bytes = 1u << 20,
                                    .on_failure = OnFailure::kClosed,
                                    .redis = c.store.redis,
                                    .prefix = "staging:",
                                    .deadline = 5ms,
                                    .connect_timeout = 1s,
                                    .nodes = 4}));
}

TEST(ConfigTest, HasDefaultsForRedisStoreExceptFailurePolicy) {
  const Config c = Good("store: { url: 'unix:///run/redis.sock', on_failure: open }\n");
  ASSERT_TRUE(c.store.redis);
  EXPECT_EQ(c.store.redis->hosts.front().path, "/run/redis.sock");
  EXPECT_EQ(c.store.prefix, "tg:");
  EXPECT_EQ(c.store.deadline, Micros{20ms});
  EXPECT_EQ(c.store.connect_timeout, Micros{250ms});
  EXPECT_EQ(c.store.nodes, 1);
  EXPECT_EQ(c.store.tls, TlsClientSpec{});
  EXPECT_EQ(c.store.sentinel, Config::StoreSentinel{});
  EXPECT_EQ(Good("store: { url: 'redis://h', on_failure: open, prefix: '' }\n").store.prefix, "");
}

TEST(ConfigTest, AcceptsFailurePolicyInRulesInsteadOfStore) {
  const Config c = Good(R"(
store: { url: "redis://h" }
rules:
  - { id: a, per: client_ip, limit: 1/s, on_failure: closed }
  - { id: b, per: header:x, limit: 1/s, on_failure: local }
)");
  EXPECT_FALSE(c.store.on_failure);
  EXPECT_FALSE(Good("store: { url: 'redis://h' }\n").store.on_failure)
      << "a failure policy was required although no rule or inline quota needs it";
}

TEST(ConfigTest, ReadsStoreUrlFromEnvironment) {
  const Config c =
      Good("store: { url: \"redis://:${KEY}@h:${PORT}\", on_failure: open }\nrules: []\n");
  EXPECT_EQ(c.store.redis->password, "hunter2-hunter2-hunter2");
  EXPECT_EQ(c.store.redis->hosts.front().port, 9999);
}

TEST(ConfigTest, AcceptsListenersOffOrOnPortZero) {
  const Config c = Good("listen: { api: off, admin: 127.0.0.1:0 }\n");
  EXPECT_EQ(c.listen, (Config::Listen{"", "127.0.0.1:0"}));
}

TEST(ConfigTest, DisablesResponseHeadersWithEmptyHeaderList) {
  const Config c = Good("responses: { headers: [] }\n");
  EXPECT_EQ(c.responses, (Config::Responses{.ratelimit = false}));
}

TEST(ConfigTest, ReadsARule) {
  const Config c = Good(R"(
rules:
  - id: per-key
    match:
      host: [API.example.com, "*.example.org"]
      path: [/v1/**, /users/:id/posts, /]
      method: [GET, POST]
      header: { X-Tier: "gold*" }
      client_ip: 192.0.2.0/24
    per: header:X-Api-Key | client_ip
    limit: 100/s
    burst: 200
    algorithm: gcra
    cost: 3
    on_failure: closed
    mode: shadow
)");
  ASSERT_EQ(c.rules.size(), 1u);
  const RuleSpec& rule = c.rules[0];
  EXPECT_EQ(rule.id, "per-key");
  EXPECT_THAT(rule.match.hosts, ElementsAre("api.example.com", "*.example.org"));
  EXPECT_THAT(rule.match.paths, ElementsAre("/v1/**", "/users/:id/posts", "/"));
  EXPECT_THAT(rule.match.methods, ElementsAre("GET", "POST"));
  EXPECT_THAT(rule.match.headers, ElementsAre(MatchSpec::Header{"x-tier", "gold*"}));
  EXPECT_THAT(rule.match.client_ips, ElementsAre(Network::Parse("192.0.2.0/24").value()));
  EXPECT_EQ(rule.per.Text(), "header:x-api-key | client_ip");
  EXPECT_EQ(rule.quota, Quota::Make({Algorithm::kGcra, 100, 1s, 200}).value());
  EXPECT_EQ(rule.cost, (CostSpec{CostSpec::Kind::kFixed, 3, ""}));
  EXPECT_EQ(rule.on_failure, OnFailure::kClosed);
  EXPECT_EQ(rule.mode, Mode::kShadow);
  EXPECT_EQ(rule.at, (Position{3, 5}));
}

TEST(ConfigTest, ReadsAlternativesAndExceptionsOfMatches) {
  const Config c = Good(R"(
deny: [ { not: { client_ip: 10.0.0.0/8 } } ]
exempt: [ { any: [ { path: /a }, { path: /b } ] } ]
rules:
  - id: r
    match:
      path: /v1/**
      not: [ { path: /v1/health }, { any: [ { host: a.b, not: { method: GET } } ] } ]
      any: [ { method: POST }, { header: { x: y } } ]
    per: client_ip
    limit: 1/s
listen: { gateway: 127.0.0.1:8080 }
routes: [ { match: { not: { path: /internal/** } }, upstream: u } ]
upstreams: { u: { targets: http://127.0.0.1:1 } }
)");
  const MatchSpec& match = c.rules.at(0).match;
  EXPECT_THAT(match.paths, ElementsAre("/v1/**"));
  ASSERT_EQ(match.none.size(), 2u);
  EXPECT_THAT(match.none[0].paths, ElementsAre("/v1/health"));
  const MatchSpec& inner = match.none[1].any.at(0);
  EXPECT_THAT(inner.hosts, ElementsAre("a.b"));
  EXPECT_THAT(inner.none.at(0).methods, ElementsAre("GET"));
  ASSERT_EQ(match.any.size(), 2u);
  EXPECT_THAT(match.any[1].headers, ElementsAre(MatchSpec::Header{"x", "y"}));
  EXPECT_EQ(c.deny.at(0).none.size(), 1u);
  EXPECT_EQ(c.exempt.at(0).any.size(), 2u);
  EXPECT_THAT(c.routes.at(0).match.none.at(0).paths, ElementsAre("/internal/**"));
  EXPECT_NE(match, c.deny.at(0));
}

TEST(ConfigTest, ReadsSourceListsCostsAndCeilings) {
  const Config c = Good(R"(
rules:
  - { id: a, per: [client_ip, path], limit: 10/m, cost: "header:X-Cost" }
  - { id: b, per: const, limit: 10/30s, algorithm: concurrency }
  - { id: c, per: const, limit: 50000/h, algorithm: sliding_log, ceiling: 50000 }
  - { id: d, per: const, limit: 10/s, cost: response:x-used }
  - { id: e, per: const, limit: 10/s, burst: 20, cost: 20 }
)");
  ASSERT_EQ(c.rules.size(), 5u);
  EXPECT_EQ(c.rules[0].per.Text(), "client_ip, path");
  EXPECT_EQ(c.rules[0].per.parts.size(), 2u);
  EXPECT_EQ(c.rules[0].cost, (CostSpec{CostSpec::Kind::kHeader, 1, "x-cost"}));
  EXPECT_EQ(c.rules[1].quota.capacity(), 10);
  EXPECT_EQ(c.rules[1].quota.period(), Micros{30s});
  EXPECT_EQ(c.rules[2].quota.limit(), 50'000);
  EXPECT_EQ(c.rules[3].cost, (CostSpec{CostSpec::Kind::kResponse, 1, "x-used"}));
  EXPECT_EQ(c.rules[4].cost.fixed, 20);
}

TEST(ConfigTest, RequiresExpiryOfSignedJwtsByDefault) {
  const auto required = [](const std::string& more) {
    return Good("identity: { jwt: { " + more + " } }\n").identity.jwt.value().require_exp;
  };
  const std::string secret = "secret: 01234567890123456789012345678901";
  EXPECT_TRUE(required(secret));
  EXPECT_FALSE(required(secret + ", require_exp: false"));
  EXPECT_FALSE(required("unverified: true"));
  EXPECT_TRUE(required("unverified: true, require_exp: true"));
}

TEST(ConfigTest, ReadsMaxDebtOfRulesAndOverrides) {
  const Config c = Good(R"(
rules:
  - { id: a, per: client_ip, limit: 10/m, burst: 20, overrides: [{ identity: 192.0.2.1, limit: 1/s }] }
  - { id: b, per: client_ip, limit: 10/m, max_debt: 0, overrides: [{ identity: 192.0.2.1, limit: 1/s }] }
  - { id: c, per: client_ip, limit: 10/m, algorithm: fixed_window, max_debt: 7 }
)");
  ASSERT_EQ(c.rules.size(), 3u);
  EXPECT_EQ(c.rules[0].quota.max_debt(), 200);
  EXPECT_EQ(c.rules[0].overrides.at(0).quota.max_debt(), 10);
  EXPECT_EQ(c.rules[1].quota.max_debt(), 0);
  EXPECT_EQ(c.rules[1].overrides.at(0).quota.max_debt(), 0);
  EXPECT_EQ(c.rules[2].quota.max_debt(), 7);
}

TEST(ConfigTest, ReadsOverrides) {
  const Config c = Good(R"(
rules:
  - id: a
    per: header:x-api-key | client_ip
    limit: 10/s
    overrides:
      - { identity: partner-7, limit: 5000/m, burst: 10000 }
      - { identity: { client_ip: 192.0.2.1 }, limit: 1/s }
  - id: b
    per: [client_ip, path]
    limit: 10/s
    overrides:
      - { identity: { path: /v1, client_ip: 192.0.2.1 }, limit: 1/s }
)");
  ASSERT_EQ(c.rules.size(), 2u);
  const auto& first = c.rules[0].overrides;
  ASSERT_EQ(first.size(), 2u);
  EXPECT_THAT(first[0].identity, ElementsAre(OverrideSpec::Value{"", "partner-7"}));
  EXPECT_EQ(first[0].quota, Quota::Make({Algorithm::kTokenBucket, 5000, 1min, 10'000}).value());
  EXPECT_EQ(first[0].at, (Position{7, 9}));
  EXPECT_THAT(first[1].identity, ElementsAre(OverrideSpec::Value{"client_ip", "192.0.2.1"}));
  ASSERT_EQ(c.rules[1].overrides.size(), 1u);
  EXPECT_THAT(c.rules[1].overrides[0].identity,
              ElementsAre(OverrideSpec::Value{"path", "/v1"},
                          OverrideSpec::Value{"client_ip", "192.0.2.1"}));
}

TEST(ConfigTest, ReadsDenyAndExempt) {
  const Config c = Good(R"(
deny: [ { header: { user-agent: "BadBot*" } } ]
exempt: [ { client_ip: [192.0.2.0/24] }, { path: /healthz } ]
)");
  ASSERT_EQ(c.deny.size(), 1u);
  EXPECT_THAT(c.deny[0].headers, ElementsAre(MatchSpec::Header{"user-agent", "BadBot*"}));
  ASSERT_EQ(c.exempt.size(), 2u);
  EXPECT_THAT(c.exempt[1].paths, ElementsAre("/healthz"));
}

TEST(ConfigTest, ResolvesYamlAliases) {
  const Config c = Good(R"(
rules:
  - { id: a, match: &m { path: /v1/** }, per: client_ip, limit: 10/s }
  - { id: b, match: *m, per: header:x, limit: 10/s }
)");
  ASSERT_EQ(c.rules.size(), 2u);
  EXPECT_EQ(c.rules[1].match, c.rules[0].match);
}

TEST(ConfigTest, SubstitutesEnvironmentVariables) {
  const Config c = Good(
      "listen: { api: \"127.0.0.1:${PORT}\", admin: \"127.0.0.1:${ABSENT:-9181}\" }\n"
      "store:\n  max_keys: ${PORT}\n  max_list_bytes: \"${EMPTY:-1MiB}\"\n"
      "deny: [ { header: { a: \"$${PORT}\", b: \"$5 $PORT\", c: \"x${EMPTY}y\" } } ]\n"
      "identity:\n  hmac_key: ${KEY}\n");
  EXPECT_EQ(c.listen, (Config::Listen{"127.0.0.1:9999", "127.0.0.1:9181"}));
  EXPECT_EQ(c.store.max_keys, 9999u);
  EXPECT_EQ(c.store.max_list_bytes, 1u << 20);
  ASSERT_EQ(c.deny.size(), 1u);
  EXPECT_THAT(c.deny[0].headers,
              ElementsAre(MatchSpec::Header{"a", "${PORT}"}, MatchSpec::Header{"b", "$5 $PORT"},
                          MatchSpec::Header{"c", "xy"}));
  EXPECT_EQ(c.identity.hmac_key, "hunter2-hunter2-hunter2");
}

TEST(ConfigTest, NeverReadsVariableValueAsFile) {
  const Config c = Good("identity:\n  hmac_key: \"${PATHLIKE}\"\n");
  EXPECT_EQ(c.identity.hmac_key, "file:/etc/passwd");
}

class SecretFileTest : public ConfigFolder {};

TEST_F(SecretFileTest, ReadsSecretRelativeToConfigWithoutLastNewline) {
  Write("key", "0123456789abcdef\n\n");
  Write("crlf", "0123456789abcdef\r\n");
  Write("bare", "0123456789abcdef\r");
  const auto key = [&](const std::string& name) {
    return Good("identity: { hmac_key: 'file:" + name + "' }\n", folder_).identity.hmac_key;
  };
  EXPECT_EQ(key("key"), "0123456789abcdef\n");
  EXPECT_EQ(key("crlf"), "0123456789abcdef");
  EXPECT_EQ(key("bare"), "0123456789abcdef\r");
  EXPECT_EQ(key(folder_ + "/crlf"), "0123456789abcdef");
}

TEST_F(SecretFileTest, ReadsStoreUrlFromFile) {
  Write("url", "redis://:s3cret@h\n");
  const Config c = Good("store: { url: 'file:url', on_failure: open }\n", folder_);
  EXPECT_EQ(c.store.redis->password, "s3cret");
}

TEST_F(SecretFileTest, RejectsTooLargeOrMissingFile) {
  Write("large", std::string(65'537, 'x'));
  Write("largest", std::string(65'536, 'x'));
  const auto problems = [&](const std::string& name) {
    return ProblemText(Read("identity: { hmac_key: 'file:" + name + "' }\n", folder_));
  };
  EXPECT_THAT(problems("large"), HasSubstr("1:23: error: identity.hmac_key: the file"));
  EXPECT_THAT(problems("large"), HasSubstr("larger than 64 KiB"));
  EXPECT_EQ(problems("largest").find("error"), std::string::npos);
  EXPECT_THAT(problems("absent"), HasSubstr("there is no file `" + folder_ + "/absent`"));
  EXPECT_THAT(problems("."), HasSubstr("there is no file"));
  EXPECT_THAT(problems(""), HasSubstr("needs a path"));
}

TEST_F(SecretFileTest, LoadConfigFindsSecretsBesideTheFile) {
  Write("key", "0123456789abcdef\n");
  Write("tidegate.yaml", "identity: { hmac_key: file:key }\nlisten: { api: '127.0.0.1:8081' }\n");
  const ConfigReading reading = LoadConfig(folder_ + "/tidegate.yaml");
  ASSERT_TRUE(reading.config) << ProblemText(reading);
  EXPECT_EQ(reading.config->identity.hmac_key, "0123456789abcdef");
}

TEST_F(SecretFileTest, LoadConfigRejectsConfigWithoutListener) {
  const std::string problems =
      "error: listen: no listener is configured, so nothing would be served; name at least one, as "
      "in `listen: { api: 127.0.0.1:8081, admin: 127.0.0.1:9180 }`\n";
  Write("tidegate.yaml", "rules: []\n");
  EXPECT_EQ(ProblemText(LoadConfig(folder_ + "/tidegate.yaml")), problems);
  Write("tidegate.yaml", "listen: { api: off, resp: { address: off } }\n");
  EXPECT_EQ(ProblemText(LoadConfig(folder_ + "/tidegate.yaml")), "1:9: " + problems);
}

TEST_F(SecretFileTest, LoadConfigReportsWhyReadingFails) {
  EXPECT_THAT(ProblemText(LoadConfig(folder_ + "/absent.yaml")), HasSubstr("No such file"));
  EXPECT_THAT(ProblemText(LoadConfig(folder_)), HasSubstr("a folder"));
  Write("large.yaml", std::string((16u << 20) + 1, '#'));
  EXPECT_THAT(ProblemText(LoadConfig(folder_ + "/large.yaml")), HasSubstr("larger than 16 MiB"));
}

TEST(ConfigTest, ExampleFileHasNoErrorsOrWarnings) {
  const ConfigReading reading = LoadConfig(TIDEGATE_SOURCE_DIR "/examples/tidegate.yaml");
  ASSERT_TRUE(reading.config);
  EXPECT_EQ(ProblemText(reading), "");
  EXPECT_EQ(reading.config->rules.size(), 3u);
  EXPECT_FALSE(reading.config->store.redis);
}

/// The example file must also be valid after an operator has removed the `#` in front of its Redis
/// settings.
TEST(ConfigTest, ExampleFileIsValidWithRedisEnabled) {
  std::ifstream in(TIDEGATE_SOURCE_DIR "/examples/tidegate.yaml");
  std::string yaml;
  for (std::string line; std::getline(in, line);) {
    const bool redis = line.starts_with("# store:") || line.starts_with("#   ");
    yaml +=
        (redis && line.find("check-config") == std::string::npos ? line.substr(2) : line) + "\n";
  }
  const Config c = Good(yaml);
  ASSERT_TRUE(c.store.redis);
  EXPECT_EQ(c.store.redis->Shown(), "redis://127.0.0.1:6379");
}

}  // namespace
}  // namespace tidegate
