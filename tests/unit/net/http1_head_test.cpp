// SPDX-License-Identifier: Apache-2.0
// The request line, the syntax of field lines, and the limits on the head.
#include <gmock/gmock.h>

#include <string>

#include "unit/net/http1_reader.hpp"

namespace tidegate::net {
namespace {

using namespace std::string_literals;
using testing::ElementsAre;
using testing::Pair;

constexpr std::string_view kHost = "Host: a\r\n\r\n";

int Status(std::string_view input, const HttpLimits& limits = {}) {
  const HeadAnswer answer = ReadHead(input, limits);
  return answer.parsed == Parsed::kRefused ? answer.status : answer.parsed == Parsed::kDone ? 0 : 1;
}
int LineStatus(std::string_view line) { return Status(std::string(line) + "\r\n" + kHost.data()); }
int FieldStatus(std::string_view line) {
  return Status("GET / HTTP/1.1\r\n" + std::string(line) + "\r\n" + kHost.data());
}

TEST(Http1HeadTest, ParsesRequest) {
  const std::string input =
      "POST /v1/check?rule=api&n=1 HTTP/1.1\r\nHost: limits.example:8080\r\nUser-Agent: \tcurl/8 "
      "\t\r\n"
      "Empty:\r\ncontent-LENGTH: 17\r\n\r\n";
  const HeadAnswer answer = ReadHead(input + "{\"rest\": ignored}");
  ASSERT_EQ(answer.parsed, Parsed::kDone);
  EXPECT_EQ(answer.consumed, input.size());
  EXPECT_EQ(answer.method, "POST");
  EXPECT_EQ(answer.target, "/v1/check?rule=api&n=1");
  EXPECT_EQ(answer.path, "/v1/check");
  EXPECT_EQ(answer.query, "rule=api&n=1");
  EXPECT_EQ(answer.host, "limits.example:8080");
  EXPECT_EQ(answer.minor, 1);
  EXPECT_EQ(answer.body, BodyFraming::kLength);
  EXPECT_EQ(answer.content_length, 17u);
  EXPECT_THAT(answer.fields,
              ElementsAre(Pair("Host", "limits.example:8080"), Pair("User-Agent", "curl/8"),
                          Pair("Empty", ""), Pair("content-LENGTH", "17")));
}

TEST(Http1HeadTest, ParsesAllTargetForms) {
  struct Case {
    std::string_view line, host, path, query;
  };
  for (const auto& [line, host, path, query] : {
           Case{"GET / HTTP/1.1", "a", "/", ""},
           Case{"GET //x//y?? HTTP/1.1", "a", "//x//y", "?"},
           Case{"GET /a?b=/c?d HTTP/1.1", "a", "/a", "b=/c?d"},
           Case{"GET /%zz%0[]@!$&'()*+,;=:~ HTTP/1.1", "a", "/%zz%0[]@!$&'()*+,;=:~", ""},
           Case{"GET http://b:81/c?d HTTP/1.1", "b:81", "/c", "d"},
           Case{"GET HTTPS://B HTTP/1.1", "B", "/", ""},
           Case{"GET http://b?d HTTP/1.1", "b", "/", "d"},
           Case{"GET http://[2001:db8::1]:80/ HTTP/1.1", "[2001:db8::1]:80", "/", ""},
           Case{"OPTIONS * HTTP/1.1", "a", "*", ""},
           Case{"OPTIONS http://b HTTP/1.1", "b", "*", ""},
           Case{"OPTIONS http://b/ HTTP/1.1", "b", "/", ""},
           Case{"CONNECT b:443 HTTP/1.1", "b:443", "", ""},
           Case{"CONNECT [::1]:443 HTTP/1.1", "[::1]:443", "", ""},
           Case{"M!#$%&'*+-.^_`|~9 / HTTP/1.1", "a", "/", ""},
       }) {
    const HeadAnswer answer = ReadHead(std::string(line) + "\r\n" + kHost.data());
    EXPECT_EQ(answer.parsed, Parsed::kDone) << line << ": " << answer.reason;
    EXPECT_EQ(answer.host, host) << line;
    EXPECT_EQ(answer.path, path) << line;
    EXPECT_EQ(answer.query, query) << line;
  }
}

TEST(Http1HeadTest, RejectsInvalidTargets) {
  for (const std::string_view line : {"GET * HTTP/1.1",
                                      "OPTIONS ** HTTP/1.1",
                                      "OPTIONS *?a HTTP/1.1",
                                      "GET a HTTP/1.1",
                                      "GET a:80 HTTP/1.1",
                                      "GET ?a HTTP/1.1",
                                      "GET ftp://a/ HTTP/1.1",
                                      "GET http:/a HTTP/1.1",
                                      "GET http:///a HTTP/1.1",
                                      "GET http://:80/ HTTP/1.1",
                                      "GET http://u@a/ HTTP/1.1",
                                      "GET http://u:p@a/ HTTP/1.1",
                                      "GET http://a:b/ HTTP/1.1",
                                      "GET http://a:65536/ HTTP/1.1",
                                      "GET http://a,b/ HTTP/1.1",
                                      "GET http://[::1/ HTTP/1.1",
                                      "GET http://[::1]x/ HTTP/1.1",
                                      "GET http://[fe80::1%25eth0]/ HTTP/1.1",
                                      "GET httpx://a/ HTTP/1.1",
                                      "CONNECT / HTTP/1.1",
                                      "CONNECT a HTTP/1.1",
                                      "CONNECT a: HTTP/1.1",
                                      "CONNECT a:0 HTTP/1.1",
                                      "CONNECT http://a:80/ HTTP/1.1",
                                      "CONNECT a:80/ HTTP/1.1",
                                      "GET /#f HTTP/1.1"}) {
    EXPECT_EQ(LineStatus(line), 400) << line;
  }
  for (int c = 0; c < 256; ++c) {
    const bool fine = c > 0x20 && c != 0x7F && c != '#';
    const std::string byte(1, static_cast<char>(c));
    EXPECT_EQ(LineStatus("GET /a" + byte + "b HTTP/1.1"), fine ? 0 : 400) << c;
    EXPECT_EQ(LineStatus("GET /a?b=" + byte + "c HTTP/1.1"), fine ? 0 : 400) << c;
  }
}

TEST(Http1HeadTest, AcceptsRawCharactersOfBrowsersInTargets) {
  const HeadAnswer answer =
      ReadHead("GET /a|b^c[d]/\xC3\xA9?q={\"x\":`<y>`}\\\xFF HTTP/1.1\r\nHost: a\r\n\r\n");
  ASSERT_EQ(answer.parsed, Parsed::kDone) << answer.reason;
  EXPECT_EQ(answer.path, "/a|b^c[d]/\xC3\xA9");
  EXPECT_EQ(answer.query, "q={\"x\":`<y>`}\\\xFF");
}

TEST(Http1HeadTest, RejectsRawCharactersInHostsOfTargets) {
  for (const std::string host : {"a|b", "a\\b", "a^b", "{a}", "\"a\"", "a\x80", "a`b", "<a>"}) {
    EXPECT_EQ(LineStatus("GET http://" + host + "/ HTTP/1.1"), 400) << host;
    EXPECT_EQ(LineStatus("CONNECT " + host + ":80 HTTP/1.1"), 400) << host;
  }
}

TEST(Http1HeadTest, RejectsMalformedRequestLines) {
  for (const std::string_view line : {"GET  / HTTP/1.1",
                                      "GET /  HTTP/1.1",
                                      " GET / HTTP/1.1",
                                      "GET / HTTP/1.1 ",
                                      "GET\t/ HTTP/1.1",
                                      "GET /\tHTTP/1.1",
                                      "GET /a b HTTP/1.1",
                                      "GET / http/1.1",
                                      "GET / HTTP/1.",
                                      "GET / HTTP/11",
                                      "GET / HTTP/1.10",
                                      "GET / HTTP/a.1",
                                      "GET / HTTP/1,1",
                                      "GET / XTTP/1.1",
                                      "GET /",
                                      "GET / ",
                                      "GET",
                                      "G(T / HTTP/1.1",
                                      "G\x01T / HTTP/1.1",
                                      "G\xE9T / HTTP/1.1",
                                      "GET:/ HTTP/1.1",
                                      "HTTP/1.1 200 OK",
                                      "GET / HTTP/1.1\rX: y"}) {
    EXPECT_EQ(LineStatus(line), 400) << line;
  }
  EXPECT_EQ(Status("GET / HTTP/1.1\nHost: a\n\n"), 400);
  EXPECT_EQ(Status("GET /\n"), 400);
}

TEST(Http1HeadTest, RejectsVersionsOtherThan10And11) {
  for (const std::string_view version : {"0.9", "1.2", "1.9", "2.0", "3.0", "9.9"}) {
    EXPECT_EQ(LineStatus("GET / HTTP/" + std::string(version)), 505) << version;
  }
  // The preface of HTTP/2 without negotiation.
  EXPECT_EQ(Status("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), 505);
  EXPECT_EQ(ReadHead("GET / HTTP/1.0\r\n\r\n").minor, 0);
}

TEST(Http1HeadTest, RejectsTooLongMethods) {
  EXPECT_EQ(LineStatus(std::string(32, 'M') + " / HTTP/1.1"), 0);
  EXPECT_EQ(LineStatus(std::string(33, 'M') + " / HTTP/1.1"), 501);
  EXPECT_EQ(Status(std::string(33, 'M')), 501) << "not rejected before the line is complete";
}

TEST(Http1HeadTest, SkipsEmptyLinesBeforeTheRequest) {
  const std::string request = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
  std::string lines;
  for (int count = 0; count < 40; ++count, lines += "\r\n") {
    const std::string input = lines + request;
    const HeadAnswer answer = ReadHead(input);
    EXPECT_EQ(answer.consumed, input.size()) << count;
    EXPECT_EQ(answer.method, "GET");
    EXPECT_EQ(ReadHead(input, {}, EveryByte(input.size())), answer) << count;
  }
  EXPECT_EQ(Status("\r\n\r\n"), 1);
  for (const std::string before : {"\n", "\r", "\r\n\n", "\r\n\r", "\r\r\n", "\r\n \r\n", "\n\r"}) {
    EXPECT_EQ(Status(before + request), 400) << testing::PrintToString(before);
  }
}

TEST(Http1HeadTest, CountsEmptyLinesTowardsHeadLimit) {
  const std::string request = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
  const std::string input = "\r\n\r\n\r\n" + request;
  EXPECT_EQ(Status(input, {.header_bytes = input.size()}), 0);
  EXPECT_EQ(Status(input, {.header_bytes = input.size() - 1}), 431);
  std::string endless;
  for (int i = 0; i < 20'000; ++i) endless += "\r\n";
  EXPECT_EQ(Status(endless), 431);
}

TEST(Http1HeadTest, ReportsCauseOfEachError) {
  const std::string host = "Host: a\r\n\r\n";
  for (const auto& [input, reason] : {
           std::pair{"GET /a#b HTTP/1.1\r\n"s, "request target contains a fragment (#)"},
           std::pair{"GET /a\x01 HTTP/1.1\r\n"s, "control character in the request target"},
           std::pair{"GET  / HTTP/1.1\r\n"s, "more than one space after the method"},
           std::pair{"\n" + host, "line ends with LF instead of CRLF"},
           std::pair{"\rGET"s, "CR is not followed by LF"},
           std::pair{"\x16\x03\x01"s, "TLS handshake on a port without TLS"},
           std::pair{"GET / HTTP/1.1\r\nX: y\n"s, "line ends with LF instead of CRLF"},
           std::pair{"GET / HTTP/1.1\r\nX: \x01"s, "control character in a field value"},
           std::pair{"GET / HTTP/1.1\r\nX : y"s, "white space in a field name or before its colon"},
           std::pair{"GET / HTTP/1.1\r\n\r\n"s, "Host header is missing"},
           std::pair{"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n"s, "more than one Host header"},
           std::pair{"GET / HTTP/1.1\r\nContent-Length: x\r\n"s,
                     "Content-Length is not a decimal number"},
           std::pair{"GET / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n"s,
                     "Transfer-Encoding is not `chunked`"},
       }) {
    EXPECT_EQ(ReadHead(input).reason, reason) << testing::PrintToString(input);
  }
}

TEST(Http1HeadTest, AcceptsOnlyValidFieldNames) {
  EXPECT_EQ(FieldStatus("!#$%&'*+-.^_`|~09azAZ: x"), 0);
  for (const std::string_view line :
       {": x", "Name : x", "Name\t: x", "Na me: x", "Name", " Name: x", "\tName: x", "N(me: x",
        "Name\x7F: x", "N\xE4me: x", "Name\v: x", "X: y\r\n folded", "X: y\r\n\tfolded"}) {
    EXPECT_EQ(FieldStatus(line), 400) << line;
  }
}

TEST(Http1HeadTest, AcceptsOnlyValidBytesInFieldValues) {
  for (int c = 0; c < 256; ++c) {
    // Every position in a group of eight bytes, because values are read eight bytes at a time.
    for (std::size_t place = 0; place < 9; ++place) {
      std::string value = "012345678abcdefgh";
      value[place] = static_cast<char>(c);
      const bool fine = c == '\t' || (c >= 0x20 && c != 0x7F);
      EXPECT_EQ(FieldStatus("X: " + value), fine ? 0 : 400) << c << " at " << place;
    }
  }
}

TEST(Http1HeadTest, RejectsBareLfAndBareCr) {
  EXPECT_EQ(Status("GET / HTTP/1.1\r\nHost: a\n\r\n"), 400);
  EXPECT_EQ(Status("GET / HTTP/1.1\r\nHost: a\r\n\n"), 400);
  EXPECT_EQ(Status("GET / HTTP/1.1\r\nHost: a\r\n\rX"), 400);
  EXPECT_EQ(Status("GET / HTTP/1.1\r\nHost: a\r\r\n\r\n"), 400);
  EXPECT_EQ(Status("GET / HTTP/1.1\nHost: a\r\n\r\n"), 400);
}

TEST(Http1HeadTest, RejectsTargetAboveTheLimit) {
  const HttpLimits limits{.target_bytes = 10};
  EXPECT_EQ(Status("GET /234567890 HTTP/1.1\r\nHost: a\r\n\r\n", limits), 0);
  EXPECT_EQ(Status("GET /2345678901 HTTP/1.1\r\nHost: a\r\n\r\n", limits), 414);
  EXPECT_EQ(Status("GET /2345678901", limits), 414) << "not rejected before the line is complete";
  EXPECT_EQ(Status("GET /234567890", limits), 1);
  EXPECT_EQ(Status("GET /" + std::string(8192, 'a')), 414);
}

TEST(Http1HeadTest, RejectsHeadAboveTheByteLimit) {
  const std::string head = "GET / HTTP/1.1\r\nHost: a\r\nX: yyyyyyyyyyyyyyyyyy\r\n\r\n";
  EXPECT_EQ(Status(head, {.header_bytes = head.size()}), 0);
  EXPECT_EQ(Status(head + "body", {.header_bytes = head.size()}), 0);
  for (std::size_t limit = 0; limit < head.size(); ++limit) {
    // The limit is reached inside the target.
    const int expected = limit >= 4 && limit < 6 ? 414 : 431;
    EXPECT_EQ(Status(head, {.header_bytes = limit}), expected) << limit;
    EXPECT_EQ(Status(head.substr(0, limit), {.header_bytes = limit}), expected) << limit;
  }
  EXPECT_EQ(Status("GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(16384, 'y')), 431);
}

TEST(Http1HeadTest, RejectsTooManyFields) {
  std::string head = "GET / HTTP/1.1\r\nHost: a\r\n";
  for (int i = 1; i < 100; ++i) head += "X: y\r\n";
  EXPECT_EQ(ReadHead(head + "\r\n").fields.size(), 100u);
  EXPECT_EQ(Status(head + "X"), 431) << "not rejected before the line is complete";
  const HttpLimits more{.header_count = 1000};
  for (int i = 100; i < 128; ++i) head += "X: y\r\n";
  EXPECT_EQ(ReadHead(head + "\r\n", more).fields.size(), HttpHead::kMaxFields);
  EXPECT_EQ(Status(head + "X", more), 431) << "more fields were accepted than a head can hold";
}

TEST(Http1HeadTest, RejectsOtherProtocolsAtTheirFirstByte) {
  EXPECT_EQ(Status("\x16\x03\x01"), 400);
  EXPECT_THAT(ReadHead("\x16").reason, testing::HasSubstr("TLS"));
  EXPECT_EQ(Status("*3\r\n$3\r\nSET\r\n"), 400);  // A command in RESP, the Redis protocol.
  EXPECT_EQ(Status("\0"s), 400);
  EXPECT_EQ(Status("{"), 400);
}

TEST(Http1HeadTest, StaysRejectedUntilReset) {
  HeadParser parser;
  HttpHead head;
  EXPECT_EQ(parser.Parse("\x16", {}, head), Parsed::kRefused);
  EXPECT_EQ(parser.Parse("GET / HTTP/1.0\r\n\r\n", {}, head), Parsed::kRefused);
  parser.Reset();
  EXPECT_EQ(parser.Parse("GET / HTTP/1.0\r\n\r\n", {}, head), Parsed::kDone);
}

}  // namespace
}  // namespace tidegate::net
