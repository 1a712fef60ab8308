// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "unit/config/config_folder.hpp"
#include "unit/config/config_reading.hpp"
#include "unit/config/self_signed.hpp"

namespace tidegate {
namespace {

using redis::RedisUrl;
using testing::HasSubstr;
using testing::Not;

/// Returns a configuration of a store with `url` and one more line of YAML, which begins on line 4,
/// column 3.
std::string Store(std::string_view url, std::string_view line = "nodes: 1") {
  return "store:\n  url: \"" + std::string{url} + "\"\n  on_failure: open\n  " + std::string{line} +
         "\nrules: [ { id: a, per: const, limit: 1/s } ]\n";
}

constexpr std::string_view kTls = "rediss://h";
constexpr std::string_view kSentinel = "redis+sentinel://127.0.0.1/m";

TEST(StoreConfigTest, ReadsUrlsWithOneOrSeveralHosts) {
  const struct {
    const char* url;
    RedisUrl::Mode mode;
    bool tls;
    std::size_t hosts;
  } cases[] = {
      {"redis://h", RedisUrl::Mode::kSingle, false, 1},
      {"rediss://h", RedisUrl::Mode::kSingle, true, 1},
      {"redis+sentinel://h1,h2,h3/m", RedisUrl::Mode::kSentinel, false, 3},
      {"rediss+sentinel://h1,h2,h3/m", RedisUrl::Mode::kSentinel, true, 3},
      {"redis+cluster://h1,h2", RedisUrl::Mode::kCluster, false, 2},
      {"rediss+cluster://h1,h2", RedisUrl::Mode::kCluster, true, 2},
      {"unix:///run/redis.sock", RedisUrl::Mode::kSingle, false, 1},
  };
  for (const auto& [url, mode, tls, hosts] : cases) {
    const Config c = Good(Store(url));
    ASSERT_TRUE(c.store.redis) << url;
    EXPECT_EQ(c.store.redis->mode, mode) << url;
    EXPECT_EQ(c.store.redis->tls, tls) << url;
    EXPECT_EQ(c.store.redis->hosts.size(), hosts) << url;
  }
}

TEST(StoreConfigTest, ReadsSentinelCredentials) {
  const Config c = Good(Store(kSentinel, "sentinel: { user: watcher, password: \"${KEY}\" }"));
  EXPECT_EQ(c.store.sentinel, (Config::StoreSentinel{"watcher", "hunter2-hunter2-hunter2"}));
  EXPECT_EQ(c.store.redis->user, "");
  EXPECT_EQ(c.store.redis->password, "");
  EXPECT_EQ(Good(Store(kSentinel, "sentinel: { password: x }")).store.sentinel,
            (Config::StoreSentinel{"", "x"}));
  EXPECT_EQ(Good(Store(kSentinel, "sentinel: { user: x }")).store.sentinel,
            (Config::StoreSentinel{"x", ""}));
  EXPECT_EQ(Good(Store("rediss+sentinel://h/m", "sentinel: { password: x }")).store.sentinel,
            (Config::StoreSentinel{"", "x"}));
}

TEST(StoreConfigTest, RedissUrlEnablesTlsWithDefaultSettings) {
  EXPECT_EQ(Good(Store(kTls)).store.tls, TlsClientSpec{});
  EXPECT_EQ(Good(Store(kTls, "tls: { server_name: Redis.internal, verify: true }")).store.tls,
            (TlsClientSpec{.server_name = "redis.internal"}));
}

TEST(BadStoreConfigTest, RejectsInvalidTlsSettings) {
  const std::string useless =
      "4:8: error: store.tls: has no effect, since `url` does not use TLS; begin it with `rediss`, "
      "as in `rediss://redis.internal:6379`, or remove the key";
  const std::string memory =
      "error: store.tls: has no effect on the memory store; write a `url`, as in "
      "`rediss://redis.internal:6379`, or remove the key";
  const BadCase cases[] = {
      {Store("redis://h", "tls: {}"), useless},
      {Store("redis+sentinel://h/m", "tls: { verify: true }"), useless},
      {Store("redis+cluster://h", "tls: { verify: true }"), useless},
      {Store("unix:///a", "tls: { verify: true }"), useless},
      {Store("memory://", "tls: { verify: true }"), "4:8: " + memory},
      {"store: { tls: {} }\n", "1:15: " + memory},
      {Store(kTls, "tls: true"), "4:8: error: store.tls: should be a map with keys such as `ca`"},
      {Store(kTls, "tls: { ca: file:absent.pem }"),
       "4:14: error: store.tls.ca: there is no file `/nonexistent/absent.pem`"},
      {Store(kTls, "tls: { ca: s3cret }"),
       "4:14: error: store.tls.ca: should be certificates in PEM form"},
      {Store(kTls, "tls: { certificate: s3cret, key: s3cret }"),
       "4:23: error: store.tls.certificate: should be certificates in PEM form"},
      {Store(kTls, "tls: { server_name: 'h:80' }"),
       "4:23: error: store.tls.server_name: should be the name in Redis's certificate, as in "
       "`redis.internal`: a name without a port, not an address"},
      {Store(kTls, "tls: { server_name: 10.0.0.1 }"), "4:23: error: store.tls.server_name: should"},
      {Store(kTls, "tls: { server_name: '' }"), "4:23: error: store.tls.server_name: should be"},
      {Store(kTls, "tls: { verify: 0 }"), "4:18: error: store.tls.verify: should be `true` or"},
      {Store(kTls, "tls: { cert: x }"), "4:10: error: store.tls: unknown key `cert`"},
  };
  for (const BadCase& bad : cases) {
    ExpectProblem(bad);
    EXPECT_THAT(ProblemText(Read(bad.yaml)), Not(HasSubstr("s3cret")));
  }
}

TEST(BadStoreConfigTest, RejectsInvalidSentinelSettings) {
  const std::string useless =
      "4:13: error: store.sentinel: has no effect, since `url` names no sentinels; name them, as "
      "in `redis+sentinel://h1,h2,h3/mymaster`, or remove the key";
  const std::string user = "4:21: error: store.sentinel.user: should be an ACL user of the";
  const BadCase cases[] = {
      {Store("redis://h", "sentinel: { password: s3cret }"), useless},
      {Store("rediss://h", "sentinel: { password: s3cret }"), useless},
      {Store("redis+cluster://h", "sentinel: {}"), useless},
      {Store("unix:///a", "sentinel: { user: s3cret }"), useless},
      {Store("memory://", "sentinel: { user: s3cret }"),
       "4:13: error: store.sentinel: has no effect on the memory store; write a `url`, as in "
       "`redis+sentinel://h1,h2,h3/mymaster`, or remove the key"},
      {Store(kSentinel, "sentinel: s3cret"),
       "4:13: error: store.sentinel: should be a map with keys such as `user`"},
      {Store(kSentinel, "sentinel: { user: '' }"), user},
      {Store(kSentinel, "sentinel: { user: 's3cret x' }"), user},
      {Store(kSentinel, "sentinel: { user: \"s3cret\\n\" }"), user},
      {Store(kSentinel, "sentinel: { user: \"s3cret\\x7f\" }"), user},
      {Store(kSentinel, "sentinel: { user: [s3cret] }"),
       "4:21: error: store.sentinel.user: should be a text, but is a list"},
      {Store(kSentinel, "sentinel: { password: \"${EMPTY}\" }"),
       "4:25: error: store.sentinel.password: is empty; write the sentinels' password"},
      {Store(kSentinel, "sentinel: { password: \"${ABSENT}\" }"),
       "4:25: error: store.sentinel.password: the environment variable `ABSENT` is not set"},
      {Store(kSentinel, "sentinel: { password: file:absent }"),
       "4:25: error: store.sentinel.password: there is no file `/nonexistent/absent`"},
      {Store(kSentinel, "sentinel: { pasword: s3cret }"),
       "4:15: error: store.sentinel: unknown key `pasword`; did you mean `password`?"},
  };
  for (const BadCase& bad : cases) {
    ExpectProblem(bad);
    EXPECT_THAT(ProblemText(Read(bad.yaml)), Not(HasSubstr("s3cret")));
  }
}

/// Whether the other settings fit the url cannot be checked while the url is invalid.
TEST(BadStoreConfigTest, ReportsOnlyTheInvalidUrl) {
  const std::string problems =
      ProblemText(Read(Store("redis://", "tls: {}\n  sentinel: {}\n  prefix: 'tg:'")));
  EXPECT_THAT(problems, HasSubstr("store.url: names no host"));
  EXPECT_EQ(std::count(problems.begin(), problems.end(), '\n'), 1) << problems;
}

TEST(StoreWarningsTest, WarnsAboutUnverifiedRedis) {
  const ConfigReading reading = Read(Store(kTls, "tls: { verify: false }"));
  ASSERT_TRUE(reading.config) << ProblemText(reading);
  EXPECT_FALSE(reading.config->store.tls.verify);
  EXPECT_EQ(ProblemText(reading),
            "4:18: warning: store.tls.verify: anyone between this node and Redis can read and "
            "change the traffic; to trust a certificate of your own, give its authority as `ca`\n");
  EXPECT_EQ(ProblemText(Read(Store(kTls, "tls: { verify: true }"))), "");
}

TEST(StoreWarningsTest, WarnsAboutUnencryptedPasswords) {
  for (const char* const url :
       {"redis://:hunter2@h", "redis://a:hunter2@10.0.0.1", "redis://:hunter2@[2001:db8::1]",
        "redis://:hunter2@localhost.example", "redis+sentinel://:hunter2@127.0.0.1,h/m",
        "redis+cluster://:hunter2@h,127.0.0.1"}) {
    EXPECT_EQ(
        ProblemText(Read(Store(url))),
        "2:8: warning: store.url: the password is sent unencrypted, and anyone who can read the "
        "traffic can use it; if Redis has TLS, write `rediss` for `redis` in `store.url`\n")
        << url;
  }
  for (const char* const url :
       {"redis://h", "redis://user@h", "rediss://:hunter2@h", "rediss+sentinel://:hunter2@h/m",
        "rediss+cluster://:hunter2@h", "redis://:hunter2@127.0.0.1", "redis://:hunter2@127.9.9.9",
        "redis://:hunter2@[::1]", "redis://:hunter2@LOCALHOST", "redis://:hunter2@localhost.",
        "redis+cluster://:hunter2@127.0.0.1:1,127.0.0.1:2", "unix://:hunter2@/run/redis.sock"}) {
    EXPECT_EQ(ProblemText(Read(Store(url))), "") << url;
  }
}

TEST(StoreWarningsTest, WarnsAboutUnencryptedSentinelPasswords) {
  const std::string line = "sentinel: { password: hunter2 }";
  EXPECT_THAT(ProblemText(Read(Store("redis+sentinel://h/m", line))),
              testing::StartsWith("4:25: warning: store.sentinel.password: the password is sent"));
  EXPECT_EQ(ProblemText(Read(Store("redis+sentinel://127.0.0.1/m", line))), "");
  EXPECT_EQ(ProblemText(Read(Store("rediss+sentinel://h/m", line))), "");
  EXPECT_EQ(ProblemText(Read(Store("redis+sentinel://h/m", "sentinel: { user: x }"))), "");
  EXPECT_THAT(ProblemText(Read(Store("redis://h", line))), Not(HasSubstr("warning")));
}

class StoreSecretFilesTest : public ConfigFolder {
 protected:
  std::string ProblemsOf(const std::string& tls) const {
    return ProblemText(Read(Store(kTls, "tls: { " + tls + " }"), folder_));
  }
};

TEST_F(StoreSecretFilesTest, ReadsSentinelPasswordFromFile) {
  Write("password", "s3cret\n");
  const ConfigReading reading =
      Read(Store(kSentinel, "sentinel: { password: file:password }"), folder_);
  ASSERT_TRUE(reading.config) << ProblemText(reading);
  EXPECT_EQ(reading.config->store.sentinel.password, "s3cret");
  ASSERT_EQ(reading.files.size(), 1u) << "the file is not watched for changes";
  EXPECT_EQ(reading.files[0].path, folder_ + "/password");
}

TEST_F(StoreSecretFilesTest, ReadsCertificatesFromFiles) {
  const SelfSigned mine;
  const SelfSigned other;
  Write("ca.pem", mine.Certificate() + other.Certificate());
  Write("cert.pem", mine.Certificate());
  Write("key.pem", mine.Key());
  const Config c = Good(Store("rediss+cluster://h1,h2",
                              "tls: { ca: file:ca.pem, certificate: file:cert.pem, key: "
                              "file:key.pem, server_name: redis.internal }"),
                        folder_);
  EXPECT_EQ(c.store.tls.ca_pem + "\n", mine.Certificate() + other.Certificate());
  EXPECT_EQ(c.store.tls.certificate_pem + "\n", mine.Certificate());
  EXPECT_EQ(c.store.tls.key_pem + "\n", mine.Key());
  EXPECT_EQ(c.store.tls.server_name, "redis.internal");
  EXPECT_TRUE(c.store.tls.verify);
}

TEST_F(StoreSecretFilesTest, RejectsCertificatesWithoutMatchingKey) {
  const SelfSigned mine;
  const SelfSigned over(-7'200, -3'600);
  Write("cert.pem", mine.Certificate());
  Write("key.pem", mine.Key());
  Write("other.pem", SelfSigned().Key());
  Write("locked.pem", mine.Key("open sesame"));
  Write("over.pem", over.Certificate());
  Write("over.key", over.Key());
  Write("empty.pem", "");
  const struct {
    const char* tls;
    const char* expected;
  } cases[] = {
      {"certificate: file:cert.pem", "4:23: error: store.tls.certificate: needs its `key` too"},
      {"key: file:key.pem", "4:15: error: store.tls.key: needs its `certificate` too"},
      {"key: file:other.pem, certificate: file:cert.pem",
       "4:15: error: store.tls.key: is not the key of `certificate`"},
      {"key: file:locked.pem, certificate: file:cert.pem",
       "4:15: error: store.tls.key: should be a private key in PEM form without a passphrase"},
      {"key: file:empty.pem, certificate: file:cert.pem",
       "4:15: error: store.tls.key: is empty, and should be a private key"},
      {"ca: file:key.pem", "4:14: error: store.tls.ca: should be certificates in PEM form"},
      {"ca: file:empty.pem", "4:14: error: store.tls.ca: should be certificates in PEM form"},
      {"key: file:over.key, certificate: file:over.pem",
       "warning: store.tls.certificate: expired on 20"},
  };
  for (const auto& [tls, expected] : cases)
    EXPECT_THAT(ProblemsOf(tls), HasSubstr(expected)) << tls;
}

}  // namespace
}  // namespace tidegate
