// SPDX-License-Identifier: Apache-2.0
#include "cli/console.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace tidegate::cli {
namespace {

using namespace std::chrono_literals;

TEST(NumberFormatTest, FormatsCounts) {
  EXPECT_EQ(Count(0), "0");
  EXPECT_EQ(Count(999), "999");
  EXPECT_EQ(Count(1000), "1,000");
  EXPECT_EQ(Count(1234567), "1,234,567");
  EXPECT_EQ(Count(-100), "-100");
  EXPECT_EQ(Count(-1000), "-1,000");
  EXPECT_EQ(Count(std::numeric_limits<std::int64_t>::min()), "-9,223,372,036,854,775,808");
}

TEST(NumberFormatTest, FormatsRates) {
  EXPECT_EQ(Rate(0), "0");
  EXPECT_EQ(Rate(-1), "0");
  EXPECT_EQ(Rate(std::numeric_limits<double>::quiet_NaN()), "0");
  EXPECT_EQ(Rate(0.42), "0.4");
  EXPECT_EQ(Rate(9.96), "10");
  EXPECT_EQ(Rate(12345.6), "12,346");
}

TEST(NumberFormatTest, FormatsPercentages) {
  EXPECT_EQ(Share(1, 0), "-");
  EXPECT_EQ(Share(0, 5), "0.0%");
  EXPECT_EQ(Share(1, 3), "33.3%");
}

TEST(NumberFormatTest, FormatsLatencies) {
  EXPECT_EQ(Seconds(0.0000015), "1.5 us");
  EXPECT_EQ(Seconds(0.000128), "128 us");
  EXPECT_EQ(Seconds(0.0009996), "1.00 ms");
  EXPECT_EQ(Seconds(0.01256), "12.6 ms");
  EXPECT_EQ(Seconds(2.5), "2.50 s");
  EXPECT_EQ(Seconds(-1), "-");
}

TEST(NumberFormatTest, FormatsDurationsAndSizes) {
  EXPECT_EQ(Span(-5ms), "0 ms");
  EXPECT_EQ(Span(120ms), "120 ms");
  EXPECT_EQ(Span(14999ms), "14 s");
  EXPECT_EQ(Span(3723s), "1 h 3 min");
  EXPECT_EQ(Bytes(512), "512 B");
  EXPECT_EQ(Bytes(1536), "1.5 KiB");
  EXPECT_EQ(Bytes(3 << 20), "3.0 MiB");
}

TEST(NumberFormatTest, PrintsTimesInUtc) {
  EXPECT_EQ(TimeStamp(1706691907123), "2024-01-31 09:05:07Z");
  EXPECT_EQ(TimeStamp(std::numeric_limits<std::int64_t>::max()).empty(), false);
}

TEST(NumberFormatTest, FormatsPlurals) {
  EXPECT_EQ(Plural(1, "rule"), "1 rule");
  EXPECT_EQ(Plural(2000, "rule"), "2,000 rules");
}

}  // namespace
}  // namespace tidegate::cli
