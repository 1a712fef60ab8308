// SPDX-License-Identifier: Apache-2.0
// Known request-smuggling attacks: bytes that two servers read as different requests. The parser
// must reject each of them, in one piece and byte by byte, before it could find a second request.
#include <gmock/gmock.h>

#include <string>

#include "unit/net/http1_reader.hpp"

namespace tidegate::net {
namespace {

using namespace std::string_literals;

void ExpectRefused(const std::string& head) {
  const HeadAnswer answer = ReadHead(head);
  EXPECT_EQ(answer.parsed, Parsed::kRefused) << testing::PrintToString(head);
  EXPECT_EQ(answer.status, 400) << testing::PrintToString(head);
  EXPECT_EQ(ReadHead(head, {}, EveryByte(head.size())), answer);
}

void ExpectFieldsRefused(const std::string& fields) {
  ExpectRefused("POST / HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n\r\n");
}

TEST(Http1SmugglingTest, RejectsConflictingBodyLengths) {
  ExpectFieldsRefused("Content-Length: 6\r\nTransfer-Encoding: chunked");  // CL.TE attack.
  ExpectFieldsRefused("Transfer-Encoding: chunked\r\nContent-Length: 4");  // TE.CL attack.
  ExpectFieldsRefused("Content-Length: 0\r\nContent-Length: 44");          // CL.CL attack.
  ExpectFieldsRefused("Content-Length: 5\r\ncontent-length: 5");
  ExpectFieldsRefused("Content-Length: 5, 5");
  ExpectFieldsRefused("Transfer-Encoding: chunked\r\nTransfer-encoding: identity");
  ExpectFieldsRefused("Transfer-Encoding: identity\r\nContent-Length: 5");
}

TEST(Http1SmugglingTest, RejectsDisguisedTransferEncoding) {
  for (const std::string& line : {
           "Transfer-Encoding: xchunked"s,
           "Transfer-Encoding : chunked"s,
           "Transfer-Encoding: chunked, identity"s,
           "Transfer-Encoding: identity, chunked"s,
           "Transfer-Encoding: cow, chunked"s,
           "Transfer-Encoding:\vchunked"s,
           "Transfer-Encoding: \x0C"
           "chunked"s,
           "Transfer-Encoding: chunked\v"s,
           "Transfer-Encoding: chunked\0"s,
           "Transfer-Encoding: \xA0"
           "chunked"s,
           "Transfer-Encoding\t: chunked"s,
           " Transfer-Encoding: chunked"s,
           "X: y\r\n Transfer-Encoding: chunked"s,
           "Transfer-Encoding:\r\n chunked"s,
           "Transfer-Encoding\r\n: chunked"s,
           "X: y\nTransfer-Encoding: chunked"s,
           "X: y\rTransfer-Encoding: chunked"s,
           "Transfer-Encoding: \"chunked\""s,
           "Transfer-Encoding: chunked;x"s,
           "Transfer-Encoding: chunk"s,
           "Transfer-Encoding:"s,
           "\0Transfer-Encoding: chunked"s,
           "Transfer-Encoding\0: chunked"s,
           "Transfer\xAD"
           "Encoding: chunked"s,
           ": y\r\nTransfer-Encoding: chunked"s,
       }) {
    ExpectFieldsRefused(line);
    ExpectFieldsRefused("Content-Length: 5\r\n" + line);
  }
  // White space around the value is valid: RFC 9110 requires that it is trimmed.
  EXPECT_EQ(ReadHead("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \t chunked \t\r\n\r\n").body,
            BodyFraming::kChunked);
  ExpectRefused("POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
}

TEST(Http1SmugglingTest, RejectsInvalidContentLengths) {
  for (const std::string& value :
       {"+5"s, "-0"s, "0x5"s, "5 5"s, "5\t5"s, "5,"s, "5\0"s, "5\v"s, "5\x0C"s, "0b1"s, "1_0"s,
        "5\r"s, "99999999999999999999"s, "18446744073709551621"s, "\xD9\xA5"s, "''5"s}) {
    ExpectFieldsRefused("Content-Length: " + value);
  }
  EXPECT_EQ(ReadHead("POST / HTTP/1.1\r\nHost: a\r\nContent-Length:  5 \r\n\r\n").content_length,
            5u);
  ExpectFieldsRefused("Content-Length : 5");
  ExpectFieldsRefused("Content-Length\r\n: 5");
}

TEST(Http1SmugglingTest, RejectsAmbiguousLineEnds) {
  ExpectRefused("GET / HTTP/1.1\nHost: a\n\n");
  ExpectRefused("GET / HTTP/1.1\r\nHost: a\nX: y\r\n\r\n");
  ExpectRefused("GET / HTTP/1.1\r\nHost: a\r\n\nGET /b HTTP/1.1\r\n\r\n");
  ExpectRefused("GET / HTTP/1.1\r\nX: a\0b\r\nHost: a\r\n\r\n"s);
  ExpectRefused("GET / HTTP/1.1\r\nX: a\rb\r\nHost: a\r\n\r\n");
  ExpectRefused("GET / HTTP/1.1\r\n Host: a\r\n\r\n");
  ExpectRefused("GET / HTTP/1.1\r\nHost: a\r\n\tb\r\n\r\n");
}

TEST(Http1SmugglingTest, RejectsAmbiguousRequestLines) {
  ExpectRefused("GET /a /b HTTP/1.1\r\nHost: a\r\n\r\n");
  ExpectRefused("GET /a HTTP/1.1 HTTP/1.1\r\nHost: a\r\n\r\n");
  ExpectRefused("GET\t/a HTTP/1.1\r\nHost: a\r\n\r\n");
  ExpectRefused("GET \v/a HTTP/1.1\r\nHost: a\r\n\r\n");
  ExpectRefused("GET /a\0 HTTP/1.1\r\nHost: a\r\n\r\n"s);
  ExpectRefused("GET /a\rHTTP/1.1\r\nHost: a\r\n\r\n");
  ExpectRefused("GET /a\r\n");
}

TEST(Http1SmugglingTest, RejectsAmbiguousHosts) {
  ExpectRefused("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n");
  ExpectRefused("GET / HTTP/1.1\r\nHost: a\r\nHost : b\r\n\r\n");
  ExpectRefused("GET / HTTP/1.1\r\nHost: a, b\r\n\r\n");
  ExpectRefused("GET / HTTP/1.1\r\nHost: a@b\r\n\r\n");
  ExpectRefused("GET http://a@b/ HTTP/1.1\r\nHost: b\r\n\r\n");
  ExpectRefused("GET http://a\\@b/ HTTP/1.1\r\nHost: b\r\n\r\n");
  ExpectRefused("GET @b/ HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(ReadHead("GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n").host, "b");
}

TEST(Http1SmugglingTest, RejectsAmbiguousChunks) {
  for (const std::string& body : {
           "0x5\r\nhello\r\n0\r\n\r\n"s,
           "+5\r\nhello\r\n0\r\n\r\n"s,
           "5 ;\r\nhello\r\n0\r\n\r\n"s,
           "5 5\r\nhello\r\n0\r\n\r\n"s,
           "5 \nhello\r\n0\r\n\r\n"s,
           "10000000000000005\r\nhello\r\n0\r\n\r\n"s,
           "5\nhello\r\n0\r\n\r\n"s,
           "5\r\nhello\n0\r\n\r\n"s,
           "5\r\nhelloXX0\r\n\r\n"s,
           "5;\nxx\r\nhello\r\n0\r\n\r\n"s,
           "5;a\nb\r\nhello\r\n0\r\n\r\n"s,
           "5\r\nhello\r\n0\n\n"s,
           "5\r\nhello\r\n0\r\n\n"s,
           "5\r\nhello\r\n0\r\nX: y\n\r\n"s,
           "5\0\r\nhello\r\n0\r\n\r\n"s,
           "5\r\nhello\r\n\r\n0\r\n\r\n"s,
       }) {
    const BodyAnswer answer = ReadChunked(body);
    EXPECT_EQ(answer.parsed, Parsed::kRefused) << testing::PrintToString(body);
    EXPECT_THAT(answer.status, testing::AnyOf(400, 413));
    EXPECT_EQ(ReadChunked(body, {}, EveryByte(body.size())), answer);
  }
}

}  // namespace
}  // namespace tidegate::net
