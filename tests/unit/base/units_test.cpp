// SPDX-License-Identifier: Apache-2.0
#include "base/units.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tidegate {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

TEST(ParseDurationTest, ReadsEveryUnit) {
  EXPECT_EQ(ParseDuration("250us"), 250us);
  EXPECT_EQ(ParseDuration("100ms"), 100ms);
  EXPECT_EQ(ParseDuration("1s"), 1s);
  EXPECT_EQ(ParseDuration("5m"), 5min);
  EXPECT_EQ(ParseDuration("24h"), 24h);
  EXPECT_EQ(ParseDuration("7d"), 168h);
  EXPECT_EQ(ParseDuration("0s"), 0s);
}

TEST(ParseDurationTest, RejectsInvalidText) {
  for (const char* text : {"", "1", "s", "-1s", "+1s", "1.5s", "1 s", " 1s", "1s ", "1S", "1sec",
                           "0x1s", "1s1s", "ten s"}) {
    const auto parsed = ParseDuration(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_THAT(parsed.error().message, HasSubstr("as in 100ms, 1s or 24h")) << text;
  }
}

TEST(ParseDurationTest, RejectsDurationsThatOverflow) {
  EXPECT_EQ(ParseDuration("9223372036854775807us"), Micros::max());
  for (const char* text : {"9223372036854775808us", "9223372036854775807ms", "106751992d"}) {
    const auto parsed = ParseDuration(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_THAT(parsed.error().message, HasSubstr("too long")) << text;
  }
}

TEST(FormatDurationTest, FormatsWithUnits) {
  EXPECT_EQ(FormatDuration(0s), "0 s");
  EXPECT_EQ(FormatDuration(999us), "999 us");
  EXPECT_EQ(FormatDuration(840ms), "840 ms");
  EXPECT_EQ(FormatDuration(333'334us), "333.334 ms");
  EXPECT_EQ(FormatDuration(1'050us), "1.05 ms");
  EXPECT_EQ(FormatDuration(2s), "2 s");
  EXPECT_EQ(FormatDuration(1'500ms), "1.5 s");
  EXPECT_EQ(FormatDuration(90s), "1 min 30 s");
  EXPECT_EQ(FormatDuration(24h), "24 h");
  EXPECT_EQ(FormatDuration(90min), "1 h 30 min");
  EXPECT_EQ(FormatDuration(51h), "2 d 3 h");
}

TEST(FormatDurationTest, RoundsUpAcrossUnits) {
  EXPECT_EQ(FormatDuration(1'000'001us), "1.001 s");
  EXPECT_EQ(FormatDuration(1min - 1us), "1 min");
  EXPECT_EQ(FormatDuration(1h - 1us), "1 h");
  EXPECT_EQ(FormatDuration(48h - 1us), "2 d");
}

}  // namespace
}  // namespace tidegate
