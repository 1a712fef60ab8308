// SPDX-License-Identifier: Apache-2.0
#include "store/redis/resp_reader.hpp"

#include <gtest/gtest.h>

namespace tidegate::redis {
namespace {

using Progress = RespReader::Progress;
using Type = Reply::Type;

/// Returns a reply as one line of text, so that replies can be compared.
std::string TextOf(const Reply& reply) {
  switch (reply.type) {
    case Type::kText: return "'" + std::string(reply.text) + "'";
    case Type::kError: return "!" + std::string(reply.text);
    case Type::kInteger: return std::to_string(reply.integer);
    case Type::kNull: return "null";
    case Type::kArray:
    case Type::kPush: {
      std::string text = reply.is(Type::kPush) ? ">[" : "[";
      for (const Reply& element : reply.elements) text += TextOf(element) + " ";
      return text + "]";
    }
  }
  return "?";
}

std::string ReadAll(std::string_view bytes, std::size_t piece) {
  RespReader reader;
  std::string text_of_all;
  Reply reply;
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    reader.Feed(bytes.substr(at, piece));
    Progress progress = reader.Next(reply);
    for (; progress == Progress::kReply; progress = reader.Next(reply))
      text_of_all += TextOf(reply) + ";";
    if (progress == Progress::kGarbage) return text_of_all + "garbage";
  }
  return text_of_all;
}

TEST(RespReaderTest, ReadsEveryTypeInPieces) {
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

TEST(RespReaderTest, RejectsInvalidBytes) {
  for (const std::string_view bytes :
       {"HTTP/1.1 400 Bad Request\r\n", ":12a\r\n", ":\r\n", "$-2\r\n", "$99999999999\r\n",
        "$3\r\nabcd\r\n", "*-2\r\n", "*99999999999\r\n", "+a\nb\r\n", "\r\n", "#x\r\n", "_x\r\n",
        "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n", "*1048577\r\n",
        "%524289\r\n", "*2\r\n*600000\r\n*600000\r\n"}) {
    EXPECT_EQ(ReadAll(bytes, bytes.size()), "garbage") << bytes;
  }
}

TEST(RespReaderTest, AnnouncedElementsUseNoMemory) {
  RespReader reader;
  reader.Feed("*1000000\r\n:1\r\n");
  Reply reply;
  EXPECT_EQ(reader.Next(reply), Progress::kMore);
  EXPECT_LT(reply.elements.capacity(), 16u);
}

TEST(RespReaderTest, LimitsDepthOfOpenArrays) {
  const auto nested = [](int depth) {
    std::string bytes = "*100\r\n";
    for (int i = 0; i < 100; ++i) {
      for (int level = 1; level < depth; ++level) bytes += "*1\r\n";
      bytes += ":1\r\n";
    }
    return bytes;
  };
  for (const std::size_t piece : {1u, 7u, 100'000u}) {
    EXPECT_NE(ReadAll(nested(RespReader::kMostDepth), piece), "garbage") << piece;
    EXPECT_EQ(ReadAll(nested(RespReader::kMostDepth + 1), piece), "garbage") << piece;
  }
}

/// Returns a reply to CLUSTER SLOTS in a cluster where no two neighbouring slots have the same
/// owner: 8,192 ranges, with three nodes each, with metadata.
std::string TornCluster() {
  std::string bytes = "*8192\r\n";
  for (int range = 0; range < 8192; ++range) {
    const std::string slot = ":" + std::to_string(2 * range) + "\r\n";
    bytes.append("*5\r\n").append(slot).append(slot);
    for (int node = 0; node < 3; ++node) {
      bytes += "*4\r\n$13\r\n192.168.100." + std::to_string(node) + "\r\n:6379\r\n$40\r\n" +
               std::string(40, 'a') + "\r\n%1\r\n$8\r\nhostname\r\n$20\r\n" + std::string(20, 'h') +
               "\r\n";
    }
  }
  return bytes;
}

TEST(RespReaderTest, ReadsLargeClusterReplyPieceByPiece) {
  const std::string bytes = TornCluster();
  ASSERT_GT(bytes.size(), 3u << 20);
  // If the reader started from the beginning at each piece, the smallest pieces would take about
  // 25,000 times as long.
  for (const std::size_t piece : {61u, 1448u, 16'384u, 1u << 30}) {
    RespReader reader;
    Reply reply;
    std::size_t at = 0;
    for (; at < bytes.size(); at += piece) {
      reader.Feed(std::string_view(bytes).substr(at, piece));
      const Progress progress = reader.Next(reply);
      ASSERT_EQ(progress, at + piece < bytes.size() ? Progress::kMore : Progress::kReply) << at;
    }
    ASSERT_EQ(reply.elements.size(), 8192u);
    const Reply& last = reply.elements.back();
    ASSERT_EQ(last.elements.size(), 5u);
    EXPECT_EQ(last.elements[1].integer, 16'382);
    EXPECT_EQ(TextOf(last.elements[4]), "['192.168.100.2' 6379 '" + std::string(40, 'a') +
                                            "' ['hostname' '" + std::string(20, 'h') + "' ] ]");
    // The reader then reads a small reply.
    reader.Feed("+OK\r\n");
    ASSERT_EQ(reader.Next(reply), Progress::kReply);
    EXPECT_EQ(TextOf(reply), "'OK'");
  }
}

TEST(RespReaderTest, RejectsReplyThatNeverEnds) {
  RespReader reader;
  Reply reply;
  reader.Feed("*1000000\r\n");
  const std::string piece = "$40\r\n" + std::string(40, 'x') + "\r\n";
  std::size_t fed = 0;
  for (; fed <= RespReader::kMostBytes; fed += piece.size()) {
    reader.Feed(piece);
    if (reader.Next(reply) == Progress::kGarbage) break;
  }
  EXPECT_LE(fed, RespReader::kMostBytes);
  EXPECT_GT(fed, RespReader::kMostBytes - 1000);
}

TEST(RespReaderTest, AppliesElementLimitToEachReply) {
  std::string bytes = "*400000\r\n";
  for (int i = 0; i < 400'000; ++i) bytes += "_\r\n";
  RespReader reader;
  Reply reply;
  for (int i = 0; i < 3; ++i) {
    reader.Feed(bytes);
    ASSERT_EQ(reader.Next(reply), Progress::kReply) << i;
    EXPECT_EQ(reply.elements.size(), 400'000u);
  }
}

TEST(RespReaderTest, ClearDropsIncompleteReply) {
  RespReader reader;
  Reply reply;
  reader.Feed("*2\r\n*2\r\n:1\r\n");
  ASSERT_EQ(reader.Next(reply), Progress::kMore);
  reader.Clear();
  reader.Feed(":7\r\n");
  ASSERT_EQ(reader.Next(reply), Progress::kReply);
  EXPECT_EQ(TextOf(reply), "7");
}

TEST(RespReaderTest, RejectsEndlessLine) {
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
