// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <algorithm>
#include <random>
#include <string>

#include "unit/net/http1_reader.hpp"
#include "unit/net/stream_reader.hpp"

namespace tidegate::net {
namespace {

using namespace std::string_literals;
using testing::ElementsAre;
using testing::Pair;

constexpr std::string_view kNext = "GET / HTTP/1.1\r\n";

struct Case {
  std::string wire;
  std::string body;
  Fields trailers = {};
};

const std::vector<Case> kValid = {
    {"0\r\n\r\n", ""},
    {"5\r\nhello\r\n0\r\n\r\n", "hello"},
    {"5\r\nhello\r\n00007\r\n, world\r\nA\r\n0123456789\r\n000\r\n\r\n", "hello, world0123456789"},
    {"9\r\n\r\n0\r\n\r\n\r\n\r\n0\r\n\r\n", "\r\n0\r\n\r\n\r\n"},
    {"1;a\r\nx\r\n1;a=b;c=\"d \\\" \xFF\t;\\\\\"\r\ny\r\n0;last=\"\";e\r\n\r\n", "xy"},
    {"1\r\nx\r\n0\r\nX-Sum: 12 \r\nEmpty:\r\n\r\n", "x", {{"X-Sum", "12"}, {"Empty", ""}}},
    {"0\r\nServer-Timing: a;dur=1\r\nX: \t y z\t\r\n\r\n",
     "",
     {{"Server-Timing", "a;dur=1"}, {"X", "y z"}}},
};

TEST(BodyReaderTest, DecodesChunkedBodyAndStopsAtItsEnd) {
  for (const Case& one : kValid) {
    const StreamAnswer answer = ReadChunkedStream(one.wire + std::string(kNext));
    EXPECT_EQ(answer.parsed, Parsed::kDone) << one.wire << answer.why;
    EXPECT_EQ(answer.body, one.body);
    EXPECT_EQ(answer.size, one.wire.size());
    EXPECT_EQ(answer.trailers, one.trailers);
  }
}

TEST(BodyReaderTest, DecodesTheSameHoweverInputIsSplit) {
  for (const Case& one : kValid) {
    const std::string input = one.wire + std::string(kNext);
    const StreamAnswer whole = ReadChunkedStream(input);
    EXPECT_EQ(ReadChunkedStream(input, EveryByte(input.size())), whole) << one.wire;
    for (std::size_t i = 0; i <= input.size(); ++i) {
      for (std::size_t k = i; k <= input.size(); ++k) {
        ASSERT_EQ(ReadChunkedStream(input, {i, k}), whole) << one.wire << i << ' ' << k;
      }
    }
  }
}

TEST(BodyReaderTest, ReturnsDataAsItArrives) {
  BodyReader reader;
  reader.Begin(BodyFraming::kChunked, 0);
  std::string first = "5\r\nhel";
  EXPECT_EQ(reader.Read(first), Parsed::kMore);
  EXPECT_EQ(reader.data(), "hel");
  EXPECT_EQ(reader.data().data(), first.data() + 3) << "the data was copied";
  EXPECT_EQ(reader.eaten(), first.size());
  EXPECT_FALSE(reader.done());
  EXPECT_FALSE(reader.EndsAtClose());
  std::string second = "lo\r\n1\r\n!\r\n0\r\nA: b";
  EXPECT_EQ(reader.Read(second), Parsed::kMore);
  EXPECT_EQ(reader.data(), "lo!");
  EXPECT_EQ(reader.eaten(), 13u) << "an incomplete trailer was consumed";
  std::string third = "A: b\r\n\r\nnext";
  EXPECT_EQ(reader.Read(third), Parsed::kDone);
  EXPECT_EQ(reader.data(), "");
  EXPECT_EQ(reader.eaten(), 8u);
  EXPECT_TRUE(reader.done() && reader.EndsAtClose());
  ASSERT_EQ(reader.trailers().size(), 1u);
  EXPECT_EQ(reader.trailers()[0].name, "A");
  EXPECT_EQ(reader.trailers()[0].value, "b");
}

TEST(BodyReaderTest, ReadsBodyOfKnownLength) {
  BodyReader reader;
  reader.Begin(BodyFraming::kLength, 5);
  std::string first = "hel";
  EXPECT_EQ(reader.Read(first), Parsed::kMore);
  EXPECT_EQ(reader.data(), "hel");
  EXPECT_EQ(reader.eaten(), 3u);
  EXPECT_FALSE(reader.EndsAtClose())
      << "the body counts as complete although two bytes are missing";
  std::string second = "lonext";
  EXPECT_EQ(reader.Read(second), Parsed::kDone);
  EXPECT_EQ(reader.data(), "lo");
  EXPECT_EQ(reader.eaten(), 2u);
  EXPECT_EQ(reader.Read(second), Parsed::kDone)
      << "the second call does not report the end of the body";
  EXPECT_EQ(reader.data(), "");
  EXPECT_EQ(reader.eaten(), 0u);
  EXPECT_TRUE(reader.trailers().empty());
}

TEST(BodyReaderTest, EndsAtOnceWithoutBody) {
  for (const BodyFraming kind : {BodyFraming::kNone, BodyFraming::kLength}) {
    BodyReader reader;
    reader.Begin(kind, 0);
    EXPECT_TRUE(reader.done() && reader.EndsAtClose());
    std::string next = "next";
    EXPECT_EQ(reader.Read(next), Parsed::kDone);
    EXPECT_EQ(reader.eaten(), 0u);
  }
}

TEST(BodyReaderTest, ReadsBodyThatEndsAtClose) {
  BodyReader reader;
  reader.Begin(BodyFraming::kUntilClose, 0);
  for (std::string piece : {"0\r\n\r\n", "", "more"}) {
    EXPECT_EQ(reader.Read(piece), Parsed::kMore);
    EXPECT_EQ(reader.data(), piece);
    EXPECT_EQ(reader.eaten(), piece.size());
    EXPECT_FALSE(reader.done());
    EXPECT_TRUE(reader.EndsAtClose());
  }
}

TEST(BodyReaderTest, BeginForgetsPreviousBody) {
  BodyReader reader;
  reader.Begin(BodyFraming::kChunked, 0);
  EXPECT_EQ(ReadStream(reader, "x").status, 400);
  reader.Begin(BodyFraming::kChunked, 0);
  EXPECT_EQ(ReadStream(reader, "4\r\nabcd\r\n0\r\nA: b\r\n\r\n").body, "abcd");
  reader.Begin(BodyFraming::kChunked, 0);
  const StreamAnswer answer = ReadStream(reader, "0\r\n\r\n");
  EXPECT_EQ(answer.parsed, Parsed::kDone);
  EXPECT_TRUE(answer.trailers.empty());
}

TEST(BodyReaderTest, RejectsMalformedChunksLikeTheDecoder) {
  for (const std::string& input : {"\r\n"s,
                                   "x"s,
                                   "0x5\r\n"s,
                                   "-5\r\n"s,
                                   " 5\r\n"s,
                                   "5 5\r\n"s,
                                   "5 ;\r\n"s,
                                   "5\nhello"s,
                                   "00000000000000005\r\n"s,
                                   "5\r\nhello\n"s,
                                   "5\r\nhello0"s,
                                   "0\r\n\n"s,
                                   "5;\r\n"s,
                                   "5;a=\"\n\"\r\n"s,
                                   "0\r\n X: y\r\n\r\n"s,
                                   "0\r\nX : y\r\n\r\n"s,
                                   "0\r\nX: y\r\n z\r\n\r\n"s,
                                   "0\r\nX: y\n\r\n"s,
                                   "0\r\nX: \0\r\n\r\n"s,
                                   "0\r\nX: y\r\nGET / HTTP/1.1\r\n\r\n"s}) {
    const StreamAnswer answer = ReadChunkedStream(input);
    EXPECT_EQ(answer.parsed, Parsed::kRefused) << testing::PrintToString(input);
    EXPECT_EQ(answer.status, 400);
    EXPECT_EQ(answer.why, ReadChunked(input).reason);
    EXPECT_EQ(ReadChunkedStream(input, EveryByte(input.size())), answer);
  }
}

TEST(BodyReaderTest, DropsFieldsThatAreForbiddenInTrailers) {
  for (const std::string name : {"content-length",
                                 "transfer-encoding",
                                 "host",
                                 "connection",
                                 "te",
                                 "trailer",
                                 "upgrade",
                                 "keep-alive",
                                 "proxy-connection",
                                 "authorization",
                                 "cookie",
                                 "proxy-authorization",
                                 "set-cookie",
                                 "content-encoding",
                                 "content-type",
                                 "content-range",
                                 "cache-control",
                                 "expect",
                                 "range",
                                 "max-forwards",
                                 "www-authenticate",
                                 "retry-after",
                                 "vary",
                                 "proxy-authenticate",
                                 "age",
                                 "expires",
                                 "date",
                                 "location",
                                 "pragma",
                                 "warning",
                                 "if-match",
                                 "if-none-match",
                                 "if-modified-since",
                                 "if-range",
                                 "HOST",
                                 "if-unmodified-since",
                                 "Content-Type"}) {
    const std::string input = "1\r\nx\r\n0\r\n" + name + ": 5\r\nX: y\r\n\r\n";
    const StreamAnswer answer = ReadChunkedStream(input + std::string(kNext));
    EXPECT_EQ(answer.parsed, Parsed::kDone) << name;
    EXPECT_EQ(answer.size, input.size()) << name;
    EXPECT_THAT(answer.trailers, ElementsAre(Pair("X", "y"))) << name;
    EXPECT_EQ(ReadChunkedStream(input, EveryByte(input.size())), ReadChunkedStream(input));
  }
}

TEST(BodyReaderTest, KeepsPermittedTrailers) {
  for (const std::string name : {"Content-Lengt", "Hosts", "Server-Timing", "ETag", "Digest"}) {
    const StreamAnswer answer = ReadChunkedStream("0\r\n" + name + ": 5\r\n\r\n");
    EXPECT_THAT(answer.trailers, ElementsAre(Pair(name, "5")));
  }
}

TEST(BodyReaderTest, DoesNotCountForbiddenTrailersTowardsLimit) {
  std::string many = "0\r\n";
  for (std::size_t i = 0; i < BodyReader::kMaxTrailers; ++i) many += "X: y\r\nDate: z\r\n";
  EXPECT_EQ(ReadChunkedStream(many + "\r\n").trailers.size(), BodyReader::kMaxTrailers);
}

TEST(BodyReaderTest, AcceptsBareLfOnlyWhenAllowed) {
  const auto read = [](const std::string& input, http1::LineEnd line_end,
                       const std::vector<std::size_t>& cuts = {}) {
    const auto reader = std::make_unique<BodyReader>();
    reader->Begin(BodyFraming::kChunked, 0, line_end);
    return ReadStream(*reader, input, cuts);
  };
  using enum http1::LineEnd;
  for (const std::string& input :
       {"5\nhello\n0\n\n"s, "5\r\nhello\n0\r\n\r\n"s, "5;a=b\nhello\r\n0\r\nX: y\n\n"s,
        "5 \nhello\n0;a \n\r\n"s, "5\r\nhello\r\n0\r\nX: y\r\n\n"s}) {
    const StreamAnswer answer = read(input + "next", kCrlfOrLf);
    EXPECT_EQ(answer.parsed, Parsed::kDone) << testing::PrintToString(input) << answer.why;
    EXPECT_EQ(answer.body, "hello");
    EXPECT_EQ(answer.size, input.size());
    EXPECT_EQ(read(input, kCrlfOrLf, EveryByte(input.size())), answer);
    EXPECT_EQ(read(input, kCrlf).parsed, Parsed::kRefused) << testing::PrintToString(input);
  }
  EXPECT_THAT(read("0\nX: y \nZ: z\n\n", kCrlfOrLf).trailers,
              ElementsAre(Pair("X", "y"), Pair("Z", "z")));
  for (const std::string& input : {"5\rhello"s, "5\r\nhello\r0"s, "0\r\nX: y\rZ: z\n\n"s, "0\n\rx"s,
                                   "5;a=\"\n\"\nhello\n0\n\n"s, "5;\nhello\n0\n\n"s}) {
    EXPECT_EQ(read(input, kCrlfOrLf).parsed, Parsed::kRefused) << testing::PrintToString(input);
  }
}

TEST(BodyReaderTest, RejectsBodyWhoseLengthOverflows) {
  EXPECT_EQ(ReadChunkedStream("1\r\nx\r\nFFFFFFFFFFFFFFFF").status, 413)
      << "an overflow of the sum of chunk sizes was not detected";
  EXPECT_EQ(ReadChunkedStream("FFFFFFFFFFFFFFFF\r\n").parsed, Parsed::kMore);
}

TEST(BodyReaderTest, LimitsExtensionsAndTrailers) {
  const std::size_t most = HttpLimits{}.trailer_bytes;
  const auto trailers = [](std::size_t bytes) {
    return "0\r\nX: " + std::string(bytes - 5, 'y') + "\r\n\r\n";
  };
  EXPECT_EQ(ReadChunkedStream(trailers(most)).parsed, Parsed::kDone);
  EXPECT_EQ(ReadChunkedStream(trailers(most + 1)).status, 400);
  const std::string over = trailers(most + 1);
  EXPECT_EQ(ReadChunkedStream(over, EveryByte(over.size())).status, 400);
  EXPECT_EQ(ReadChunkedStream("5;" + std::string(5000, 'y')).status, 400);
  // The limit applies to all chunks of a body together, however the input is split.
  std::string chunks;
  for (int i = 0; i < 300; ++i) chunks += "1;0123456789abcdef\r\nx\r\n";
  EXPECT_EQ(ReadChunkedStream(chunks, EveryByte(chunks.size())).status, 400);
  std::string many = "0\r\n";
  for (std::size_t i = 0; i < BodyReader::kMaxTrailers; ++i) many += "X: y\r\n";
  EXPECT_EQ(ReadChunkedStream(many + "\r\n").trailers.size(), BodyReader::kMaxTrailers);
  EXPECT_EQ(ReadChunkedStream(many + "X: y\r\n\r\n").status, 400);
}

/// Random chunks of a body, read in random pieces, give the body.
TEST(BodyReaderTest, DecodesRandomBodiesInRandomPieces) {
  std::minstd_rand random(7);
  for (int round = 0; round < 200; ++round) {
    std::string body;
    std::string wire;
    for (unsigned chunks = random() % 8; chunks > 0; --chunks) {
      std::string data(1 + random() % 300, 'x');
      for (char& c : data) c = static_cast<char>(random());
      char size[16];
      std::snprintf(size, sizeof size, "%zx\r\n", data.size());
      wire += size + data + "\r\n";
      body += data;
    }
    wire += "0\r\nX: y\r\n\r\n";
    const std::string input = wire + std::string(kNext);
    std::vector<std::size_t> cuts(random() % 20);
    for (std::size_t& cut : cuts) cut = random() % (input.size() + 1);
    std::sort(cuts.begin(), cuts.end());
    const StreamAnswer answer = ReadChunkedStream(input, cuts);
    ASSERT_EQ(answer.parsed, Parsed::kDone) << answer.why;
    ASSERT_EQ(answer.body, body);
    ASSERT_EQ(answer.size, wire.size());
    ASSERT_THAT(answer.trailers, ElementsAre(Pair("X", "y")));
  }
}

}  // namespace
}  // namespace tidegate::net
