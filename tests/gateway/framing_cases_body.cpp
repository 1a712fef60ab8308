// SPDX-License-Identifier: Apache-2.0
// Cases about chunks, and about the bytes after the last chunk.
#include "gateway/framing_case.hpp"

namespace tidegate::gateway_test {

using namespace std::string_literals;

FramingCases ChunkCases() {
  const std::string end = "0\r\n\r\n";
  const std::string rest = "\r\nhello\r\n" + end;
  FramingCases cases = {
      {"two chunks", Chunked("2\r\nhe\r\n3\r\nllo\r\n" + end), Want::kBoth, "hello"},
      {"size in upper case", Chunked("A\r\n0123456789\r\n" + end), Want::kBoth, "0123456789"},
      {"size in lower case", Chunked("a\r\n0123456789\r\n" + end), Want::kBoth, "0123456789"},
      {"size with leading zeros", Chunked("0005\r\nhello\r\n" + end), Want::kBoth, "hello"},
      {"last size with zeros", Chunked("5\r\nhello\r\n0000\r\n\r\n"), Want::kBoth, "hello"},
      {"data that looks like the end", Chunked("5\r\n0\r\n\r\n\r\n" + end), Want::kBoth,
       "0\r\n\r\n"},
      {"data that looks like a request", Chunked(ChunkOf(Smuggled()) + end), Want::kBoth,
       Smuggled()},
      {"an extension", Chunked("5;a\r\nhello\r\n" + end), Want::kBoth, "hello"},
      {"an extension with a value", Chunked("5;a=b\r\nhello\r\n" + end), Want::kBoth, "hello"},
      {"a quoted extension", Chunked("5;a=\"b c\"\r\nhello\r\n" + end), Want::kBoth, "hello"},
      {"an extension of the last", Chunked("5\r\nhello\r\n0;a=b\r\n\r\n"), Want::kBoth, "hello"},
      {"an extension with a quoted semicolon", Chunked("5;a=\";b\"\r\nhello\r\n" + end),
       Want::kBoth, "hello"},
  };
  // RFC 9112, 7.1.1: white space in these places is bad but accepted. nginx and HAProxy accept it
  // too, and the gateway writes its own chunk lines.
  for (const std::string& line :
       {"5 "s, "5\t"s, "5 \t "s, "5 ;a"s, "5; a"s, "5\t;\ta"s, "5;a =b"s, "5;a= b"s, "5;a = \"b\""s,
        "5;a "s, "5;a=b "s, "5;a=\"b\"\t"s, "5 ; a = b ; c = d "s}) {
    cases.push_back(
        {"white space in the chunk size line " + line, Chunked(line + rest), Want::kBoth, "hello"});
    const std::string last = "0" + line.substr(1);
    cases.push_back({"white space in the last chunk size line " + last,
                     Chunked("5\r\nhello\r\n" + last + "\r\n\r\n"), Want::kBoth, "hello"});
  }
  for (const std::string& line : {"-5"s,
                                  "+5"s,
                                  "0x5"s,
                                  "0X5"s,
                                  "x"s,
                                  "g"s,
                                  ""s,
                                  " "s,
                                  " 5"s,
                                  "\t5"s,
                                  "5 5"s,
                                  "5,"s,
                                  "5.0"s,
                                  "5h"s,
                                  "5_"s,
                                  "00000000000000005"s,
                                  "10000000000000005"s,
                                  "fffffffffffffffff"s,
                                  "ffffffffffffffff5"s,
                                  "100000000000000000000000000000005"s,
                                  "5\0"s,
                                  "\0005"s,
                                  "5\v"s,
                                  "\v5"s,
                                  "5\f"s,
                                  "5\x7f"s,
                                  "5\xA0"s,
                                  "5;\n"s,
                                  "5;a\n"s,
                                  "5;a=\"b\nc\""s,
                                  "5;a=\"\n"s,
                                  "5;a=\"b"s,
                                  "5;"s,
                                  "5;;"s,
                                  "5 ;"s,
                                  "5; "s,
                                  "5 a"s,
                                  "5 =a"s,
                                  "5;a= "s,
                                  "5;a b=c"s,
                                  "5;a=b c"s,
                                  "5;a=\"b\" c"s,
                                  "5 \n"s,
                                  "5 \r"s,
                                  "5;a b"s,
                                  "5;a=\0"s,
                                  "5;\r"s,
                                  "5\r"s,
                                  "5;a\rb"s,
                                  "5;a=\x01"s,
                                  "\"5\""s,
                                  "5;a=b;"s,
                                  "%35"s,
                                  "\xEF\xBC\x95"s}) {
    cases.push_back({"a chunk size line of " + line, Chunked(line + rest)});
  }
  for (const std::string& body : {"5\nhello\r\n0\r\n\r\n"s,
                                  "5\rhello\r\n0\r\n\r\n"s,
                                  "5\r\nhello\n0\r\n\r\n"s,
                                  "5\r\nhello\r0\r\n\r\n"s,
                                  "5\r\nhello0\r\n\r\n"s,
                                  "5\r\nhelloXX0\r\n\r\n"s,
                                  "5\r\nhello!\r\n0\r\n\r\n"s,
                                  "5\r\nhell\r\n0\r\n\r\n"s,
                                  "5\r\nhello\r\n\r\n0\r\n\r\n"s,
                                  "5\r\n\r\nhello\r\n0\r\n\r\n"s,
                                  "5\r\nhello\r\n0\n\r\n"s,
                                  "5\r\nhello\r\n0\r\n\n"s,
                                  "5\r\nhello\r\n0\n\n"s,
                                  "5\r\nhello\r\n0\r\r\n"s,
                                  "0\r\rX\r\n\r\n"s,
                                  "5\n\rhello\r\n0\r\n\r\n"s,
                                  "5\r\nhello\n\r0\r\n\r\n"s,
                                  "5\r\nhello\r\n-0\r\n\r\n"s,
                                  "5\r\nhello\r\n0x\r\n\r\n"s,
                                  "5\r\nhello\r\n\n0\r\n\r\n"s,
                                  "\r\n5\r\nhello\r\n0\r\n\r\n"s,
                                  "5;a=\"\r\nhello\r\n0\r\n\r\n"s,
                                  "hello"s,
                                  "{\"a\":1}\r\n"s}) {
    cases.push_back({"a chunked body of " + body, Chunked(body)});
  }
  return cases;
}

FramingCases TrailerCases() {
  const std::string last = "5\r\nhello\r\n0\r\n";
  FramingCases cases = {
      {"a trailer", Chunked(last + "X-Sum: 1\r\n\r\n"), Want::kBoth, "hello"},
      {"two trailers", Chunked(last + "X-Sum: 1\r\nX-More:\r\n\r\n"), Want::kBoth, "hello"},
      {"an announced trailer",
       Post("Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\n", last + "X-Sum: 1\r\n\r\n"),
       Want::kBoth, "hello"},
  };
  for (const std::string& trailer : {"Content-Length: 5"s,
                                     "Transfer-Encoding: chunked"s,
                                     "Host: b"s,
                                     "Connection: close"s,
                                     "TE: x"s,
                                     "Trailer: x"s,
                                     "Upgrade: h2c"s,
                                     "Authorization: Basic eA=="s,
                                     "Cookie: a=b"s,
                                     "Content-Type: a/b"s,
                                     "Content-Encoding: gzip"s,
                                     "Content-Range: bytes 0-1/2"s,
                                     "Cache-Control: no-store"s,
                                     "Expect: 100-continue"s,
                                     "Range: bytes=0-1"s,
                                     "Max-Forwards: 0"s,
                                     "Set-Cookie: a=b"s,
                                     "Keep-Alive: timeout=5"s,
                                     "Proxy-Connection: close"s,
                                     "Date: x"s,
                                     "Expires: 0"s,
                                     "Server-Timing: a;dur=1"s,
                                     "If-Match: x"s}) {
    // RFC 9110, 6.5.1: the gateway drops these trailers. nginx drops all trailers, HAProxy forwards
    // all of them. No reader can take a trailer for a part of the head if the trailer does not
    // arrive.
    const bool frames = trailer.starts_with("Content-Length") ||
                        trailer.starts_with("Transfer-Encoding") || trailer.starts_with("Host");
    for (const std::string& more : {""s, "X-Sum: 1\r\n"s}) {
      FramingCase& one = cases.emplace_back();
      one.name = "the trailer " + trailer + (more.empty() ? "" : " before another one");
      one.raw = Chunked(std::string(last).append(trailer).append("\r\n").append(more) + "\r\n");
      one.want = Want::kBoth;
      one.body = "hello";
      if (!frames) continue;
      one.stricter = Stricter::kHaproxy;
      one.why =
          "HAProxy forwards it, and the strict upstream of this test then refuses the request";
    }
  }
  for (const std::string& trailer :
       {" X: y"s, "\tX: y"s, "X : y"s, ": y"s, "X"s, "X: y\nZ: z"s, "X: y\n"s, "X: y\rZ: z"s,
        "X: \0"s, "X: \x01"s, "X: y\r\n z"s, "X: y\r\n\tz"s, "X\0: y"s, "X y: z"s, "X\xE9: y"s,
        "GET /smuggled-$NNN HTTP/1.1"s}) {
    cases.push_back({"the trailer line " + trailer, Chunked(last + trailer + "\r\n\r\n")});
  }
  return cases;
}

}  // namespace tidegate::gateway_test
