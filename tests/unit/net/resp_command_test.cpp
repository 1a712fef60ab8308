// SPDX-License-Identifier: Apache-2.0
#include "net/resp_command.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "unit/net/resp_connection.hpp"

namespace tidegate::net {
namespace {

using namespace std::string_literals;
using testing::ElementsAre;
using testing::IsEmpty;
using Progress = RespCommandParser::Progress;

std::vector<std::size_t> EveryByte(std::size_t size) {
  std::vector<std::size_t> cuts;
  for (std::size_t i = 1; i < size; ++i) cuts.push_back(i);
  return cuts;
}

/// Returns the first result, which must be the same however the input is split.
CommandAnswer Read(std::string_view input, const RespLimits& limits = {}) {
  const auto answers = ReadCommands(input, limits);
  EXPECT_EQ(ReadCommands(input, limits, EveryByte(input.size())), answers) << input;
  for (std::size_t cut = 0; cut <= input.size() && input.size() < 256; ++cut) {
    EXPECT_EQ(ReadCommands(input, limits, {cut}), answers) << input << cut;
  }
  return answers.front();
}

std::string Problem(std::string_view input, const RespLimits& limits = {}) {
  const CommandAnswer answer = Read(input, limits);
  EXPECT_EQ(answer.progress, Progress::kBad) << input;
  return answer.problem;
}

std::vector<std::string> Words(std::string_view line) {
  const CommandAnswer answer = Read(line);
  EXPECT_EQ(answer.progress, Progress::kCommand) << line << answer.problem;
  EXPECT_EQ(answer.consumed, line.size());
  return answer.arguments;
}

TEST(RespCommandTest, ParsesCommand) {
  const std::string command =
      "*5\r\n$11\r\nCL.THROTTLE\r\n$6\r\nuser:1\r\n$2\r\n15\r\n$2\r\n30\r\n$2\r\n60\r\n";
  const CommandAnswer answer = Read(command + "*1\r\n$4\r\nPI");
  EXPECT_EQ(answer.progress, Progress::kCommand);
  EXPECT_EQ(answer.consumed, command.size());
  EXPECT_THAT(answer.arguments, ElementsAre("CL.THROTTLE", "user:1", "15", "30", "60"));
}

TEST(RespCommandTest, AcceptsAnyBytesInElements) {
  const std::vector<std::string> arguments = {"GET", "", "\r\n", "a\0b"s, "*1\r\n$4\r\nPING\r\n",
                                              "\xff"};
  EXPECT_EQ(Read(Encoded(arguments)).arguments, arguments);
}

TEST(RespCommandTest, ParsesSeveralCommandsInOneBuffer) {
  const std::string ping = "*1\r\n$4\r\nPING\r\n";
  const std::string input = ping + "PING\r\n\r\n*0\r\n" + ping + "*-1\r\nPING x\n*";
  const auto answers = ReadCommands(input);
  EXPECT_EQ(ReadCommands(input, {}, EveryByte(input.size())), answers);
  std::vector<std::size_t> consumed;
  std::string kinds;
  for (const CommandAnswer& answer : answers) {
    consumed.push_back(answer.consumed);
    kinds += "CNMB"[static_cast<int>(answer.progress)];
  }
  EXPECT_EQ(kinds, "CCNNCNCM");
  EXPECT_THAT(consumed, ElementsAre(14, 6, 2, 4, 14, 5, 7, 0));
}

TEST(RespCommandTest, SkipsEmptyCommandsAndLines) {
  for (const std::string_view input : {"*0\r\n", "*-1\r\n", "*-9\r\n", "\r\n", "\n", "  \t \r\n"}) {
    const CommandAnswer answer = Read(input);
    EXPECT_EQ(answer.progress, Progress::kNothing) << input;
    EXPECT_EQ(answer.consumed, input.size()) << input;
    EXPECT_THAT(answer.arguments, IsEmpty());
  }
}

TEST(RespCommandTest, NeedsMoreInputForEveryPrefix) {
  for (const std::string& input : {Encoded({"CL.THROTTLE", "user:1", "15", "30", "60"}),
                                   Encoded({"", ""}), "set \"a \\x41\" 'b'\r\n"s, "*-1\r\n"s}) {
    for (std::size_t size = 0; size < input.size(); ++size) {
      EXPECT_EQ(Read(input.substr(0, size)).progress, Progress::kMore) << input.substr(0, size);
    }
  }
}

TEST(RespCommandTest, RejectsInvalidElementCounts) {
  for (const std::string_view count : {"", "x", "1x", "1 ", " 1", "+1", "01", "-0", "-", "--1",
                                       "0x1", "1.0", "1\n", "1\r\r", "\r", "-00"}) {
    EXPECT_EQ(Problem("*" + std::string(count) + "\r\n"),
              "Protocol error: invalid multibulk length")
        << count;
  }
  EXPECT_EQ(Problem("*65\r\n"), "Protocol error: invalid multibulk length: at most 64 elements");
  for (const char* count : {"1048577", "2147483648", "9223372036854775808", "18446744073709551617",
                            "99999999999999999999999999999999"}) {
    EXPECT_EQ(Problem("*" + std::string(count) + "\r\n"),
              "Protocol error: invalid multibulk length: at most 64 elements");
  }
  // 32 characters may still be a number; the 33rd is rejected, whatever follows.
  EXPECT_EQ(Read("*" + std::string(32, '9')).progress, Progress::kMore);
  EXPECT_EQ(Problem("*" + std::string(33, '9')), "Protocol error: too big mbulk count string");
  EXPECT_EQ(Problem("*-" + std::string(32, '9')), "Protocol error: too big mbulk count string");
  EXPECT_EQ(Read("*-" + std::string(31, '9') + "\r\n").progress, Progress::kNothing);
}

TEST(RespCommandTest, RejectsInvalidBulkLengths) {
  for (const std::string_view length :
       {"", "x", "4x", "+4", "04", "-1", "-4", "-0", "4\n", "4\r ", "0x4"}) {
    EXPECT_EQ(Problem("*1\r\n$" + std::string(length) + "\r\nPING\r\n"),
              "Protocol error: invalid bulk length")
        << length;
  }
  const RespLimits limits{.elements = 2, .bulk_bytes = 4, .inline_bytes = 16};
  EXPECT_EQ(Read("*1\r\n$4\r\nPING\r\n", limits).progress, Progress::kCommand);
  EXPECT_EQ(Problem("*1\r\n$5\r\n", limits),
            "Protocol error: invalid bulk length: at most 4 bytes");
  EXPECT_EQ(Problem("*1\r\n$65537\r\n"),
            "Protocol error: invalid bulk length: at most 65536 bytes");
  EXPECT_EQ(Problem("*1\r\n$18446744073709551612\r\n"),
            "Protocol error: invalid bulk length: at most 65536 bytes");
  EXPECT_EQ(Problem("*1\r\n$" + std::string(33, '1')), "Protocol error: too big bulk count string");
}

TEST(RespCommandTest, RejectsElementsThatAreNotBulkStrings) {
  EXPECT_EQ(Problem("*2\r\n:1\r\n"), "Protocol error: expected '$', got ':'");
  EXPECT_EQ(Problem("*2\r\n$4\r\nPING\r\n*0\r\n"), "Protocol error: expected '$', got '*'");
  EXPECT_EQ(Problem("*1\r\n\r\n"), "Protocol error: expected '$', got '\\x0d'");
  EXPECT_EQ(Problem("*1\r\n\xff"), "Protocol error: expected '$', got '\\xff'");
  for (const std::string_view end : {"xx", "\r\r", "\n\r", "\n\n", "x\r\n"}) {
    EXPECT_EQ(Problem("*1\r\n$4\r\nPING" + std::string(end)),
              "Protocol error: expected CRLF after a bulk string")
        << end;
  }
}

TEST(RespCommandTest, ParsesNextCommandAfterError) {
  RespCommandParser parser;
  EXPECT_EQ(parser.Parse("*2\r\n$4\r\nPING\r\n", {}), Progress::kMore);
  EXPECT_EQ(parser.Parse("*2\r\n$4\r\nPING\r\nx", {}), Progress::kBad);
  EXPECT_EQ(parser.Parse("*1\r\n$4\r\nPING\r\n", {}), Progress::kCommand);
  EXPECT_THAT(parser.arguments(), ElementsAre("PING"));
  EXPECT_EQ(parser.consumed(), 14u);
}

TEST(RespInlineTest, SplitsWordsAtWhiteSpace) {
  EXPECT_THAT(Words("PING\r\n"), ElementsAre("PING"));
  EXPECT_THAT(Words("PING\n"), ElementsAre("PING"));
  EXPECT_THAT(Words("  CL.THROTTLE\tuser:1  15 30 60 \r\n"),
              ElementsAre("CL.THROTTLE", "user:1", "15", "30", "60"));
  EXPECT_THAT(Words("a\0b \xff\n"s), ElementsAre("a\0b"s, "\xff"));
  EXPECT_THAT(Words("$4\r\n"), ElementsAre("$4"));
  EXPECT_THAT(Words("a\\nb c\\\r\n"), ElementsAre("a\\nb", "c\\"));
}

TEST(RespInlineTest, ReadsQuotedWords) {
  EXPECT_THAT(Words(R"(get "" '')"
                    "\r\n"),
              ElementsAre("get", "", ""));
  EXPECT_THAT(Words("\"a b\" 'c d'\n"), ElementsAre("a b", "c d"));
  EXPECT_THAT(Words("\"\\n\\r\\t\\b\\a\\x41\\x0a\\xfF\\\\\\\"\"\n"),
              ElementsAre("\n\r\t\b\aA\n\xff\\\""));
  EXPECT_THAT(Words("\"\\q\\xg1\\x1\\'\"\n"), ElementsAre("qxg1x1'"));
  EXPECT_THAT(Words("'\\n\\'\\\"\\x41\\\\ '\n"), ElementsAre("\\n'\\\"\\x41\\\\ "));
  EXPECT_THAT(Words("pre\"fix a\" x \"y\"\r\n"), ElementsAre("prefix a", "x", "y"));
  EXPECT_THAT(Words("\"\\x00\"\n"), ElementsAre("\0"s));
}

TEST(RespInlineTest, RejectsUnbalancedQuotes) {
  for (const std::string_view line : {"\"", "'", "a \"b", "a 'b", "\"a\"b", "'a'b", "\"a\"\"b\"",
                                      "\"a\\\"", "'a\\'", "\"a\\", "a\"", "it's", "'a'\"b\""}) {
    EXPECT_EQ(Problem(std::string(line) + "\r\n"), "Protocol error: unbalanced quotes in request")
        << line;
  }
}

TEST(RespInlineTest, RejectsLinesAboveTheLimits) {
  const RespLimits limits{.elements = 3, .bulk_bytes = 6, .inline_bytes = 10};
  EXPECT_EQ(Read("ping 56789\n", limits).progress, Progress::kCommand);
  EXPECT_EQ(Problem("ping 567890", limits),
            "Protocol error: too big inline request: at most 10 bytes");
  EXPECT_EQ(Problem("ping 567890\n", limits),
            "Protocol error: too big inline request: at most 10 bytes");
  EXPECT_EQ(Read("a b c\n", limits).progress, Progress::kCommand);
  EXPECT_EQ(Problem("a b c d\n", limits),
            "Protocol error: too big inline request: at most 3 words");
  EXPECT_EQ(Problem("1234567\n", limits),
            "Protocol error: too big inline request: at most 6 bytes in a word");
}

/// 400,000 calls. If each call parsed the command from its beginning, the parser would read 10^11
/// lengths of elements.
TEST(RespCommandTest, ParsesCommandArrivingByteByByteInLinearTime) {
  const RespLimits limits{.elements = 1u << 20, .bulk_bytes = 1u << 20, .inline_bytes = 1u << 20};
  std::string many = "*40000\r\n";
  for (int i = 0; i < 40000; ++i) many += "$0\r\n\r\n";
  const std::vector<std::pair<std::string, std::size_t>> inputs = {
      {many, 40000},
      {Encoded({std::string(100'000, 'a')}), 1},
      {std::string(100'000, 'a') + "\r\n", 1},
  };
  for (const auto& [input, elements] : inputs) {
    RespCommandParser parser;
    for (std::size_t size = 0; size < input.size(); ++size) {
      ASSERT_EQ(parser.Parse({input.data(), size}, limits), Progress::kMore);
    }
    ASSERT_EQ(parser.Parse(input, limits), Progress::kCommand);
    EXPECT_EQ(parser.arguments().size(), elements);
    EXPECT_EQ(parser.consumed(), input.size());
  }
}

TEST(RespCommandTest, ParsesRandomCommandsSplitAnywhere) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    std::vector<std::vector<std::string>> commands(1 + random() % 8);
    std::string input;
    for (auto& command : commands) {
      command.resize(1 + random() % 8);
      for (std::string& argument : command) {
        argument.resize(random() % (random() % 8 == 0 ? 300 : 12));
        for (char& c : argument) c = static_cast<char>(random());
      }
      input += Encoded(command);
    }
    std::vector<std::size_t> cuts(random() % 12);
    for (std::size_t& cut : cuts) cut = random() % (input.size() + 1);
    std::sort(cuts.begin(), cuts.end());
    auto answers = ReadCommands(input, {}, cuts);
    ASSERT_EQ(answers.back().progress, Progress::kMore);
    answers.pop_back();
    ASSERT_EQ(answers.size(), commands.size());
    for (std::size_t i = 0; i < commands.size(); ++i) {
      EXPECT_EQ(answers[i].progress, Progress::kCommand);
      EXPECT_EQ(answers[i].arguments, commands[i]);
    }
  }
}

}  // namespace
}  // namespace tidegate::net
