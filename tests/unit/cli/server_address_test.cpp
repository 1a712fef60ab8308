// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/http_client.hpp"

namespace tidegate::cli {
namespace {

using testing::HasSubstr;

ServerAddress Parsed(std::string_view text) {
  return ServerAddress::Parse(text, kAdminPort).value_or(ServerAddress{"refused", 0});
}

TEST(ServerAddressTest, ParsesAllForms) {
  const ServerAddress here{"127.0.0.1", 9180};
  for (const char* text : {"127.0.0.1:9180", "127.0.0.1", "http://127.0.0.1:9180",
                           "http://127.0.0.1:9180/", "http://127.0.0.1", ":9180"}) {
    EXPECT_EQ(Parsed(text), here) << text;
  }
  const ServerAddress six{"::1", 99};
  EXPECT_EQ(Parsed("[::1]:99"), six);
  EXPECT_EQ(Parsed("http://[::1]:99/"), six);
  EXPECT_EQ(Parsed("[::1]"), (ServerAddress{"::1", 9180}));
  EXPECT_EQ(Parsed("::1"), (ServerAddress{"::1", 9180}));
  EXPECT_EQ(Parsed("fe80::1%eth0"), (ServerAddress{"fe80::1%eth0", 9180}));
  EXPECT_EQ(Parsed("localhost:1"), (ServerAddress{"localhost", 1}));
  EXPECT_EQ(Parsed("limiter.example.com"), (ServerAddress{"limiter.example.com", 9180}));
}

TEST(ServerAddressTest, UsesTlsForHttps) {
  EXPECT_EQ(Parsed("https://127.0.0.1:9180/"), (ServerAddress{"127.0.0.1", 9180, true}));
  EXPECT_EQ(Parsed("https://node7"), (ServerAddress{"node7", 9180, true}));
  EXPECT_EQ(Parsed("https://[::1]:99"), (ServerAddress{"::1", 99, true}));
  EXPECT_EQ(Parsed("https://:99"), (ServerAddress{"127.0.0.1", 99, true}));
  EXPECT_FALSE(Parsed("http://node7").tls);
  EXPECT_FALSE(Parsed("node7").tls);
}

TEST(ServerAddressTest, ExpectsHostAsCertifiedName) {
  EXPECT_EQ(Parsed("https://node7.example.com:1").CertifiedName(), "node7.example.com");
  EXPECT_EQ(Parsed("https://node7.example.com.").CertifiedName(), "node7.example.com");
  EXPECT_EQ(Parsed("https://127.0.0.1").CertifiedName(), "127.0.0.1");
  EXPECT_EQ(Parsed("https://[fe80::1%eth0]:1").CertifiedName(), "fe80::1");
}

TEST(ServerAddressTest, PrintsAddressAsInUrl) {
  EXPECT_EQ(Parsed("::1").Text(), "[::1]:9180");
  EXPECT_EQ(Parsed("localhost").Text(), "localhost:9180");
  EXPECT_EQ(Parsed("https://[::1]").Text(), "[::1]:9180");
  EXPECT_EQ(Parsed("https://[::1]").Display(), "https://[::1]:9180");
  EXPECT_EQ(Parsed("http://localhost").Display(), "localhost:9180");
}

TEST(ServerAddressTest, RejectsInvalidServerAddresses) {
  for (const char* text : {"", "http://", "host:", "host:0", "host:65536", "host:9x", "[::1",
                           "[]:1", "[::1]9", "[::1]:", "a b:1", "host\r\nX: y:1", "h/../x:1"}) {
    EXPECT_FALSE(ServerAddress::Parse(text, 1)) << text;
  }
  for (const char* text : {"https://", "https://host:0", "https:///", "https:/host", "HTTPS//host",
                           "https://https://host", "https://user@host", "https://host/path"}) {
    EXPECT_FALSE(ServerAddress::Parse(text, 1)) << text;
  }
  EXPECT_THAT(ServerAddress::Parse("a\x1b[2Jb:1", 1).error().message, HasSubstr("a\\x1b[2Jb"));
}

}  // namespace
}  // namespace tidegate::cli
