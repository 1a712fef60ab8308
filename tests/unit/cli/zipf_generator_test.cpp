// SPDX-License-Identifier: Apache-2.0
#include "cli/bench_load.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace tidegate::cli {
namespace {

std::vector<double> Frequencies(std::uint64_t count, double exponent) {
  constexpr int kDraws = 200'000;
  ZipfGenerator draw(count, exponent, 7);
  std::vector<double> frequencies(count);
  for (int i = 0; i < kDraws; ++i) frequencies.at(draw.Next()) += 1.0 / kDraws;
  return frequencies;
}

TEST(ZipfGeneratorTest, IsUniformWhenExponentIsZero) {
  for (const double frequency : Frequencies(10, 0)) EXPECT_NEAR(frequency, 0.1, 0.005);
}

TEST(ZipfGeneratorTest, DistributesKeysByZipfsLaw) {
  for (const double exponent : {0.5, 1.0, 1.1, 2.0}) {
    const auto frequencies = Frequencies(50, exponent);
    double sum = 0;
    for (int k = 1; k <= 50; ++k) sum += std::pow(k, -exponent);
    for (int k = 1; k <= 50; ++k) {
      EXPECT_NEAR(frequencies[static_cast<std::size_t>(k) - 1], std::pow(k, -exponent) / sum, 0.005)
          << exponent << " " << k;
    }
  }
}

TEST(ZipfGeneratorTest, AcceptsExtremeParameters) {
  ZipfGenerator only(1, 1.1, 1);
  EXPECT_EQ(only.Next(), 0u);
  ZipfGenerator many(1'000'000'000, 0.9, 1);
  ZipfGenerator steep(1'000'000'000, 10, 1);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_LT(many.Next(), 1'000'000'000u);
    EXPECT_LT(steep.Next(), 10u);
  }
}

}  // namespace
}  // namespace tidegate::cli
