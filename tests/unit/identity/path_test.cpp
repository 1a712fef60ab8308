// SPDX-License-Identifier: Apache-2.0
#include "identity/path.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "identity/request_view.hpp"

namespace tidegate {
namespace {

std::string Normal(std::string_view path, Slashes slashes = Slashes::kKeep) {
  std::pmr::monotonic_buffer_resource memory;
  const auto normal = NormalizePath(path, slashes, memory);
  return normal ? std::string(*normal) : "(none)";
}

std::string NormalHost(std::string_view host) {
  std::pmr::monotonic_buffer_resource memory;
  const auto normal = NormalizeHost(host, memory);
  return normal ? std::string(*normal) : "(none)";
}

TEST(NormalizePathTest, RemovesDotSegments) {
  const std::pair<const char*, const char*> cases[] = {
      {"/", "/"},
      {"/a/b/c/./../../g", "/a/g"},
      {"/a/./b", "/a/b"},
      {"/a/b/..", "/a/"},
      {"/a/b/.", "/a/b/"},
      {"/a/..", "/"},
      {"/.", "/"},
      {"/./", "/"},
      {"/a/../b", "/b"},
      {"/...", "/..."},
      {"/a/.b/..c/d.", "/a/.b/..c/d."},
      {"/a//../b", "/a/b"},
      {"//..", "/"},
      {"/%2e%2E/a", "(none)"},
      {"/a/%2e%2e/b", "/b"},
      {"/a/.%2E", "/"},
      {"/a/..%2Fb", "/a/..%2Fb"},
  };
  for (const auto& [in, out] : cases) EXPECT_EQ(Normal(in), out) << in;
}

TEST(NormalizePathTest, UnifiesPercentEncoding) {
  EXPECT_EQ(Normal("/%61%5A%2d%7E%5f%39"), "/aZ-~_9");
  EXPECT_EQ(Normal("/%2f%c3%bc"), "/%2F%C3%BC");
  EXPECT_EQ(Normal("/a%2Fb"), "/a%2Fb");
  EXPECT_EQ(Normal("/%25"), "/%25");
  EXPECT_EQ(Normal("/%252e%252e/"), "/%252e%252e/") << "the path was decoded twice";
  EXPECT_EQ(Normal("/%0d%0A"), "/%0D%0A");
  EXPECT_EQ(Normal("/!$&'()*+,;=:@"), "/!$&'()*+,;=:@");
}

TEST(NormalizePathTest, EncodesBytesThatClientsSendRaw) {
  EXPECT_EQ(Normal("/a|b"), "/a%7Cb");
  EXPECT_EQ(Normal("/[x]^`{y}"), "/%5Bx%5D%5E%60%7By%7D");
  EXPECT_EQ(Normal("/\"<>\\"), "/%22%3C%3E%5C");
  EXPECT_EQ(Normal("/caf\xc3\xa9"), "/caf%C3%A9");
  EXPECT_EQ(Normal("/\xff/.."), "/") << "the dot segment did not remove the segment before it";
  EXPECT_EQ(Normal("/%7c%c3|"), "/%7C%C3%7C");
}

TEST(NormalizePathTest, ReportsReasonOfInvalidPath) {
  const std::pair<const char*, PathError> cases[] = {
      {"", PathError::kNoSlash},
      {"a", PathError::kNoSlash},
      {"*", PathError::kNoSlash},
      {"http://a/b", PathError::kNoSlash},
      {"/..", PathError::kAboveRoot},
      {"/a/../..", PathError::kAboveRoot},
      {"/a/../../b", PathError::kAboveRoot},
      {"/%", PathError::kBadEncoding},
      {"/%2", PathError::kBadEncoding},
      {"/%zz", PathError::kBadEncoding},
      {"/%2g", PathError::kBadEncoding},
      {"/%00", PathError::kBadEncoding},
      {"/a%00b", PathError::kBadEncoding},
      {"/a b", PathError::kBadByte},
      {"/a\tb", PathError::kBadByte},
      {"/a\r\nb", PathError::kBadByte},
      {"/a?b", PathError::kBadByte},
      {"/a#b", PathError::kBadByte},
      {"/\x7f", PathError::kBadByte},
  };
  for (const auto& [path, error] : cases) {
    std::pmr::monotonic_buffer_resource memory;
    const auto normal = NormalizePath(path, Slashes::kKeep, memory);
    ASSERT_FALSE(normal.has_value()) << path;
    EXPECT_EQ(normal.error(), error) << path;
  }
  EXPECT_EQ(Normal(std::string_view("/a\0b", 4)), "(none)");
}

TEST(NormalizePathTest, MergesSlashes) {
  EXPECT_EQ(Normal("//a///b//"), "//a///b//");
  EXPECT_EQ(Normal("//a///b//", Slashes::kMerge), "/a/b/");
  EXPECT_EQ(Normal("//", Slashes::kMerge), "/");
  EXPECT_EQ(Normal("/a//../b", Slashes::kMerge), "/b");
  EXPECT_EQ(Normal("/a/.//b", Slashes::kMerge), "/a/b");
  EXPECT_EQ(Normal("//..", Slashes::kMerge), "(none)");
}

TEST(NormalizePathTest, DoesNotCopyNormalPath) {
  for (const std::string_view path : {"/", "/v1/users/42", "/a%2Fb", "/.well-known/x", "//a"}) {
    std::pmr::monotonic_buffer_resource memory;
    EXPECT_EQ(NormalizePath(path, Slashes::kKeep, memory)->data(), path.data()) << path;
  }
}

TEST(NormalizePathTest, IsIdempotent) {
  std::mt19937_64 random(3);
  constexpr std::string_view kPieces[] = {"/", ".",   "..", "%2e", "%2F", "a",
                                          "b", "%61", "//", "%c3", "|"};
  for (int i = 0; i < 50'000; ++i) {
    std::string path = "/";
    for (std::uint64_t n = random() % 12; n-- > 0;) path += kPieces[random() % std::size(kPieces)];
    for (const Slashes slashes : {Slashes::kKeep, Slashes::kMerge}) {
      const std::string once = Normal(path, slashes);
      if (once != "(none)") {
        ASSERT_EQ(Normal(once, slashes), once) << path;
      }
    }
  }
}

TEST(NormalizeHostTest, ReturnsCanonicalForm) {
  const std::pair<const char*, const char*> cases[] = {
      {"example.com", "example.com"},  {"EXAMPLE.Com:8080", "example.com"},
      {"example.com.", "example.com"}, {"example.com.:443", "example.com"},
      {"example.com:", "example.com"}, {"my_service", "my_service"},
      {"127.0.0.1:80", "127.0.0.1"},   {"[::1]", "[::1]"},
      {"[::1]:8080", "[::1]"},         {"[2001:DB8:0:0::1]:8080", "[2001:db8::1]"},
      {"[::ffff:1.2.3.4]", "1.2.3.4"},
  };
  for (const auto& [in, out] : cases) {
    EXPECT_EQ(NormalHost(in), out) << in;
    EXPECT_EQ(NormalHost(out), out) << out;
  }
}

TEST(NormalizeHostTest, RejectsInvalidHosts) {
  for (const char* host :
       {"",        ".",         "..",     ":80",        "a..b",        ".a",      "a..",  "a b",
        "a/b",     "a\\b",      "user@a", "a,b",        "a:b",         "a:65536", "a:-1", "a:80:80",
        "*.a",     "{a}",       "a%41",   "~a",         "\xc3\xbc.de", "a\r\n",   "[::1", "[::1]x",
        "[::1]:x", "[1.2.3.4]", "[]",     "[::1%eth0]", "::1",         "[a]"}) {
    EXPECT_EQ(NormalHost(host), "(none)") << host;
  }
  EXPECT_EQ(NormalHost(std::string(254, 'a')), "(none)");
  EXPECT_EQ(NormalHost(std::string(253, 'a')), std::string(253, 'a'));
}

TEST(NormalizeHostTest, DoesNotAllocateForLowerCaseName) {
  EXPECT_EQ(NormalizeHost("example.com:80", *std::pmr::null_memory_resource()), "example.com");
  EXPECT_EQ(NormalizeHost("[2001:db8::1]:80", *std::pmr::null_memory_resource()), "[2001:db8::1]");
}

TEST(RequestViewTest, IgnoresCaseOfAsciiNamesOnly) {
  EXPECT_TRUE(EqualsIgnoreCase("X-Api-Key", "x-aPI-kEY"));
  EXPECT_FALSE(EqualsIgnoreCase("x-api-key", "x-api-ke"));
  EXPECT_FALSE(EqualsIgnoreCase("x_api_key", "x-api-key"));
  EXPECT_FALSE(EqualsIgnoreCase("@", "`"));
  EXPECT_FALSE(EqualsIgnoreCase("\xc4", "\xe4"));
}

TEST(RequestViewTest, FindsFirstHeaderAndDistinguishesEmptyFromAbsent) {
  const HeaderField headers[] = {{"A", ""}, {"b", "1"}, {"B", "2"}, {"c", {}}};
  EXPECT_EQ(FindHeader(headers, "B"), "1");
  EXPECT_NE(FindHeader(headers, "a").data(), nullptr);
  EXPECT_NE(FindHeader(headers, "c").data(), nullptr);
  EXPECT_EQ(FindHeader(headers, "d").data(), nullptr);
}

}  // namespace
}  // namespace tidegate
