// SPDX-License-Identifier: Apache-2.0
#include "store/redis/redis_url.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

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

TEST(RedisUrl, ReadsAddressesAndNames) {
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

TEST(RedisUrl, ReadsUsersAndPasswords) {
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

TEST(RedisUrl, ReadsSockets) {
  const auto plain = ParseRedisUrl("unix:///run/redis/redis.sock").value();
  EXPECT_EQ(plain.hosts.front().path, "/run/redis/redis.sock");
  EXPECT_EQ(plain.database, 0);
  const auto full = ParseRedisUrl("unix://a:b@/tmp/a%20b?db=7").value();
  EXPECT_EQ(full.hosts.front().path, "/tmp/a b");
  EXPECT_EQ(full.database, 7);
  EXPECT_TRUE(ParseRedisUrl("unix:///" + std::string(106, 'x')));
}

TEST(RedisUrl, SaysWhatThisVersionDoesNotHave) {
  const struct {
    const char* text;
    const char* told;
  } cases[] = {
      {"rediss://h", "this version of tidegate has no TLS to Redis"},
      {"redis+sentinel://h1,h2,h3/mymaster", "this version of tidegate has no Sentinel"},
      {"redis+cluster://h1,h2", "this version of tidegate has no Cluster"},
  };
  for (const auto& [text, told] : cases) {
    const auto read = ParseRedisUrl(text);
    ASSERT_FALSE(read) << text;
    EXPECT_THAT(read.error().message, HasSubstr(told));
    EXPECT_EQ(read.error().code, ErrorCode::kBadConfig);
  }
}

TEST(RedisUrl, SaysWhatWouldBeRight) {
  const std::string long_path = "unix:///" + std::string(107, 'x');
  const std::string long_label = "redis://" + std::string(64, 'x');
  const struct {
    std::string text;
    const char* told;
  } cases[] = {
      {"", "should be `redis://host:port` or `unix:///path/of.sock`"},
      {"127.0.0.1:6379", "should be `redis://host:port`"},
      {"http://h", "should be `redis://host:port`"},
      {"REDIS://h", "should be `redis://host:port`"},
      {"redis:h", "should be `redis://host:port`"},
      {"rediss", "should be `redis://host:port`"},
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
      {"redis://a,b", "has a host that is neither"},
      {"redis://300.1.1.1", "has a host that is neither"},
      {"redis://1.2.3", "has a host that is neither"},
      {"redis://6379", "has a host that is neither"},
      {"redis://[h]", "has a host that is neither"},
      {"redis://[127.0.0.1]", "has a host that is neither"},
      {"redis://[]", "has a host that is neither"},
      {"redis://[fe80::1%25eth0]", "has a host that is neither"},
      {long_label, "has a host that is neither"},
      {"redis://::1", "an IPv6 address stands in brackets"},
      {"redis://[::1", "an IPv6 address stands in brackets"},
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
      {"redis://h?db=2", "has a `?` or `#`: there are no options here"},
      {"redis://h/2#x", "has a `?` or `#`: there are no options here"},
      {"redis://a b@h", "has a space, a control character"},
      {"redis://h\n", "has a space, a control character"},
      {"redis://\xc3\xa9", "has a space, a control character"},
      {"unix://", "should name a socket by its full path"},
      {"unix://run/redis.sock", "should name a socket by its full path"},
      {"unix://a:b@run/redis.sock", "should name a socket by its full path"},
      {"unix:///", "should end in the path of a socket"},
      {"unix:///run/", "should end in the path of a socket"},
      {long_path, "should end in the path of a socket, which has at most 107 bytes"},
      {"unix:///a?x=1", "knows no option but `?db=`"},
      {"unix:///a?db=", "has a database that is not a number"},
      {"unix:///a?db=1&x=2", "has a database that is not a number"},
      {"unix:///a#x", "has a `#`, which is written `%23`"},
      {"unix:///a%", "has a `%` that is not followed by two"},
      {"unix://@/a", "has an `@` without a user or password"},
  };
  for (const auto& [text, told] : cases) {
    const auto read = ParseRedisUrl(text);
    ASSERT_FALSE(read) << text;
    EXPECT_THAT(read.error().message, HasSubstr(told)) << text;
  }
}

/// Wherever a mistake cuts the text, the piece may be of the password.
TEST(RedisUrl, NoMessageShowsAnythingOfTheText) {
  for (const char* const text :
       {"redis://app:hunter2", "redis://app:hunter2@", "redis://app:hunter2/x@h",
        "redis://app:hunter2:x@h:x", "redis://app:x/hunter2@h", "redis://app:x?hunter2@h",
        "redis://app:x@hunter2@h", "redis://app:x#hunter2@h", "redis://hunter2%@h", "hunter2://h",
        "hunter2", "redis://hunter2 @h", "rediss://:hunter2@h", "redis+sentinel://:hunter2@h/m",
        "unix://hunter2", "unix://:hunter2/x@/run/x", "unix:///run?hunter2"}) {
    const auto read = ParseRedisUrl(text);
    ASSERT_FALSE(read) << text;
    EXPECT_THAT(read.error().message, Not(HasSubstr("hunter2"))) << text;
  }
}

TEST(RedisUrl, IsShownWithoutItsPassword) {
  const struct {
    const char* text;
    const char* shown;
  } cases[] = {
      {"redis://h", "redis://h:6379"},
      {"redis://app:hunter2@h:1/2", "redis://app:***@h:1/2"},
      {"redis://:hunter2@[::1]/0", "redis://:***@[::1]:6379"},
      {"redis://hunter2@h", "redis://***@h:6379"},
      {"redis://a%0Ab:hunter2@h", "redis://a%0Ab:***@h:6379"},
      {"unix:///run/redis.sock", "unix:///run/redis.sock"},
      {"unix://app:hunter2@/run/a%20b?db=3", "unix://app:***@/run/a%20b?db=3"},
  };
  for (const auto& [text, shown] : cases) EXPECT_EQ(ParseRedisUrl(text).value().Shown(), shown);
}

}  // namespace
}  // namespace tidegate::redis
