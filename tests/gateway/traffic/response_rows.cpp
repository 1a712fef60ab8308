// SPDX-License-Identifier: Apache-2.0
#include "gateway/traffic/response_rows.hpp"

#include <algorithm>

namespace tidegate::gateway_test {
namespace {

using namespace std::string_literals;
using Then = Scripted::Then;
using Judge = ResponseRow::Judge;
using Rows = std::vector<ResponseRow>;

const std::string kLength = "Content-Length: 5\r\n";

std::string Response(const std::string& line, const std::string& fields, const std::string& body) {
  return line + "\r\n" + fields + "\r\n" + body;
}

std::string Ok(const std::string& fields, const std::string& body = "hello") {
  return Response("HTTP/1.1 200 OK", fields, body);
}

std::string Chunked(const std::string& body, const std::string& fields = {}) {
  return Ok("Transfer-Encoding: chunked\r\n" + fields, body);
}

std::string ManyFields(int count) {
  std::string fields;
  for (int i = 0; i < count; ++i) {
    fields += "X-Field-" + std::to_string(i) + ": " + std::to_string(i) + "\r\n";
  }
  return fields;
}

void AddStatuses(Rows& rows) {
  for (const int status : {201, 202, 203, 206, 207, 218, 226, 299, 300, 400, 402, 404, 409,
                           410, 418, 420, 422, 430, 440, 444, 449, 451, 460, 498, 499, 509,
                           511, 520, 525, 529, 530, 561, 598, 600, 601, 799, 999}) {
    rows.push_back({"status " + std::to_string(status),
                    Response("HTTP/1.1 " + std::to_string(status) + " Status", kLength, "hello"),
                    status});
  }
  rows.push_back({"no reason", Response("HTTP/1.1 200 ", kLength, "hello")});
  rows.push_back({"no reason and no space", Response("HTTP/1.1 200", kLength, "hello")});
  rows.push_back(
      {"UTF-8 reason", Response("HTTP/1.1 200 D\xC3\xA9j\xC3\xA0 vu", kLength, "hello")});
  rows.push_back({"Latin-1 reason", Response("HTTP/1.1 200 D\xE9j\xE0 vu", kLength, "hello")});
  rows.push_back(
      {"reason with marks", Response("HTTP/1.1 200 It's \"OK\": <b>/[]", kLength, "hello")});
  rows.push_back(
      {"long reason", Response("HTTP/1.1 200 " + std::string(500, 'r'), kLength, "hello")});
  rows.push_back({"reason with a tab", Response("HTTP/1.1 200 O\tK", kLength, "hello")});
}

void AddWithoutBody(Rows& rows) {
  const std::string no_content = "HTTP/1.1 204 No Content";
  const std::string not_modified = "HTTP/1.1 304 Not Modified";
  rows.push_back({"204", Response(no_content, "", ""), 204, ""});
  rows.push_back({"204 with length 0", Response(no_content, "Content-Length: 0\r\n", ""), 204, ""});
  rows.push_back(
      {"204 with a type", Response(no_content, "Content-Type: text/plain\r\n", ""), 204, ""});
  rows.push_back({"204, chunked, nothing behind it",
                  Response(no_content, "Transfer-Encoding: chunked\r\n", ""), 204, ""});
  rows.push_back({"204, chunked, and an empty body",
                  Response(no_content, "Transfer-Encoding: chunked\r\n", "0\r\n\r\n"), 204, ""});
  rows.push_back(
      {"205 with length 0", Response("HTTP/1.1 205 Reset", "Content-Length: 0\r\n", ""), 205, ""});
  rows.push_back({"304", Response(not_modified, "ETag: \"a\"\r\n", ""), 304, ""});
  rows.push_back({"304 with a length", Response(not_modified, kLength, ""), 304, ""});
  rows.push_back(
      {"304 with length 0", Response(not_modified, "Content-Length: 0\r\n", ""), 304, ""});
  rows.push_back(
      {"304, chunked", Response(not_modified, "Transfer-Encoding: chunked\r\n", ""), 304, ""});
  rows.push_back({"HEAD with a length", Ok(kLength, ""), 200, "", "HEAD"});
  rows.push_back(
      {"HEAD with a large length", Ok("Content-Length: 99999999999\r\n", ""), 200, "", "HEAD"});
  rows.push_back({"HEAD, chunked", Ok("Transfer-Encoding: chunked\r\n", ""), 200, "", "HEAD"});
  rows.push_back({"HEAD with neither", Ok("", ""), 200, "", "HEAD"});
  rows.push_back(
      {"HEAD, 404 with a length", Response("HTTP/1.1 404 X", kLength, ""), 404, "", "HEAD"});
  rows.push_back({"empty body", Ok("Content-Length: 0\r\n", ""), 200, ""});
  rows.push_back({"302 without a length, closed",
                  Response("HTTP/1.1 302 Found", "Location: /x\r\nConnection: close\r\n", ""), 302,
                  "", "GET", Then::kClose});
  rows.push_back(
      {"302 with UTF-8 in Location",
       Response("HTTP/1.1 302 Found", "Location: /caf\xC3\xA9?a=|b\r\nContent-Length: 0\r\n", ""),
       302, ""});
}

void AddLengths(Rows& rows) {
  rows.push_back({"the same length twice", Ok(kLength + kLength)});
  rows.push_back({"the same length three times", Ok(kLength + kLength + kLength)});
  rows.push_back({"the same length twice, apart", Ok(kLength + "X-A: b\r\n" + kLength)});
  rows.push_back({"the same length in one line", Ok("Content-Length: 5, 5\r\n"), 200, "hello",
                  "GET", Then::kClose});
  rows.push_back({"length with zeros", Ok("Content-Length: 0005\r\n")});
  rows.push_back({"length with spaces", Ok("Content-Length:   5  \r\n")});
  rows.push_back(
      {"length with tabs", Ok("Content-Length:\t5\t\r\n"), 200, "hello", "GET", Then::kClose});
  rows.push_back({"length without space", Ok("Content-Length:5\r\n")});
  rows.push_back({"name in lower case", Ok("content-length: 5\r\n")});
  ResponseRow both{"length and chunked",
                   Ok(kLength + "Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n0\r\n\r\n")};
  both.ambiguous = "two readers could frame it differently";
  rows.push_back(both);
  ResponseRow differ{"lengths that differ", Ok(kLength + "Content-Length: 6\r\n")};
  differ.then = Then::kClose;
  differ.ambiguous = "two readers could frame it differently";
  rows.push_back(differ);
  ResponseRow space{"space before the colon", Ok("Server : x\r\n" + kLength)};
  space.ambiguous = "some readers drop the line, some the space";
  rows.push_back(space);
  ResponseRow folded{"a folded line", Ok("X-A: b\r\n c\r\n" + kLength)};
  folded.ambiguous = "obsolete: some readers take it for another field";
  rows.push_back(folded);
  ResponseRow identity{"identity coding", Ok("Transfer-Encoding: identity\r\n" + kLength)};
  identity.ambiguous = "no longer a coding: two readers could frame it differently";
  rows.push_back(identity);
}

void AddUntilClose(Rows& rows) {
  const std::string old = "HTTP/1.0 200 OK";
  rows.push_back({"until close", Ok(""), 200, "hello", "GET", Then::kClose});
  rows.push_back({"until close, Connection: close", Ok("Connection: close\r\n"), 200, "hello",
                  "GET", Then::kClose});
  rows.push_back(
      {"HTTP/1.0 until close", Response(old, "", "hello"), 200, "hello", "GET", Then::kClose});
  rows.push_back({"HTTP/1.0 with a length", Response(old, kLength, "hello"), 200, "hello", "GET",
                  Then::kClose});
  rows.push_back(
      {"HTTP/1.0 kept alive", Response(old, kLength + "Connection: keep-alive\r\n", "hello")});
  rows.push_back({"HTTP/1.0, nothing", Response(old, "", ""), 200, "", "GET", Then::kClose});
  rows.push_back({"a length, closed", Ok(kLength + "Connection: close\r\n"), 200, "hello", "GET",
                  Then::kClose});
  rows.push_back({"server-sent events until close",
                  Ok("Content-Type: text/event-stream\r\nCache-Control: no-cache\r\n",
                     "data: a\n\ndata: b\n\n"),
                  200, "data: a\n\ndata: b\n\n", "GET", Then::kClose});
  rows.push_back({"server-sent events, chunked",
                  Chunked("9\r\ndata: a\n\n\r\n9\r\ndata: b\n\n\r\n0\r\n\r\n",
                          "Content-Type: text/event-stream\r\nX-Accel-Buffering: no\r\n"),
                  200, "data: a\n\ndata: b\n\n"});
  const std::string nested = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc";
  rows.push_back({"a response in the body", Ok("", nested), 200, nested, "GET", Then::kClose});
}

void AddChunks(Rows& rows) {
  for (const auto& [name, body] : std::vector<std::pair<std::string, std::string>>{
           {"one chunk", "5\r\nhello\r\n0\r\n\r\n"},
           {"small chunks", "1\r\nh\r\n1\r\ne\r\n1\r\nl\r\n1\r\nl\r\n1\r\no\r\n0\r\n\r\n"},
           {"size with zeros", "00000005\r\nhello\r\n0\r\n\r\n"},
           {"last size with zeros", "5\r\nhello\r\n0000\r\n\r\n"},
           {"extension", "5;a=b\r\nhello\r\n0\r\n\r\n"},
           {"extension without value", "5;a\r\nhello\r\n0\r\n\r\n"},
           {"quoted extension", "5;a=\"b;c d\"\r\nhello\r\n0\r\n\r\n"},
           {"space before an extension", "5 ;a=b\r\nhello\r\n0\r\n\r\n"},
           {"spaces around an extension", "5 ; a = b\r\nhello\r\n0\r\n\r\n"},
           {"tab before an extension", "5\t;a=b\r\nhello\r\n0\r\n\r\n"},
           {"extension of the last", "5\r\nhello\r\n0;a=b\r\n\r\n"},
           {"space behind the size", "5 \r\nhello\r\n0\r\n\r\n"},
           {"spaces behind the sizes", "5   \r\nhello\r\n0   \r\n\r\n"},
           {"trailer", "5\r\nhello\r\n0\r\nX-Checksum: abc\r\n\r\n"},
           {"trailer Server-Timing", "5\r\nhello\r\n0\r\nServer-Timing: db;dur=53\r\n\r\n"},
           {"trailer Expires", "5\r\nhello\r\n0\r\nExpires: Thu, 01 Jan 2026 00:00:00 GMT\r\n\r\n"},
           {"trailer Date", "5\r\nhello\r\n0\r\nDate: Thu, 01 Jan 2026 00:00:00 GMT\r\n\r\n"},
           {"trailer ETag", "5\r\nhello\r\n0\r\nETag: \"a\"\r\n\r\n"},
           {"trailer Digest", "5\r\nhello\r\n0\r\nDigest: sha-256=abc=\r\n\r\n"},
           {"trailer Content-MD5", "5\r\nhello\r\n0\r\nContent-MD5: abc==\r\n\r\n"},
           {"trailer Cache-Control", "5\r\nhello\r\n0\r\nCache-Control: no-store\r\n\r\n"},
           {"trailer Content-Length", "5\r\nhello\r\n0\r\nContent-Length: 5\r\n\r\n"},
           {"trailer Set-Cookie", "5\r\nhello\r\n0\r\nSet-Cookie: a=b\r\n\r\n"},
           {"trailer grpc-status", "5\r\nhello\r\n0\r\ngrpc-status: 0\r\ngrpc-message: \r\n\r\n"},
           {"many trailers", "5\r\nhello\r\n0\r\n" + ManyFields(20) + "\r\n"}}) {
    rows.push_back({"chunked, " + name, Chunked(body)});
  }
  rows.push_back({"chunked, empty", Chunked("0\r\n\r\n"), 200, ""});
  rows.push_back(
      {"chunked, upper case hex", Chunked("A\r\n0123456789\r\n0\r\n\r\n"), 200, "0123456789"});
  rows.push_back(
      {"Chunked in upper case", Ok("Transfer-Encoding: Chunked\r\n", "5\r\nhello\r\n0\r\n\r\n")});
  rows.push_back({"chunked with trailing space",
                  Ok("Transfer-Encoding: chunked \r\n", "5\r\nhello\r\n0\r\n\r\n")});
  rows.push_back({"chunked and closed", Chunked("5\r\nhello\r\n0\r\n\r\n", "Connection: close\r\n"),
                  200, "hello", "GET", Then::kClose});
  rows.push_back({"announced trailer",
                  Chunked("5\r\nhello\r\n0\r\nExpires: 0\r\n\r\n", "Trailer: Expires\r\n")});
  const std::string large(100'000, 'x');
  rows.push_back({"a large chunk", Chunked("186a0\r\n" + large + "\r\n0\r\n\r\n"), 200, large});
  ResponseRow twice{"chunked twice",
                    Ok("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
                       "5\r\nhello\r\n0\r\n\r\n")};
  twice.ambiguous = "two readers could frame it differently";
  rows.push_back(twice);
}

void AddFields(Rows& rows) {
  const std::string gzip(
      "\x1F\x8B\x08\x00\x00\x00\x00\x00\x00\x03\xCBH\xCD\xC9\xC9\x07\x00\x86\xA6\x10"
      "6\x05\x00\x00\x00",
      25);
  rows.push_back({"gzip", Ok("Content-Encoding: gzip\r\nContent-Length: 25\r\n", gzip), 200, gzip});
  rows.push_back({"gzip, chunked",
                  Chunked("19\r\n" + gzip + "\r\n0\r\n\r\n", "Content-Encoding: gzip\r\n"), 200,
                  gzip});
  std::string cookies;
  for (int i = 0; i < 30; ++i) {
    cookies += "Set-Cookie: c" + std::to_string(i) +
               "=v; Path=/; HttpOnly; Expires=Thu, 01 Jan 2026 " + "00:00:00 GMT\r\n";
  }
  rows.push_back({"many cookies", Ok(cookies + kLength)});
  for (const auto& [name, fields] : std::vector<std::pair<std::string, std::string>>{
           {"UTF-8 value", "X-Name: caf\xC3\xA9 \xE6\x97\xA5\r\n"},
           {"Latin-1 value", "Content-Disposition: attachment; filename=\"caf\xE9.txt\"\r\n"},
           {"value with a tab", "X-Name: a\tb\r\n"},
           {"empty value", "X-Empty:\r\nX-Blank:   \r\n"},
           {"names of all characters", "X!#$%&'*+-.^_`|~9: a\r\n"},
           {"underscores", "X_Under_Score: a\r\n"},
           {"upgrade offered, as Apache does", "Upgrade: h2,h2c\r\nConnection: Upgrade\r\n"},
           {"upgrade offered and kept alive",
            "Upgrade: h2c\r\nConnection: Upgrade, Keep-Alive\r\n"},
           {"keep-alive parameters",
            "Connection: Keep-Alive\r\nKeep-Alive: timeout=5, max=100\r\n"},
           {"Status", "Status: 200 OK\r\n"},
           {"two dates",
            "Date: Thu, 01 Jan 2026 00:00:00 GMT\r\nDate: Thu, 01 Jan 2026 00:00:01 GMT\r\n"},
           {"two servers", "Server: a\r\nServer: b\r\n"},
           {"two types", "Content-Type: text/plain\r\nContent-Type: text/html\r\n"},
           {"two identical types", "Content-Type: text/plain\r\nContent-Type: text/plain\r\n"},
           {"two Vary", "Vary: a\r\nVary: b\r\n"},
           {"two ETags", "ETag: \"a\"\r\nETag: \"b\"\r\n"},
           {"two Expires", "Expires: 0\r\nExpires: -1\r\n"},
           {"several challenges",
            "WWW-Authenticate: Basic realm=\"a\"\r\nWWW-Authenticate: Bearer\r\n"},
           {"rate limits of its own", "RateLimit: \"a\";r=1;t=1\r\nX-RateLimit-Limit: 5\r\n"},
           {"a long line", "Content-Security-Policy: " + std::string(3'000, 'p') + "\r\n"},
           {"ninety fields", ManyFields(90)},
           {"a value of marks", "Link: </a|b>; rel=\"x\", <b>; y='{}[]^`\\'\r\n"},
           {"Proxy-Connection", "Proxy-Connection: keep-alive\r\n"},
           {"Via", "Via: 1.1 varnish, 1.1 tidegate\r\n"},
           {"an empty list in Connection", "Connection: , keep-alive,\r\n"},
           {"a name named in Connection", "Connection: X-Hop\r\nX-Hop: a\r\n"}}) {
    rows.push_back({name, Ok(fields + kLength)});
  }
  rows.push_back({"part of a file",
                  Response("HTTP/1.1 206 Partial Content",
                           "Content-Range: bytes 0-4/10\r\n" + kLength, "hello"),
                  206});
  rows.push_back({"bytes of all kinds", Ok("Content-Length: 8\r\n", "\0\r\n\r\n\xFF\x80\x7F"s), 200,
                  "\0\r\n\r\n\xFF\x80\x7F"s});
}

/// Interim responses. nginx 1.22 takes an interim response for the final one, so these rows are not
/// compared with nginx.
void AddInterims(Rows& rows) {
  for (const auto& [name, interim] : std::vector<std::pair<std::string, std::string>>{
           {"100", "HTTP/1.1 100 Continue\r\n\r\n"},
           {"102", "HTTP/1.1 102 Processing\r\n\r\n"},
           {"103", "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n"},
           {"103 twice",
            "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
            "HTTP/1.1 103 Early Hints\r\nLink: </b>\r\n\r\n"},
           {"100 and 103", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103\r\n\r\n"},
           {"110", "HTTP/1.1 110 Response is Stale\r\n\r\n"}}) {
    ResponseRow row{"behind " + name, interim + Ok(kLength)};
    row.judge = Judge::kAlways;
    rows.push_back(row);
  }
}

}  // namespace

std::vector<ResponseRow> ResponseRows() {
  Rows rows;
  AddStatuses(rows);
  AddWithoutBody(rows);
  AddLengths(rows);
  AddUntilClose(rows);
  AddChunks(rows);
  AddFields(rows);
  AddInterims(rows);
  return rows;
}

std::vector<ResponseRow> ManyFieldRows() {
  Rows rows;
  for (const int count : {128, 129, 200, 500, 900}) {
    rows.push_back({std::to_string(count) + " fields", Ok(ManyFields(count) + kLength)});
    rows.back().judge = Judge::kAlways;
  }
  return rows;
}

std::vector<ResponseRow> LongFieldRows() {
  Rows rows;
  for (const std::size_t bytes : {16u, 20u, 40u, 100u}) {
    rows.push_back({std::to_string(bytes) + " KiB in one field",
                    Ok("X-Long: " + std::string(bytes << 10, 'y') + "\r\n" + kLength)});
    rows.back().judge = Judge::kAlways;
  }
  std::string cookies;
  for (int i = 0; i < 20; ++i) {
    cookies += "Set-Cookie: c" + std::to_string(i) + "=" + std::string(3'500, 'v') + "\r\n";
  }
  rows.push_back({"long cookies", Ok(cookies + kLength)});
  rows.back().judge = Judge::kAlways;
  return rows;
}

std::vector<ResponseRow> BareLfRows() {
  Rows rows = {
      {"all lines end with LF", "HTTP/1.1 200 OK\nContent-Length: 5\n\nhello"},
      {"HTTP/1.0, all lines end with LF", "HTTP/1.0 200 OK\nContent-Type: text/plain\n\nhello", 200,
       "hello", "GET", Then::kClose},
      {"one line ends with LF", "HTTP/1.1 200 OK\r\nX-A: b\nContent-Length: 5\r\n\r\nhello"},
      {"the last line ends with LF", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\nhello"},
      {"the status line ends with LF", "HTTP/1.1 200 OK\nContent-Length: 5\r\n\r\nhello"},
      {"302, all lines end with LF", "HTTP/1.1 302 Found\nLocation: /x\nContent-Length: 0\n\n", 302,
       ""},
      {"until close", "HTTP/1.1 200 OK\nConnection: close\n\nhello", 200, "hello", "GET",
       Then::kClose},
      {"to HEAD", "HTTP/1.1 200 OK\nContent-Length: 5\n\n", 200, "", "HEAD"},
  };
  return rows;
}

}  // namespace tidegate::gateway_test
