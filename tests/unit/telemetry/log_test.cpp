// SPDX-License-Identifier: Apache-2.0
#include "telemetry/log.hpp"

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <string>

namespace tidegate {
namespace {

using Format = Log::Format;
using Level = Log::Level;
constexpr std::string_view kTime = "2024-01-02T03:04:05.006Z";

std::string Everything() {
  std::string all;
  for (int c = 0; c < 256; ++c) all += static_cast<char>(c);
  return all;
}

/// Expects that `line` has no byte that ends a line or controls a terminal.
void ExpectOneLine(const std::string& line) {
  for (const char c : line) {
    const int byte = static_cast<unsigned char>(c);
    ASSERT_TRUE(byte >= 0x20 && byte != 0x7F) << "byte " << byte;
  }
}

TEST(LogTest, FormatsTextLines) {
  EXPECT_EQ(Log::Line(Format::kText, Level::kInfo, kTime, "reloaded",
                      {{"file", "a.yaml"}, {"why", "the file changed"}, {"empty", ""}}),
            "2024-01-02T03:04:05.006Z info: reloaded  file=a.yaml  why=\"the file changed\"  "
            "empty=\"\"");
}

TEST(LogTest, FormatsJsonLines) {
  const auto line = boost::json::parse(
      Log::Line(Format::kJson, Level::kError, kTime, "it \"broke\"", {{"path", "C:\\x\ny"}}));
  EXPECT_EQ(line, boost::json::parse(R"({"time":"2024-01-02T03:04:05.006Z","level":"error",
      "message":"it \"broke\"","path":"C:\\x\ny"})"));
}

TEST(LogTest, EscapesFields) {
  for (const Format format : {Format::kText, Format::kJson}) {
    const std::string line = Log::Line(format, Level::kWarning, kTime, "x", {{"f", Everything()}});
    ExpectOneLine(line);
  }
  EXPECT_TRUE(
      boost::json::parse(Log::Line(Format::kJson, Level::kInfo, kTime, "x", {{"f", Everything()}}))
          .as_object()
          .contains("f"));
}

TEST(LogTest, EscapesMessages) {
  for (const Format format : {Format::kText, Format::kJson}) {
    ExpectOneLine(Log::Line(format, Level::kWarning, kTime, Everything(), {}));
  }
}

TEST(LogTest, QuotesValuesThatLookLikeTwoFields) {
  const std::string line =
      Log::Line(Format::kText, Level::kInfo, kTime, "x", {{"a", "1  b=2"}, {"c", "\"  d=\""}});
  EXPECT_NE(line.find(R"(  a="1  b=2")"), std::string::npos) << line;
  EXPECT_NE(line.find(R"(  c="\"  d=\"")"), std::string::npos) << line;
}

TEST(LogTest, EscapesLineEndsInFields) {
  const std::string line = Log::Line(Format::kText, Level::kInfo, kTime, "x",
                                     {{"ua", "curl\r\n2024-01-01 error: forged"}});
  EXPECT_NE(line.find(R"(ua="curl\u000d\u000a2024-01-01 error: forged")"), std::string::npos)
      << line;
}

}  // namespace
}  // namespace tidegate
