// SPDX-License-Identifier: Apache-2.0
#include "rules/match_index.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <string>
#include <vector>

#include "rules/match_spec.hpp"
#include "unit/rules/allocations.hpp"
#include "unit/rules/naive_matcher.hpp"

namespace tidegate {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Numbers = std::vector<std::uint32_t>;

MatchIndex Index(const std::vector<MatchSpec>& specs) { return MatchIndex(specs); }

Numbers Find(const MatchIndex& index, const RequestView& request) {
  Numbers found(64);
  const std::size_t count = index.Find(request, found);
  EXPECT_LE(count, found.size());
  found.resize(std::min(count, found.size()));
  return found;
}

Numbers Find(const std::vector<MatchSpec>& specs, const RequestView& request) {
  return Find(Index(specs), request);
}

RequestView Path(std::string_view path) {
  RequestView request;
  request.path = path;
  return request;
}

RequestView Host(std::string_view host) {
  RequestView request = Path("/");
  request.host = host;
  return request;
}

MatchSpec Paths(std::vector<std::string> paths) {
  MatchSpec spec;
  spec.paths = std::move(paths);
  return spec;
}

MatchSpec Hosts(std::vector<std::string> hosts) {
  MatchSpec spec;
  spec.hosts = std::move(hosts);
  return spec;
}

MatchSpec Headers(std::vector<MatchSpec::Header> headers) {
  MatchSpec spec;
  spec.headers = std::move(headers);
  return spec;
}

MatchSpec Networks(std::initializer_list<const char*> networks) {
  MatchSpec spec;
  for (const char* text : networks) spec.client_ips.push_back(Network::Parse(text).value());
  return spec;
}

TEST(MatchIndexTest, MatchesNothingWithoutSpecs) { EXPECT_THAT(Find({}, Path("/")), IsEmpty()); }

TEST(MatchIndexTest, EmptySpecMatchesEverything) {
  EXPECT_THAT(Find({MatchSpec{}, MatchSpec{}}, Path("/a/b")), ElementsAre(0, 1));
  EXPECT_THAT(Find({MatchSpec{}}, RequestView{}), ElementsAre(0));
  EXPECT_THAT(Find({MatchSpec{}}, Path("*")), ElementsAre(0));
}

TEST(MatchIndexTest, MatchesHostsExactlyOrBySuffix) {
  const std::vector<MatchSpec> specs = {Hosts({"example.com"}), Hosts({"*.example.com"}),
                                        Hosts({"*.com"}), Hosts({"a.example.com", "other.org"})};
  EXPECT_THAT(Find(specs, Host("example.com")), ElementsAre(0, 2));
  EXPECT_THAT(Find(specs, Host("a.example.com")), ElementsAre(1, 2, 3));
  EXPECT_THAT(Find(specs, Host("x.y.z.example.com")), ElementsAre(1, 2));
  EXPECT_THAT(Find(specs, Host("notexample.com")), ElementsAre(2));
  EXPECT_THAT(Find(specs, Host("other.org")), ElementsAre(3));
  EXPECT_THAT(Find(specs, Host(".com")), IsEmpty());
  EXPECT_THAT(Find(specs, Host("com")), IsEmpty());
  EXPECT_THAT(Find(specs, Host("")), IsEmpty());
}

TEST(MatchIndexTest, MatchesPathsExactlyWithoutWildcard) {
  const std::vector<MatchSpec> specs = {Paths({"/v1/login"}), Paths({"/v1/**"}), Paths({"/**"}),
                                        Paths({"/"}), Paths({"/v1/"})};
  EXPECT_THAT(Find(specs, Path("/v1/login")), ElementsAre(0, 1, 2));
  EXPECT_THAT(Find(specs, Path("/v1/login/")), ElementsAre(1, 2));
  EXPECT_THAT(Find(specs, Path("/v1")), ElementsAre(1, 2));
  EXPECT_THAT(Find(specs, Path("/v1/")), ElementsAre(1, 2, 4));
  EXPECT_THAT(Find(specs, Path("/v1//a")), ElementsAre(1, 2));
  EXPECT_THAT(Find(specs, Path("/v12")), ElementsAre(2));
  EXPECT_THAT(Find(specs, Path("/")), ElementsAre(2, 3));
  EXPECT_THAT(Find(specs, Path("")), ElementsAre(2));
  EXPECT_THAT(Find(specs, Path("v1/login")), ElementsAre(2));
}

TEST(MatchIndexTest, ParameterMatchesOneNonEmptySegment) {
  const std::vector<MatchSpec> specs = {Paths({"/users/:id"}), Paths({"/users/:id/**"}),
                                        Paths({"/users/me"}), Paths({"/users/:id/posts/:post"}),
                                        Paths({"/:any/me/**"})};
  EXPECT_THAT(Find(specs, Path("/users/42")), ElementsAre(0, 1));
  EXPECT_THAT(Find(specs, Path("/users/me")), ElementsAre(0, 1, 2, 4));
  EXPECT_THAT(Find(specs, Path("/users/me/posts/1")), ElementsAre(1, 3, 4));
  EXPECT_THAT(Find(specs, Path("/users/")), IsEmpty());
  EXPECT_THAT(Find(specs, Path("/users//posts/1")), IsEmpty());
  EXPECT_THAT(Find(specs, Path("/users/1/posts/")), ElementsAre(1));
  EXPECT_THAT(Find(specs, Path("/users/:id")), ElementsAre(0, 1));
}

TEST(MatchIndexTest, BacktracksFromWordsToParameters) {
  const std::vector<MatchSpec> specs = {Paths({"/a/b/c/d"}), Paths({"/a/:x/c/e"}),
                                        Paths({"/:y/b/c/f"}), Paths({"/:y/:x/:z/g"})};
  EXPECT_THAT(Find(specs, Path("/a/b/c/d")), ElementsAre(0));
  EXPECT_THAT(Find(specs, Path("/a/b/c/e")), ElementsAre(1));
  EXPECT_THAT(Find(specs, Path("/a/b/c/f")), ElementsAre(2));
  EXPECT_THAT(Find(specs, Path("/a/b/c/g")), ElementsAre(3));
  EXPECT_THAT(Find(specs, Path("/a/b/c/h")), IsEmpty());
}

TEST(MatchIndexTest, ReportsEachSpecOnce) {
  MatchSpec spec = Paths({"/a", "/**", "/:x", "/a"});
  spec.hosts = {"h.example.com", "*.example.com", "h.example.com"};
  RequestView request = Path("/a");
  request.host = "h.example.com";
  const MatchIndex index = Index({spec});
  EXPECT_THAT(Find(index, request), ElementsAre(0));
  Numbers one(1);
  EXPECT_EQ(index.Find(request, one), 1u);
  EXPECT_THAT(one, ElementsAre(0));
}

TEST(MatchIndexTest, ComparesMethodsCaseSensitively) {
  MatchSpec get;
  get.methods = {"GET", "HEAD"};
  MatchSpec post;
  post.methods = {"POST"};
  RequestView request = Path("/");
  request.method = "GET";
  EXPECT_THAT(Find({get, post}, request), ElementsAre(0));
  request.method = "POST";
  EXPECT_THAT(Find({get, post}, request), ElementsAre(1));
  request.method = "get";
  EXPECT_THAT(Find({get, post}, request), IsEmpty());
  request.method = {};
  EXPECT_THAT(Find({get, post}, request), IsEmpty());
}

TEST(MatchIndexTest, RequiresEveryHeaderToMatchOnOneOfItsLines) {
  const std::vector<MatchSpec> specs = {
      Headers({{"x-plan", "gold"}}), Headers({{"user-agent", "BadBot*"}}),
      Headers({{"x-plan", "gold"}, {"user-agent", "*"}}),
      Headers({{"x-plan", "gold"}, {"x-plan", "silver"}}), Headers({{"x-empty", ""}})};
  const HeaderField gold[] = {{"X-Plan", "gold"}};
  const HeaderField both[] = {{"X-Plan", "silver"}, {"x-plan", "gold"}, {"x-plan", "gold"}};
  const HeaderField bot[] = {{"User-Agent", "BadBot/1.0"}, {"x-plan", "Gold"}, {"X-EMPTY", ""}};
  RequestView request = Path("/");
  EXPECT_THAT(Find(specs, request), IsEmpty());
  request.headers = gold;
  EXPECT_THAT(Find(specs, request), ElementsAre(0));
  request.headers = both;
  EXPECT_THAT(Find(specs, request), ElementsAre(0, 3));
  request.headers = bot;
  EXPECT_THAT(Find(specs, request), ElementsAre(1, 4));
}

TEST(MatchIndexTest, MatchesNetworksOnlyForKnownClients) {
  const std::vector<MatchSpec> specs = {
      Networks({"192.0.2.0/24"}), Networks({"192.0.0.0/16", "192.0.2.7"}),
      Networks({"2001:db8::/32"}), Networks({"::/0"}), Networks({"0.0.0.0/0"})};
  RequestView request = Path("/");
  EXPECT_THAT(Find(specs, request), IsEmpty());
  request.client = Address::Parse("192.0.2.7").value();
  EXPECT_THAT(Find(specs, request), IsEmpty());
  request.has_client = true;
  EXPECT_THAT(Find(specs, request), ElementsAre(0, 1, 4));
  request.client = Address::Parse("2001:db8::1").value();
  EXPECT_THAT(Find(specs, request), ElementsAre(2, 3));
}

TEST(MatchIndexTest, ReturnsTotalCountWhenBufferIsTooSmall) {
  const MatchIndex index = Index(std::vector<MatchSpec>(100));
  Numbers found(10);
  EXPECT_EQ(index.Find(Path("/"), found), 100u);
  EXPECT_EQ(index.Find(Path("/"), {}), 100u);
  found.resize(100);
  EXPECT_EQ(index.Find(Path("/"), found), 100u);
  EXPECT_EQ(found.back(), 99u);
}

TEST(MatchIndexTest, OutlivesItsSpecs) {
  std::vector<MatchSpec> specs = {Headers({{"a", "b"}})};
  const MatchIndex index = Index(specs);
  specs.clear();
  const HeaderField headers[] = {{"a", "b"}};
  RequestView request = Path("/");
  request.headers = headers;
  EXPECT_THAT(Find(index, request), ElementsAre(0));
}

TEST(MatchIndexTest, LookupDoesNotAllocate) {
  const MatchIndex index = Index({Hosts({"*.example.com"}), Paths({"/:a/b/**"}), Networks({"::/0"}),
                                  Headers({{"user-agent", "*a*"}, {"x-plan", "gold"}})});
  const HeaderField headers[] = {{"X-Plan", "gold"},
                                 {"User-Agent", "a longer one, 32 bytes or so"}};
  RequestView request = Path("/a/b/c");
  request.host = "a.b.example.com";
  request.headers = headers;
  request.has_client = true;
  Numbers found(8);
  const std::uint64_t before = AllocationsOfThisThread();
  const std::size_t count = index.Find(request, found);
  EXPECT_EQ(AllocationsOfThisThread(), before);
  EXPECT_EQ(count, 4u);
}

// Every combination of words and parameters up to a depth of 10, each followed by a word that the
// path does not contain: 2,046 nodes, all of which match the path so far. A lookup may enter each
// node once. A lookup that started over at each parameter would not end.
TEST(MatchIndexTest, BoundsLookupTimeForAdversarialPaths) {
  std::vector<std::string> patterns = {""};
  std::vector<MatchSpec> specs;
  for (int depth = 0; depth < 10; ++depth) {
    std::vector<std::string> longer;
    for (const std::string& pattern : patterns) {
      longer.push_back(pattern + "/a");
      longer.push_back(pattern + "/:p");
    }
    for (const std::string& pattern : longer) specs.push_back(Paths({pattern + "/never"}));
    patterns = std::move(longer);
  }
  std::string deep;
  for (int i = 0; i < 64; ++i) deep += "/:p";
  specs.push_back(Paths({deep + "/never"}));
  specs.push_back(Paths({"/:p/:p/**"}));
  const MatchIndex index = Index(specs);
  std::string path;
  while (path.size() < 8192) path += "/a";
  const auto start = std::chrono::steady_clock::now();
  constexpr int kRounds = 20;
  for (int i = 0; i < kRounds; ++i) {
    ASSERT_THAT(Find(index, Path(path)), ElementsAre(specs.size() - 1));
    ASSERT_THAT(Find(index, Path(std::string(8192, '/'))), IsEmpty());
    ASSERT_THAT(Find(index, Path("/a/" + std::string(8192, 'a'))), ElementsAre(specs.size() - 1));
  }
  // A lookup takes about 60 us. The bound is far above that, but far below the time of exponential
  // backtracking.
  EXPECT_LT(std::chrono::steady_clock::now() - start, kRounds * std::chrono::milliseconds(50));
}

TEST(MatchIndexTest, MatchesPatternsAsDeepAsThePath) {
  std::string pattern;
  for (int i = 0; i < 4000; ++i) pattern += i % 2 == 0 ? "/:p" : "/a";
  std::string path;
  for (int i = 0; i < 4000; ++i) path += "/a";
  EXPECT_THAT(Find({Paths({pattern}), Paths({path}), Paths({path + "/b"})}, Path(path)),
              ElementsAre(0, 1));
}

TEST(GlobMatchesTest, StarMatchesAnySequence) {
  for (const auto& [pattern, text] :
       std::initializer_list<std::pair<const char*, const char*>>{{"", ""},
                                                                  {"*", ""},
                                                                  {"*", "abc"},
                                                                  {"a*", "a"},
                                                                  {"*a", "ba"},
                                                                  {"a*c", "abbc"},
                                                                  {"**", "x"},
                                                                  {"*a*b*", "xxaxxbxx"},
                                                                  {"a*a", "aa"},
                                                                  {"*ab", "aab"},
                                                                  {"*.*", "*.*"},
                                                                  {"a*b*c", "abbbcbc"}}) {
    EXPECT_TRUE(GlobMatches(pattern, text)) << pattern << " " << text;
  }
  for (const auto& [pattern, text] :
       std::initializer_list<std::pair<const char*, const char*>>{{"", "a"},
                                                                  {"a", ""},
                                                                  {"a", "A"},
                                                                  {"a*", "ba"},
                                                                  {"*a", "ab"},
                                                                  {"a*a", "a"},
                                                                  {"a?c", "abc"},
                                                                  {"*a*b", "ba"},
                                                                  {"a.c", "abc"}}) {
    EXPECT_FALSE(GlobMatches(pattern, text)) << pattern << " " << text;
  }
  EXPECT_FALSE(GlobMatches("*a*a*a*a*a*a*a*a*b", std::string(8192, 'a')));
}

MatchSpec Any(std::vector<MatchSpec> alternatives, MatchSpec spec = {}) {
  spec.any = std::move(alternatives);
  return spec;
}

MatchSpec Not(std::vector<MatchSpec> excluded, MatchSpec spec = {}) {
  spec.none = std::move(excluded);
  return spec;
}

TEST(MatchIndexTest, NotConditionExcludesRequestsFromMatch) {
  MatchSpec post = Paths({"/v1/upload"});
  post.methods = {"POST"};
  const std::vector<MatchSpec> specs = {
      Not({Paths({"/v1/health"})}, Paths({"/v1/**"})),
      Not({Paths({"/v1/health"}), post}),
      Not({Hosts({"*.internal"})}),
  };
  EXPECT_THAT(Find(specs, Path("/v1/users")), ElementsAre(0, 1, 2));
  EXPECT_THAT(Find(specs, Path("/v1/health")), ElementsAre(2));
  EXPECT_THAT(Find(specs, Path("/v1/health/deep")), ElementsAre(0, 1, 2));
  EXPECT_THAT(Find(specs, Host("a.internal")), ElementsAre(1));
  RequestView request = Path("/v1/upload");
  request.method = "POST";
  EXPECT_THAT(Find(specs, request), ElementsAre(0, 2));
  request.method = "GET";
  EXPECT_THAT(Find(specs, request), ElementsAre(0, 1, 2));
}

TEST(MatchIndexTest, AnyConditionRequiresOneAlternativeAndAllOtherConditions) {
  MatchSpec post = Hosts({"x.example.com"});
  post.methods = {"POST"};
  const std::vector<MatchSpec> specs = {
      Any({Paths({"/a/**"}), post}),
      Any({Paths({"/a/**"}), Paths({"/b"})}, Hosts({"x.example.com"})),
      Any({Hosts({"x.example.com"}), Hosts({"*.org"})}, Paths({"/b"})),
      Any({Headers({{"x-plan", "gold"}}), Paths({"/b"})}),
      Any({Paths({"/a/**"}), Paths({"/b"})}, Paths({"/**"})),
  };
  EXPECT_THAT(Find(specs, Path("/a/1")), ElementsAre(0, 4));
  EXPECT_THAT(Find(specs, Path("/b")), ElementsAre(3, 4));
  EXPECT_THAT(Find(specs, Path("/c")), IsEmpty());
  RequestView request = Path("/b");
  request.host = "x.example.com";
  EXPECT_THAT(Find(specs, request), ElementsAre(1, 2, 3, 4));
  request.method = "POST";
  EXPECT_THAT(Find(specs, request), ElementsAre(0, 1, 2, 3, 4));
  const HeaderField gold[] = {{"X-Plan", "gold"}};
  request = Path("/c");
  request.headers = gold;
  EXPECT_THAT(Find(specs, request), ElementsAre(3));
}

TEST(MatchIndexTest, DoesNotAllocateForNestedMatches) {
  const MatchIndex index =
      Index({Not({Any({Paths({"/a/:b/c"}), Hosts({"*.org"})})}), Any({Paths({"/a/**"})})});
  RequestView request = Path("/a/b/d");
  request.host = "example.com";
  Numbers found(8);
  const std::uint64_t before = AllocationsOfThisThread();
  const std::size_t count = index.Find(request, found);
  EXPECT_EQ(AllocationsOfThisThread(), before);
  EXPECT_EQ(count, 2u);
}

// Trying all 50,000 specs for each request would take seconds.
TEST(MatchIndexTest, IndexesAlternativesByPathAndHost) {
  std::vector<MatchSpec> specs;
  for (int i = 0; i < 50'000; ++i) {
    const std::string n = std::to_string(i);
    specs.push_back(Any({Paths({"/a" + n + "/**"}), Hosts({"h" + n + ".example.com"})}));
  }
  const MatchIndex index = Index(specs);
  const auto start = std::chrono::steady_clock::now();
  for (std::uint32_t i = 0; i < 1'000; ++i) {
    ASSERT_THAT(Find(index, Path("/a" + std::to_string(i) + "/x")), ElementsAre(i));
    ASSERT_THAT(Find(index, Host("h" + std::to_string(i) + ".example.com")), ElementsAre(i));
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(500));
}

TEST(MatchIndexTest, MatchesManyAlternativesOnManyHosts) {
  std::vector<std::string> hosts;
  std::vector<MatchSpec> alternatives;
  for (int i = 0; i < 200; ++i) {
    hosts.push_back("h" + std::to_string(i) + ".example.com");
    alternatives.push_back(Paths({"/a" + std::to_string(i)}));
  }
  RequestView request = Path("/a199");
  request.host = "h199.example.com";
  const std::vector<MatchSpec> specs = {Any(alternatives, Hosts(hosts))};
  EXPECT_THAT(Find(specs, request), ElementsAre(0));
  request.path = "/a200";
  EXPECT_THAT(Find(specs, request), IsEmpty());
}

// Compares the index with a naive matcher that checks all specs, condition by condition.
void CompareWithNaiveMatcher(int depth, std::uint64_t& matches) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    naive::RandomMatches random(seed);
    const std::vector<MatchSpec> specs = random.Specs(depth);
    const MatchIndex index = Index(specs);
    for (int i = 0; i < 100; ++i) {
      const naive::Request request = random.NextRequest();
      Numbers expected;
      for (std::uint32_t id = 0; id < specs.size(); ++id) {
        const bool fits = naive::Matches(specs[id], request.view());
        if (fits) expected.push_back(id);
        ASSERT_EQ(WhyNot(specs[id], request.view()).empty(), fits)
            << "seed " << seed << ", " << request.Text();
      }
      ASSERT_EQ(Find(index, request.view()), expected) << "seed " << seed << ", " << request.Text();
      Numbers small(1 + expected.size() / 2);
      const std::size_t count = index.Find(request.view(), small);
      ASSERT_GE(count, expected.size());
      if (expected.size() <= small.size()) {
        ASSERT_EQ(count, expected.size());
      }
      matches += expected.size();
    }
  }
}

TEST(MatchIndexTest, AgreesWithNaiveMatcherOnRandomSpecsAndRequests) {
  std::uint64_t matches = 0;
  CompareWithNaiveMatcher(0, matches);
  EXPECT_GT(matches, 30'000u);
}

TEST(MatchIndexTest, AgreesWithNaiveMatcherOnRandomNestedSpecs) {
  for (const int depth : {1, 2, 4}) {
    std::uint64_t matches = 0;
    CompareWithNaiveMatcher(depth, matches);
    EXPECT_GT(matches, 15'000u) << depth;
  }
}

}  // namespace
}  // namespace tidegate
