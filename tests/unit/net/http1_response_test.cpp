// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <string>

#include "unit/net/http1_reader.hpp"
#include "unit/net/stream_reader.hpp"

namespace tidegate::net {
namespace {

using namespace std::string_literals;
using testing::ElementsAre;
using testing::Pair;

ResponseAnswer WithFields(const std::string& fields, std::string_view line = "HTTP/1.1 200 OK",
                          AnswerTo to = AnswerTo::kOther) {
  return ReadResponse(std::string(line) + "\r\n" + fields + (fields.empty() ? "" : "\r\n") + "\r\n",
                      to);
}

const std::vector<std::string> kValid = {
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
    "HTTP/1.0 404 Not Found\r\nServer: x\r\n\r\n",
    "HTTP/1.1 200\r\nTransfer-Encoding: chunked\r\n\r\n",
    "HTTP/1.1 204 \r\n\r\n",
    "HTTP/1.1 599 \xFF\t odd \r\nX:\r\nY: \t spaced \xFF out\t \r\n\r\n",
    "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    "HTTP/1.1 100\r\n\r\n",
    "HTTP/1.1 600 X\r\nContent-Length: 5, 5\r\ncontent-length:5\r\n\r\n",
    "HTTP/1.1 999\r\n\r\n",
};

const std::vector<std::string> kRefused = {
    // Malformed status lines.
    "\r\nHTTP/1.1 200 OK\r\n\r\n"s,
    " HTTP/1.1 200 OK\r\n\r\n"s,
    "http/1.1 200 OK\r\n\r\n"s,
    "HTTP/2.0 200 OK\r\n\r\n"s,
    "HTTP/1.2 200 OK\r\n\r\n"s,
    "HTTP/11.1 200 OK\r\n\r\n"s,
    "HTTP/1 200 OK\r\n\r\n"s,
    "HTTP/1.1  200 OK\r\n\r\n"s,
    "HTTP/1.1\t200 OK\r\n\r\n"s,
    "HTTP/1.1 99 OK\r\n\r\n"s,
    "HTTP/1.1 099 OK\r\n\r\n"s,
    "HTTP/1.1 000 OK\r\n\r\n"s,
    "HTTP/1.1 1000 OK\r\n\r\n"s,
    "HTTP/1.1 20 OK\r\n\r\n"s,
    "HTTP/1.1 2x0 OK\r\n\r\n"s,
    "HTTP/1.1 -20 OK\r\n\r\n"s,
    "HTTP/1.1 200OK\r\n\r\n"s,
    "HTTP/1.1 200\tOK\r\n\r\n"s,
    "HTTP/1.1 200 O\0K\r\n\r\n"s,
    "HTTP/1.1 200 OK\n\r\n"s,
    "HTTP/1.1 200\n\r\n"s,
    "HTTP/1.1 200 OK\rX\r\n\r\n"s,
    "HTTP/1.1 200 OK\x7F\r\n\r\n"s,
    "ICY 200 OK\r\n\r\n"s,
    "SSH-2.0-OpenSSH_9.2\r\n"s,
    "\x15\x03\x01\0\x02\x02\x16"s,
    // Malformed field lines.
    "HTTP/1.1 200 OK\r\n X: y\r\n\r\n"s,
    "HTTP/1.1 200 OK\r\nX: y\r\n z\r\n\r\n"s,
    "HTTP/1.1 200 OK\r\nX: y\r\n\tz\r\n\r\n"s,
    "HTTP/1.1 200 OK\r\nX : y\r\n\r\n"s,
    "HTTP/1.1 200 OK\r\nX y: z\r\n\r\n"s,
    "HTTP/1.1 200 OK\r\n: y\r\n\r\n"s,
    "HTTP/1.1 200 OK\r\nX\r\n\r\n"s,
    "HTTP/1.1 200 OK\r\nX: y\nZ: z\r\n\r\n"s,
    "HTTP/1.1 200 OK\r\nX: y\rZ: z\r\n\r\n"s,
    "HTTP/1.1 200 OK\r\nX: y\0\r\n\r\n"s,
    "HTTP/1.1 200 OK\r\nX: \x01\r\n\r\n"s,
    "HTTP/1.1 200 OK\r\nX\xE9: y\r\n\r\n"s,
    "HTTP/1.1 200 OK\r\nX\0: y\r\n\r\n"s,
    "HTTP/1.1 200 OK\r\nX: y\r\n\n"s,
    "HTTP/1.1 200 OK\r\nX: y\r\n\rz"s,
    "HTTP/1.1 200 OK\n\n"s,
    "HTTP/1.1 200 OK\r\nConnection: a b\r\n\r\n"s,
    // Ambiguous framing.
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n"s,
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"s,
    "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"s,
};

TEST(Http1ResponseTest, ParsesResponse) {
  const ResponseAnswer answer = ReadResponse(
      "HTTP/1.1 203 Not quite\r\nContent-Length: 12\r\nX-a: \tb c \r\nEmpty:\r\n\r\nHTTP/1.1 9");
  ASSERT_EQ(answer.parsed, Parsed::kDone) << answer.why;
  EXPECT_EQ(answer.status, 203);
  EXPECT_EQ(answer.minor, 1);
  EXPECT_EQ(answer.reason, "Not quite");
  EXPECT_EQ(answer.body, BodyFraming::kLength);
  EXPECT_EQ(answer.content_length, 12u);
  EXPECT_TRUE(answer.keep_alive);
  EXPECT_FALSE(answer.upgrade);
  EXPECT_THAT(answer.fields,
              ElementsAre(Pair("Content-Length", "12"), Pair("X-a", "b c"), Pair("Empty", "")));
  EXPECT_EQ(answer.consumed, std::string("HTTP/1.1 203 Not quite\r\nContent-Length: 12\r\n"
                                         "X-a: \tb c \r\nEmpty:\r\n\r\n")
                                 .size());
}

TEST(Http1ResponseTest, AcceptsMissingReasonPhrase) {
  EXPECT_EQ(ReadResponse("HTTP/1.1 200\r\n\r\n").reason, "");
  EXPECT_EQ(ReadResponse("HTTP/1.1 200 \r\n\r\n").reason, "");
  EXPECT_EQ(ReadResponse("HTTP/1.1 200  x \r\n\r\n").reason, " x ");
  EXPECT_EQ(ReadResponse("HTTP/1.1 200\r\n\r\n").parsed, Parsed::kDone);
}

TEST(Http1ResponseTest, RejectsMalformedResponses) {
  for (const std::string& input : kRefused) {
    const ResponseAnswer answer = ReadResponse(input);
    EXPECT_EQ(answer.parsed, Parsed::kRefused) << testing::PrintToString(input);
    EXPECT_FALSE(answer.why.empty()) << testing::PrintToString(input);
    EXPECT_EQ(ReadResponse(input, AnswerTo::kHead), answer) << testing::PrintToString(input);
  }
}

TEST(Http1ResponseTest, RejectsInvalidContentLengths) {
  for (const std::string& value : {""s, "5, 6"s, "5,"s, ",5"s, "5,,5"s, "5, 5, 6"s, "5,6"s, "5, x"s,
                                   "+5"s, "-5"s, "0x5"s, "5 5"s, "5;"s, "5.0"s, "1e3"s, "five"s,
                                   "\xD9\xA5"s, "99999999999999999999"s, "18446744073709551621"s}) {
    EXPECT_EQ(WithFields("Content-Length: " + value).parsed, Parsed::kRefused) << value;
  }
  EXPECT_EQ(WithFields("Content-Length: 5, 6").why,
            "Content-Length is a list of different or invalid numbers");
  EXPECT_EQ(WithFields("Content-Length: 5\r\nContent-Length: 6").why,
            "two Content-Length headers with different values");
  EXPECT_EQ(WithFields("Content-Length: 5\r\ncontent-length: 6").parsed, Parsed::kRefused);
  EXPECT_EQ(WithFields("Content-Length: 9999999999999999999").content_length, 9999999999999999999u);
}

TEST(Http1ResponseTest, AcceptsRepeatedEqualContentLengths) {
  for (const std::string fields :
       {"Content-Length: 5\r\nContent-Length: 5", "Content-Length: 5, 5",
        "Content-Length: 5,5 ,\t5", "Content-Length: 5\r\nX: y\r\ncontent-length: 5, 5"}) {
    const ResponseAnswer answer = WithFields(fields);
    EXPECT_EQ(answer.parsed, Parsed::kDone) << fields << answer.why;
    EXPECT_EQ(answer.body, BodyFraming::kLength);
    EXPECT_EQ(answer.content_length, 5u);
    EXPECT_TRUE(answer.keep_alive);
  }
}

TEST(Http1ResponseTest, AcceptsStatusesFrom100To999) {
  for (const int status : {100, 199, 200, 599, 600, 777, 999}) {
    const ResponseAnswer answer = WithFields("", "HTTP/1.1 " + std::to_string(status) + " X");
    EXPECT_EQ(answer.parsed, Parsed::kDone) << answer.why;
    EXPECT_EQ(answer.status, status);
  }
}

TEST(Http1ResponseTest, AcceptsBareLfOnlyWhenAllowed) {
  using enum http1::LineEnd;
  for (const std::string& input :
       {"HTTP/1.1 200 OK\nX: y\nContent-Length: 5\n\n"s, "HTTP/1.1 200\n\n"s,
        "HTTP/1.1 200 OK\r\nX: y\n\r\n"s, "HTTP/1.1 200 \nX: y \r\nZ:\n\n"s}) {
    const ResponseAnswer answer = ReadResponse(input + "body", AnswerTo::kOther, {}, {}, kCrlfOrLf);
    EXPECT_EQ(answer.parsed, Parsed::kDone) << testing::PrintToString(input) << answer.why;
    EXPECT_EQ(answer.consumed, input.size());
    EXPECT_EQ(ReadResponse(input, AnswerTo::kOther, {}, EveryByte(input.size()), kCrlfOrLf),
              answer);
    EXPECT_EQ(ReadResponse(input).parsed, Parsed::kRefused) << testing::PrintToString(input);
  }
  const ResponseAnswer answer = ReadResponse("HTTP/1.1 200 OK\nX: y \nContent-Length: 5\n\n",
                                             AnswerTo::kOther, {}, {}, kCrlfOrLf);
  EXPECT_EQ(answer.reason, "OK");
  EXPECT_THAT(answer.fields, ElementsAre(Pair("X", "y"), Pair("Content-Length", "5")));
  for (const std::string& input : {"HTTP/1.1 200 OK\rX: y\n\n"s, "HTTP/1.1 200 OK\nX: y\rZ: z\n\n"s,
                                   "HTTP/1.1 200 OK\nX: y\n z\n\n"s, "HTTP/1.1 200 OK\nX: y\n\rx"s,
                                   "\nHTTP/1.1 200 OK\n\n"s, "HTTP/1.1 200 OK\nX\n\n"s}) {
    EXPECT_EQ(ReadResponse(input, AnswerTo::kOther, {}, {}, kCrlfOrLf).parsed, Parsed::kRefused)
        << testing::PrintToString(input);
  }
}

TEST(Http1ResponseTest, RejectsTransferCodingsOtherThanChunked) {
  for (const std::string value : {"", "xchunked", "gzip", "identity", "gzip, chunked",
                                  "chunked, chunked", "chunked, identity", "chunked;x", "chunke"}) {
    EXPECT_EQ(WithFields("Transfer-Encoding: " + value).parsed, Parsed::kRefused) << value;
  }
  EXPECT_EQ(WithFields("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked").parsed,
            Parsed::kRefused);
  EXPECT_EQ(WithFields("transfer-ENCODING:CHUNKED").body, BodyFraming::kChunked);
}

TEST(Http1ResponseTest, DeterminesBodyFraming) {
  const auto body = [](const std::string& fields, std::string_view line,
                       AnswerTo to = AnswerTo::kOther) {
    const ResponseAnswer answer = WithFields(fields, line, to);
    EXPECT_EQ(answer.parsed, Parsed::kDone) << line << fields << answer.why;
    return answer.body;
  };
  using enum BodyFraming;
  EXPECT_EQ(body("", "HTTP/1.1 200 OK"), kUntilClose);
  EXPECT_EQ(body("Content-Length: 0", "HTTP/1.1 200 OK"), kLength);
  EXPECT_EQ(body("Transfer-Encoding: chunked", "HTTP/1.1 500 X"), kChunked);
  EXPECT_EQ(body("Content-Length: 7", "HTTP/1.0 200 OK"), kLength);
  EXPECT_EQ(body("", "HTTP/1.1 205 X"), kUntilClose);
  // These responses have no body, whatever their fields say.
  EXPECT_EQ(body("", "HTTP/1.1 204 X"), kNone);
  EXPECT_EQ(body("Content-Length: 0", "HTTP/1.1 204 X"), kNone);
  EXPECT_EQ(body("", "HTTP/1.1 304 X"), kNone);
  EXPECT_EQ(body("Content-Length: 7", "HTTP/1.1 304 X"), kNone);
  EXPECT_EQ(body("Transfer-Encoding: chunked", "HTTP/1.1 304 X"), kNone);
  EXPECT_EQ(body("", "HTTP/1.1 103 X"), kNone);
  EXPECT_EQ(body("", "HTTP/1.1 200 OK", AnswerTo::kHead), kNone);
  EXPECT_EQ(body("Content-Length: 7", "HTTP/1.1 200 OK", AnswerTo::kHead), kNone);
  EXPECT_EQ(body("Transfer-Encoding: chunked", "HTTP/1.1 200 OK", AnswerTo::kHead), kNone);
  EXPECT_EQ(WithFields("Content-Length: 7", "HTTP/1.1 200 OK", AnswerTo::kHead).content_length, 7u);
}

TEST(Http1ResponseTest, ClosesConnectionAfter204ThatAnnouncesBody) {
  for (const std::string fields : {"Transfer-Encoding: chunked", "Content-Length: 1"}) {
    for (const AnswerTo to : {AnswerTo::kOther, AnswerTo::kHead}) {
      const ResponseAnswer answer = WithFields(fields, "HTTP/1.1 204 X", to);
      EXPECT_EQ(answer.parsed, Parsed::kDone) << answer.why;
      EXPECT_EQ(answer.body, BodyFraming::kNone);
      EXPECT_FALSE(answer.keep_alive);
    }
  }
  EXPECT_TRUE(WithFields("Content-Length: 0", "HTTP/1.1 204 X").keep_alive);
  EXPECT_TRUE(WithFields("Content-Length: 9", "HTTP/1.1 304 X").keep_alive);
  EXPECT_EQ(WithFields("Content-Length: 1\r\nTransfer-Encoding: chunked", "HTTP/1.1 204 X").parsed,
            Parsed::kRefused);
}

TEST(Http1ResponseTest, RejectsInterimResponsesWithBody) {
  for (const std::string line : {"HTTP/1.1 100 X", "HTTP/1.1 101 X", "HTTP/1.1 199 X"}) {
    for (const AnswerTo to : {AnswerTo::kOther, AnswerTo::kHead}) {
      EXPECT_EQ(WithFields("Transfer-Encoding: chunked", line, to).parsed, Parsed::kRefused);
      EXPECT_EQ(WithFields("Content-Length: 1", line, to).parsed, Parsed::kRefused);
      EXPECT_EQ(WithFields("Content-Length: 0", line, to).parsed, Parsed::kDone);
    }
  }
}

TEST(Http1ResponseTest, DeterminesWhetherConnectionIsKept) {
  const auto kept = [](const std::string& fields, std::string_view line) {
    return WithFields(fields, line).keep_alive;
  };
  EXPECT_TRUE(kept("Content-Length: 0", "HTTP/1.1 200 OK"));
  EXPECT_FALSE(kept("Content-Length: 0", "HTTP/1.0 200 OK"));
  EXPECT_TRUE(kept("Content-Length: 0\r\nConnection: Keep-Alive", "HTTP/1.0 200 OK"));
  EXPECT_FALSE(kept("Content-Length: 0\r\nConnection: close", "HTTP/1.1 200 OK"));
  EXPECT_FALSE(kept("Content-Length: 0\r\nConnection: x,CLOSE ,keep-alive", "HTTP/1.1 200 OK"));
  EXPECT_FALSE(kept("Connection: keep-alive", "HTTP/1.1 200 OK"))
      << "the connection is kept although the body ends at close";
  EXPECT_FALSE(kept("Connection: keep-alive", "HTTP/1.0 200 OK"));
  EXPECT_TRUE(kept("", "HTTP/1.1 204 X"));
  EXPECT_TRUE(kept("", "HTTP/1.1 304 X"));
}

TEST(Http1ResponseTest, UpgradesOnlyWith101AndBothFields) {
  const std::string both = "Connection: upgrade\r\nUpgrade: websocket";
  EXPECT_TRUE(WithFields(both, "HTTP/1.1 101 X").upgrade);
  EXPECT_FALSE(WithFields(both, "HTTP/1.1 200 X").upgrade);
  EXPECT_FALSE(WithFields(both, "HTTP/1.0 101 X").upgrade);
  EXPECT_FALSE(WithFields("Connection: upgrade", "HTTP/1.1 101 X").upgrade);
  EXPECT_FALSE(WithFields("Upgrade: websocket", "HTTP/1.1 101 X").upgrade);
}

TEST(Http1ResponseTest, RejectsResponseAtFirstInvalidByte) {
  const auto at = [](std::string_view input) {
    std::size_t size = 0;
    while (size < input.size() && ReadResponse(input.substr(0, size)).parsed == Parsed::kMore) {
      ++size;
    }
    return size;
  };
  EXPECT_EQ(at("garbage that goes on"), 1u);
  EXPECT_EQ(at("HTTP/2.0 200 OK\r\n"), 6u);
  EXPECT_EQ(at("HTTP/1.1 200 OK\n"), 16u);
  EXPECT_EQ(at("HTTP/1.1 200 OK\r\nX : y"), 19u);
  EXPECT_EQ(at("HTTP/1.1 200 OK\r\nX: y\nZ"), 22u);
}

TEST(Http1ResponseTest, ParsesTheSameHoweverInputIsSplit) {
  for (const auto& [inputs, parsed] :
       {std::pair{kValid, Parsed::kDone}, std::pair{kRefused, Parsed::kRefused}}) {
    for (const std::string& input : inputs) {
      const ResponseAnswer whole = ReadResponse(input + "HTTP/1.1");
      EXPECT_EQ(whole.parsed, parsed) << input << whole.why;
      EXPECT_EQ(ReadResponse(input, AnswerTo::kOther, {}, EveryByte(input.size())), whole) << input;
      for (std::size_t cut = 0; cut <= input.size(); ++cut) {
        EXPECT_EQ(ReadResponse(input, AnswerTo::kOther, {}, {cut}), whole) << input << cut;
      }
    }
  }
}

TEST(Http1ResponseTest, NeedsMoreInputForEveryPrefixOfValidHead) {
  for (const std::string& input : kValid) {
    for (std::size_t size = 0; size < input.size(); ++size) {
      EXPECT_EQ(ReadResponse(std::string_view(input).substr(0, size)).parsed, Parsed::kMore)
          << input << size;
    }
  }
}

TEST(Http1ResponseTest, AppliesTheSameLimitHoweverInputIsSplit) {
  const std::string input = "HTTP/1.1 200 OK\r\nX: y\r\nZ: 0123456789\r\nBad : x\r\n\r\n";
  for (std::size_t bytes = 0; bytes <= input.size(); ++bytes) {
    for (const std::size_t count : {0u, 1u, 2u, 100u}) {
      const HttpLimits limits{.header_bytes = bytes, .header_count = count};
      EXPECT_EQ(ReadResponse(input, AnswerTo::kOther, limits, EveryByte(input.size())),
                ReadResponse(input, AnswerTo::kOther, limits))
          << bytes;
    }
  }
}

TEST(Http1ResponseTest, RejectsHeadsAboveTheLimits) {
  std::string fields;
  for (int i = 0; i < 100; ++i) fields += "X: y\r\n";
  EXPECT_EQ(ReadResponse("HTTP/1.1 200 OK\r\n" + fields + "\r\n").parsed, Parsed::kDone);
  const std::string too_many = "response has more header fields than the limit";
  EXPECT_EQ(ReadResponse("HTTP/1.1 200 OK\r\n" + fields + "X: y").why, too_many);
  const HttpLimits wide{.header_count = 1000};
  for (int i = 100; i < 1000; ++i) fields += "X: y\r\n";
  const std::string full = "HTTP/1.1 200 OK\r\n" + fields;
  EXPECT_EQ(ReadResponse(full + "\r\n", AnswerTo::kOther, wide).fields.size(), 1000u);
  EXPECT_EQ(ReadResponse(full + "X: y\r\n\r\n", AnswerTo::kOther, wide).why, too_many);
  ResponseHead small(3);
  EXPECT_EQ(ResponseParser().Parse("HTTP/1.1 200 OK\r\nA:\r\nB:\r\nC:\r\nD:\r\n", wide,
                                   AnswerTo::kOther, small),
            Parsed::kRefused)
      << "more fields were accepted than the head can hold";
  small.Reserve(4);
  EXPECT_EQ(small.capacity(), 4u);
  EXPECT_EQ(ResponseParser().Parse("HTTP/1.1 200 OK\r\nA:\r\nB:\r\nC:\r\nD:\r\n\r\n", wide,
                                   AnswerTo::kOther, small),
            Parsed::kDone);
  const std::string head = "HTTP/1.1 200 OK\r\nX: yy\r\n\r\n";
  EXPECT_EQ(ReadResponse(head, AnswerTo::kOther, {.header_bytes = head.size()}).parsed,
            Parsed::kDone);
  EXPECT_EQ(ReadResponse(head, AnswerTo::kOther, {.header_bytes = head.size() - 1}).why,
            "response head is longer than the limit");
  EXPECT_EQ(ReadResponse("HTTP/1.1 200 " + std::string(17 << 10, 'x')).parsed, Parsed::kRefused);
}

TEST(Http1ResponseTest, ParsesConsecutiveResponses) {
  std::string input;
  for (const std::string& response : kValid) input += response;
  std::string_view rest = input;
  ResponseParser parser;
  ResponseHead head;
  for (const std::string& response : kValid) {
    ASSERT_EQ(parser.Parse(rest, {}, AnswerTo::kOther, head), Parsed::kDone);
    EXPECT_EQ(parser.consumed(), response.size());
    rest.remove_prefix(parser.consumed());
    parser.Reset();
  }
  EXPECT_EQ(parser.Parse(rest, {}, AnswerTo::kOther, head), Parsed::kMore);
}

/// A million calls. If each call parsed the head from its beginning, the parser would read 5 *
/// 10^11 bytes.
TEST(Http1ResponseTest, ParsesHeadArrivingByteByByteInLinearTime) {
  const HttpLimits limits{.header_bytes = 4u << 20};
  const std::string input = "HTTP/1.1 200 " + std::string(1u << 19, 'a') +
                            "\r\nX: " + std::string(1u << 19, 'b') + "\r\n\r\n";
  ResponseParser parser;
  ResponseHead head;
  for (std::size_t size = 0; size < input.size(); ++size) {
    ASSERT_EQ(parser.Parse({input.data(), size}, limits, AnswerTo::kOther, head), Parsed::kMore);
  }
  ASSERT_EQ(parser.Parse(input, limits, AnswerTo::kOther, head), Parsed::kDone);
  EXPECT_EQ(head.reason.size(), 1u << 19);
}

}  // namespace
}  // namespace tidegate::net
