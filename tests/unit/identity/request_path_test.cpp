// SPDX-License-Identifier: Apache-2.0
#include "identity/request_path.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory_resource>
#include <random>
#include <string>

namespace tidegate {
namespace {

constexpr PathOptions kMatchAll{.encoded_slashes = EncodedSlashes::kMatch};

struct Read {
  std::string forwarded, canonical, lenient;
  bool encoded = false;
};
Read ReadAll(std::string_view path, const PathOptions& options = kMatchAll) {
  std::pmr::monotonic_buffer_resource memory;
  const auto read = ReadRequestPath(path, options, memory);
  if (!read) return {"(" + std::string(Message(read.error())) + ")", "", "", false};
  return {std::string(read->forwarded), std::string(read->canonical), std::string(read->lenient),
          read->has_encoded_separator};
}

std::optional<PathError> ErrorOf(std::string_view path, const PathOptions& options = {}) {
  std::pmr::monotonic_buffer_resource memory;
  const auto read = ReadRequestPath(path, options, memory);
  return read ? std::nullopt : std::optional(read.error());
}

TEST(RequestPathTest, DoesNotCopyPlainPaths) {
  for (const std::string_view path : {"/", "/v1/login", "/a/b.c/d..e/@me:x,y=z", "/A"}) {
    std::pmr::monotonic_buffer_resource memory(std::pmr::null_memory_resource());
    const auto read = ReadRequestPath(path, {}, memory);
    ASSERT_TRUE(read.has_value()) << path;
    EXPECT_EQ(read->forwarded.data(), path.data());
    EXPECT_EQ(read->canonical.data(), path.data());
    EXPECT_EQ(read->lenient.data(), path.data());
  }
}

/// The forwarded form, the canonical form that patterns are compared with, and the form that
/// lenient servers read.
TEST(RequestPathTest, ReturnsForwardedCanonicalAndLenientForms) {
  struct Case {
    const char *path, *forwarded, *canonical, *lenient;
  };
  constexpr Case kCases[] = {
      {"/v1/login/", "/v1/login/", "/v1/login", "/v1/login"},
      {"/v1/login//", "/v1/login/", "/v1/login", "/v1/login"},
      {"/v1//login", "/v1/login", "/v1/login", "/v1/login"},
      {"/v1/./login", "/v1/login", "/v1/login", "/v1/login"},
      {"/v1/x/../login", "/v1/login", "/v1/login", "/v1/login"},
      {"/v1/login/.", "/v1/login/", "/v1/login", "/v1/login"},
      {"/%76%31/login", "/v1/login", "/v1/login", "/v1/login"},
      {"/v1/login;x=1", "/v1/login;x=1", "/v1/login;x=1", "/v1/login"},
      {"/v1/login;", "/v1/login;", "/v1/login;", "/v1/login"},
      {"/v1;a/login;b/", "/v1;a/login;b/", "/v1;a/login;b", "/v1/login"},
      {"/v1/login%3bx", "/v1/login%3Bx", "/v1/login;x", "/v1/login"},
      {"/v1/login.", "/v1/login.", "/v1/login.", "/v1/login"},
      {"/v1/login...", "/v1/login...", "/v1/login...", "/v1/login"},
      {"/v1./login", "/v1./login", "/v1./login", "/v1/login"},
      {"/v1/login%20", "/v1/login%20", "/v1/login%20", "/v1/login"},
      {"/v1/login%20.%09", "/v1/login%20.%09", "/v1/login%20.%09", "/v1/login"},
      {"/v1/%20login", "/v1/%20login", "/v1/%20login", "/v1/login"},
      {"/v1/login%0a", "/v1/login%0A", "/v1/login%0A", "/v1/login"},
      {"/v1/login%c2%a0", "/v1/login%C2%A0", "/v1/login%C2%A0", "/v1/login"},
      {"/v1/login%a0%85", "/v1/login%A0%85", "/v1/login%A0%85", "/v1/login"},
      {"/v1/login%e3%80%80", "/v1/login%E3%80%80", "/v1/login%E3%80%80", "/v1/login"},
      {"/v1/login%20;x", "/v1/login%20;x", "/v1/login%20;x", "/v1/login"},
      {"/users/%40me", "/users/%40me", "/users/@me", "/users/@me"},
      {"/a%2Fb", "/a%2Fb", "/a%2Fb", "/a/b"},
      {"/a%5cb", "/a%5Cb", "/a%5Cb", "/a/b"},
      {"/a\\b", "/a%5Cb", "/a%5Cb", "/a/b"},
      {"/v1/login%2f", "/v1/login%2F", "/v1/login%2F", "/v1/login"},
      {"/%2fadmin/x", "/%2Fadmin/x", "/%2Fadmin/x", "/admin/x"},
      {"/caf\xc3\xa9", "/caf%C3%A9", "/caf%C3%A9", "/caf%C3%A9"},
      {"/a%252fb", "/a%252fb", "/a%252fb", "/a%252fb"},
      {"/.well-known/x", "/.well-known/x", "/.well-known/x", "/.well-known/x"},
      {"/...", "/...", "/...", "/"},
      {"/voil%C3%A0;x", "/voil%C3%A0;x", "/voil%C3%A0;x", "/voil%C3%A0"},
      {"/%E8%80%85.", "/%E8%80%85.", "/%E8%80%85.", "/%E8%80%85"},
      {"/%E8%80%85", "/%E8%80%85", "/%E8%80%85", "/%E8%80%85"},
  };
  for (const Case& c : kCases) {
    const Read read = ReadAll(c.path);
    EXPECT_EQ(read.forwarded, c.forwarded) << c.path;
    EXPECT_EQ(read.canonical, c.canonical) << c.path;
    EXPECT_EQ(read.lenient, c.lenient) << c.path;
  }
}

TEST(RequestPathTest, KeepsSlashesOnlyInForwardedForm) {
  const Read read = ReadAll("/v1//login", {.forwarded_slashes = Slashes::kKeep});
  EXPECT_EQ(read.forwarded, "/v1//login");
  EXPECT_EQ(read.canonical, "/v1/login");
}

TEST(RequestPathTest, IgnoresCaseWhenConfigured) {
  const Read read = ReadAll("/V1/LOGIN%C3%89", {.ignore_case = true});
  EXPECT_EQ(read.forwarded, "/V1/LOGIN%C3%89");
  EXPECT_EQ(read.canonical, "/v1/login%C3%89");
  EXPECT_EQ(ReadAll("/V1/LOGIN").canonical, "/V1/LOGIN");
}

TEST(RequestPathTest, RejectsDotSegmentsThatServersResolveDifferently) {
  for (const char* path :
       {"/a/..%2fb",   "/a/..%2Fb",      "/a%2f..",      "/a%2F../b",      "/a/..%5cb",
        "/a%5C..",     "/a/..\\b",       "/a\\..",       "/a/%2e%2e%2f",   "/a%2f%2E.",
        "/a/b%2f../a", "/a/.%2fb",       "/a%2f./b",     "/a/b/..%2f../c", "/a%2fb/../c",
        "/a/../b%5cc", "/a/..%2fb/../c", "/a%2f.",       "/a%2F..;x",      "/a/..;/b",
        "/a/..;",      "/a/..;x=y/b",    "/a/%2e%2e;/b", "/a/..%3b/b",     "/a/..;%2fb",
        "/a/.;/b",     "/a;%2f../b",     "/a/..%20/b",   "/a/..%20/../b",  "/a/%20../b",
        "/a/.%09/b",   "/a/..%a0/b"}) {
    EXPECT_EQ(ErrorOf(path, kMatchAll), PathError::kAmbiguousDots) << path;
  }
  for (const char* path :
       {"/", "/a/../b", "/a/./b", "/group%2Fproject", "/a%5Cb", "/a%2Fb/c..%2Fd", "/a%2F...",
        "/a%2F..b", "/a%2F.git", "/a;x=..", "/a..;/b", "/...;/b", "/%61/../b", "/a%252f../b"}) {
    EXPECT_EQ(ErrorOf(path, kMatchAll), std::nullopt) << path;
  }
}

TEST(RequestPathTest, RejectsDotSegmentsBesideParameters) {
  for (const char* path : {"/a;/../b", "/a;x/./b", "/admin;/..", "/v1/login;x=/../.."}) {
    EXPECT_EQ(ErrorOf(path), PathError::kAmbiguousDots) << path;
  }
}

// Express serves /admin/../x with its handler for /admin.
TEST(RequestPathTest, RejectsParentSegmentsInPathsForwardedAsSent) {
  const PathOptions as_sent{.forwarding = Forwarding::kAsSent};
  for (const char* path : {"/admin/../x", "/a/%2e%2e/b", "/a/.%2E", "/a/b/../.."}) {
    EXPECT_EQ(ErrorOf(path, as_sent), PathError::kAmbiguousDots) << path;
    EXPECT_EQ(ErrorOf(path), std::nullopt) << path;
  }
  EXPECT_EQ(ErrorOf("/a/./b", as_sent), std::nullopt);
}

TEST(RequestPathTest, RejectsSegmentsOfWhiteSpace) {
  for (const char* path : {"/%20/admin", "/%20;x/admin", "/a/%20", "/%c2%a0/a", "/%09%0a/a"}) {
    EXPECT_EQ(ErrorOf(path), PathError::kBlankSegment) << path;
  }
}

// Node and Python take `x` of `//x/admin` for a host.
TEST(RequestPathTest, RejectsLeadingDoubleSlashIfForwarded) {
  EXPECT_EQ(ErrorOf("//x/admin", {.forwarding = Forwarding::kAsSent}), PathError::kTwoSlashes);
  EXPECT_EQ(ErrorOf("//x/admin", {.forwarded_slashes = Slashes::kKeep}), PathError::kTwoSlashes);
  EXPECT_EQ(ErrorOf("//x/admin"), std::nullopt);
}

TEST(RequestPathTest, RejectsParametersThatServersReadDifferently) {
  for (const char* path : {"/;/admin", "/;x/admin", "/a/;", "/%3b/a", "/a/%3bx=1", "/a;x%2Fb",
                           "/a%2Fb;x", "/a;\\b", "/a%3b%5cb"}) {
    EXPECT_EQ(ErrorOf(path, kMatchAll), PathError::kAmbiguousParameters) << path;
  }
}

TEST(RequestPathTest, RejectsEncodedSeparatorsUnlessAllowed) {
  for (const char* path : {"/a%2fb", "/a%2Fb", "/a%5Cb", "/a\\b", "/%2f", "/v1/login%2f"}) {
    EXPECT_EQ(ErrorOf(path), PathError::kEncodedSeparator) << path;
    EXPECT_TRUE(ReadAll(path).encoded) << path;
  }
  EXPECT_FALSE(ReadAll("/a/b;c%20").encoded);
}

/// Decodes a path like an unknown lenient server: in several steps, in a random order.
std::string LenientServer(std::string path, std::mt19937_64& random) {
  enum Step : std::uint8_t { kDecode, kParameters, kBackslash, kTrim, kSteps };
  for (int i = 0; i < 8; ++i) {
    switch (random() % kSteps) {
      case kDecode: {
        for (const auto& [from, to] :
             {std::pair{"%2F", "/"}, {"%5C", "\\"}, {"%3B", ";"}, {"%40", "@"}, {"%20", " "}}) {
          for (std::size_t at = 0; (at = path.find(from)) != std::string::npos;) {
            path.replace(at, 3, to);
          }
        }
        break;
      }
      case kParameters:
        for (std::size_t at = 0; (at = path.find(';')) != std::string::npos;) {
          path.erase(at, std::min(path.find('/', at), path.size()) - at);
        }
        break;
      case kBackslash: std::replace(path.begin(), path.end(), '\\', '/'); break;
      case kTrim:
        while (path.ends_with(' ') || path.ends_with('.') || path.ends_with('/')) path.pop_back();
        break;
      default: break;
    }
  }
  for (std::size_t at = 0; (at = path.find("//")) != std::string::npos;) path.erase(at, 1);
  if (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path.empty() ? "/" : path;
}

/// The property that rules rely on: if a lenient server reads a path as `/admin/login`, whatever
/// steps it performs in whatever order, then one of the compared forms is `/admin/login`.
TEST(RequestPathTest, CoversReadingsOfLenientServers) {
  std::mt19937_64 random(7);
  constexpr std::string_view kPieces[] = {"/", "/",   "admin", "login", "%2F", "%5C", "\\", ";x",
                                          ";", "%3B", ".",     "..",    "%20", "x",   "@",  "%40"};
  constexpr std::string_view kSecret = "/admin/login";
  std::size_t reached = 0;
  for (int i = 0; i < 300'000; ++i) {
    // The path is a mutation of the protected path: random pieces are inserted.
    std::string path = "/admin/login";
    for (std::uint64_t n = random() % 5; n-- > 0;) {
      path.insert(1 + random() % path.size(), kPieces[random() % std::size(kPieces)]);
    }
    const Read read = ReadAll(path);
    if (read.canonical.empty()) continue;  // ReadAll() found the path invalid.
    // The server receives the forwarded form.
    if (LenientServer(read.forwarded, random) != kSecret) continue;
    ++reached;
    ASSERT_TRUE(read.canonical == kSecret || read.lenient == kSecret)
        << path << " is forwarded as " << read.forwarded << " and read as " << read.lenient;
  }
  EXPECT_GT(reached, 1000u);
}

TEST(CanonicalPathTest, KeepsPatternSyntax) {
  std::pmr::monotonic_buffer_resource memory;
  EXPECT_EQ(CanonicalPath("/v1/:Id/**", false, memory), "/v1/:Id/**");
  EXPECT_EQ(CanonicalPath("/V1/:Id/**", true, memory), "/v1/:id/**");
  EXPECT_EQ(CanonicalPath("/a/", false, memory), "/a");
  EXPECT_EQ(CanonicalPath("/", false, memory), "/");
}

}  // namespace
}  // namespace tidegate
