// SPDX-License-Identifier: Apache-2.0
#include "cli/commands.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>

namespace tidegate::cli {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

/// Returns the decisions that a demo printed, as one letter for each request: a(llowed) or
/// d(enied).
std::string Answers(const std::string& text) {
  std::string answers;
  std::istringstream lines{text};
  for (std::string line; std::getline(lines, line);) {
    if (line.find("  allowed ") != std::string::npos) answers += 'a';
    if (line.find("  denied ") != std::string::npos) answers += 'd';
  }
  return answers;
}

std::string AsText(const DemoOptions& options) {
  std::ostringstream out;
  const auto done = RunDemo(options, out);
  return done ? out.str() : "error: " + done.error().message;
}

std::string AnswersOf(Algorithm algorithm) { return Answers(AsText({.algorithm = algorithm})); }

TEST(DemoTest, ShowsHowAlgorithmsDiffer) {
  // The demo uses 3 requests per second and sends one request every 100 ms. The windows begin at
  // multiples of 1 s, the first time 300 ms after the start.
  EXPECT_EQ(AnswersOf(Algorithm::kTokenBucket), "aaadaddaddad");
  EXPECT_EQ(AnswersOf(Algorithm::kGcra), "aaadaddaddad");
  EXPECT_EQ(AnswersOf(Algorithm::kSlidingLog), "aaadddddddaa");
  EXPECT_EQ(AnswersOf(Algorithm::kSlidingWindow), "aaaddddaddad");
  EXPECT_EQ(AnswersOf(Algorithm::kFixedWindow), "aaaaaadddddd");
  EXPECT_EQ(AnswersOf(Algorithm::kConcurrency), "aaadadadadaa");
}

TEST(DemoTest, ShowsAllAlgorithmsUnlessOneIsGiven) {
  const std::string all = AsText({});
  for (int i = 0; i < kAlgorithms; ++i) {
    const auto algorithm = static_cast<Algorithm>(i);
    EXPECT_THAT(all, HasSubstr(std::string{Name(algorithm)} + ": "));
  }
  EXPECT_EQ(Answers(all).size(), 6 * 12);
  EXPECT_THAT(AsText({.algorithm = Algorithm::kGcra}), Not(HasSubstr("token_bucket: ")));
}

TEST(DemoTest, PrintsRetryTimes) {
  EXPECT_THAT(AsText({.algorithm = Algorithm::kSlidingLog}),
              HasSubstr("   300 ms  denied           0        700 ms        900 ms"));
}

TEST(DemoTest, PrintsReleasedAndExpiredLeases) {
  const std::string text = AsText({.algorithm = Algorithm::kConcurrency});
  EXPECT_THAT(text, HasSubstr("request 1 is done"));
  EXPECT_THAT(text, HasSubstr("request 2's lease ran out"));
}

TEST(DemoTest, AppliesBurstToBucketsOnly) {
  EXPECT_THAT(AsText({.burst = 7}), HasSubstr("token_bucket: 3/s, burst 7"));
  EXPECT_THAT(AsText({.algorithm = Algorithm::kFixedWindow, .burst = 7}),
              HasSubstr("error: fixed_window has no burst"));
}

TEST(DemoTest, PrintsNothingForInvalidOptions) {
  std::ostringstream out;
  EXPECT_FALSE(RunDemo({.limit = 0}, out));
  EXPECT_FALSE(RunDemo({.every = Micros::max()}, out));
  EXPECT_EQ(out.str(), "");
}

TEST(DemoTest, AcceptsExtremeParameters) {
  EXPECT_EQ(Answers(AsText({.algorithm = Algorithm::kFixedWindow, .limit = 2, .every = 0us})),
            "aadddddddddd");
  EXPECT_EQ(Answers(AsText({.algorithm = Algorithm::kConcurrency, .limit = 2, .every = 0us})),
            "aadddddddddd");
  const auto long_ago = AsText({.algorithm = Algorithm::kFixedWindow,
                                .period = std::chrono::days{366},
                                .every = std::chrono::days{366},
                                .requests = kMaxDemoRequests});
  EXPECT_EQ(Answers(long_ago), std::string(kMaxDemoRequests, 'a'));
}

}  // namespace
}  // namespace tidegate::cli
