// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "store/redis/client_stats.hpp"

namespace tidegate::redis {
namespace {

TEST(SizeHistogramTest, CountsSizeInFirstBucketWithSufficientBound) {
  const auto bucket_of = [](std::uint64_t size) {
    SizeHistogram histogram;
    histogram.Add(size);
    std::size_t bucket = 0;
    while (bucket <= SizeHistogram::kBuckets && histogram.count(bucket) == 0) ++bucket;
    return bucket;
  };
  EXPECT_EQ(bucket_of(1), 0U);
  for (std::size_t bucket = 1; bucket < SizeHistogram::kBuckets; ++bucket) {
    const std::uint64_t upper = SizeHistogram::Upper(bucket);
    EXPECT_EQ(bucket_of(upper), bucket);
    EXPECT_EQ(bucket_of(upper + 1), bucket + 1);
  }
  EXPECT_EQ(bucket_of(1'000'000), SizeHistogram::kBuckets);
}

TEST(SizeHistogramTest, IgnoresZero) {
  SizeHistogram histogram;
  histogram.Add(0);
  histogram.Add(3);
  histogram.Add(4);
  EXPECT_EQ(histogram.count(0), 0U);
  EXPECT_EQ(histogram.count(2), 2U);
  EXPECT_EQ(histogram.sum(), 7U);
}

}  // namespace
}  // namespace tidegate::redis
