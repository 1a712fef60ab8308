// SPDX-License-Identifier: Apache-2.0
#include "frontends/refusals.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tidegate {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;
using Why = Refusals::Why;

/// What is said on standard error meanwhile.
template <class Do>
std::string SaidBy(Do&& act) {
  testing::internal::CaptureStderr();
  act();
  return testing::internal::GetCapturedStderr();
}

TEST(Refusals, CountsEveryCallerAndLogsOnceASecond) {
  Refusals refusals("admin");
  net::Peer peer;
  peer.bytes[15] = 1;
  const Refusals::Clock::time_point start{std::chrono::hours{1}};
  const auto note = [&](std::chrono::milliseconds at, Why why) {
    return SaidBy([&] { refusals.Note(peer, "/v1/ban", why, start + at); });
  };
  const std::string first = note(0ms, Why::kUnknown);
  EXPECT_THAT(first, HasSubstr("door=admin"));
  EXPECT_THAT(first, HasSubstr("from=::1"));
  EXPECT_THAT(first, HasSubstr("request=/v1/ban"));
  EXPECT_EQ(note(1ms, Why::kUnknown), "");
  EXPECT_EQ(note(999ms, Why::kRights), "");
  EXPECT_THAT(note(1000ms, Why::kRights), HasSubstr("suppressed=2"));
  EXPECT_EQ(note(1999ms, Why::kRights), "");
  EXPECT_EQ(refusals.count(Why::kUnknown), 2u);
  EXPECT_EQ(refusals.count(Why::kRights), 3u);
}

TEST(Refusals, EscapesLineBreaksInTheLog) {
  Refusals refusals("resp");
  const std::string said =
      SaidBy([&] { refusals.Note({}, "/v1/ban\r\nforged: line", Why::kUnknown); });
  EXPECT_THAT(said, Not(HasSubstr("\nforged")));
}

}  // namespace
}  // namespace tidegate
