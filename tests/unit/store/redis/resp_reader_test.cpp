// SPDX-License-Identifier: Apache-2.0
#include "store/redis/resp_reader.hpp"

#include <gtest/gtest.h>

namespace tidegate::redis {
namespace {

using Progress = RespReader::Progress;
using Type = Reply::Type;

/// In one line, so that replies can be compared.
std::string Told(const Reply& reply) {
  switch (reply.type) {
    case Type::kText:
      return "'" + std::string(reply.text) + "'";
    case Type::kError:
      return "!" + std::string(reply.text);
    case Type::kInteger:
      return std::to_string(reply.integer);
    case Type::kNull:
      return "null";
    case Type::kArray:
    case Type::kPush: {
      std::string text = reply.is(Type::kPush) ? ">[" : "[";
      for (const Reply& element : reply.elements) text += Told(element) + " ";
      return text + "]";
    }
  }
  return "?";
}

std::string ReadAll(std::string_view bytes, std::size_t piece) {
  RespReader reader;
  std::string told;
  Reply reply;
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    reader.Feed(bytes.substr(at, piece));
    Progress progress = reader.Next(reply);
    for (; progress == Progress::kReply; progress = reader.Next(reply)) told += Told(reply) + ";";
    if (progress == Progress::kGarbage) return told + "garbage";
  }
  return told;
}

TEST(RespReader, ReadsEveryTypeHoweverItIsCut) {
  constexpr std::string_view kBytes =
      "+OK\r\n-ERR no\r\n:-42\r\n$3\r\na\r\n\r\n$0\r\n\r\n$-1\r\n*-1\r\n*0\r\n"
      "*2\r\n:1\r\n*1\r\n$1\r\nx\r\n_\r\n#t\r\n#f\r\n,1.5\r\n(123456789012345678901234\r\n"
      "=5\r\ntxt:x\r\n!4\r\nOOPS\r\n%1\r\n+k\r\n:9\r\n~1\r\n+s\r\n"
      ">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nk\r\n+END\r\n";
  const std::string whole = ReadAll(kBytes, kBytes.size());
  EXPECT_EQ(
      whole,
      "'OK';!ERR no;-42;'a\r\n';'';null;null;[];[1 ['x' ] ];null;1;0;'1.5';"
      "'123456789012345678901234';'txt:x';!OOPS;['k' 9 ];['s' ];>['message' 'c' 'k' ];'END';");
  for (std::size_t piece = 1; piece < kBytes.size(); ++piece) {
    ASSERT_EQ(ReadAll(kBytes, piece), whole) << piece;
  }
}

TEST(RespReader, GarbageIsNeverAReply) {
  for (const std::string_view bytes :
       {"HTTP/1.1 400 Bad Request\r\n", ":12a\r\n", ":\r\n", "$-2\r\n", "$99999999999\r\n",
        "$3\r\nabcd\r\n", "*-2\r\n", "*99999999999\r\n", "+a\nb\r\n", "\r\n", "#x\r\n", "_x\r\n",
        "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n"}) {
    EXPECT_EQ(ReadAll(bytes, bytes.size()), "garbage") << bytes;
  }
}

TEST(RespReader, APromiseOfManyElementsTakesNoMemory) {
  RespReader reader;
  reader.Feed("*5000000\r\n:1\r\n");
  Reply reply;
  EXPECT_EQ(reader.Next(reply), Progress::kMore);
  EXPECT_LT(reply.elements.capacity(), 16u);
}

TEST(RespReader, ALineWithoutAnEndIsGarbage) {
  RespReader reader;
  Reply reply;
  reader.Feed("+");
  for (int i = 0; i < 100; ++i) {
    reader.Feed(std::string(1024, 'a'));
    if (reader.Next(reply) == Progress::kGarbage) return;
  }
  FAIL();
}

}  // namespace
}  // namespace tidegate::redis
