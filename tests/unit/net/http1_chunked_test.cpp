// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <string>

#include "unit/net/http1_reader.hpp"

namespace tidegate::net {
namespace {

using namespace std::string_literals;

int Status(std::string_view input, const HttpLimits& limits = {}) {
  const BodyAnswer answer = ReadChunked(input, limits);
  return answer.parsed == Parsed::kRefused ? answer.status : answer.parsed == Parsed::kDone ? 0 : 1;
}

const std::vector<std::string> kValid = {
    "0\r\n\r\n",
    "5\r\nhello\r\n0\r\n\r\n",
    "5\r\nhello\r\n00007\r\n, world\r\nA\r\n0123456789\r\n000\r\n\r\n",
    "9\r\n\r\n0\r\n\r\n\r\n\r\n0\r\n\r\n",
    "1;a\r\nx\r\n1;a=b;c=\"d \\\" \xFF\t;\\\\\"\r\ny\r\n0;last=\"\";e\r\n\r\n",
    "1\r\nx\r\n0\r\nX-Sum: 12 \r\nEmpty:\r\nHost: b\r\n\r\n",
    "000000000000000F\r\n0123456789abcde\r\n0000000000000000\r\n\r\n",
    // White space where RFC 9112, 7.1.1 allows BWS, and before the line end.
    "5 \r\nhello\r\n0\t\r\n\r\n",
    "2 \t;a\r\nhe\r\n3; b \t= c;\td\t=\t\"e f\" ;g \r\nllo\r\n0 ; z=\"\" \r\n\r\n",
    "1\r\nx\r\n0\r\nContent-Length: 5\r\nTRANSFER-ENCODING: chunked\r\n\r\n",
};

TEST(Http1ChunkedTest, DecodesValidBodies) {
  const std::vector<std::string> bodies = {
      "",      "hello", "hello, world0123456789", "\r\n0\r\n\r\n\r\n",
      "xy",    "x",     "0123456789abcde",        "hello",
      "hello", "x"};
  for (std::size_t i = 0; i < kValid.size(); ++i) {
    const BodyAnswer answer = ReadChunked(kValid[i] + "GET / HTTP/1.1");
    EXPECT_EQ(answer.parsed, Parsed::kDone) << kValid[i] << answer.reason;
    EXPECT_EQ(answer.body, bodies[i]);
    EXPECT_EQ(answer.raw, kValid[i].size());
  }
}

TEST(Http1ChunkedTest, DecodesTheSameHoweverInputIsSplit) {
  for (const std::string& input : kValid) {
    const BodyAnswer whole = ReadChunked(input);
    for (std::size_t size = 0; size < input.size(); ++size) {
      EXPECT_EQ(Status(std::string_view(input).substr(0, size)), 1) << input << size;
      EXPECT_EQ(ReadChunked(input, {}, {size}), whole) << input << size;
    }
    EXPECT_EQ(ReadChunked(input, {}, EveryByte(input.size())), whole) << input;
  }
}

/// Decodes `input`, whose first piece has `cut` bytes and all others `piece` bytes. Removes the
/// consumed bytes after each piece, as a connection does.
BodyAnswer ReadCompacting(std::string_view input, std::size_t cut, std::size_t piece,
                          const HttpLimits& limits = {}) {
  ChunkedDecoder decoder;
  std::string buffer;
  std::size_t taken = 0;
  std::size_t fed = 0;
  while (true) {
    const std::size_t size = std::min(fed == 0 ? cut : piece, input.size() - fed);
    buffer += input.substr(fed, size);
    fed += size;
    const Parsed parsed = decoder.Decode(buffer, limits);
    if (parsed == Parsed::kMore && fed < input.size()) {
      const std::size_t gone = decoder.raw() - decoder.decoded();
      buffer.erase(decoder.decoded(), gone);
      taken += gone;
      decoder.Compacted();
      continue;
    }
    BodyAnswer answer;
    answer.parsed = parsed;
    if (parsed == Parsed::kRefused) answer.status = decoder.refusal().status;
    if (parsed != Parsed::kDone) return answer;
    answer.body = buffer.substr(0, decoder.decoded());
    answer.raw = decoder.raw() + taken;
    return answer;
  }
}

TEST(Http1ChunkedTest, AllowsConsumedInputToBeRemoved) {
  for (const std::string& input : kValid) {
    const BodyAnswer whole = ReadChunked(input);
    for (std::size_t cut = 1; cut <= input.size(); ++cut) {
      for (const std::size_t piece : {1u, 2u, 3u, 1000u}) {
        const BodyAnswer answer = ReadCompacting(input, cut, piece);
        ASSERT_EQ(answer.parsed, Parsed::kDone) << input << cut << ' ' << piece;
        EXPECT_EQ(answer.body, whole.body) << input << cut << ' ' << piece;
        EXPECT_EQ(answer.raw, whole.raw) << input << cut << ' ' << piece;
      }
    }
  }
}

TEST(Http1ChunkedTest, AppliesTrailerLimitWhenConsumedInputIsRemoved) {
  const HttpLimits limits{.trailer_bytes = 40};
  for (const std::size_t size : {30u, 36u, 37u, 38u, 60u, 500u}) {
    const std::string input = "5\r\nhello\r\n0\r\nA:" + std::string(size, 'x') + "\r\n\r\n";
    const BodyAnswer whole = ReadChunked(input, limits);
    for (std::size_t cut = 1; cut < input.size(); ++cut) {
      EXPECT_EQ(ReadCompacting(input, cut, 1, limits).parsed, whole.parsed) << size << ' ' << cut;
    }
  }
}

TEST(Http1ChunkedTest, RejectsMalformedBodies) {
  for (const std::string& input : {
           // Invalid chunk sizes.
           "\r\n"s,
           "x"s,
           "g\r\n"s,
           "0x5\r\n"s,
           "+5\r\n"s,
           "-5\r\n"s,
           " 5\r\n"s,
           "5 5\r\n"s,
           "5 a\r\n"s,
           "5 =a\r\n"s,
           "5 \n"s,
           "5 \rx"s,
           " \r\n"s,
           "5,5\r\n"s,
           "5\0\r\n"s,
           ";a\r\n"s,
           "5_0\r\n"s,
           "\xB2\r\n"s,
           "5\v\r\n"s,
           "00000000000000005\r\n"s,
           "00000000000000000\r\n"s,
           // Invalid line ends.
           "5\nhello\r\n0\r\n\r\n"s,
           "5\r\rhello"s,
           "5\rhello"s,
           "5\r\nhello\n"s,
           "5\r\nhello\r\r"s,
           "5\r\nhello0"s,
           "5\r\nhell\r\n0"s,
           "0\r\n\n"s,
           "0\n"s,
           "0\r\n\rx"s,
           // Invalid chunk extensions.
           "5;\r\n"s,
           "5;;a\r\n"s,
           "5; \r\n"s,
           "5 ;\r\n"s,
           "5; ;a\r\n"s,
           "5;a b\r\n"s,
           "5;a b=c\r\n"s,
           "5;a=b c\r\n"s,
           "5;a=b =c\r\n"s,
           "5;a= \r\n"s,
           "5;a=\"b\" c\r\n"s,
           "5;a =\n"s,
           "5;a=\r\n"s,
           "5;a=b=c\r\n"s,
           "5;a=\"b\r\n"s,
           "5;a=\"b\"c\r\n"s,
           "5;a=\"\0\"\r\n"s,
           "5;a=\"\\\n\"\r\n"s,
           "5;a\n"s,
           "5;a\rb"s,
           "5;a=\"\r\n\"\r\n"s,
           "5;\x7F\r\n"s,
           "5;(\r\n"s,
           "5;a=b,c\r\n"s,
           // Invalid trailers.
           "0\r\n X: y\r\n\r\n"s,
           "0\r\nX : y\r\n\r\n"s,
           "0\r\n: y\r\n\r\n"s,
           "0\r\nX\r\n\r\n"s,
           "0\r\nX: y\n\r\n"s,
           "0\r\nX: y\rZ"s,
           "0\r\nX: \0\r\n\r\n"s,
           "0\r\nX: y\r\n z\r\n\r\n"s,
           "0\r\nX: y\r\nGET / HTTP/1.1\r\n\r\n"s,
       }) {
    EXPECT_EQ(Status(input), 400) << testing::PrintToString(input);
    EXPECT_EQ(ReadChunked(input, {}, EveryByte(input.size())), ReadChunked(input));
  }
}

TEST(Http1ChunkedTest, RejectsBodyAboveTheLimit) {
  const HttpLimits limits{.body_bytes = 20};
  EXPECT_EQ(Status("14\r\n01234567890123456789\r\n0\r\n\r\n", limits), 0);
  EXPECT_EQ(Status("15", limits), 413) << "not rejected before the line is complete";
  EXPECT_EQ(Status("A\r\n0123456789\r\nA\r\n0123456789\r\n0\r\n\r\n", limits), 0);
  EXPECT_EQ(Status("A\r\n0123456789\r\nB", limits), 413);
  EXPECT_EQ(Status("FFFFFFFFFFFFFFFF\r\n"), 413);
  EXPECT_EQ(Status("FFFFFFFFFFFFFFFFF\r\n"), 413);
  const HttpLimits endless{.body_bytes = SIZE_MAX};
  EXPECT_EQ(Status("1\r\nx\r\nFFFFFFFFFFFFFFFF", endless), 413)
      << "an overflow of the sum of chunk sizes was not detected";
  EXPECT_EQ(Status("FFFFFFFFFFFFFFFF\r\n", endless), 1);
  EXPECT_EQ(Status("10000000000000000", endless), 400);
}

TEST(Http1ChunkedTest, ExtensionsAndTrailersShareOneLimit) {
  const HttpLimits limits{.trailer_bytes = 10};
  EXPECT_EQ(Status("1;345\r\nx\r\n0;789\r\n\r\n", limits), 0);
  EXPECT_EQ(Status("1;345\r\nx\r\n0;789ab", limits), 1);
  EXPECT_EQ(Status("1;345\r\nx\r\n0;789abc", limits), 400);
  EXPECT_EQ(Status("0\r\nX: 45678\r\n\r\n", limits), 0);
  EXPECT_EQ(Status("0\r\nX: 456789\r\n\r\n", limits), 400);
  EXPECT_EQ(Status("0;23\r\nX: 45\r\n\r\n", limits), 0);
  EXPECT_EQ(Status("0;23\r\nX: 456\r\n\r\n", limits), 400);
  EXPECT_EQ(Status("0\r\n\r\n", {.trailer_bytes = 0}), 0);
  EXPECT_EQ(Status("0\r\nX: " + std::string(5000, 'y')), 400);
  EXPECT_EQ(Status("5;" + std::string(5000, 'y')), 400);
  EXPECT_EQ(Status("1          \r\nx\r\n0\r\n\r\n", limits), 0)
      << "white space within the limit was rejected";
  EXPECT_EQ(Status("1           \r\nx\r\n0\r\n\r\n", limits), 400);
  for (const std::string& input : {"0;23\r\nX: 456\r\n\r\n"s, "1;345\r\nx\r\n0;789abc"s}) {
    EXPECT_EQ(ReadChunked(input, limits, EveryByte(input.size())), ReadChunked(input, limits));
  }
}

TEST(Http1ChunkedTest, ReportsBytesDecodedSoFar) {
  ChunkedDecoder decoder;
  std::string data = "5\r\nhel";
  EXPECT_EQ(decoder.Decode(data, {}), Parsed::kMore);
  EXPECT_EQ(decoder.decoded(), 3u);
  EXPECT_EQ(decoder.raw(), 6u);
  EXPECT_EQ(data.substr(0, 3), "hel");
  data += "lo\r\n0\r\n\r\nnext";
  EXPECT_EQ(decoder.Decode(data, {}), Parsed::kDone);
  EXPECT_EQ(data.substr(0, decoder.decoded()), "hello");
  EXPECT_EQ(data.substr(decoder.raw()), "next");
  EXPECT_EQ(decoder.Decode(data, {}), Parsed::kDone)
      << "the second call does not report the end of the body";
}

}  // namespace
}  // namespace tidegate::net
