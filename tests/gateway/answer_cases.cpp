// SPDX-License-Identifier: Apache-2.0
#include "gateway/answer_case.hpp"

namespace tidegate::gateway_test {

using namespace std::string_literals;

namespace {

using Then = Scripted::Then;

/// A second response behind the first. It poisons a reused connection: the next request would get
/// it as its response.
const std::string kPoison =
    "HTTP/1.1 200 OK\r\nX-Answer-To: /poison\r\nContent-Length: 6\r\n\r\npoison";

std::string Answer(const std::string& fields, const std::string& body = {}) {
  return "HTTP/1.1 200 OK\r\nX-Answer-To: /case-$NNN\r\n" + fields + "\r\n" + body;
}

std::string Chunked(const std::string& body) {
  return Answer("Transfer-Encoding: chunked\r\n", body);
}

std::string Repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

}  // namespace

AnswerCases BadHeads() {
  const std::string rest = "\r\nContent-Length: 5\r\n\r\nhello";
  AnswerCases cases;
  for (const std::string& line : {"HTTP/2.0 200 OK"s,
                                  "HTTP/1.2 200 OK"s,
                                  "HTTP/0.9 200 OK"s,
                                  "HTTP/11.1 200 OK"s,
                                  "HTTP/1 200 OK"s,
                                  "http/1.1 200 OK"s,
                                  "HTTPS/1.1 200 OK"s,
                                  "ICY 200 OK"s,
                                  "HTTP/1.1 1000 OK"s,
                                  "HTTP/1.1 99 OK"s,
                                  "HTTP/1.1 099 OK"s,
                                  "HTTP/1.1 000 OK"s,
                                  "HTTP/1.1 20 OK"s,
                                  "HTTP/1.1 2x0 OK"s,
                                  "HTTP/1.1 -20 OK"s,
                                  "HTTP/1.1 OK"s,
                                  "HTTP/1.1"s,
                                  "HTTP/1.1 200OK"s,
                                  "HTTP/1.1  200 OK"s,
                                  "HTTP/1.1\t200 OK"s,
                                  " HTTP/1.1 200 OK"s,
                                  "\r\nHTTP/1.1 200 OK"s,
                                  "HTTP/1.1 200 O\0K"s,
                                  "HTTP/1.1 200 O\x7FK"s,
                                  "HTTP/1.1 200 OK\rX"s,
                                  "HTTP/1.1 200 OK\nX: y"s,
                                  "HTTP/1.1 200 OK\r"s,
                                  "200 OK"s,
                                  "hello"s,
                                  "<html>"s,
                                  "SSH-2.0-OpenSSH_9.2"s,
                                  "+PONG"s,
                                  "\x15\x03\x01\0\x02\x02\x16"s,
                                  "\0"s,
                                  "\r\n"s}) {
    cases.push_back({"the status line " + line, line + rest});
  }
  for (const std::string& line :
       {" X: y"s, "\tX: y"s, "X: y\r\n z"s, "X: y\r\n\tz"s, "X : y"s, "X\t: y"s, "X y: z"s, ": y"s,
        "X"s, "X: y\nZ: z"s, "X: y\rZ: z"s, "X: y\r"s, "X: \0"s, "X: \x01"s, "X: \x7F"s,
        "X\xE9: y"s, "(X): y"s, "X\0: y"s, "HTTP/1.1 200 OK"s}) {
    cases.push_back(
        {"the field line " + line, Answer("Content-Length: 5\r\n" + line + "\r\n", "hello")});
  }
  cases.push_back({"all lines end with LF", "HTTP/1.1 200 OK\nContent-Length: 5\n\nhello"});
  cases.push_back({"nothing", "", Result::kBadGateway, Then::kClose});
  cases.push_back({"half a head", "HTTP/1.1 200 OK\r\nX:", Result::kBadGateway, Then::kClose});
  cases.push_back({"a field of 64 KiB", Answer("X: " + std::string(64 << 10, 'y') + "\r\n", "")});
  cases.push_back({"1,000 fields", Answer(Repeated("X: y\r\n", 1000))});
  cases.push_back({"1,000 interim answers", Repeated("HTTP/1.1 103 Early Hints\r\n\r\n", 1000) +
                                                Answer("Content-Length: 0\r\n")});
  cases.push_back({"100 continues", Repeated("HTTP/1.1 100 Continue\r\n\r\n", 100) +
                                        Answer("Content-Length: 0\r\n")});
  cases.push_back(
      {"101 without an upgrade request",
       "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n" + kPoison});
  cases.push_back({"101 without Upgrade", "HTTP/1.1 101 Switching Protocols\r\n\r\n" + kPoison});
  cases.push_back(
      {"an interim answer with a length",
       "HTTP/1.1 103 X\r\nContent-Length: 5\r\n\r\nhello" + Answer("Content-Length: 0\r\n")});
  cases.push_back({"an interim answer, chunked",
                   "HTTP/1.1 103 X\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" +
                       Answer("Content-Length: 0\r\n")});
  cases.push_back({"an interim answer, then garbage", "HTTP/1.1 103 X\r\n\r\nhello"});
  cases.push_back({"an interim answer, then nothing", "HTTP/1.1 103 X\r\n\r\n", Result::kBadGateway,
                   Then::kClose});
  return cases;
}

AnswerCases BadFramings() {
  AnswerCases cases;
  for (const std::string& fields : {"Transfer-Encoding: chunked\r\nContent-Length: 5"s,
                                    "Content-Length: 5\r\nTransfer-Encoding: chunked"s,
                                    "Content-Length: 0\r\nTransfer-Encoding: chunked"s,
                                    "Content-Length: 5\r\nContent-Length: 6"s,
                                    "Content-Length: 5\r\nContent-Length: 0"s,
                                    "Content-Length: 5\r\nContent-Length: 5, 6"s,
                                    "Content-Length: 5, 6"s,
                                    "Content-Length: 5, 5, x"s,
                                    "Content-Length: 5,"s,
                                    "Content-Length: ,5"s,
                                    "Content-Length: +5"s,
                                    "Content-Length: -5"s,
                                    "Content-Length: 0x5"s,
                                    "Content-Length: 5 5"s,
                                    "Content-Length: five"s,
                                    "Content-Length:"s,
                                    "Content-Length: 18446744073709551621"s,
                                    "Content-Length: 99999999999999999999"s,
                                    "Content-Length: 5;"s,
                                    "Content-Length: 5.0"s,
                                    "Content-Length : 5"s,
                                    "Transfer-Encoding: xchunked"s,
                                    "Transfer-Encoding: gzip"s,
                                    "Transfer-Encoding: gzip, chunked"s,
                                    "Transfer-Encoding: chunked, identity"s,
                                    "Transfer-Encoding: chunked, chunked"s,
                                    "Transfer-Encoding: identity"s,
                                    "Transfer-Encoding:"s,
                                    "Transfer-Encoding: \"chunked\""s,
                                    "Transfer-Encoding: chunked;x"s,
                                    "Transfer-Encoding:\vchunked"s,
                                    "Transfer-Encoding : chunked"s,
                                    "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"s,
                                    "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity"s,
                                    "Transfer-Encoding:\r\n chunked"s}) {
    for (const char* method : {"GET", "HEAD"}) {
      AnswerCase& one = cases.emplace_back();
      one.name = method + (" " + fields);
      one.bytes = Answer(fields + "\r\n", "5\r\nhello\r\n0\r\n\r\n");
      one.method = method;
    }
  }
  const std::string chunked = "\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
  cases.push_back({"chunked in HTTP/1.0", "HTTP/1.0 200 OK" + chunked});
  cases.push_back({"204 framed twice", "HTTP/1.1 204 X\r\nContent-Length: 5" + chunked});
  cases.push_back({"103 with a length", "HTTP/1.1 103 X\r\nContent-Length: 5\r\n\r\nhello"});
  cases.push_back({"304 framed twice", "HTTP/1.1 304 X\r\nContent-Length: 5" + chunked});
  return cases;
}

AnswerCases BadBodies() {
  AnswerCases cases;
  for (const std::string& body : {"x\r\nhello\r\n0\r\n\r\n"s,
                                  "-5\r\nhello\r\n0\r\n\r\n"s,
                                  "0x5\r\nhello\r\n0\r\n\r\n"s,
                                  "+5\r\nhello\r\n0\r\n\r\n"s,
                                  " 5\r\nhello\r\n0\r\n\r\n"s,
                                  "5 5\r\nhello\r\n0\r\n\r\n"s,
                                  "\r\n5\r\nhello\r\n0\r\n\r\n"s,
                                  "5\nhello\r\n0\r\n\r\n"s,
                                  "5\rhello\r\n0\r\n\r\n"s,
                                  "5\r\nhello\n0\r\n\r\n"s,
                                  "5\r\nhello0\r\n\r\n"s,
                                  "5\r\nhelloXX0\r\n\r\n"s,
                                  "5\r\nhell\r\n0\r\n\r\n"s,
                                  "10000000000000005\r\nhello\r\n0\r\n\r\n"s,
                                  "5;a=\"\n\"\r\nhello\r\n0\r\n\r\n"s,
                                  "5;\r\nhello\r\n0\r\n\r\n"s,
                                  "5\r\nhello\r\n0\n\r\n"s,
                                  "5\r\nhello\r\n0\r\n\n"s,
                                  "5\r\nhello\r\n0\r\n X: y\r\n\r\n"s,
                                  "5\r\nhello\r\n0\r\nX : y\r\n\r\n"s,
                                  "5\r\nhello\r\n0\r\nX: y\nZ: z\r\n\r\n"s,
                                  "5\r\nhello\r\n0\r\nHTTP/1.1 200 OK\r\n\r\n"s,
                                  "hello"s}) {
    cases.push_back({"the chunked body " + body, Chunked(body), Result::kCut});
  }
  cases.push_back({"trailers of 64 KiB",
                   Chunked("0\r\nX: " + std::string(64 << 10, 'y') + "\r\n\r\n"), Result::kCut});
  cases.push_back(
      {"1,000 trailers", Chunked("0\r\n" + Repeated("X: y\r\n", 1000) + "\r\n"), Result::kCut});
  cases.push_back(
      {"extensions of 64 KiB", Chunked("5;" + std::string(64 << 10, 'y')), Result::kCut});
  for (const std::string& body : {""s, "5"s, "5\r\nhel"s, "5\r\nhello\r\n"s, "5\r\nhello\r\n0\r\n"s,
                                  "5\r\nhello\r\n0\r\nX: y\r\n"s}) {
    cases.push_back({"broken off behind " + body, Chunked(body), Result::kCut, Then::kClose});
  }
  cases.push_back({"broken off before its length", Answer("Content-Length: 5\r\n", "hel"),
                   Result::kCut, Then::kClose});
  cases.push_back({"broken off before all of its length", Answer("Content-Length: 5\r\n"),
                   Result::kCut, Then::kClose});
  // A body may end with the connection. Then only a reset tells the client that the body is
  // incomplete.
  for (const std::string& bytes : {Chunked("5\r\nhello\r\n"), Chunked("5\r\nhello\r\nx"),
                                   Chunked("5\r\nhel"), Answer("Content-Length: 5\r\n", "hel")}) {
    AnswerCase& one = cases.emplace_back();
    one.name = "broken off, to HTTP/1.0: " + bytes.substr(bytes.size() - 5);
    one.bytes = bytes;
    one.result = Result::kCut;
    one.then = Then::kClose;
    one.version = "HTTP/1.0";
  }
  return cases;
}

AnswerCases SoundAnswers() {
  const auto pass = Result::kPasses;
  const std::string length = "Content-Length: 5\r\n";
  const std::string not_modified = "HTTP/1.1 304 Not Modified\r\nX-Answer-To: /case-$NNN\r\n";
  AnswerCases cases = {
      {"a length", Answer(length, "hello"), pass, Then::kKeep, 200, "hello"},
      {"length 0", Answer("Content-Length: 0\r\n"), pass, Then::kKeep, 200, ""},
      {"chunks", Chunked("2\r\nhe\r\n3;a=b\r\nllo\r\n0\r\n\r\n"), pass, Then::kKeep, 200, "hello"},
      {"chunks with trailers", Chunked("5\r\nhello\r\n0\r\nX-Sum: 1\r\n\r\n"), pass, Then::kKeep,
       200, "hello"},
      {"until close", Answer("", "hello"), pass, Then::kClose, 200, "hello"},
      {"until close, nothing", Answer(""), pass, Then::kClose, 200, ""},
      {"until close, HTTP/1.0", "HTTP/1.0 200 OK\r\n\r\nhello", pass, Then::kClose, 200, "hello"},
      {"HTTP/1.0 kept alive",
       "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n" + length + "\r\nhello", pass, Then::kKeep,
       200, "hello"},
      {"no reason", "HTTP/1.1 200\r\n" + length + "\r\nhello", pass, Then::kKeep, 200, "hello"},
      {"204", "HTTP/1.1 204 No Content\r\n\r\n", pass, Then::kKeep, 204, ""},
      {"204 with length 0", "HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n", pass,
       Then::kKeep, 204, ""},
      {"304 with a length", not_modified + length + "\r\n", pass, Then::kKeep, 304, ""},
      {"304, chunked", not_modified + "Transfer-Encoding: chunked\r\n\r\n", pass, Then::kKeep, 304,
       ""},
      {"500", "HTTP/1.1 500 X\r\n" + length + "\r\nhello", pass, Then::kKeep, 500, "hello"},
      {"interim answers",
       "HTTP/1.1 103 X\r\nLink: y\r\n\r\nHTTP/1.1 103\r\n\r\n" + Answer(length, "hello"), pass,
       Then::kKeep, 200, "hello"},
      {"to HEAD, a length", Answer(length), pass, Then::kKeep, 200, "", "HEAD"},
      {"to HEAD, chunked", Chunked(""), pass, Then::kKeep, 200, "", "HEAD"},
      {"to HEAD, neither", Answer(""), pass, Then::kKeep, 200, "", "HEAD"},
      {"chunks to HTTP/1.0", Chunked("5\r\nhello\r\n0\r\n\r\n"), pass, Then::kKeep, 200, "hello",
       "GET", "HTTP/1.0"},
      {"until close to HTTP/1.0", Answer("", "hello"), pass, Then::kClose, 200, "hello", "GET",
       "HTTP/1.0"},
      {"a length to HTTP/1.0", Answer(length, "hello"), pass, Then::kKeep, 200, "hello", "GET",
       "HTTP/1.0"},
      {"an interim answer to HTTP/1.0", "HTTP/1.1 103 X\r\n\r\n" + Answer(length, "hello"), pass,
       Then::kKeep, 200, "hello", "GET", "HTTP/1.0"},
  };
  // Repeated equal lengths are valid. The gateway writes the length once.
  for (const std::string& lengths :
       {"Content-Length: 5\r\nContent-Length: 5\r\n"s, "Content-Length: 5, 5\r\n"s,
        "Content-Length: 5,5\r\ncontent-length: 5\r\n"s}) {
    cases.push_back(
        {"equal lengths: " + lengths, Answer(lengths, "hello"), pass, Then::kKeep, 200, "hello"});
    cases.push_back(
        {"equal lengths to HEAD: " + lengths, Answer(lengths), pass, Then::kKeep, 200, "", "HEAD"});
  }
  // RFC 9110, 15: a status of an unknown class is valid.
  for (const int status : {600, 777, 999}) {
    cases.push_back({"status " + std::to_string(status),
                     "HTTP/1.1 " + std::to_string(status) + " X\r\n" + length + "\r\nhello", pass,
                     Then::kKeep, status, "hello"});
  }
  // The gateway drops forbidden trailers. One that arrives late must not cut the response.
  for (const std::string& trailer :
       {"Content-Length: 5"s, "Transfer-Encoding: chunked"s, "Host: b"s, "Connection: close"s,
        "Set-Cookie: a=b"s, "Location: /"s, "Date: x"s, "Expires: 0"s, "Content-Type: a/b"s}) {
    cases.push_back({"the trailer " + trailer,
                     Chunked("5\r\nhello\r\n0\r\n" + trailer + "\r\nX-Sum: 1\r\n\r\n"), pass,
                     Then::kKeep, 200, "hello"});
  }
  cases.push_back({"white space in chunk size lines",
                   Chunked("2 \r\nhe\r\n3\t; a = b \r\nllo\r\n0 \r\n\r\n"), pass, Then::kKeep, 200,
                   "hello"});
  // A 204 response has no body, whatever its fields say. The gateway does not read what follows it
  // on the connection.
  for (const std::string& framed :
       {"Content-Length: 5\r\n\r\n"s, "Content-Length: 5\r\n\r\nhello"s,
        "Content-Length: " + std::to_string(kPoison.size()) + "\r\n\r\n" + kPoison,
        "Transfer-Encoding: chunked\r\n\r\n"s, "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"s,
        "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"s}) {
    for (const char* method : {"GET", "HEAD"}) {
      cases.push_back({"204, framed: " + framed, "HTTP/1.1 204 No Content\r\n" + framed, pass,
                       Then::kKeep, 204, "", method});
    }
  }
  // Bytes behind a complete response would become the response to the next request.
  for (const auto& [name, bytes, status, body, method] :
       {std::tuple{"a length", Answer(length, "hello"), 200, "hello", "GET"},
        std::tuple{"chunks", Chunked("5\r\nhello\r\n0\r\n\r\n"), 200, "hello", "GET"},
        std::tuple{"204", "HTTP/1.1 204 X\r\n\r\n"s, 204, "", "GET"},
        std::tuple{"304", not_modified + length + "\r\n", 304, "", "GET"},
        std::tuple{"HEAD", Answer(length), 200, "", "HEAD"}}) {
    for (const std::string& more : {kPoison, "hello"s, "\r\n"s}) {
      AnswerCase& one = cases.emplace_back();
      one.name = "behind " + std::string(name) + ": " + more;
      one.bytes = bytes + more;
      one.result = pass;
      one.status = status;
      one.body = body;
      one.method = method;
    }
  }
  return cases;
}

}  // namespace tidegate::gateway_test
