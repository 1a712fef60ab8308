// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "property/lease_history.hpp"

/// Random histories against the oracle: every field of every answer.
namespace tidegate::property {
namespace {

constexpr std::uint64_t kSeeds = 200;
constexpr int kSteps = 300;

/// Runs `history` under each freedom that a whole life can have.
template <class RunOne>
void ForAllSeeds(RunOne history) {
  constexpr Freedom kFreedoms[] = {{false, false, false},
                                   {false, false, true},
                                   {true, false, true},
                                   {false, true, true},
                                   {true, true, true}};
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Source source(seed);
    const auto disagreement = history(source, kFreedoms[seed % std::size(kFreedoms)], kSteps);
    ASSERT_FALSE(disagreement.has_value()) << *disagreement;
  }
}

TEST(OracleTest, TokenBucketAgrees) { ForAllSeeds(RunHistory<TokenBucketKit>); }
TEST(OracleTest, GcraAgrees) { ForAllSeeds(RunHistory<GcraKit>); }
TEST(OracleTest, FixedWindowAgrees) { ForAllSeeds(RunHistory<FixedWindowKit>); }
TEST(OracleTest, SlidingWindowAgrees) { ForAllSeeds(RunHistory<SlidingWindowKit>); }
TEST(OracleTest, SlidingLogAgrees) { ForAllSeeds(RunLogHistory); }
TEST(OracleTest, ConcurrencyAgrees) { ForAllSeeds(RunLeaseHistory); }

}  // namespace
}  // namespace tidegate::property
