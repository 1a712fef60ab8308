// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "cli/bench_load.hpp"
#include "cli/response.hpp"

namespace tidegate::cli {
namespace {

using namespace std::chrono_literals;

LatencyBuckets Read(std::string_view buckets) {
  const auto value = boost::json::parse("{\"buckets\":" + std::string(buckets) + "}");
  return LatencyBuckets::Of(JsonView(value));
}

TEST(LatencyBucketsTest, QuantileIsUpperBoundOfItsBucket) {
  const auto all = Read("[[0.001,10],[0.002,900],[0.004,999],[null,1000]]");
  EXPECT_EQ(all.count(), 1000);
  EXPECT_EQ(all.Quantile(0.01), LatencyBound{0.001});
  EXPECT_EQ(all.Quantile(0.5), LatencyBound{0.002});
  EXPECT_EQ(all.Quantile(0.99), LatencyBound{0.004});
  EXPECT_EQ(all.Quantile(1), (LatencyBound{0.004, true}));
  EXPECT_EQ(all.Quantile(1)->Text(), "> 4.00 ms");
}

TEST(LatencyBucketsTest, SubtractsEarlierCounts) {
  const auto before = Read("[[0.001,1000],[0.002,1000],[null,1000]]");
  const auto now = Read("[[0.001,1000],[0.002,1100],[null,1100]]");
  EXPECT_EQ(now.Quantile(0.5), LatencyBound{0.001});
  EXPECT_EQ(now.Since(before).Quantile(0.5), LatencyBound{0.002});
  EXPECT_EQ(now.Since(before).count(), 100);
  EXPECT_EQ(now.Since(now).Quantile(0.5), std::nullopt);
  EXPECT_EQ(before.Since(now).count(), 1000)
      << "lower counts than before: the server was restarted";
  EXPECT_EQ(now.Since({}).count(), 1100);
}

TEST(LatencyBucketsTest, IgnoresMalformedBuckets) {
  EXPECT_EQ(Read("[]").Quantile(0.5), std::nullopt);
  EXPECT_EQ(Read("[7,[1],[\"x\",\"y\"],[1,2,3]]").Quantile(0.5), std::nullopt);
  // Counts must not decrease: buckets are cumulative.
  EXPECT_EQ(Read("[[0.001,5],[0.002,3]]").Quantile(1), LatencyBound{0.001});
}

TEST(LatencyRecordTest, QuantileExceedsLatencyByAtMostOne32nd) {
  for (std::int64_t ns = 1; ns < 40'000'000'000; ns = ns * 9 / 8 + 1) {
    LatencyRecord record;
    record.Add(std::chrono::nanoseconds(ns));
    record.Add(1h);
    const auto quantile = record.Quantile(0.5).count();
    EXPECT_GE(quantile, ns);
    EXPECT_LE(static_cast<double>(quantile), static_cast<double>(ns) * (1 + 1.0 / 32));
  }
}

TEST(LatencyRecordTest, ComputesQuantilesByRank) {
  LatencyRecord record;
  EXPECT_EQ(record.Quantile(0.5), 0ns);
  for (int i = 1; i <= 1000; ++i) record.Add(i * 1us);
  EXPECT_NEAR(static_cast<double>(record.Quantile(0.5).count()), 500e3, 500e3 / 32);
  EXPECT_NEAR(static_cast<double>(record.Quantile(0.999).count()), 999e3, 999e3 / 32);
  EXPECT_EQ(record.Quantile(1), 1ms);
  LatencyRecord other;
  other.Add(-5ns);
  other.Add(400 * 24h);
  record.Merge(other);
  EXPECT_EQ(record.count(), 1002u);
  EXPECT_EQ(record.max(), 400 * 24h);
  EXPECT_EQ(record.Quantile(0), 0ns);
}

}  // namespace
}  // namespace tidegate::cli
