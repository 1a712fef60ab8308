// SPDX-License-Identifier: Apache-2.0
#include "rules/match_cover.hpp"

#include <gtest/gtest.h>

#include "unit/rules/naive_matcher.hpp"

namespace tidegate {
namespace {

MatchSpec OfPaths(std::vector<std::string> paths) {
  MatchSpec match;
  match.paths = std::move(paths);
  return match;
}

MatchSpec OfAny(std::vector<MatchSpec> alternatives, MatchSpec match = {}) {
  match.any = std::move(alternatives);
  return match;
}

MatchSpec Except(std::vector<MatchSpec> excluded, MatchSpec match = {}) {
  match.none = std::move(excluded);
  return match;
}

MatchSpec WithHeader(std::string name, MatchSpec match = {}) {
  match.headers.push_back({std::move(name), "1"});
  return match;
}

TEST(MatchCoverTest, DoubleStarPathCoversEverything) {
  EXPECT_TRUE(Covers(OfPaths({"/**"}), {}));
  EXPECT_TRUE(Covers(OfPaths({"/a", "/**"}), {}));
  EXPECT_FALSE(Covers(OfPaths({"/a/**"}), {}));
}

TEST(MatchCoverTest, CoversAlternativesOneByOne) {
  const MatchSpec both = OfAny({OfPaths({"/a"}), OfPaths({"/b/**"})});
  EXPECT_TRUE(Covers(both, OfPaths({"/a"})));
  EXPECT_TRUE(Covers(both, OfPaths({"/b/c"})));
  EXPECT_FALSE(Covers(both, OfPaths({"/c"})));
  EXPECT_FALSE(Covers(both, {}));
  EXPECT_TRUE(Covers(OfPaths({"/a", "/b/**"}), both));
  EXPECT_FALSE(Covers(OfPaths({"/a"}), both));
  EXPECT_TRUE(Covers(both, both));
  EXPECT_TRUE(Covers(OfAny({OfPaths({"/b/**"}), OfPaths({"/a/**"})}), both));
  // The match has the host, and each of its alternatives has a path.
  MatchSpec on_host = both;
  on_host.hosts = {"x"};
  MatchSpec wide = OfPaths({"/a", "/b/**"});
  wide.hosts = {"x"};
  EXPECT_TRUE(Covers(wide, on_host));
  EXPECT_FALSE(Covers(wide, both));
  EXPECT_TRUE(Covers({}, both));
}

TEST(MatchCoverTest, ExceptionsNarrowWiderMatch) {
  const MatchSpec health = OfPaths({"/v1/health"});
  const MatchSpec wide = Except({health}, OfPaths({"/v1/**"}));
  EXPECT_FALSE(Covers(wide, OfPaths({"/v1/**"})));
  EXPECT_FALSE(Covers(wide, health));
  EXPECT_TRUE(Covers(wide, OfPaths({"/v1/users"})));
  EXPECT_TRUE(Covers(wide, wide));
  EXPECT_TRUE(Covers(OfPaths({"/v1/**"}), wide));
  EXPECT_TRUE(Covers(wide, Except({OfPaths({"/v1/health/**"})}, OfPaths({"/v1/**"}))));
  // A request to /v1/health without the header matches only the first spec.
  EXPECT_FALSE(Covers(wide, Except({WithHeader("x", health)}, OfPaths({"/v1/**"}))));
  EXPECT_FALSE(Covers(Except({WithHeader("x")}), {}));
}

TEST(MatchCoverTest, OverlapConsidersAlternativesAndExceptions) {
  const MatchSpec both = OfAny({OfPaths({"/a"}), OfPaths({"/b/**"})});
  EXPECT_TRUE(Overlap(both, OfPaths({"/b/c"})));
  EXPECT_FALSE(Overlap(both, OfPaths({"/c"})));
  EXPECT_FALSE(Overlap(OfPaths({"/c"}), both));
  EXPECT_FALSE(Overlap(both, OfAny({OfPaths({"/c"}), OfPaths({"/d"})})));
  EXPECT_TRUE(Overlap(both, OfAny({OfPaths({"/c"}), OfPaths({"/a"})})));
  const MatchSpec not_v1 = Except({OfPaths({"/v1/**"})});
  EXPECT_FALSE(Overlap(not_v1, OfPaths({"/v1/users"})));
  EXPECT_FALSE(Overlap(OfPaths({"/v1/users"}), not_v1));
  EXPECT_TRUE(Overlap(not_v1, OfPaths({"/**"})));
  EXPECT_TRUE(Overlap(Except({WithHeader("x")}), {}));
}

// Covers and Overlap may miss a relation, but a relation that they report holds for every request.
TEST(MatchCoverTest, AgreesWithNaiveMatcherOnRandomSpecs) {
  int covered = 0;
  int disjoint = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    naive::RandomMatches random(seed);
    std::vector<MatchSpec> specs;
    for (int i = 0; i < 12; ++i) specs.push_back(random.Spec(i % 4));
    std::vector<naive::Request> requests;
    for (int i = 0; i < 60; ++i) requests.push_back(random.NextRequest());
    for (const MatchSpec& a : specs) {
      for (const MatchSpec& b : specs) {
        const bool covers = Covers(a, b);
        const bool overlap = Overlap(a, b);
        covered += &a != &b && covers ? 1 : 0;
        disjoint += overlap ? 0 : 1;
        for (const naive::Request& request : requests) {
          const bool in_a = naive::Matches(a, request.view());
          const bool in_b = naive::Matches(b, request.view());
          ASSERT_FALSE(covers && in_b && !in_a) << "seed " << seed << ", " << request.Text();
          ASSERT_FALSE(!overlap && in_a && in_b) << "seed " << seed << ", " << request.Text();
        }
      }
    }
  }
  EXPECT_GT(covered, 500);
  EXPECT_GT(disjoint, 5'000);
}

}  // namespace
}  // namespace tidegate
