// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "property/lease_history.hpp"

/// Compares every field of every result with the oracle, in random histories.
namespace tidegate::property {
namespace {

constexpr std::uint64_t kSeeds = 200;
constexpr int kSteps = 300;

/// Runs `history` with many seeds and with each combination of freedoms.
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

TEST(OracleTest, TokenBucketAgreesWithOracle) { ForAllSeeds(RunHistory<TokenBucketKit>); }
TEST(OracleTest, GcraAgreesWithOracle) { ForAllSeeds(RunHistory<GcraKit>); }
TEST(OracleTest, FixedWindowAgreesWithOracle) { ForAllSeeds(RunHistory<FixedWindowKit>); }
TEST(OracleTest, SlidingWindowAgreesWithOracle) { ForAllSeeds(RunHistory<SlidingWindowKit>); }
TEST(OracleTest, SlidingLogAgreesWithOracle) { ForAllSeeds(RunLogHistory); }
TEST(OracleTest, ConcurrencyAgreesWithOracle) { ForAllSeeds(RunLeaseHistory); }

}  // namespace
}  // namespace tidegate::property
