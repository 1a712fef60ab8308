// SPDX-License-Identifier: Apache-2.0
// Invalid configurations: the reader reports each mistake at its exact place, with a message that
// helps to correct it.
#include "unit/config/config_reading.hpp"

namespace tidegate {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string Repeat(std::string_view text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

/// Returns a configuration with one rule that has these additional lines of YAML, each indented by
/// four; they begin on line 4, column 5.
std::string Rule(std::string_view lines) {
  return "rules:\n  - id: a\n    per: header:x-api-key | client_ip\n    " + std::string{lines} +
         "\n";
}

/// If a colon, a space or a level of indentation is missing, a value is read as a key. It may be a
/// secret.
TEST(BadConfigTest, HidesUnknownKeysThatMayBeSecrets) {
  for (const std::string yaml :
       {"access: { 'ops 7d793037a0764e3d9bd9-S3CR3T': x }\n",
        "identity: { hmac_key=S3CR3T-01234567: }\n", "store: { 'url redis://:S3CR3T@h': }\n",
        "store: { S3CR3TS3CR3TS3CR3TS3CR3TS3CR3T: }\n",
        "listen: { gateway: '127.0.0.1:80' }\nupstreams: { api: { targets: 'http://h' } }\nroutes: "
        "[ { "
        "upstream: api, request_headers: { set: { 'authorization: Bearer S3CR3T': x } } } ]\n",
        "rules: [ { id: a, per: client_ip, limit: 1/s, match: { header: { 'x-key: S3CR3T': x } } } "
        "]\n"}) {
    const ConfigReading reading = ParseConfig(yaml);
    EXPECT_FALSE(reading.problems.empty()) << yaml;
    for (const Problem& problem : reading.problems) {
      EXPECT_THAT(problem.Text("f"), testing::Not(testing::HasSubstr("S3CR3T"))) << yaml;
    }
  }
  // An unknown key that is a plain word is shown, because the word helps to find the mistake.
  const ConfigReading reading = ParseConfig("store: { colour: red, maxKeys: 3 }\n");
  EXPECT_THAT(ProblemText(reading), testing::HasSubstr("unknown key `colour`: the keys here are"));
  EXPECT_THAT(ProblemText(reading),
              testing::HasSubstr("unknown key `maxKeys`; did you mean `max_keys`?"));
}

TEST(BadConfigTest, RejectsInvalidServerSettings) {
  const BadCase cases[] = {
      {"stroe: {}\n", "1:1: error: unknown key `stroe`; did you mean `store`?"},
      {"zzz: 1\n", "1:1: error: unknown key `zzz`: the keys here are `store`, `listen`"},
      {"store: {}\nlog: {}\nstore: {}\n",
       "3:1: error: the key `store` is repeated, first on line 1"},
      {"store: 5\n", "1:8: error: store: should be a map with keys such as `url`, but is a single"},
      {"store:\n", "1:7: error: store: should be a map with keys such as `url`, but is empty"},
      {"store: []\n", "1:8: error: store: should be a map with keys such as `url`, but is a list"},
      {"store: { max_keys: 0 }\n", "1:20: error: store.max_keys: should be between 1000 and"},
      {"store: { max_list_bytes: 1KiB }\n",
       "1:26: error: store.max_list_bytes: should be between 64KiB and 1024GiB, but is `1KiB`"},
      {"store: { max_list_bytes: 1MB }\n",
       "1:26: error: store.max_list_bytes: `1MB` is not a size"},
      {"store: { on_failure: opne }\n",
       "1:22: error: store.on_failure: should be `open`, `closed` or `local`, but is `opne`; did "
       "you mean `open`?"},
      {"listen: { grpc: x }\n",
       "1:11: error: listen: this version of tidegate has no gRPC listener"},
      {"listen: { resp: x }\n", "1:17: error: listen.resp: should be an address and a port"},
      {"listen: { api: 8081 }\n", "1:16: error: listen.api: should be an address and a port"},
      {"listen: { api: ':8081' }\n", "1:16: error: listen.api: should be an address and a port"},
      {"listen: { api: 127.0.0.1 }\n", "1:16: error: listen.api: should be an address and a port"},
      {"listen: { api: '127.0.0.1:65536' }\n", "1:16: error: listen.api: should be an address and"},
      {"listen: { api: '127.0.0.1:08' }\n", "1:16: error: listen.api: should be an address and a"},
      {"listen: { api: '[::1]' }\n", "1:16: error: listen.api: should be an address and a port"},
      {"listen: { api: '::1:80' }\n",
       "1:16: error: listen.api: IPv6 addresses are written in brackets"},
      {"listen: { api: 'example.com:80' }\n",
       "1:16: error: listen.api: `example.com` is not an IP address"},
      {"listen: { admin: '0.0.0.0:9180' }\n",
       "1:18: error: listen.admin: is not a loopback address"},
      {"listen: { api: '127.0.0.1:1', admin: '127.0.0.1:1' }\n",
       "1:38: error: listen.admin: has the same address as `api`"},
      {"responses: { headers: [ratelimits] }\n",
       "1:24: error: responses.headers[0]: should be `ratelimit`, `ratelimit-legacy` or "
       "`x-ratelimit`, but is `ratelimits`; did you mean `ratelimit`?"},
      {"responses: { headers: [ratelimit, ratelimit] }\n",
       "1:35: error: responses.headers[1]: is listed twice"},
      {"responses: { retry_after_jitter: 2h }\n",
       "1:34: error: responses.retry_after_jitter: should be between 0 s and 1 h, but is `2h`"},
      {"responses: { retry_after_jitter: 5 }\n",
       "1:34: error: responses.retry_after_jitter: \"5\" is not a duration"},
      {"api: { inline_quotas: yes }\n", "1:23: error: api.inline_quotas: should be `true` or"},
      {"api: { inline_quotas: 'true' }\n", "1:23: error: api.inline_quotas: should be `true` or"},
      {"limits: { header_bytes: 2MiB }\n",
       "1:25: error: limits.header_bytes: should be between 1K"},
      {"rules: [{ id: a, per: const, limit: 1/s, match: { path: /b. } }]\n", "write `/b`"},
      {"rules: [{ id: a, per: const, limit: 1/s, match: { path: /a;v/** } }]\n", "write `/a/**`"},
      {"rules: [{ id: a, per: const, limit: 1/s, match: { path: /a%2Fb } }]\n", "write `/a/b`"},
      {"limits: { header_count: 129 }\n", "1:25: error: limits.header_count: should be between 1 "},
      {"limits: { target_bytes: 10 }\n", "1:25: error: limits.target_bytes: should be between 64 "},
      {"limits: { target_bytes: 2MiB }\n",
       "1:25: error: limits.target_bytes: should be between 64 and 1MiB"},
      {"limits: { target_bytes: 17KiB }\n",
       "1:25: error: limits.target_bytes: is more than `header_bytes`, which includes the request "
       "target; raise `header_bytes` to at least as much"},
      {"limits: { target_bytes: 3KiB, header_bytes: 2KiB }\n",
       "1:25: error: limits.target_bytes: is more than `header_bytes`"},
      {"limits: { body_bytes: 65MiB }\n",
       "1:23: error: limits.body_bytes: should be between 0 and"},
      {"limits: { buffer_bytes: 2MiB, body_bytes: 2MiB }\n",
       "1:9: error: limits: `buffer_bytes` is less than `body_bytes` and `header_bytes` together"},
      {"limits: { buffer_bytes: 1KiB }\n",
       "1:25: error: limits.buffer_bytes: should be between 1MiB and 64GiB"},
      {"limits: { connections_per_address: 1000001 }\n",
       "1:36: error: limits.connections_per_address: should be between 0 and 1000000"},
      {"limits: { body_rate: 2MiB }\n", "1:22: error: limits.body_rate: should be between 0 and"},
      {"limits: { idle_timeout: 1us }\n", "1:25: error: limits.idle_timeout: should be between"},
      {"log: { level: verbose }\n", "1:15: error: log.level: should be `debug`, `info`"},
      {"log: { level: warn }\n", "1:15: error: log.level: should be `debug`"},
  };
  for (const BadCase& bad : cases) ExpectProblem(bad);
}

TEST(BadConfigTest, RejectsInvalidStoreSettings) {
  const BadCase cases[] = {
      {"store: { url: 'http://h' }\n",
       "1:15: error: store.url: should be `redis://127.0.0.1:6379`, "
       "`redis+sentinel://h1,h2,h3/mymaster`, `redis+cluster://h1,h2`, one of these with `rediss` "
       "for TLS, `unix:///run/redis/redis.sock` or `memory://`; or `file:PATH` of one"},
      {"store: { url: '' }\n", "1:15: error: store.url: should be `redis://127.0.0.1:6379`"},
      {"store: { url: memory }\n", "1:15: error: store.url: should be `redis://127.0.0.1:6379`"},
      {"store: { url: [] }\n", "1:15: error: store.url: should be a text, but is a list"},
      {"store: { url: 'redis://u:pw@h:x' }\n",
       "1:15: error: store.url: has a port that is not a number from 1 to 65535"},
      {"store: { url: 'redis:/h' }\n", "1:15: error: store.url: should be `redis://host:port`, "},
      {"store: { url: 'unix://h' }\n", "1:15: error: store.url: should name a socket by its full"},
      {"store: { url: 'rediss://h1,h2' }\n",
       "1:15: error: store.url: names several hosts, but `rediss://` accepts one"},
      {"store: { url: 'redis+sentinel://h' }\n", "1:15: error: store.url: names no master"},
      {"store: { url: 'redis+cluster://h/1' }\n",
       "1:15: error: store.url: has a path other than `/0` after its hosts"},
      {"store: { url: '${ABSENT}' }\n",
       "1:15: error: store.url: the environment variable `ABSENT` is not set"},
      {"store: { url: 'file:absent' }\n",
       "1:15: error: store.url: there is no file `/nonexistent/absent`"},
      {"store: { prefix: 'tg:' }\n",
       "1:18: error: store.prefix: has no effect on the memory store; write a `url`, as in "
       "`redis://127.0.0.1:6379`, or remove the key"},
      {"store: { deadline: 20ms, url: 'memory://' }\n",
       "1:20: error: store.deadline: has no effect on the memory store"},
      {"store: { connect_timeout: 20ms }\n",
       "1:27: error: store.connect_timeout: has no effect on the memory store"},
      {"store: { nodes: 2 }\n", "1:17: error: store.nodes: has no effect on the memory store"},
      {"store: { prefix: 'a b', url: 'redis://h' }\n",
       "1:18: error: store.prefix: should have at most 64 printable ASCII characters, without "
       "spaces, `{` and `}`"},
      {"store: { prefix: 'a{b', url: 'redis://h' }\n", "1:18: error: store.prefix: should have"},
      {"store: { prefix: 'b}', url: 'redis://h' }\n", "1:18: error: store.prefix: should have"},
      {"store: { prefix: \"\\x7f\", url: 'redis://h' }\n",
       "1:18: error: store.prefix: should have"},
      {"store: { prefix: é, url: 'redis://h' }\n", "1:18: error: store.prefix: should have"},
      {"store: { prefix: " + std::string(65, 'x') + ", url: 'redis://h' }\n",
       "1:18: error: store.prefix: should have at most 64"},
      {"store: { url: 'redis://h', deadline: 999us }\n",
       "1:38: error: store.deadline: should be between 1 ms and 10 s, but is `999us`"},
      {"store: { url: 'redis://h', deadline: 11s }\n",
       "1:38: error: store.deadline: should be between 1 ms and 10 s, but is `11s`"},
      {"store: { url: 'redis://h', connect_timeout: 9ms }\n",
       "1:45: error: store.connect_timeout: should be between 10 ms and 10 s, but is `9ms`"},
      {"store: { url: 'redis://h', nodes: 0 }\n",
       "1:35: error: store.nodes: should be between 1 and 10000, but is `0`"},
      {"store: { url: 'redis://h', nodes: 10001 }\n",
       "1:35: error: store.nodes: should be between 1 and 10000, but is `10001`"},
  };
  for (const BadCase& bad : cases) ExpectProblem(bad);
}

TEST(BadConfigTest, RejectsRedisWithoutFailurePolicy) {
  const std::string problems =
      "store: needs `on_failure`, which defines what happens to requests while Redis does not "
      "answer: `open` (they pass, uncounted), `closed` (they are refused with 503) or `local` "
      "(each node counts by itself, with its share of the limit); write it here";
  const std::string store = "store:\n  url: redis://h\n";
  const std::string decided = "  - { id: a, per: const, limit: 1/s, on_failure: open }\n";
  ExpectProblem({store + "rules:\n" + decided + "  - { id: b, per: const, limit: 1/s }\n",
                 "2:3: error: " + problems + ", or in every rule (`rules[1]` has none)\n"});
  ExpectProblem({"rules:\n  - { id: b, per: const, limit: 1/s }\n" + decided + store,
                 "5:3: error: " + problems + ", or in every rule (`rules[0]` has none)\n"});
  ExpectProblem(
      {"api: { inline_quotas: true }\nrules:\n" + decided + store,
       "5:3: error: " + problems + ", since inline quotas have no rule that could set it\n"});
  ExpectProblem(
      {"listen: { resp: '127.0.0.1:1' }\nrules:\n" + decided + store,
       "5:3: error: " + problems + ", since inline quotas have no rule that could set it\n"});
  EXPECT_THAT(
      ProblemText(Read("listen: { resp: '127.0.0.1:1' }\nresp: { throttle: false }\nrules:\n" +
                       decided + store)),
      Not(HasSubstr("on_failure")));
  // An unknown value is reported once.
  for (const std::string& yaml :
       {store + "  on_failure: opne\nrules:\n  - { id: b, per: const, limit: 1/s }\n",
        store + "rules:\n  - { id: b, per: const, limit: 1/s, on_failure: opne }\n"}) {
    EXPECT_EQ(Read(yaml).problems.size(), 1u) << ProblemText(Read(yaml));
    EXPECT_THAT(ProblemText(Read(yaml)), HasSubstr("did you mean `open`?"));
  }
}

TEST(BadConfigTest, RejectsInvalidIdentitySettings) {
  const BadCase cases[] = {
      {"client_ip: { trusted_proxies: [10.0.0.1/8] }\n",
       "1:32: error: client_ip.trusted_proxies[0]: "},
      {"client_ip: { trusted_proxies: 10.0.0.0/8 }\n",
       "1:31: error: client_ip.trusted_proxies: should be a list, but is a single value"},
      {"client_ip: { header: x-real-ip }\n",
       "1:22: error: client_ip.header: should be `x-forwarded-for` or `forwarded`"},
      {"client_ip: { hops: 0 }\n", "1:20: error: client_ip.hops: should be between 1 and 32"},
      {"client_ip: { hops: 33 }\n", "1:20: error: client_ip.hops: should be between 1 and 32"},
      {"client_ip: { ipv6_prefix: 0 }\n",
       "1:27: error: client_ip.ipv6_prefix: should be between 1"},
      {"client_ip: { ipv6_prefix: 129 }\n",
       "1:27: error: client_ip.ipv6_prefix: should be between"},
      {"identity: { hmac_key: 123456789012345 }\n",
       "1:23: error: identity.hmac_key: is too short to be safe: it has 15 bytes, and at least 16"},
      {"identity: { jwt: { secret: 0123456789012345678901234567890 } }\n",
       "1:28: error: identity.jwt.secret: is too short to be safe: it has 31 bytes, and at least "
       "32"},
      {"identity: { jwt: {} }\n", "1:18: error: identity.jwt: needs exactly one of `secret`"},
      {"identity: { jwt: { issuer: me } }\n", "1:18: error: identity.jwt: needs exactly one of"},
      {"identity: { jwt: { unverified: true, secret: 01234567890123456789012345678901 } }\n",
       "1:18: error: identity.jwt: needs exactly one of"},
      {"identity: { jwt: { unverified: false } }\n",
       "1:32: error: identity.jwt.unverified: can only be `true`"},
      {"identity: { jwt: { public_key: abc } }\n",
       "1:32: error: identity.jwt.public_key: should be a public key in PEM form"},
      {"identity: { jwt: { public_key: '-----BEGIN PRIVATE KEY-----' } }\n",
       "1:32: error: identity.jwt.public_key: holds a private key"},
      {"identity: { jwt: { unverified: true, issuer: '' } }\n",
       "1:46: error: identity.jwt.issuer: is empty"},
      {"rules:\n  - { id: a, per: 'client_ip', limit: 1/s }\n"
       "  - { id: b, per: 'header:x | jwt:sub', limit: 1/s }\n",
       "3:19: error: rules[1].per: counts by `jwt:sub`, but tokens cannot be verified without "
       "`identity.jwt`"},
  };
  for (const BadCase& bad : cases) ExpectProblem(bad);
}

TEST(BadConfigTest, RejectsInvalidRules) {
  const BadCase cases[] = {
      {"rules: {}\n", "1:8: error: rules: should be a list, but is a map"},
      {"rules: [5]\n", "1:9: error: rules[0]: should be a map with keys such as `id`"},
      {"rules:\n  - per: client_ip\n    limit: 1/s\n", "2:5: error: rules[0]: needs an `id`"},
      {"rules:\n  - id: a\n    limit: 1/s\n",
       "2:5: error: rules[0]: needs `per`, which defines what the rule counts by: `client_ip` for "
       "each "
       "address, "
       "`const` for"},
      {"rules:\n  - id: a\n    per: const\n",
       "2:5: error: rules[0]: needs a `limit`, as in `limit: 100/s`"},
      {"rules: [ { id: 'a b', per: const, limit: 1/s } ]\n",
       "1:16: error: rules[0].id: should have 1 to 64 of the characters"},
      {"rules: [ { id: '', per: const, limit: 1/s } ]\n",
       "1:16: error: rules[0].id: should have 1"},
      {"rules:\n  - { id: a, per: const, limit: 1/s }\n  - { id: a, per: const, limit: 1/s }\n",
       "3:11: error: rules[1].id: `a` is the id of two rules; the first is on line 2"},
      {"rules: [ { id: a, per: ip, limit: 1/s } ]\n",
       "1:24: error: rules[0].per: `ip` is not a source; did you mean `client_ip`?"},
      {"rules: [ { id: a, per: [], limit: 1/s } ]\n",
       "1:24: error: rules[0].per: names nothing to count by"},
      {"rules: [ { id: a, per: [path, path], limit: 1/s } ]\n",
       "1:31: error: rules[0].per[1]: `path` is listed twice"},
      {"rules: [ { id: a, per: [{}], limit: 1/s } ]\n",
       "1:25: error: rules[0].per[0]: should be a source, as in `client_ip` or `header:x-api-key`"},
      {"rules: [ { id: a, per: const, limit: 1/s, mode: dry } ]\n",
       "1:49: error: rules[0].mode: should be `enforce` or `shadow`, but is `dry`"},
      {"rules: [ { id: a, per: const, limit: 1/s, on_failure: fail } ]\n",
       "1:55: error: rules[0].on_failure: should be `open`, `closed` or `local`"},
      {"rules: [ { id: a, per: const, limit: 1/s, algorithm: token-buket } ]\n",
       "1:54: error: rules[0].algorithm: `token-buket` is not an algorithm; did you mean "
       "`token_bucket`?"},
      {"rules: [ { id: a, per: const, limit: 1/s, algorithm: leaky } ]\n",
       "1:54: error: rules[0].algorithm: `leaky` is not an algorithm: choose one of"},
      {"rules: [ { id: a, per: const, limt: 1/s } ]\n",
       "1:31: error: rules[0]: unknown key `limt`; did you mean `limit`?"},
  };
  for (const BadCase& bad : cases) ExpectProblem(bad);
}

TEST(BadConfigTest, RejectsInvalidLimitsAndBursts) {
  const struct {
    const char* lines;
    const char* expected;
  } cases[] = {
      {"limit: 0/s", "4:12: error: rules[0].limit: `0/s` would refuse every request"},
      {"limit: -1/s", "4:12: error: rules[0].limit: `-1/s` has a negative count"},
      {"limit: 1e309/s", "4:12: error: rules[0].limit: `1e309/s` does not begin with a whole"},
      {"limit: NaN/s", "4:12: error: rules[0].limit: `NaN/s` does not begin with a whole number"},
      {"limit: 100", "4:12: error: rules[0].limit: `100` is not a limit: write a count and a"},
      {"limit: 5/1ns", "4:12: error: rules[0].limit: `5/1ns` has too short a period"},
      {"limit: 5/100y", "4:12: error: rules[0].limit: `5/100y` has too long a period"},
      {"limit: 5/36500d", "4:12: error: rules[0].limit: `5/36500d` has too long a period"},
      {"limit: 9007199254740993/s", "4:12: error: rules[0].limit: a burst of 9007199254740993 at"},
      {"limit: 9223372036854775808/s", "4:12: error: rules[0].limit: `9223372036854775808/s` has"},
      {"limit: []", "4:12: error: rules[0].limit: should be a count and a period, as in `100/s`"},
      {"limit: 1/s\n    burst: 0", "5:12: error: rules[0].burst: should be between 1 and"},
      {"limit: 1/s\n    burst: -1", "5:12: error: rules[0].burst: should be between 1 and"},
      {"limit: 1/s\n    burst: 1e309", "5:12: error: rules[0].burst: should be a whole number in"},
      {"limit: 1/s\n    burst: .nan", "5:12: error: rules[0].burst: should be a whole number in"},
      {"limit: 1/s\n    burst: NaN", "5:12: error: rules[0].burst: should be a whole number in"},
      {"limit: 1/s\n    burst: 0x10", "5:12: error: rules[0].burst: should be a whole number in"},
      {"limit: 1/s\n    burst: 010", "5:12: error: rules[0].burst: should be a whole number in"},
      {"limit: 1/s\n    burst: 1_000", "5:12: error: rules[0].burst: should be a whole number in"},
      {"limit: 1/s\n    burst: 1.0", "5:12: error: rules[0].burst: should be a whole number in"},
      {"limit: 1/s\n    burst: +1", "5:12: error: rules[0].burst: should be a whole number in"},
      {"limit: 1/s\n    burst: '5'",
       "5:12: error: rules[0].burst: should be a whole number, but is"},
      {"limit: 1/s\n    burst:",
       "5:11: error: rules[0].burst: should be a whole number, but is emp"},
      {"limit: 1/s\n    burst: 9007199254740991",
       "5:12: error: rules[0].burst: a burst of 90071992"},
      {"limit: 1/s\n    burst: 9007199254740993",
       "5:12: error: rules[0].burst: a burst of 90071992"},
      {"limit: 1/s\n    burst: 9223372036854775808",
       "5:12: error: rules[0].burst: should be betwe"},
      {"limit: 1/s\n    burst: 5\n    algorithm: sliding_log",
       "5:12: error: rules[0].burst: sliding_log has no burst"},
      {"limit: 10001/s\n    algorithm: sliding_log",
       "4:12: error: rules[0].limit: sliding_log stores every unit"},
      {"limit: 10001/s\n    algorithm: concurrency",
       "4:12: error: rules[0].limit: concurrency stores every unit"},
      {"limit: 5/s\n    max_debt: -1", "5:15: error: rules[0].max_debt: should be between 0 and"},
      {"limit: 5/s\n    max_debt: 10x", "5:15: error: rules[0].max_debt: should be a whole number"},
      {"limit: 5/s\n    algorithm: concurrency\n    max_debt: 5",
       "6:15: error: rules[0].max_debt: `concurrency` has no debits, so it has no debt; remove"},
      {"limit: 5/s\n    ceiling: 5", "5:14: error: rules[0].ceiling: only `sliding_log` and"},
  };
  for (const auto& [lines, expected] : cases) ExpectProblem({Rule(lines), expected});
}

TEST(BadConfigTest, RejectsInvalidCosts) {
  const struct {
    const char* lines;
    const char* expected;
  } cases[] = {
      {"cost: 0", "5:11: error: rules[0].cost: should be between 1 and 2147483647, but is `0`"},
      {"cost: -1", "5:11: error: rules[0].cost: should be between 1 and 2147483647, but is `-1`"},
      {"cost: 11", "5:11: error: rules[0].cost: a cost of 11 could never pass: the most that fits"},
      {"cost: 2147483648", "5:11: error: rules[0].cost: should be between 1 and 2147483647"},
      {"cost: 9007199254740993", "5:11: error: rules[0].cost: should be between 1 and 2147483647"},
      {"cost: 9223372036854775808", "5:11: error: rules[0].cost: should be between 1 and"},
      {"cost: 1e309", "5:11: error: rules[0].cost: should be a whole number in plain decimal"},
      {"cost: NaN", "5:11: error: rules[0].cost: should be a whole number in plain decimal"},
      {"cost: 'header:'", "5:11: error: rules[0].cost: should be a whole number, `header:NAME`"},
      {"cost: 'query:x'", "5:11: error: rules[0].cost: should be a whole number, `header:NAME`"},
      {"cost: 'header:x y'", "5:11: error: rules[0].cost: should be a whole number, `header:NAME`"},
      {"cost: response:x\n    algorithm: concurrency",
       "5:11: error: rules[0].cost: `concurrency` counts a lease when a request begins"},
  };
  for (const auto& [lines, expected] : cases) {
    ExpectProblem({Rule("limit: 10/s\n    " + std::string{lines}), expected});
  }
}

TEST(BadConfigTest, RejectsInvalidMatches) {
  const struct {
    const char* match;
    const char* expected;
  } cases[] = {
      {"{ pth: /v1 }", "4:14: error: rules[0].match: unknown key `pth`; did you mean `path`?"},
      {"{ path: v1 }",
       "4:20: error: rules[0].match.path: `v1` does not begin with `/`: write `/v1`"},
      {"{ path: '' }", "4:20: error: rules[0].match.path: is empty: a path begins with `/`"},
      {"{ path: [] }", "4:20: error: rules[0].match.path: an empty list would match everything"},
      {"{ path: {} }", "4:20: error: rules[0].match.path: should be a text or a list of texts"},
      {"{ path: [/a, /v1/*] }",
       "4:25: error: rules[0].match.path[1]: `/v1/*` is not a pattern here: write `/v1/**`, or "
       "`/v1/:name` for one segment; "},
      {"{ path: /**/x }",
       "4:20: error: rules[0].match.path: `/**/x` is not a pattern here: the closest is `/**`; "},
      {"{ path: /v1** }",
       "4:20: error: rules[0].match.path: `/v1**` is not a pattern here: the closest is "
       "`/:name`; "},
      {"{ path: /a//b }",
       "4:20: error: rules[0].match.path: `/a//b` is not in normal form, in which paths are "
       "compared: write `/a/b`"},
      {"{ path: /a/../b/** }",
       "4:20: error: rules[0].match.path: `/a/../b/**` is not in normal form, in which paths are "
       "compared: write `/b/**`"},
      {"{ path: '/a/%41' }",
       "4:20: error: rules[0].match.path: `/a/%41` is not in normal form, in which paths are "
       "compared: write `/a/A`"},
      {"{ path: /../a }", "4:20: error: rules[0].match.path: `/../a` is not a path"},
      {"{ path: '/a?b' }",
       "4:20: error: rules[0].match.path: `/a?b` has a query or a fragment: write `/a`, "},
      {"{ path: '/a/:' }",
       "4:20: error: rules[0].match.path: `/a/:` has a parameter without a name"},
      {"{ host: 'a.*.b' }", "4:20: error: rules[0].match.host: `*` may only replace whole labels"},
      {"{ host: '*' }", "4:20: error: rules[0].match.host: `*` may only replace whole labels"},
      {"{ host: 'a.b:80' }",
       "4:20: error: rules[0].match.host: a host is compared without port and "
       "final dot: write `a.b`"},
      {"{ host: 'http://a' }", "4:20: error: rules[0].match.host: "},
      {"{ method: get }",
       "4:22: error: rules[0].match.method: methods are written in upper case; "
       "did you mean `GET`?"},
      {"{ method: 'G T' }", "4:22: error: rules[0].match.method: `G T` is not a method"},
      {"{ header: {} }", "4:22: error: rules[0].match.header: an empty map would match everything"},
      {"{ header: { 'x y': a } }", "4:24: error: rules[0].match.header.*: this is not the name"},
      {"{ header: { X: a, x: b } }",
       "4:30: error: rules[0].match.header.x: the header `x` is listed"},
      {"{ header: { x: '' } }", "4:27: error: rules[0].match.header.x: is empty"},
      {"{ header: { x: [a] } }", "4:27: error: rules[0].match.header.x: should be a pattern"},
      {"{ client_ip: 300.1.1.1 }", "4:25: error: rules[0].match.client_ip: "},
      {"{ not: {} }", "4:19: error: rules[0].match.not: an empty match would exclude everything"},
      {"{ not: [] }", "4:19: error: rules[0].match.not: excludes nothing"},
      {"{ not: [ {} ] }", "4:21: error: rules[0].match.not[0]: an empty match would exclude"},
      {"{ not: /v1 }", "4:19: error: rules[0].match.not: should be a map with keys such as `host`"},
      {"{ not: { pth: /v1 } }", "4:21: error: rules[0].match.not: unknown key `pth`"},
      {"{ any: [] }", "4:19: error: rules[0].match.any: has no alternatives"},
      {"{ any: { path: /v1 } }", "4:19: error: rules[0].match.any: should be a list"},
      {"{ any: [ {} ] }", "4:21: error: rules[0].match.any[0]: an empty match matches everything"},
      {"{ any: [ { path: v1 } ] }", "4:29: error: rules[0].match.any[0].path: `v1` does not begin"},
      {"{ not: { not: { not: { not: { not: { path: /a } } } } } }",
       "4:47: error: rules[0].match.not.not.not.not.not: `any` and `not` are nested more"},
  };
  for (const auto& [match, expected] : cases) {
    ExpectProblem({Rule("match: " + std::string{match} + "\n    limit: 1/s"), expected});
  }
  ExpectProblem({"deny: [ {} ]\n", "1:9: error: deny[0]: an empty match would deny every request"});
  ExpectProblem(
      {"exempt: [ {} ]\n", "1:11: error: exempt[0]: an empty match would exempt every request"});
  ExpectProblem({"deny: { path: /a }\n", "1:7: error: deny: should be a list, but is a map"});
}

TEST(BadConfigTest, RejectsInvalidOverrides) {
  const struct {
    const char* overrides;
    const char* expected;
  } cases[] = {
      {"{}", "5:16: error: rules[0].overrides: should be a list, but is a map"},
      {"[ { limit: 1/s } ]", "5:18: error: rules[0].overrides[0]: needs an `identity`"},
      {"[ { identity: a } ]", "5:18: error: rules[0].overrides[0]: needs a `limit`"},
      {"[ { identity: a, limit: 0/s } ]", "5:40: error: rules[0].overrides[0].limit: `0/s` would"},
      {"[ { identity: '', limit: 1/s } ]", "5:30: error: rules[0].overrides[0].identity: is empty"},
      {"[ { identity: a, limit: 1/s, period: 5 } ]", "5:45: error: rules[0].overrides[0]: unknown"},
      {"[ { identity: a, limit: 1/s }, { identity: { header:X-Api-Key: a }, limit: 1/s } ]",
       "5:59: error: rules[0].overrides[1].identity: has an override already, on line 5"},
      {"[ { identity: { client_ip: 1.2.3 }, limit: 1/s } ]",
       "5:43: error: rules[0].overrides[0].identity.client_ip: should be one IP address"},
      {"[ { identity: { path: /a }, limit: 1/s } ]",
       "5:32: error: rules[0].overrides[0].identity.path: the rule does not count by `path` but by "
       "header:x-api-key | client_ip"},
      {"[ { identity: { ip: 1.2.3.4 }, limit: 1/s } ]",
       "5:32: error: rules[0].overrides[0].identity.ip: `ip` is not a source"},
      {"[ { identity: { client_ip: 1.2.3.4, header:x-api-key: a }, limit: 1/s } ]",
       "5:52: error: rules[0].overrides[0].identity.header:x-api-key: this part of the key has "
       "another value"},
      {"[ { identity: {}, limit: 1/s } ]",
       "5:30: error: rules[0].overrides[0].identity: names no value for `header:x-api-key | "
       "client_ip`"},
      {"[ { identity: [a], limit: 1/s } ]",
       "5:30: error: rules[0].overrides[0].identity: should be"},
  };
  for (const auto& [overrides, expected] : cases) {
    ExpectProblem({Rule("limit: 10/s\n    overrides: " + std::string{overrides}), expected});
  }
  ExpectProblem(
      {Rule("limit: 10/s\n    cost: 5\n    overrides: [ { identity: a, limit: 4/s } ]"),
       "6:40: error: rules[0].overrides[0].limit: the rule's cost of 5 could never pass"});
  ExpectProblem(
      {"rules:\n  - { id: a, per: const, limit: 1/s, overrides: [ { identity: x, limit: 2/s } "
       "] }\n",
       "2:63: error: rules[0].overrides[0].identity: this rule counts all requests together"});
  ExpectProblem(
      {"rules:\n  - { id: a, per: [client_ip, path], limit: 1/s, overrides: [ { identity: x, "
       "limit: 2/s } ] }\n",
       "2:75: error: rules[0].overrides[0].identity: this rule counts client_ip, path "
       "together"});
  ExpectProblem(
      {"rules:\n  - { id: a, per: [client_ip, path], limit: 1/s, overrides: [ { identity: { "
       "path: /a }, limit: 2/s } ] }\n",
       "2:75: error: rules[0].overrides[0].identity: names no value for `client_ip`"});
}

TEST(BadConfigTest, RejectsInvalidEnvironmentReferences) {
  ExpectProblem({"log: { level: \"${ABSENT}\" }\n",
                 "1:15: error: log.level: the environment variable `ABSENT` is not set"});
  ExpectProblem({"log: { level: \"${ABSENT\" }\n", "1:15: error: log.level: `${` has no `}`"});
  ExpectProblem(
      {"log: { level: \"${}\" }\n", "1:15: error: log.level: the text in `${...}` is not"});
  ExpectProblem(
      {"log: { level: \"${A B}\" }\n", "1:15: error: log.level: the text in `${...}` is"});
  ExpectProblem({"log: { level: \"${9A}\" }\n", "1:15: error: log.level: the text in `${...}` is"});
}

TEST(BadConfigTest, NeverShowsSecrets) {
  const auto problems = ProblemText(
      Read("identity: { hmac_key: hunter2, jwt: { secret: hunter2, public_key: hunter2 } }\n"
           "store: { url: 'redis://user:hunter2@host:x' }\n"
           "rules:\n"
           "  - id: a\n    per: header:x\n    limit: 1/s\n    overrides:\n"
           "      - { identity: hunter2, limit: 1/s }\n"
           "      - { identity: hunter2, limit: 1/s }\n"));
  EXPECT_THAT(problems, HasSubstr("it has 7 bytes"));
  EXPECT_THAT(problems, HasSubstr("store.url: has a port"));
  EXPECT_THAT(problems, HasSubstr("has an override already"));
  EXPECT_THAT(problems, Not(HasSubstr("hunter2")));
}

TEST(BadConfigTest, ReportsAllProblemsInFileOrder) {
  const ConfigReading reading = Read(
      "rules:\n"
      "  - { id: a, per: ip, limit: 0/s, burst: x, mode: y }\n"
      "  - { id: a, limit: 1/s, limt: 2 }\n"
      "stroe: 1\n"
      "log: { level: x, format: y }\n");
  EXPECT_FALSE(reading.config);
  std::string places;
  for (const Problem& problem : reading.problems) {
    places += std::to_string(problem.at.line) + ":" + std::to_string(problem.at.column) + " ";
  }
  EXPECT_EQ(places, "2:19 2:30 2:42 2:51 3:5 3:11 3:26 4:1 5:15 5:26 ") << ProblemText(reading);
}

TEST(BadConfigTest, ReportsAtMostAThousandProblems) {
  std::string yaml;
  for (int i = 0; i < 3'000; ++i) yaml += "k" + std::to_string(i) + ": 1\n";
  const ConfigReading reading = Read(yaml);
  EXPECT_FALSE(reading.config);
  EXPECT_EQ(reading.problems.size(), 1'001u);
  EXPECT_THAT(reading.problems.back().message, HasSubstr("more problems than the 1,000"));
}

TEST(BadConfigTest, EscapesAndShortensValuesInMessages) {
  const auto problems =
      ProblemText(Read("log: { level: \"\\e[31m\\x9b\\r\\n" + std::string(5'000, 'x') + "\" }\n"));
  EXPECT_THAT(problems, HasSubstr("\\x1b[31m\\xc2\\x9b\\x0d\\x0a"));
  EXPECT_EQ(problems.find('\x1b'), std::string::npos);
  EXPECT_LT(problems.size(), 700u);
}

TEST(BadYamlTest, ReportsSyntaxAndEncodingErrors) {
  using namespace std::string_literals;
  const BadCase cases[] = {
      {"", "error: the file is empty"},
      {"# nothing\n", "error: the file is empty"},
      {"a\n", "1:1: error: should be a map with keys such as `store`, but is a single value"},
      {"- a\n", "1:1: error: should be a map with keys such as `store`, but is a list"},
      {"log: {}\n---\nlog: {}\n", "2:1: error: a second document begins here"},
      {"log: {}\n...\nlog: {}\n",
       "3:1: error: this is not valid YAML: did not find expected <document start>"},
      {"log: {\n", "2:1: error: this is not valid YAML: while parsing a flow node, did not find"},
      {"log:\n  level: info\n format: text\n", "3:2: error: this is not valid YAML: "},
      {"log:\n\tlevel: info\n", "2:1: error: a tab indents this line"},
      {"log:\n  \tlevel: info\n", "2:3: error: a tab indents this line"},
      {"log:\n  level: 'in''fo\n",
       "2:10: error: this is not valid YAML: while scanning a quoted scalar, found unexpected end"},
      {"log:\n  level: \"info\n",
       "2:10: error: this is not valid YAML: while scanning a quoted scalar, found unexpected end"},
      {"log:\n  level: \"inf\\\"\n",
       "2:10: error: this is not valid YAML: while scanning a quoted scalar, found unexpected end"},
      {"log:\n  level: \"a\\x",
       "2:14: error: this is not valid YAML: while parsing a quoted scalar, did not"},
      {"%YAML 1.2\n---\nlog: {}\n", "1:1: error: directives such as `%YAML` are not supported"},
      {"log: { level: !!str info }\n", "1:15: error: tags such as `!!int` are not supported"},
      {"log: !foo {}\n", "1:6: error: tags such as `!!int` are not supported"},
      {"log: *x\n", "1:6: error: this alias has no anchor"},
      {"log: &x { level: *x }\n", "1:18: error: this alias is inside its own anchor"},
      {"log: { <<: {} }\n", "1:8: error: log: unknown key `<<`: merge keys are not supported"},
      {"? [a]\n: b\n", "1:3: error: a key here should be a word"},
      {"~: b\n", "1:1: error: a key here should be a word"},
      {"log: { level: info\0 }\n"s, "1:19: error: a NUL byte"},
      {"log:\n  level: \x01\n", "2:10: error: a control character"},
      {"log: {}\rapi: {}\n", "1:8: error: a line ends here in an unusual way"},
      {"log: {} #\xe2\x80\xa8\n", "1:10: error: a line ends here in an unusual way"},
      {"log: \x7f\n", "1:6: error: a control character"},
      {"log: \xff\n", "1:6: error: this is not UTF-8"},
      {"log: \xc0\x80\n", "1:6: error: this is not UTF-8"},
      {"log: \xed\xa0\x80\n", "1:6: error: this is not UTF-8"},
      {"log: \xf4\x90\x80\x80\n", "1:6: error: this is not UTF-8"},
      {"log: \xe2\x82", "1:6: error: this is not UTF-8"},
      {"\xff\xfel\0o\0g\0"s, "1:1: error: this is not UTF-8"},
  };
  for (const BadCase& bad : cases) ExpectProblem(bad);
}

TEST(BadYamlTest, AcceptsByteOrderMarkAndCarriageReturns) {
  Good("\xef\xbb\xbflog: { level: info }\r\napi: {}\r\n");
}

TEST(BadYamlTest, RejectsDeepNestingAndHugeFiles) {
  const std::string deep = "nested more than 64 levels deep";
  ExpectProblem({"log: " + Repeat("[", 100'000) + Repeat("]", 100'000), "1:69: error: " + deep});
  ExpectProblem(
      {"log: " + Repeat("{a: ", 100'000) + Repeat("}", 100'000), "1:258: error: " + deep});
  ExpectProblem({"log: " + Repeat("[\n ", 100'000) + Repeat("]", 100'000), "64:2: error: " + deep});
  ExpectProblem({Repeat("- ", 100'000), "1:129: error: " + deep});
  ExpectProblem({Repeat("? ", 100'000), "1:129: error: " + deep});
  ExpectProblem({Repeat("[", 100'000), deep});
  ExpectProblem({Repeat("{", 100'000), deep});
  ExpectProblem({Repeat("[", 1'100'000), "1:65: error: " + deep});
  ExpectProblem({std::string((16u << 20) + 1, ' '), "error: the file is larger than 16 MiB"});
  ExpectProblem(
      {"log: [\n" + Repeat("a,\n", 1'000'001) + "]\n",
       "error: the file has more than 1,000,000 values, where each use of an alias counts"});
}

TEST(BadYamlTest, RejectsExponentialAliasExpansion) {
  std::string yaml = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 20; ++i) {
    const std::string before = "*a" + std::to_string(i - 1) + ",";
    yaml +=
        "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + Repeat(before, 10) + "]\n";
  }
  // The last alias on the sixth line is the first that exceeds one million values.
  ExpectProblem(
      {yaml,
       "6:46: error: the file has more than 1,000,000 values, where each use of an alias counts"});
}

TEST(BadYamlTest, ReadsManyAliasedValuesQuickly) {
  // 900,000 aliased paths: checking each alias separately would be slow.
  std::string yaml = "deny:\n  - path: &p [" + Repeat("/a,", 9'000) + "]\n";
  for (int i = 0; i < 99; ++i) yaml += "  - path: *p\n";
  EXPECT_EQ(Good(yaml).deny.size(), 100u);
}

}  // namespace
}  // namespace tidegate
