// SPDX-License-Identifier: Apache-2.0
#include "rules/limit_text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/units.hpp"

namespace tidegate {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

TEST(LimitTextTest, ParsesAndPrintsCanonicalForm) {
  const struct {
    const char* text;
    std::int64_t count;
    Micros period;
    const char* printed;
  } cases[] = {
      {"100/s", 100, 1s, "100/s"},
      {"1000/1h", 1000, 1h, "1000/h"},
      {"5/30s", 5, 30s, "5/30s"},
      {"100000/24h", 100000, 24h, "100000/d"},
      {"10/m", 10, 1min, "10/m"},
      {"7/d", 7, 24h, "7/d"},
      {"3/us", 3, 1us, "3/us"},
      {"3/1500us", 3, 1500us, "3/1500us"},
      {"1/90m", 1, 90min, "1/90m"},
      {"1/250ms", 1, 250ms, "1/250ms"},
      {"1/366d", 1, 366 * 24h, "1/366d"},
      {"9223372036854775807/s", INT64_MAX, 1s, "9223372036854775807/s"},
  };
  for (const auto& c : cases) {
    const auto limit = LimitText::Parse(c.text);
    ASSERT_TRUE(limit) << c.text << ": " << limit.error().message;
    EXPECT_EQ(*limit, (LimitText{c.count, c.period})) << c.text;
    EXPECT_EQ(limit->Text(), c.printed);
    EXPECT_EQ(LimitText::Parse(limit->Text()).value(), *limit) << limit->Text();
  }
}

TEST(LimitTextTest, SuggestsValidLimitsInErrors) {
  const struct {
    const char* text;
    const char* expected;
  } cases[] = {
      {"", "is not a limit"},
      {"100", "write a count and a period, as in 100/s"},
      {"100rps", "write a count and a period"},
      {"0/s", "would refuse every request"},
      {"-5/s", "negative"},
      {"-0/s", "negative"},
      {"+5/s", "plain digits"},
      {"1.5/s", "for 1.5/s write 3/2s"},
      {"1e309/s", "plain digits"},
      {"NaN/s", "plain digits"},
      {"inf/s", "plain digits"},
      {"0x10/s", "plain digits"},
      {"010/s", "begins with a zero"},
      {"1_000/s", "plain digits"},
      {"/s", "plain digits"},
      {"9223372036854775808/s", "beyond 2^63"},
      {"99999999999999999999999999/s", "beyond 2^63"},
      {"100 / s", "holds a space"},
      {"100/", "has no period"},
      {"100/5", "has no period"},
      {"100/x", "has no period"},
      {"100/s/s", "has no period"},
      {"100/-1s", "has no period"},
      {"100/1.5s", "has no period"},
      {"100/sec", "write `s`"},
      {"100/1minute", "write `m`"},
      {"100/hour", "write `h`"},
      {"100/week", "write `7d`"},
      {"100/1ns", "the shortest is 1us"},
      {"100/0s", "the shortest is 1us"},
      {"100/100y", "the longest is 366d"},
      {"100/36500d", "the longest is 366d"},
      {"100/367d", "the longest is 366d"},
      {"100/9223372036854775808us", "the longest is 366d"},
      {"100/9223372036854775807d", "the longest is 366d"},
  };
  for (const auto& [text, expected] : cases) {
    const auto limit = LimitText::Parse(text);
    ASSERT_FALSE(limit) << text;
    EXPECT_THAT(limit.error().message, HasSubstr(expected)) << text;
  }
}

TEST(QuotaTextTest, DescribesEveryAlgorithm) {
  const auto text = [](Algorithm algorithm, const char* limit, std::int64_t burst = 0) {
    const LimitText parsed = LimitText::Parse(limit).value();
    const Quota quota = Quota::Make({.algorithm = algorithm,
                                     .limit = parsed.count,
                                     .period = parsed.period,
                                     .burst = burst})
                            .value();
    return QuotaText(quota) + " | " + QuotaText(quota, limit);
  };
  EXPECT_EQ(text(Algorithm::kTokenBucket, "100/s"), "100/s | 100/s");
  EXPECT_EQ(text(Algorithm::kTokenBucket, "100/s", 200), "100/s, burst 200 | 100/s, burst 200");
  EXPECT_EQ(text(Algorithm::kGcra, "100/60s", 5), "100/m, burst 5 | 100/60s, burst 5");
  EXPECT_EQ(text(Algorithm::kSlidingWindow, "1000/24h"), "1000/d | 1000/24h");
  EXPECT_EQ(text(Algorithm::kConcurrency, "2/m"), "2 at once, lease 1m | 2 at once, lease 1m");
  EXPECT_EQ(text(Algorithm::kConcurrency, "2/60s"), "2 at once, lease 1m | 2 at once, lease 60s");
}

TEST(ParseSizeTest, ReadsBytesAndBinaryUnits) {
  EXPECT_EQ(ParseSize("0"), 0);
  EXPECT_EQ(ParseSize("4096"), 4096);
  EXPECT_EQ(ParseSize("64KiB"), 65'536);
  EXPECT_EQ(ParseSize("256MiB"), 268'435'456);
  EXPECT_EQ(ParseSize("1GiB"), 1'073'741'824);
  for (const char* text : {"", "MiB", "-1", "1MB", "1.5MiB", "1 MiB", "010", "0x10", "1e3", "1K"}) {
    ASSERT_FALSE(ParseSize(text)) << text;
    EXPECT_THAT(ParseSize(text).error().message, HasSubstr("as in 256MiB")) << text;
  }
  for (const char* text : {"9223372036854775808", "8589934592GiB", "9223372036854775807KiB"}) {
    ASSERT_FALSE(ParseSize(text)) << text;
    EXPECT_THAT(ParseSize(text).error().message, HasSubstr("too large")) << text;
  }
}

}  // namespace
}  // namespace tidegate
