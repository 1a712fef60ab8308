// SPDX-License-Identifier: Apache-2.0
#include "unit/config/config_folder.hpp"
#include "unit/config/config_reading.hpp"
#include "unit/config/self_signed.hpp"

namespace tidegate {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;
using Target = UpstreamSpec::Target;

const std::string kHead = "listen: { gateway: '127.0.0.1:80' }\nroutes: [ { upstream: api } ]\n";

/// Returns a configuration of an upstream with `target` and additional lines of YAML, which begin
/// on line 6, column 5.
std::string Upstream(std::string_view lines, std::string_view target = "https://h") {
  return kHead + "upstreams:\n  api:\n    targets: " + std::string{target} + "\n    " +
         std::string{lines} + "\n";
}

/// Returns a configuration of an upstream with these targets, which begin on line 5, column 14.
std::string Targets(std::string_view targets) {
  return kHead + "upstreams:\n  api:\n    targets: " + std::string{targets} + "\n";
}

UpstreamSpec GoodUpstream(const std::string& yaml, const std::string& folder = "/nonexistent") {
  const Config config = Good(yaml, folder);
  EXPECT_THAT(config.upstreams, SizeIs(1));
  return config.upstreams.empty() ? UpstreamSpec{} : config.upstreams[0];
}

TEST(UpstreamConfigTest, ReadsEveryKey) {
  const UpstreamSpec u = GoodUpstream(kHead + R"(upstreams:
  api:
    targets: [http://127.0.0.1:9001, {url: "https://API.internal:8443", weight: 2}]
    balance: least_requests
    max_requests: 100
    keep_alive: 0
    keep_alive_timeout: 1s
    connect_timeout: 2s
    response_timeout: 3s
    idle_timeout: 4s
    resolve: 5s
    accept_bare_lf: true
    health: { path: /healthz?full, host: X, interval: 6s, timeout: 6s, healthy: 3, unhealthy: 4, status: 200-204 }
    ejection: { failures: 7, time: 8s, percent: 9 }
    retries: { attempts: 2, percent: 30, timeout: true, statuses: [504, 502] }
    tls: { server_name: Name.internal, verify: true }
)");
  EXPECT_EQ(u.name, "api");
  EXPECT_THAT(u.targets, ElementsAre(Target{false, "127.0.0.1", 9001, 1},
                                     Target{true, "api.internal", 8443, 2}));
  EXPECT_EQ(u.balance, UpstreamSpec::Balance::kLeastRequests);
  EXPECT_EQ(u.max_requests, 100u);
  EXPECT_EQ(u.keep_alive, 0u);
  EXPECT_EQ(u.keep_alive_timeout, Micros{1s});
  EXPECT_EQ(u.connect_timeout, Micros{2s});
  EXPECT_EQ(u.response_timeout, Micros{3s});
  EXPECT_EQ(u.idle_timeout, Micros{4s});
  EXPECT_EQ(u.resolve, Micros{5s});
  EXPECT_TRUE(u.accept_bare_lf);
  EXPECT_EQ(u.health, (UpstreamSpec::Health{"/healthz?full", "x", 6s, 6s, 3, 4, 200, 204}));
  EXPECT_EQ(u.ejection, (UpstreamSpec::Ejection{7, 8s, 9}));
  EXPECT_EQ(u.retries, (UpstreamSpec::Retries{2, 30, true, {502, 504}}));
  EXPECT_EQ(u.tls, (TlsClientSpec{.server_name = "name.internal"}));
}

TEST(UpstreamConfigTest, HasDefaultsForAllKeysExceptTargets) {
  UpstreamSpec plain;
  plain.name = "api";
  plain.targets = {{false, "h", 80, 1}};
  EXPECT_EQ(GoodUpstream(Targets("http://h")), plain);
  EXPECT_FALSE(plain.accept_bare_lf);
  EXPECT_EQ(GoodUpstream(Upstream("health: {}")).health, UpstreamSpec::Health{});
  EXPECT_EQ(GoodUpstream(Upstream("ejection: {}")).ejection, UpstreamSpec::Ejection{});
  EXPECT_EQ(GoodUpstream(Upstream("retries: {}")).retries, UpstreamSpec::Retries{});
}

TEST(UpstreamConfigTest, AcceptsOffForOptionalSections) {
  EXPECT_EQ(GoodUpstream(Upstream("max_requests: off")).max_requests, 0u);
  EXPECT_EQ(GoodUpstream(Upstream("ejection: off")).ejection.failures, 0);
  EXPECT_EQ(GoodUpstream(Upstream("retries: off")).retries.attempts, 0);
  EXPECT_FALSE(GoodUpstream(Upstream("health: off")).health);
  EXPECT_EQ(GoodUpstream(Upstream("retries: \"${ABSENT:-off}\"")).retries.attempts, 0);
}

TEST(UpstreamConfigTest, ShortHealthCheckIntervalShortensDefaultTimeout) {
  EXPECT_EQ(GoodUpstream(Upstream("health: { interval: 1s }")).health->timeout, Micros{1s});
  EXPECT_EQ(GoodUpstream(Upstream("health: { interval: 9s }")).health->timeout, Micros{2s});
}

TEST(UpstreamConfigTest, AcceptsSingleHealthyStatus) {
  const auto health = GoodUpstream(Upstream("health: { status: 204 }")).health;
  EXPECT_EQ(health->status_from, 204);
  EXPECT_EQ(health->status_to, 204);
}

TEST(UpstreamConfigTest, ReadsSchemeHostAndPortOfTargets) {
  const struct {
    const char* url;
    Target target;
  } cases[] = {
      {"http://h", {false, "h", 80, 1}},
      {"https://h", {true, "h", 443, 1}},
      {"http://my_service.a-b:1", {false, "my_service.a-b", 1, 1}},
      {"http://10.0.0.1:65535", {false, "10.0.0.1", 65'535, 1}},
      {"'https://[2001:DB8::1]'", {true, "2001:db8::1", 443, 1}},
      {"'http://[::1]:8080'", {false, "::1", 8080, 1}},
      {"\"http://h:${PORT}\"", {false, "h", 9999, 1}},
  };
  for (const auto& [url, target] : cases) {
    EXPECT_THAT(GoodUpstream(Targets(url)).targets, ElementsAre(target)) << url;
  }
}

TEST(BadUpstreamConfigTest, RejectsInvalidTargets) {
  const std::string at = "5:14: error: upstreams.api.targets: ";
  const struct {
    const char* url;
    const char* expected;
  } urls[] = {
      {"127.0.0.1:9001", "should begin with `http://` or `https://`, as in"},
      {"h", "should begin with `http://` or `https://`"},
      {"ftp://h", "should begin with `http://` or `https://`"},
      {"HTTP://h", "should begin with `http://` or `https://`"},
      {"http://h/", "has a `/` after the server: a target has no path, not even `/`; a route's"},
      {"http://h/v1", "has a `/` after the server"},
      {"http://h?a", "has a `?` or `#`: a target is a server alone"},
      {"'http://h#a'", "has a `?` or `#`: a target is a server alone"},
      {"http://u:s3cret@h", "has an `@`: a target has no user or password; to send them, set"},
      {"http://u:s3cret/x@h", "has an `@`"},
      {"http://", "has a host that is neither a name nor an IP address"},
      {"http://:80", "has a host that is neither a name nor an IP address"},
      {"http://a..b", "has a host that is neither a name nor an IP address"},
      {"http://h.", "has a host that is neither a name nor an IP address"},
      {"http://é", "has a host that is neither a name nor an IP address"},
      {"'http://a b'", "has a host that is neither a name nor an IP address"},
      {"http://1.2.3", "has a host that is neither a name nor an IP address"},
      {"http://1.2.3.256", "has a host that is neither a name nor an IP address"},
      {"'http://[::1'", "has a host that is neither a name nor an IP address"},
      {"'http://[::1]x:80'", "has a host that is neither a name nor an IP address"},
      {"'http://[1.2.3.4]'", "has a host that is neither a name nor an IP address"},
      {"http://::1", "has several `:`; an IPv6 address is written in brackets"},
      {"http://h:0", "has a port that is not a number from 1 to 65535"},
      {"'http://h:'", "has a port that is not a number from 1 to 65535"},
      {"http://h:080", "has a port that is not a number from 1 to 65535"},
      {"http://h:65536", "has a port that is not a number from 1 to 65535"},
      {"http://h:-1", "has a port that is not a number from 1 to 65535"},
      {"http://h:80x", "has a port that is not a number from 1 to 65535"},
      {"[]", "is empty; name at least one server, as in `http://127.0.0.1:9001`"},
      {"{}", "should be a text or a list of texts, but is a map"},
  };
  for (const auto& [url, expected] : urls) {
    ExpectProblem({Targets(url), at + expected});
    EXPECT_THAT(ProblemText(Read(Targets(url))), Not(HasSubstr("s3cret")));
  }
  const BadCase cases[] = {
      {Targets("[http://h, { weight: 2 }]"),
       "5:25: error: upstreams.api.targets[1]: needs a `url`"},
      {Targets("[{ url: 'http://h', weight: 0 }]"),
       "5:42: error: upstreams.api.targets[0].weight: should be between 1 and 1000, but is `0`"},
      {Targets("[{ url: h, wait: 2 }]"), "5:22: error: upstreams.api.targets[0].url: should begin"},
      {Targets("[{ url: h, wait: 2 }]"),
       "5:25: error: upstreams.api.targets[0]: unknown key `wait`"},
      {Targets("[http://h, { url: 'http://H:80' }]"),
       "5:25: error: upstreams.api.targets[1]: is listed twice; to send more requests to one "
       "server give it a `weight`"},
  };
  for (const BadCase& bad : cases) ExpectProblem(bad);
}

TEST(BadUpstreamConfigTest, RejectsMoreThanAThousandTargets) {
  std::string all;
  for (int i = 0; i < 1'000; ++i) all += "http://h" + std::to_string(i) + ", ";
  EXPECT_THAT(GoodUpstream(Targets("[" + all + "]")).targets, SizeIs(1'000));
  ExpectProblem({Targets("[" + all + "http://h]"),
                 "5:14: error: upstreams.api.targets: has more than 1,000 targets"});
}

TEST(BadUpstreamConfigTest, RejectsInvalidUpstreamKeys) {
  const std::string list = "6:5: error: upstreams.api: ";
  const BadCase cases[] = {
      {kHead + "upstreams: []\n", "3:12: error: upstreams: should be a map, but is a list"},
      {kHead + "upstreams: { api: http://h }\n",
       "3:19: error: upstreams.api: should be a map with keys such as `targets`"},
      {kHead + "upstreams: { api: {} }\n", "3:19: error: upstreams.api: needs `targets`, as in"},
      {kHead + "upstreams: { 'a b': {} }\n",
       "3:14: error: upstreams.*: should have 1 to 64 of the characters A-Z a-z 0-9 . _ -"},
      {kHead + "upstreams:\n  api: { targets: 'http://h' }\n  api: { targets: 'http://h' }\n",
       "5:3: error: upstreams.api: is the name of two upstreams; the first is on line 4"},
      {Upstream("target: x"), list + "unknown key `target`; did you mean `targets`?"},
      {Upstream("balance: random"),
       "6:14: error: upstreams.api.balance: should be `round_robin` or `least_requests`, but is"},
      {Upstream("max_requests: 0"), "6:19: error: upstreams.api.max_requests: should be between 1"},
      {Upstream("keep_alive: -1"), "6:17: error: upstreams.api.keep_alive: should be between 0 "},
      {Upstream("keep_alive_timeout: 1ms"),
       "6:25: error: upstreams.api.keep_alive_timeout: should be between 100 ms and 1 h"},
      {Upstream("connect_timeout: 2m"),
       "6:22: error: upstreams.api.connect_timeout: should be between 10 ms and 1 m"},
      {Upstream("response_timeout: 25h"),
       "6:23: error: upstreams.api.response_timeout: should be between 10 ms and 24 h"},
      {Upstream("idle_timeout: 0s"),
       "6:19: error: upstreams.api.idle_timeout: should be between 100 ms and 24 h"},
      {Upstream("accept_bare_lf: yes"),
       "6:21: error: upstreams.api.accept_bare_lf: should be `true` or `false`"},
      {Upstream("resolve: 1ms"), "6:14: error: upstreams.api.resolve: should be between 1 s and"},
  };
  for (const BadCase& bad : cases) ExpectProblem(bad);
}

TEST(BadUpstreamConfigTest, RejectsInvalidHealthChecks) {
  const BadCase cases[] = {
      {Upstream("health: { path: healthz }"),
       "6:21: error: upstreams.api.health.path: should be a path of plain ASCII that begins with"},
      {Upstream("health: { path: '/a b' }"), "6:21: error: upstreams.api.health.path: should be a"},
      {Upstream("health: { path: '/a?b#c' }"), "6:21: error: upstreams.api.health.path: should be"},
      {Upstream("health: { path: \"/a?b\\r\\n\" }"), "6:21: error: upstreams.api.health.path: sho"},
      {Upstream("health: { path: /a/./b }"),
       "6:21: error: upstreams.api.health.path: should be in normal form: `/a/b` is the path"},
      {Upstream("health: { host: 'a/b' }"), "6:21: error: upstreams.api.health.host: `a/b` is not"},
      {Upstream("health: { interval: 1ms }"),
       "6:25: error: upstreams.api.health.interval: should be between 100 ms and 1 h"},
      {Upstream("health: { timeout: 6s }"),
       "6:24: error: upstreams.api.health.timeout: is longer than `interval`"},
      {Upstream("health: { timeout: 2s, interval: 1s }"),
       "6:24: error: upstreams.api.health.timeout: is longer than `interval`"},
      {Upstream("health: { healthy: 0 }"), "6:24: error: upstreams.api.health.healthy: should be"},
      {Upstream("health: { unhealthy: 0 }"), "6:26: error: upstreams.api.health.unhealthy: should"},
      {Upstream("health: on"), "6:13: error: upstreams.api.health: should be a map with keys such"},
  };
  for (const BadCase& bad : cases) ExpectProblem(bad);
  for (const char* status : {"199", "600", "399-200", "200-", "-399", "2xx", "200-299-300", "''"}) {
    ExpectProblem(
        {Upstream("health: { status: " + std::string{status} + " }"),
         "6:23: error: upstreams.api.health.status: should be a status from 200 to 599, or "
         "a range of them, as in `200-399`"});
  }
}

TEST(BadUpstreamConfigTest, RejectsInvalidEjectionAndRetries) {
  const BadCase cases[] = {
      {Upstream("ejection: { failures: 0 }"),
       "6:27: error: upstreams.api.ejection.failures: should be between 1 and 1000, but is `0`"},
      {Upstream("ejection: { time: 0s }"), "6:23: error: upstreams.api.ejection.time: should be"},
      {Upstream("ejection: { percent: 101 }"), "6:26: error: upstreams.api.ejection.percent: shou"},
      {Upstream("ejection: false"), "6:15: error: upstreams.api.ejection: should be a map with"},
      {Upstream("retries: { attempts: 0 }"), "6:26: error: upstreams.api.retries.attempts: should"},
      {Upstream("retries: { attempts: 11 }"), "6:26: error: upstreams.api.retries.attempts: shoul"},
      {Upstream("retries: { percent: 0 }"), "6:25: error: upstreams.api.retries.percent: should"},
      {Upstream("retries: { timeout: 1s }"), "6:25: error: upstreams.api.retries.timeout: should "},
      {Upstream("retries: { statuses: [502, 500] }"),
       "6:32: error: upstreams.api.retries.statuses[1]: should be 502, 503 or 504, but is `500`"},
      {Upstream("retries: { statuses: [502, 502] }"),
       "6:32: error: upstreams.api.retries.statuses[1]: is listed twice"},
      {Upstream("retries: { statuses: [] }"),
       "6:26: error: upstreams.api.retries.statuses: names no status; leave the key out"},
  };
  for (const BadCase& bad : cases) ExpectProblem(bad);
}

TEST(BadUpstreamConfigTest, RejectsInvalidTlsSettings) {
  const BadCase cases[] = {
      {Upstream("tls: { verify: true }", "http://h"),
       "6:10: error: upstreams.api.tls: has no effect, since no target begins with `https://`"},
      {Upstream("tls: { ca: file:absent.pem }"),
       "6:16: error: upstreams.api.tls.ca: there is no file `/nonexistent/absent.pem`"},
      {Upstream("tls: { ca: s3cret }"),
       "6:16: error: upstreams.api.tls.ca: should be certificates in PEM form"},
      {Upstream("tls: { server_name: 'h:80' }"),
       "6:25: error: upstreams.api.tls.server_name: should be the name in the target's "
       "certificate"},
      {Upstream("tls: { server_name: 10.0.0.1 }"), "6:25: error: upstreams.api.tls.server_name: "},
      {Upstream("tls: { server_name: '' }"), "6:25: error: upstreams.api.tls.server_name: should "},
      {Upstream("tls: { verify: 0 }"),
       "6:20: error: upstreams.api.tls.verify: should be `true` or"},
      {Upstream("tls: { cert: x }"), "6:12: error: upstreams.api.tls: unknown key `cert`"},
  };
  for (const BadCase& bad : cases) ExpectProblem(bad);
}

TEST(UpstreamWarningsTest, WarnsAboutUnverifiedTargets) {
  const ConfigReading reading = Read(Upstream("tls: { verify: false }"));
  ASSERT_TRUE(reading.config) << ProblemText(reading);
  EXPECT_FALSE(reading.config->upstreams[0].tls.verify);
  EXPECT_THAT(ProblemText(reading),
              HasSubstr("6:20: warning: upstreams.api.tls.verify: anyone between the gateway and "
                        "its targets can read and change the traffic"));
  EXPECT_THAT(ProblemText(Read(Upstream("tls: { verify: true }"))), Not(HasSubstr("anybody")));
}

class UpstreamCertificatesTest : public ConfigFolder {
 protected:
  std::string ProblemsOf(const std::string& tls) const {
    return ProblemText(Read(Upstream("tls: { " + tls + " }"), folder_));
  }
};

TEST_F(UpstreamCertificatesTest, ReadsCertificatesFromFiles) {
  const SelfSigned mine;
  const SelfSigned other;
  Write("ca.pem", mine.Certificate() + other.Certificate());
  Write("cert.pem", mine.Certificate());
  Write("key.pem", mine.Key());
  const UpstreamSpec u = GoodUpstream(
      Upstream("tls: { ca: file:ca.pem, certificate: file:cert.pem, key: file:key.pem }"), folder_);
  EXPECT_EQ(u.tls.ca_pem + "\n", mine.Certificate() + other.Certificate());
  EXPECT_EQ(u.tls.certificate_pem + "\n", mine.Certificate());
  EXPECT_EQ(u.tls.key_pem + "\n", mine.Key());
}

TEST_F(UpstreamCertificatesTest, AcceptsAuthorityBundlesUpToOneMebibyte) {
  const SelfSigned one;
  std::string bundle;
  while (bundle.size() < (200u << 10)) bundle += one.Certificate();
  Write("ca.pem", bundle);
  EXPECT_GT(GoodUpstream(Upstream("tls: { ca: file:ca.pem }"), folder_).tls.ca_pem.size(),
            std::size_t{200} << 10);
  while (bundle.size() < (1u << 20)) bundle += one.Certificate();
  Write("ca.pem", bundle);
  EXPECT_THAT(ProblemsOf("ca: file:ca.pem"), HasSubstr("is larger than 1024 KiB"));
}

TEST_F(UpstreamCertificatesTest, RejectsCertificatesWithoutMatchingKey) {
  const SelfSigned mine;
  Write("cert.pem", mine.Certificate());
  Write("key.pem", mine.Key());
  Write("other.pem", SelfSigned().Key());
  Write("locked.pem", mine.Key("open sesame"));
  Write("broken.pem",
        mine.Certificate() + mine.Certificate().substr(0, 60) + "\n-----END CERTIFICATE-----\n");
  EXPECT_THAT(ProblemsOf("certificate: file:cert.pem"),
              HasSubstr("6:25: error: upstreams.api.tls.certificate: needs its `key` too"));
  EXPECT_THAT(ProblemsOf("key: file:key.pem"),
              HasSubstr("6:17: error: upstreams.api.tls.key: needs its `certificate` too"));
  EXPECT_THAT(ProblemsOf("key: file:other.pem, certificate: file:cert.pem"),
              HasSubstr("6:17: error: upstreams.api.tls.key: is not the key of `certificate`"));
  EXPECT_THAT(ProblemsOf("key: file:locked.pem, certificate: file:cert.pem"),
              HasSubstr("6:17: error: upstreams.api.tls.key: should be a private key in PEM form "
                        "without a passphrase"));
  EXPECT_THAT(ProblemsOf("key: file:cert.pem, certificate: file:cert.pem"),
              HasSubstr("6:17: error: upstreams.api.tls.key: should be a private key"));
  const SelfSigned over(-7'200, -3'600);
  Write("over.pem", over.Certificate());
  Write("over.key", over.Key());
  Write("empty.pem", "");
  EXPECT_THAT(ProblemsOf("key: file:over.key, certificate: file:over.pem"),
              HasSubstr("warning: upstreams.api.tls.certificate: expired on 20"));
  EXPECT_THAT(ProblemsOf("key: file:empty.pem, certificate: file:cert.pem"),
              HasSubstr("6:17: error: upstreams.api.tls.key: is empty, and should be a private"));
  EXPECT_THAT(ProblemsOf("ca: file:key.pem"),
              HasSubstr("6:16: error: upstreams.api.tls.ca: should be certificates in PEM form"));
  EXPECT_THAT(ProblemsOf("ca: file:broken.pem"),
              HasSubstr("6:16: error: upstreams.api.tls.ca: should be certificates in PEM form"));
}

}  // namespace
}  // namespace tidegate
