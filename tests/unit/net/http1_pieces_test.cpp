// SPDX-License-Identifier: Apache-2.0
// Requests that arrive in several pieces, and several requests in one piece.
#include <gmock/gmock.h>

#include <string>

#include "unit/net/http1_reader.hpp"

namespace tidegate::net {
namespace {

const std::vector<std::string> kValid = {
    "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    "\r\nGET / HTTP/1.0\r\n\r\n",
    "POST http://b:81/c?d HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
    "OPTIONS * HTTP/1.1\r\nHost: [::1]:80\r\nConnection: close, x\r\n\r\n",
    "CONNECT b:443 HTTP/1.1\r\nHost: b\r\nX: \t spaced \xFF out\t \r\nY:\r\n\r\n",
    "PUT /x HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n",
};

const std::vector<std::string> kRefused = {
    "GET  / HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET / HTTP/2.0\r\nHost: a\r\n\r\n",
    "GET / HTTP/1.1\r\nHost : a\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\nX: y\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\rX: y\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\n\rx",
    "GET / HTTP/1.1\r\nX: y\r\n z\r\nHost: a\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    "GET / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\nHost: a\r\n\r\n",
    "GET /\"\x01 HTTP/9.9\r\n",
};

TEST(Http1PiecesTest, NeedsMoreInputForEveryPrefixOfValidHead) {
  for (const std::string& input : kValid) {
    for (std::size_t size = 0; size < input.size(); ++size) {
      EXPECT_EQ(ReadHead(std::string_view(input).substr(0, size)).parsed, Parsed::kMore)
          << input << size;
    }
  }
}

TEST(Http1PiecesTest, ParsesTheSameHoweverInputIsSplit) {
  for (const auto& [inputs, parsed] :
       {std::pair{kValid, Parsed::kDone}, std::pair{kRefused, Parsed::kRefused}}) {
    for (const std::string& input : inputs) {
      const HeadAnswer whole = ReadHead(input);
      EXPECT_EQ(whole.parsed, parsed) << input;
      EXPECT_EQ(ReadHead(input, {}, EveryByte(input.size())), whole) << input;
      for (std::size_t cut = 0; cut <= input.size(); ++cut) {
        EXPECT_EQ(ReadHead(input, {}, {cut}), whole) << input << cut;
      }
    }
  }
}

TEST(Http1PiecesTest, AppliesTheSameLimitHoweverInputIsSplit) {
  const std::string input =
      "GET /0123456789 HTTP/1.1\r\nHost: a\r\nX: y\r\nZ: 0123456789\r\nBad : x\r\n\r\n";
  for (std::size_t bytes = 0; bytes <= input.size(); ++bytes) {
    for (const std::size_t target : {5u, 11u, 100u}) {
      for (const std::size_t count : {0u, 2u, 3u, 100u}) {
        const HttpLimits limits{
            .header_bytes = bytes, .header_count = count, .target_bytes = target};
        EXPECT_EQ(ReadHead(input, limits, EveryByte(input.size())), ReadHead(input, limits))
            << bytes;
      }
    }
  }
}

TEST(Http1PiecesTest, ParsesPipelinedRequests) {
  std::string input;
  for (const std::string& request : kValid) input += request;
  std::string_view rest = input;
  HeadParser parser;
  HttpHead head;
  for (const std::string& request : kValid) {
    ASSERT_EQ(parser.Parse(rest, {}, head), Parsed::kDone);
    EXPECT_EQ(parser.consumed(), request.size());
    rest.remove_prefix(parser.consumed());
    parser.Reset();
  }
  EXPECT_EQ(parser.Parse(rest, {}, head), Parsed::kMore);
}

/// Two million calls. If each call parsed the head from its beginning, the parser would read 2 *
/// 10^12 bytes, which takes about ten minutes.
TEST(Http1PiecesTest, ParsesHeadArrivingByteByByteInLinearTime) {
  const HttpLimits limits{.header_bytes = 4u << 20, .target_bytes = 2u << 20};
  const std::string input = "GET /" + std::string(1u << 20, 'a') +
                            " HTTP/1.1\r\nHost: a\r\nX: " + std::string(1u << 20, 'b') + "\r\n\r\n";
  HeadParser parser;
  HttpHead head;
  for (std::size_t size = 0; size < input.size(); ++size) {
    ASSERT_EQ(parser.Parse({input.data(), size}, limits, head), Parsed::kMore);
  }
  ASSERT_EQ(parser.Parse(input, limits, head), Parsed::kDone);
  EXPECT_EQ(head.path.size(), 1u + (1u << 20));
}

}  // namespace
}  // namespace tidegate::net
