// SPDX-License-Identifier: Apache-2.0
#include "cli/demo.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>

namespace tidegate::cli {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

/// The answers of a demo as one letter a request: a(llowed) or d(enied).
std::string Answers(const std::string& text) {
  std::string answers;
  std::istringstream lines{text};
  for (std::string line; std::getline(lines, line);) {
    if (line.find("  allowed ") != std::string::npos) answers += 'a';
    if (line.find("  denied ") != std::string::npos) answers += 'd';
  }
  return answers;
}

std::string TextOf(const DemoOptions& options) {
  std::ostringstream out;
  const auto done = RunDemo(options, out);
  return done ? out.str() : "error: " + done.error().message;
}

std::string AnswersOf(Algorithm algorithm) { return Answers(TextOf({.algorithm = algorithm})); }

TEST(Demo, ShowsWhereTheAlgorithmsDiffer) {
  // 3 per second, one request every 100 ms; the windows turn at 300 ms.
  EXPECT_EQ(AnswersOf(Algorithm::kTokenBucket), "aaadaddaddad");
  EXPECT_EQ(AnswersOf(Algorithm::kGcra), "aaadaddaddad");
  EXPECT_EQ(AnswersOf(Algorithm::kSlidingLog), "aaadddddddaa");
  EXPECT_EQ(AnswersOf(Algorithm::kSlidingWindow), "aaaddddaddad");
  EXPECT_EQ(AnswersOf(Algorithm::kFixedWindow), "aaaaaadddddd");
  EXPECT_EQ(AnswersOf(Algorithm::kConcurrency), "aaadadadadaa");
}

TEST(Demo, ShowsAllSixUnlessOneIsNamed) {
  const std::string all = TextOf({});
  for (int i = 0; i < kAlgorithms; ++i) {
    const auto algorithm = static_cast<Algorithm>(i);
    EXPECT_THAT(all, HasSubstr(std::string{Name(algorithm)} + ": "));
  }
  EXPECT_EQ(Answers(all).size(), 6 * 12);
  EXPECT_THAT(TextOf({.algorithm = Algorithm::kGcra}), Not(HasSubstr("token_bucket: ")));
}

TEST(Demo, SaysWhenToComeBack) {
  EXPECT_THAT(TextOf({.algorithm = Algorithm::kSlidingLog}),
              HasSubstr("   300 ms  denied           0        700 ms        900 ms"));
}

TEST(Demo, TellsWhoLeavesAPlace) {
  const std::string text = TextOf({.algorithm = Algorithm::kConcurrency});
  EXPECT_THAT(text, HasSubstr("request 1 is done"));
  EXPECT_THAT(text, HasSubstr("request 2's lease ran out"));
}

TEST(Demo, KeepsTheBurstToBuckets) {
  EXPECT_THAT(TextOf({.burst = 7}), HasSubstr("token_bucket: 3/s, burst 7"));
  EXPECT_THAT(TextOf({.algorithm = Algorithm::kFixedWindow, .burst = 7}),
              HasSubstr("error: fixed_window has no burst"));
}

TEST(Demo, WritesNothingWhenTheOptionsAreWrong) {
  std::ostringstream out;
  EXPECT_FALSE(RunDemo({.limit = 0}, out));
  EXPECT_FALSE(RunDemo({.every = Micros::max()}, out));
  EXPECT_EQ(out.str(), "");
}

TEST(Demo, TakesExtremes) {
  EXPECT_EQ(Answers(TextOf({.algorithm = Algorithm::kFixedWindow, .limit = 2, .every = 0us})),
            "aadddddddddd");
  EXPECT_EQ(Answers(TextOf({.algorithm = Algorithm::kConcurrency, .limit = 2, .every = 0us})),
            "aadddddddddd");
  const auto long_ago = TextOf({.algorithm = Algorithm::kFixedWindow,
                                .period = std::chrono::days{366},
                                .every = std::chrono::days{366},
                                .requests = kMaxDemoRequests});
  EXPECT_EQ(Answers(long_ago), std::string(kMaxDemoRequests, 'a'));
}

}  // namespace
}  // namespace tidegate::cli
