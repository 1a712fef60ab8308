// SPDX-License-Identifier: Apache-2.0
#include "store/redis/redis_url.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace tidegate::redis {
namespace {

using testing::HasSubstr;
using testing::Not;

RedisUrl Tcp(std::string host, std::uint16_t port = 6379, int database = 0) {
  RedisUrl url;
  url.hosts = {{.host = std::move(host), .port = port}};
  url.database = database;
  return url;
}

TEST(RedisUrlTest, ReadsAddressesAndNames) {
  const struct {
    const char* text;
    RedisUrl url;
  } cases[] = {
      {"redis://127.0.0.1", Tcp("127.0.0.1")},
      {"redis://127.0.0.1:6380", Tcp("127.0.0.1", 6380)},
      {"redis://127.0.0.1:6380/", Tcp("127.0.0.1", 6380)},
      {"redis://127.0.0.1/15", Tcp("127.0.0.1", 6379, 15)},
      {"redis://[::1]", Tcp("::1")},
      {"redis://[2001:db8::7]:1/2", Tcp("2001:db8::7", 1, 2)},
      {"redis://[::ffff:192.0.2.1]:65535", Tcp("::ffff:192.0.2.1", 65535)},
      {"redis://localhost", Tcp("localhost")},
      {"redis://Redis-0.redis_headless.svc.cluster.local.:6379",
       Tcp("Redis-0.redis_headless.svc.cluster.local.")},
      {"redis://1redis", Tcp("1redis")},
  };
  for (const auto& [text, url] : cases) {
    const auto read = ParseRedisUrl(text);
    ASSERT_TRUE(read) << text << ": " << read.error().message;
    EXPECT_EQ(*read, url) << text;
  }
}

TEST(RedisUrlTest, ReadsUsersAndPasswords) {
  const struct {
    const char* text;
    const char* user;
    const char* password;
  } cases[] = {
      {"redis://app:s3cret@h", "app", "s3cret"},
      {"redis://:s3cret@h", "", "s3cret"},
      {"redis://app@h", "app", ""},
      {"redis://app:@h", "app", ""},
      {"redis://app:a:b@h", "app", "a:b"},
      {"redis://a%40b:%2F%3f%23%25%3A%c3%a9@h/3", "a@b", "/?#%:\xc3\xa9"},
      {"unix://app:s3cret@/run/redis.sock", "app", "s3cret"},
      {"unix://:s3%20cret@/run/redis.sock", "", "s3 cret"},
  };
  for (const auto& [text, user, password] : cases) {
    const auto read = ParseRedisUrl(text);
    ASSERT_TRUE(read) << text << ": " << read.error().message;
    EXPECT_EQ(read->user, user) << text;
    EXPECT_EQ(read->password, password) << text;
  }
}

TEST(RedisUrlTest, ReadsUnixSocketPaths) {
  const auto plain = ParseRedisUrl("unix:///run/redis/redis.sock").value();
  EXPECT_EQ(plain.hosts.front().path, "/run/redis/redis.sock");
  EXPECT_EQ(plain.database, 0);
  const auto full = ParseRedisUrl("unix://a:b@/tmp/a%20b?db=7").value();
  EXPECT_EQ(full.hosts.front().path, "/tmp/a b");
  EXPECT_EQ(full.database, 7);
  EXPECT_TRUE(ParseRedisUrl("unix:///" + std::string(106, 'x')));
}

RedisUrl Several(RedisUrl::Mode mode, std::vector<Endpoint> hosts, std::string master = {},
                 int database = 0) {
  RedisUrl url;
  url.mode = mode;
  url.hosts = std::move(hosts);
  url.master = std::move(master);
  url.database = database;
  return url;
}

RedisUrl WithTls(RedisUrl url) {
  url.tls = true;
  return url;
}

TEST(RedisUrlTest, ReadsTlsUrls) {
  EXPECT_EQ(ParseRedisUrl("rediss://h"), WithTls(Tcp("h")));
  EXPECT_EQ(ParseRedisUrl("rediss://[::1]:1/2"), WithTls(Tcp("::1", 1, 2)));
  EXPECT_EQ(ParseRedisUrl("rediss://:s3cret@h").value().password, "s3cret");
}

TEST(RedisUrlTest, ReadsSentinelUrls) {
  constexpr auto kSentinel = RedisUrl::Mode::kSentinel;
  const std::string longest(255, 'm');
  const struct {
    std::string text;
    RedisUrl url;
  } cases[] = {
      {"redis+sentinel://h/m", Several(kSentinel, {{"h", 26379}}, "m")},
      {"redis+sentinel://h1,h2:1,[::1],[::2]:65535/my-master",
       Several(kSentinel, {{"h1", 26379}, {"h2", 1}, {"::1", 26379}, {"::2", 65535}}, "my-master")},
      {"redis+sentinel://h/m/", Several(kSentinel, {{"h", 26379}}, "m")},
      {"redis+sentinel://h/m/2", Several(kSentinel, {{"h", 26379}}, "m", 2)},
      {"redis+sentinel://h/2", Several(kSentinel, {{"h", 26379}}, "2")},
      {"redis+sentinel://h/a%2Fb%40%25,c:d/3", Several(kSentinel, {{"h", 26379}}, "a/b@%,c:d", 3)},
      {"redis+sentinel://h/" + longest, Several(kSentinel, {{"h", 26379}}, longest)},
      {"rediss+sentinel://h1,h2/m/1",
       WithTls(Several(kSentinel, {{"h1", 26379}, {"h2", 26379}}, "m", 1))},
  };
  for (const auto& [text, url] : cases) {
    const auto read = ParseRedisUrl(text);
    ASSERT_TRUE(read) << text << ": " << read.error().message;
    EXPECT_EQ(*read, url) << text;
  }
}

TEST(RedisUrlTest, ReadsNodesOfCluster) {
  constexpr auto kCluster = RedisUrl::Mode::kCluster;
  const struct {
    const char* text;
    RedisUrl url;
  } cases[] = {
      {"redis+cluster://h", Several(kCluster, {{"h", 6379}})},
      {"redis+cluster://h1,h2:7001,[::1]:7002",
       Several(kCluster, {{"h1", 6379}, {"h2", 7001}, {"::1", 7002}})},
      {"redis+cluster://h/", Several(kCluster, {{"h", 6379}})},
      {"redis+cluster://h/0", Several(kCluster, {{"h", 6379}})},
      {"redis+cluster://h,h:1", Several(kCluster, {{"h", 6379}, {"h", 1}})},
      {"rediss+cluster://10.0.0.1,10.0.0.2",
       WithTls(Several(kCluster, {{"10.0.0.1", 6379}, {"10.0.0.2", 6379}}))},
  };
  for (const auto& [text, url] : cases) {
    const auto read = ParseRedisUrl(text);
    ASSERT_TRUE(read) << text << ": " << read.error().message;
    EXPECT_EQ(*read, url) << text;
  }
}

/// One user and password for all hosts, whatever separates the hosts.
TEST(RedisUrlTest, UsesOneUserForSeveralHosts) {
  const auto url = ParseRedisUrl("redis+sentinel://a,b:c,d@h1,h2/m").value();
  EXPECT_EQ(url.user, "a,b");
  EXPECT_EQ(url.password, "c,d");
  EXPECT_EQ(url.hosts.size(), 2u);
}

/// Returns `h0,h1,...` with `count` hosts.
std::string Hosts(int count) {
  std::string hosts = "h0";
  for (int i = 1; i < count; ++i) hosts += ",h" + std::to_string(i);
  return hosts;
}

TEST(RedisUrlTest, RejectsMoreThan64Hosts) {
  EXPECT_EQ(ParseRedisUrl("redis+cluster://" + Hosts(64)).value().hosts.size(), 64u);
  for (const int count : {65, 10'000}) {
    const auto read = ParseRedisUrl("redis+cluster://" + Hosts(count));
    ASSERT_FALSE(read) << count;
    EXPECT_THAT(read.error().message, HasSubstr("names more than 64 hosts"));
  }
}

TEST(RedisUrlTest, ErrorsDescribeExpectedUrl) {
  const std::string long_path = "unix:///" + std::string(107, 'x');
  const std::string long_label = "redis://" + std::string(64, 'x');
  const struct {
    std::string text;
    const char* message;
  } cases[] = {
      {"", "should be `redis://host:port`, `redis+sentinel://host,host/master`, "},
      {"",
       "`redis+cluster://host,host`, one of these with `rediss` for TLS, or `unix:///path/of.so"},
      {"127.0.0.1:6379", "should be `redis://host:port`"},
      {"http://h", "should be `redis://host:port`"},
      {"REDIS://h", "should be `redis://host:port`"},
      {"redis:h", "should be `redis://host:port`"},
      {"rediss", "should be `redis://host:port`"},
      {"redis+sentinels://h/m", "should be `redis://host:port`"},
      {"redis+cluster:h", "should be `redis://host:port`"},
      {"rediss+unix:///a", "should be `redis://host:port`"},
      {"unix+cluster:///a", "should be `redis://host:port`"},
      {"redis://", "names no host"},
      {"redis://:6379", "names no host"},
      {"redis://a:b@", "names no host"},
      {"redis://@h", "has an `@` without a user or password"},
      {"redis://:@h", "has an `@` without a user or password"},
      {"redis://a:b@c@h", "has more than one `@`"},
      {"redis://a:%4@h", "has a `%` that is not followed by two hexadecimal digits"},
      {"redis://a:%zz@h", "has a `%` that is not followed by two"},
      {"redis://a:%+1@h", "has a `%` that is not followed by two"},
      {"redis://a:%00@h", "has a `%` that is not followed by two"},
      {"redis://a%:b@h", "has a `%` that is not followed by two"},
      {"redis://-h", "has a host that is neither a name nor an IP address"},
      {"redis://a..b", "has a host that is neither"},
      {"redis://.", "has a host that is neither"},
      {"redis://a,b",
       "`redis://` accepts one; for several hosts, write `redis+sentinel://` or `redis+cluster"},
      {"redis://a,", "names several hosts, but `redis://` accepts one"},
      {"rediss://a,b",
       "`rediss://` accepts one; for several hosts, write `rediss+sentinel://` or `rediss+cl"},
      {"redis://300.1.1.1", "has a host that is neither"},
      {"redis://1.2.3", "has a host that is neither"},
      {"redis://6379", "has a host that is neither"},
      {"redis://[h]", "has a host that is neither"},
      {"redis://[127.0.0.1]", "has a host that is neither"},
      {"redis://[]", "has a host that is neither"},
      {"redis://[fe80::1%25eth0]", "has a host that is neither"},
      {long_label, "has a host that is neither"},
      {"redis://::1", "an IPv6 address is written in brackets"},
      {"redis://[::1", "an IPv6 address is written in brackets"},
      {"redis://h:", "has a port that is not a number from 1 to 65535"},
      {"redis://h:0", "has a port that is not a number"},
      {"redis://h:06379", "has a port that is not a number"},
      {"redis://h:65536", "has a port that is not a number"},
      {"redis://h:+1", "has a port that is not a number"},
      {"redis://[::1]x", "has a port that is not a number"},
      {"redis://h/x", "has a database that is not a number"},
      {"redis://h/1/", "has a database that is not a number"},
      {"redis://h/-1", "has a database that is not a number"},
      {"redis://h/2147483648", "has a database that is not a number"},
      {"redis://h?db=2", "has a `?` or `#`: this URL has no options"},
      {"redis://h/2#x", "has a `?` or `#`: this URL has no options"},
      {"redis://a b@h", "has a space, a control character"},
      {"redis://h\n", "has a space, a control character"},
      {"redis://\xc3\xa9", "has a space, a control character"},
      {"redis://a:b/c@h",
       "has an `@` after a `/`; in a user, a password or a master's name these characters are"},
      {"redis+sentinel://h/a@b", "has an `@` after a `/`"},
      {"unix://", "should name a socket by its full path"},
      {"unix://run/redis.sock", "should name a socket by its full path"},
      {"unix://a:b@run/redis.sock", "should name a socket by its full path"},
      {"unix:///", "should end in the path of a socket"},
      {"unix:///run/", "should end in the path of a socket"},
      {long_path, "should end in the path of a socket, which has at most 107 bytes"},
      {"unix:///a?x=1", "has an unknown option; only `?db=`"},
      {"unix:///a?db=", "has a database that is not a number"},
      {"unix:///a?db=1&x=2", "has a database that is not a number"},
      {"unix:///a#x", "has a `#`, which is written `%23`"},
      {"unix:///a%", "has a `%` that is not followed by two"},
      {"unix://@/a", "has an `@` without a user or password"},
  };
  for (const auto& [text, message] : cases) {
    const auto read = ParseRedisUrl(text);
    ASSERT_FALSE(read) << text;
    EXPECT_THAT(read.error().message, HasSubstr(message)) << text;
  }
}

TEST(RedisUrlTest, ErrorsDescribeExpectedUrlWithSeveralHosts) {
  const struct {
    std::string text;
    const char* message;
  } cases[] = {
      {"redis+cluster://", "names no host"},
      {"redis+cluster://a:b@", "names no host"},
      {"redis+cluster://h1,:1", "names no host"},
      {"redis+cluster://h1,,h2", "has a `,` without a host before or after it"},
      {"redis+cluster://h1,", "has a `,` without a host"},
      {"redis+cluster://,h1", "has a `,` without a host"},
      {"redis+cluster://,", "has a `,` without a host"},
      {"redis+sentinel://h1,,h2/m", "has a `,` without a host"},
      {"redis+cluster://h1;h2", "has a host that is neither"},
      {"redis+cluster://h1,-h2", "has a host that is neither"},
      {"redis+cluster://h1,h%32", "has a host that is neither"},
      {"redis+cluster://[h1,h2]", "has a host that is neither"},
      {"redis+cluster://h1,[[::1]]", "has a host that is neither"},
      {"redis+cluster://h1,h2]", "has a host that is neither"},
      {"redis+cluster://h1,[", "has a host that is neither"},
      {"redis+cluster://[::1,h2", "an IPv6 address is written in brackets"},
      {"redis+cluster://h1,::1]", "an IPv6 address is written in brackets"},
      {"redis+cluster://h1,[::1]]:1", "has a port that is not a number from 1 to 65535"},
      {"redis+cluster://h1:0,h2", "has a port that is not a number"},
      {"redis+cluster://h1,h2:65536", "has a port that is not a number"},
      {"redis+cluster://h1,h2:", "has a port that is not a number"},
      {"redis+cluster://h,h", "names one host and port twice"},
      {"redis+cluster://h1,h2,h1:6379", "names one host and port twice"},
      {"redis+sentinel://h,h:26379/m", "names one host and port twice"},
      {"redis+cluster://Redis.a,redis.A.", "names one host and port twice"},
      {"redis+cluster://[::1],[0:0::1]", "names one host and port twice"},
      {"redis+cluster://a:b@h1,c:d@h2", "write user and password once, before the first host"},
      {"redis+cluster://h/1", "a Redis Cluster has only database 0"},
      {"redis+cluster://h/00", "a Redis Cluster has only database 0"},
      {"redis+cluster://h/0/", "a Redis Cluster has only database 0"},
      {"redis+cluster://h/mymaster", "a Redis Cluster has only database 0"},
      {"redis+cluster://h?db=0", "has a `?` or `#`: this URL has no options"},
      {"redis+sentinel://h1,h2", "names no master; write the master's name after the sentinels"},
      {"redis+sentinel://h1,h2/", "names no master"},
      {"redis+sentinel://h1,h2//0", "names no master"},
      {"redis+sentinel://h/%", "has a `%` that is not followed by two hexadecimal digits"},
      {"redis+sentinel://h/m%4", "has a `%` that is not followed by two"},
      {"redis+sentinel://h/m%xy", "has a `%` that is not followed by two"},
      {"redis+sentinel://h/m%00", "has a `%` that is not followed by two"},
      {"redis+sentinel://h/m%20n", "has a master's name that is not of 1 to 255 printable ASCII"},
      {"redis+sentinel://h/m%0A", "has a master's name that is not"},
      {"redis+sentinel://h/%7f", "has a master's name that is not"},
      {"redis+sentinel://h/%c3%a9", "has a master's name that is not"},
      {"redis+sentinel://h/" + std::string(256, 'm'), "has a master's name that is not"},
      {"redis+sentinel://h/m/x", "has a database that is not a number, as in `/2` after the host"},
      {"redis+sentinel://h/m/-1", "has a database that is not a number"},
      {"redis+sentinel://h/m/1/", "has a database that is not a number"},
      {"redis+sentinel://h/m/1/2", "has a database that is not a number"},
      {"redis+sentinel://h/m?db=1", "has a `?` or `#`: this URL has no options"},
  };
  for (const auto& [text, message] : cases) {
    const auto read = ParseRedisUrl(text);
    ASSERT_FALSE(read) << text;
    EXPECT_THAT(read.error().message, HasSubstr(message)) << text;
    EXPECT_EQ(read.error().code, ErrorCode::kBadConfig) << text;
  }
}

/// Wherever a mistake splits the text, each piece may be a part of the password.
TEST(RedisUrlTest, ErrorsNeverContainPartsOfTheUrl) {
  for (const char* const text : {"redis://app:hunter2",
                                 "redis://app:hunter2@",
                                 "redis://app:hunter2/x@h",
                                 "redis://app:hunter2:x@h:x",
                                 "redis://app:x/hunter2@h",
                                 "redis://app:x?hunter2@h",
                                 "redis://app:x@hunter2@h",
                                 "redis://app:x#hunter2@h",
                                 "redis://hunter2%@h",
                                 "hunter2://h",
                                 "hunter2",
                                 "redis://hunter2 @h",
                                 "rediss://:hunter2@",
                                 "redis+sentinel://:hunter2@h",
                                 "redis+sentinel://h/hunter2%20",
                                 "redis+sentinel://h/m/hunter2",
                                 "redis+sentinel://:x@h,hunter2@h/m",
                                 "redis+sentinel://:x/hunter2@h/m",
                                 "redis+cluster://:hunter2@h,h",
                                 "redis+cluster://:x,hunter2",
                                 "redis+cluster://h/hunter2",
                                 "redis+cluster://hunter2,hunter2",
                                 "redis://:x,hunter2",
                                 "hunter2+cluster://h",
                                 "unix://hunter2",
                                 "unix://:hunter2/x@/run/x",
                                 "unix:///run?hunter2"}) {
    const auto read = ParseRedisUrl(text);
    ASSERT_FALSE(read) << text;
    EXPECT_THAT(read.error().message, Not(HasSubstr("hunter2"))) << text;
  }
}

TEST(RedisUrlTest, PrintsUrlWithoutPassword) {
  const struct {
    const char* text;
    const char* shown;
  } cases[] = {
      {"redis://h", "redis://h:6379"},
      {"redis://app:hunter2@h:1/2", "redis://app:***@h:1/2"},
      {"redis://:hunter2@[::1]/0", "redis://:***@[::1]:6379"},
      {"redis://hunter2@h", "redis://***@h:6379"},
      {"redis://a%0Ab:hunter2@h", "redis://a%0Ab:***@h:6379"},
      {"redis://a%2Fb%40:hunter2@h", "redis://a%2Fb%40:***@h:6379"},
      {"rediss://app:hunter2@h/2", "rediss://app:***@h:6379/2"},
      {"redis+sentinel://app:hunter2@h1,[::1]:1/m", "redis+sentinel://app:***@h1:26379,[::1]:1/m"},
      {"redis+sentinel://hunter2@h/m/2", "redis+sentinel://***@h:26379/m/2"},
      {"rediss+sentinel://h/a%2fb%25%40/0", "rediss+sentinel://h:26379/a%2Fb%25%40"},
      {"redis+cluster://:hunter2@h1,h2:1/0", "redis+cluster://:***@h1:6379,h2:1"},
      {"rediss+cluster://h1", "rediss+cluster://h1:6379"},
      {"unix:///run/redis.sock", "unix:///run/redis.sock"},
      {"unix://app:hunter2@/run/a%20b?db=3", "unix://app:***@/run/a%20b?db=3"},
  };
  for (const auto& [text, shown] : cases) {
    EXPECT_EQ(ParseRedisUrl(text).value().Shown(), shown);
    EXPECT_EQ(ParseRedisUrl(shown).value().Shown(), shown) << "the printed URL cannot be parsed";
  }
}

}  // namespace
}  // namespace tidegate::redis
