// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/bench_load.hpp"

namespace tidegate::cli {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using Progress = BenchWire::Progress;

std::string Http(int status, std::string_view body) {
  return "HTTP/1.1 " + std::to_string(status) +
         " X\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}

TEST(BenchWireTest, WritesHttpRequestThatTheApiAccepts) {
  const auto wire = MakeHttpWire({"::1", 8081}, "a\"b", "secret");
  std::string out;
  wire->AddRequest("bench-7", out);
  EXPECT_THAT(out, testing::StartsWith("POST /v1/decide HTTP/1.1\r\nHost: [::1]:8081\r\n"));
  EXPECT_THAT(out, HasSubstr("\r\nAuthorization: Bearer secret\r\n"));
  EXPECT_THAT(out, EndsWith("\r\nContent-Length: 36\r\n\r\n"
                            "{\"rule\":\"a\\\"b\",\"identity\":\"bench-7\"}"));
}

TEST(BenchWireTest, ParsesHttpResponsesInPieces) {
  const auto wire = MakeHttpWire({"h", 1}, "r", "");
  const std::string bytes =
      Http(200, R"({"allowed":true,"decided_by":"store","reason":"quota",)"
                R"("rules":[{"decided_by":"local","reason":"timeout"}]})") +
      Http(429,
           R"({"status":429,"allowed":false,"decided_by":"cache","reason":"quota","rules":[]})") +
      Http(200, R"({"allowed":true,"rules":[]})");
  BenchResponse answer;
  std::vector<std::string> seen;
  for (const char c : bytes) {
    wire->Feed({&c, 1});
    Progress progress = wire->Next(answer);
    ASSERT_NE(progress, Progress::kMalformed);
    if (progress == Progress::kMore) continue;
    EXPECT_EQ(answer.fatal_error, "");
    seen.push_back(std::to_string(answer.status) + (answer.allowed ? " yes " : " no ") +
                   std::string(answer.decided_by));
  }
  EXPECT_THAT(seen, testing::ElementsAre("200 yes store", "429 no cache", "200 yes "));
}

TEST(BenchWireTest, ReportsProblemResponsesAndMalformedHttp) {
  const auto wire = MakeHttpWire({"h", 1}, "r", "");
  BenchResponse answer;
  wire->Feed(Http(404, R"({"detail":"no \u001b rule","pointer":"/rule"})"));
  EXPECT_EQ(wire->Next(answer), Progress::kResponse);
  EXPECT_EQ(answer.fatal_error, "no \\x1b rule");
  wire->Feed(Http(404, R"({"detail":"nothing here"})"));
  EXPECT_EQ(wire->Next(answer), Progress::kResponse);
  EXPECT_EQ(answer.fatal_error,
            "nothing here; is this the port of the API? Name another with --server");
  wire->Feed(Http(500, "oops"));
  EXPECT_EQ(wire->Next(answer), Progress::kResponse);
  EXPECT_THAT(answer.fatal_error, HasSubstr("status 500"));
  wire->Feed("-ERR what\r\n");
  EXPECT_EQ(wire->Next(answer), Progress::kMalformed);
  wire->Reset();
  EXPECT_EQ(wire->Next(answer), Progress::kMore);
}

TEST(BenchWireTest, ParsesDecisionsOfRedisProtocol) {
  const auto wire = MakeRespWire("rule", "");
  std::string out;
  wire->AddGreeting(out);
  wire->AddRequest("bench-1", out);
  EXPECT_EQ(out, "*3\r\n$9\r\nTG.DECIDE\r\n$4\r\nrule\r\n$7\r\nbench-1\r\n");
  wire->Feed(
      "*7\r\n:1\r\n:5\r\n:0\r\n:100\r\n:100\r\n$5\r\ncache\r\n$5\r\nquota\r\n"
      "-UNAVAILABLE x\r\n-ERR no\r\n+?\r\n");
  BenchResponse answer;
  ASSERT_EQ(wire->Next(answer), Progress::kResponse);
  EXPECT_FALSE(answer.allowed);
  EXPECT_EQ(answer.decided_by, "cache");
  ASSERT_EQ(wire->Next(answer), Progress::kResponse);
  EXPECT_FALSE(answer.allowed);
  EXPECT_EQ(answer.decided_by, "closed");
  EXPECT_EQ(answer.fatal_error, "");
  ASSERT_EQ(wire->Next(answer), Progress::kResponse);
  EXPECT_EQ(answer.fatal_error, "ERR no");
  EXPECT_EQ(wire->Next(answer), Progress::kMalformed);
}

TEST(BenchWireTest, AuthenticatesFirstOverRedisProtocol) {
  const auto wire = MakeRespWire("rule", "secret");
  std::string out;
  wire->AddGreeting(out);
  EXPECT_EQ(out, "*2\r\n$4\r\nAUTH\r\n$6\r\nsecret\r\n");
  BenchResponse answer;
  wire->Feed("+OK\r\n");
  EXPECT_EQ(wire->Next(answer), Progress::kMore);
  wire->Feed("*7\r\n:0\r\n:5\r\n:4\r\n:-1\r\n:100\r\n$5\r\nstore\r\n$5\r\nquota\r\n");
  EXPECT_EQ(wire->Next(answer), Progress::kResponse);
  EXPECT_TRUE(answer.allowed);
  wire->Reset();
  wire->AddGreeting(out);
  wire->Feed("-WRONGPASS no\r\n");
  EXPECT_EQ(wire->Next(answer), Progress::kResponse);
  EXPECT_EQ(answer.fatal_error, "WRONGPASS no");
}

}  // namespace
}  // namespace tidegate::cli
