// SPDX-License-Identifier: Apache-2.0
// Header fields that determine the host, the framing of the body and the reuse of the connection.
#include <gmock/gmock.h>

#include <string>

#include "unit/net/http1_reader.hpp"

namespace tidegate::net {
namespace {

HeadAnswer Ask(std::string_view fields, std::string_view version = "1.1",
               const HttpLimits& limits = {}) {
  std::string request = "POST / HTTP/";
  request.append(version).append("\r\n").append(fields).append("\r\n");
  return ReadHead(request, limits);
}
int Status(std::string_view fields, std::string_view version = "1.1",
           const HttpLimits& limits = {}) {
  const HeadAnswer answer = Ask(fields, version, limits);
  EXPECT_NE(answer.parsed, Parsed::kMore) << fields;
  return answer.status;
}
HeadAnswer AskA(std::string_view fields) { return Ask("Host: a\r\n" + std::string(fields)); }
int StatusA(std::string_view fields) { return AskA(fields).status; }

TEST(Http1FieldsTest, RequiresExactlyOneHost) {
  EXPECT_EQ(Ask("hOsT:a.b\r\n").host, "a.b");
  EXPECT_EQ(Status(""), 400);
  EXPECT_EQ(Status("Host: a\r\nHost: a\r\n"), 400);
  EXPECT_EQ(Status("Host: a\r\nX: y\r\nHOST: b\r\n"), 400);
  EXPECT_EQ(Status("Host:\r\n"), 400);
  EXPECT_EQ(Status("Hosts: a\r\n"), 400);
}

TEST(Http1FieldsTest, AcceptsHttp10WithoutHost) {
  EXPECT_EQ(Status("", "1.0"), 0);
  EXPECT_EQ(Status("Host:\r\n", "1.0"), 0);
  EXPECT_EQ(Ask("Host: a\r\n", "1.0").host, "a");
  EXPECT_EQ(Status("Host: a\r\nHost: a\r\n", "1.0"), 400);
  EXPECT_EQ(Status("Host: a b\r\n", "1.0"), 400);
}

TEST(Http1FieldsTest, AcceptsOnlyValidHosts) {
  for (const std::string_view host :
       {"a", "A-b_c.~d", "1.2.3.4", "1.2.3.4:80", "a:", "a:0", "a:65535", "[::1]", "[::1]:8080",
        "[2001:DB8::1]", "[::ffff:1.2.3.4]", "a."}) {
    EXPECT_EQ(Ask("Host: " + std::string(host) + "\r\n").host, host);
  }
  for (const std::string_view host :
       {"a b",      "a,b",        "a, b",
        "a/b",      "a@b",        "u:p@b",
        "a:b",      "a:80:80",    "a:65536",
        "a:000080", ":80",        "a?b",
        "a#b",      "a\\b",       "a%41",
        "\xC3\xA4", "[",          "[]",
        "[:",       "[::1",       "[::1]x",
        "[::1]:x",  "::1",        "[::g]",
        "[1234]",   "[::1%eth0]", "[0:1:2:3:4:5:6:7:8:9:a:b:c:d:e:f:1:2:3:4:5:6:7:8]",
        "a\tb",     "a;b",        "<a>",
        "a\"",      "a'b",        "http://a"}) {
    EXPECT_EQ(Status("Host: " + std::string(host) + "\r\n"), 400) << host;
  }
}

TEST(Http1FieldsTest, UsesHostOfAbsoluteTargetButRequiresHostField) {
  EXPECT_EQ(ReadHead("GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n").host, "b");
  EXPECT_EQ(ReadHead("GET http://b/ HTTP/1.1\r\n\r\n").status, 400);
  EXPECT_EQ(ReadHead("GET http://b/ HTTP/1.1\r\nHost: a b\r\n\r\n").status, 400);
  EXPECT_EQ(ReadHead("GET http://b/ HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n").status, 400);
  EXPECT_EQ(ReadHead("GET http://b/ HTTP/1.0\r\n\r\n").host, "b");
  EXPECT_EQ(ReadHead("CONNECT b:1 HTTP/1.1\r\nHost: a\r\n\r\n").host, "b:1");
}

TEST(Http1FieldsTest, AcceptsOnlyOneDecimalContentLength) {
  EXPECT_EQ(AskA("").body, BodyFraming::kNone);
  EXPECT_EQ(AskA("Content-Length: 0\r\n").body, BodyFraming::kLength);
  EXPECT_EQ(AskA("Content-Length: \t 0012 \t \r\n").content_length, 12u);
  const HttpLimits endless{.body_bytes = SIZE_MAX};
  EXPECT_EQ(
      Ask("Host: a\r\nContent-Length: 9999999999999999999\r\n", "1.1", endless).content_length,
      9'999'999'999'999'999'999u);
  for (const std::string_view value :
       {"", "+5", "-5", "5 5", "5,5", "5, 5", "5,", ",5", "0x5", "5.0", "5e0", "five", "\"5\"",
        "5;", "10000000000000000000", "18446744073709551616", "00000000000000000005", "5\v",
        "\xB2"}) {
    EXPECT_EQ(StatusA("Content-Length: " + std::string(value) + "\r\n"), 400) << value;
  }
  EXPECT_EQ(StatusA("Content-Length: 5\r\nContent-Length: 5\r\n"), 400);
  EXPECT_EQ(StatusA("Content-Length: 5\r\nContent-Length: 6\r\n"), 400);
}

TEST(Http1FieldsTest, RejectsContentLengthAboveTheLimit) {
  const HttpLimits limits{.body_bytes = 10};
  EXPECT_EQ(Status("Host: a\r\nContent-Length: 10\r\n", "1.1", limits), 0);
  EXPECT_EQ(Status("Host: a\r\nContent-Length: 11\r\n", "1.1", limits), 413);
  EXPECT_EQ(StatusA("Content-Length: 9999999999999999999\r\n"), 413);
}

TEST(Http1FieldsTest, AcceptsOnlyChunkedTransferEncoding) {
  EXPECT_EQ(AskA("Transfer-Encoding: chunked\r\n").body, BodyFraming::kChunked);
  EXPECT_EQ(AskA("TRANSFER-encoding:\tChUnKeD \r\n").body, BodyFraming::kChunked);
  for (const std::string_view value :
       {"", "gzip", "identity", "gzip, chunked", "chunked, gzip", "chunked, chunked", "chunked,",
        ",chunked", "chunked;q=1", "\"chunked\"", "xchunked", "chunkedx", "chun ked", "chunke"}) {
    EXPECT_EQ(StatusA("Transfer-Encoding: " + std::string(value) + "\r\n"), 400) << value;
  }
  EXPECT_EQ(StatusA("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"), 400);
  EXPECT_EQ(StatusA("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n"), 400);
  EXPECT_EQ(StatusA("Content-Length: 0\r\nTransfer-Encoding: chunked\r\n"), 400);
  EXPECT_EQ(Status("Transfer-Encoding: chunked\r\n", "1.0"), 400);
}

TEST(Http1FieldsTest, ConnectionFieldControlsKeepAlive) {
  EXPECT_TRUE(AskA("").keep_alive);
  EXPECT_TRUE(AskA("Connection: x\r\n").keep_alive);
  EXPECT_FALSE(AskA("Connection: close\r\n").keep_alive);
  EXPECT_FALSE(AskA("Connection: x ,\tCLOSE\r\n").keep_alive);
  EXPECT_FALSE(AskA("Connection: close\r\nConnection: keep-alive\r\n").keep_alive);
  EXPECT_FALSE(AskA("Connection: ,,close,\r\n").keep_alive);
  EXPECT_TRUE(AskA("Connection: closed\r\n").keep_alive);
  EXPECT_FALSE(Ask("", "1.0").keep_alive);
  EXPECT_TRUE(Ask("Connection: Keep-Alive\r\n", "1.0").keep_alive);
  EXPECT_FALSE(Ask("Connection: keep-alive, close\r\n", "1.0").keep_alive);
  for (const std::string_view value : {"a b", "close;x", "close=1", "\"close\"", "(x)", "x, y z"}) {
    EXPECT_EQ(StatusA("Connection: " + std::string(value) + "\r\n"), 400) << value;
  }
}

TEST(Http1FieldsTest, UpgradeRequiresConnectionUpgradeAndHttp11) {
  EXPECT_TRUE(AskA("Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n").upgrade);
  EXPECT_TRUE(AskA("Upgrade: websocket\r\nConnection: x\r\nConnection: upgrade\r\n").upgrade);
  EXPECT_FALSE(AskA("Connection: upgrade\r\n").upgrade);
  EXPECT_FALSE(AskA("Upgrade: websocket\r\n").upgrade);
  EXPECT_FALSE(Ask("Connection: upgrade\r\nUpgrade: websocket\r\n", "1.0").upgrade);
}

TEST(Http1FieldsTest, RecognizesExpectContinue) {
  EXPECT_TRUE(AskA("Expect: 100-Continue\r\nContent-Length: 5\r\n").expects_continue);
  EXPECT_TRUE(AskA("Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n").expects_continue);
  EXPECT_FALSE(AskA("Expect: 100-continue\r\n").expects_continue)
      << "a request without a body must not expect 100-continue";
  EXPECT_FALSE(Ask("Expect: 100-continue\r\nContent-Length: 5\r\n", "1.0").expects_continue);
  EXPECT_FALSE(AskA("Expect: 100-continue\r\n").unknown_expect);
  EXPECT_FALSE(AskA("").unknown_expect);
  for (const std::string value : {"200-ok", "", ",", "100-continue, x", "x, 100-continue", "100"}) {
    EXPECT_TRUE(AskA("Expect: " + value + "\r\n").unknown_expect) << value;
  }
  const auto both = AskA("Expect: x, 100-continue\r\nContent-Length: 5\r\n");
  EXPECT_TRUE(both.unknown_expect);
  EXPECT_TRUE(both.expects_continue);
}

}  // namespace
}  // namespace tidegate::net
