// SPDX-License-Identifier: Apache-2.0
// Cases about the fields that define where a request ends: Content-Length and Transfer-Encoding.
#include <sstream>

#include "gateway/framing_case.hpp"

namespace tidegate::gateway_test {

using namespace std::string_literals;

std::string Post(std::string_view fields, std::string_view body) {
  return "POST /case-$NNN HTTP/1.1\r\nHost: a\r\n" + std::string(fields) + "\r\n" +
         std::string(body);
}

std::string Get(std::string_view fields) {
  return "GET /case-$NNN HTTP/1.1\r\nHost: a\r\n" + std::string(fields) + "\r\n";
}

std::string Chunked(std::string_view body) { return Post("Transfer-Encoding: chunked\r\n", body); }

std::string ChunkOf(std::string_view data) {
  std::ostringstream text;
  text << std::hex << data.size() << "\r\n" << data << "\r\n";
  return text.str();
}

std::string Smuggled() { return "GET /smuggled-$NNN HTTP/1.1\r\nHost: a\r\n\r\n"; }

FramingCases LengthCases() {
  FramingCases cases = {
      {"no body", Get(""), Want::kBoth, ""},
      {"length 0", Post("Content-Length: 0\r\n", ""), Want::kBoth, ""},
      {"length 5", Post("Content-Length: 5\r\n", "hello"), Want::kBoth, "hello"},
      {"length in lower case", Post("content-length: 5\r\n", "hello"), Want::kBoth, "hello"},
      {"length in upper case", Post("CONTENT-LENGTH: 5\r\n", "hello"), Want::kBoth, "hello"},
      {"length with blanks around",
       Post("Content-Length: \t5 \t\r\n", "hello"),
       Want::kBoth,
       "hello",
       {},
       "",
       Stricter::kNginx,
       std::string(kTabIsBlank)},
      {"length without a blank", Post("Content-Length:5\r\n", "hello"), Want::kBoth, "hello"},
      {"length with leading zeros", Post("Content-Length: 0005\r\n", "hello"), Want::kBoth,
       "hello"},
      {"a body that looks like a request",
       Post("Content-Length: " + std::to_string(Smuggled().size()) + "\r\n", Smuggled()),
       Want::kBoth, Smuggled()},
      {"length but nothing comes", Post("Content-Length: 5000\r\n", ""), Want::kWaits},
      {"GET with a body", "GET /case-$NNN HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
       Want::kBoth, "hello"},
      {"HEAD with a body", "HEAD /case-$NNN HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
       Want::kBoth, "hello"},
      {"DELETE with a body",
       "DELETE /case-$NNN HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", Want::kBoth,
       "hello"},
      {"POST without a length", Post("", ""), Want::kBoth, ""},
      {"an unknown method", "FROB /case-$NNN HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
       Want::kBoth, "hello"},
      {"HTTP/1.0 with a length",
       "POST /case-$NNN HTTP/1.0\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", Want::kFirst,
       "hello"},
      {"HTTP/1.0 kept alive",
       "GET /case-$NNN HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n", Want::kBoth, ""},
      {"two equal lengths", Post("Content-Length: 5\r\nContent-Length: 5\r\n", "hello")},
      {"two lengths", Post("Content-Length: 5\r\nContent-Length: 0\r\n", "hello")},
      {"two lengths, the other way", Post("Content-Length: 0\r\nContent-Length: 5\r\n", "hello")},
      {"two lengths apart", Post("Content-Length: 0\r\nX: y\r\ncontent-length: 5\r\n", "hello")},
      {"two lengths, one empty", Post("Content-Length:\r\nContent-Length: 5\r\n", "hello")},
  };
  for (const std::string& value : {"5, 5"s,
                                   "5,5"s,
                                   "5, 0"s,
                                   "0, 5"s,
                                   "5,"s,
                                   ",5"s,
                                   "+5"s,
                                   "-5"s,
                                   "-0"s,
                                   "0x5"s,
                                   "0X5"s,
                                   "5h"s,
                                   "5.0"s,
                                   "5e0"s,
                                   "05o"s,
                                   "5 0"s,
                                   "5 5"s,
                                   "5\t5"s,
                                   "5;"s,
                                   "5;q=1"s,
                                   "\"5\""s,
                                   "'5'"s,
                                   "five"s,
                                   ""s,
                                   " "s,
                                   "0b101"s,
                                   "1_0"s,
                                   "18446744073709551616"s,
                                   "18446744073709551621"s,
                                   "99999999999999999999"s,
                                   "4294967296x"s,
                                   "999999999999999999999999999999999999999999"s,
                                   "\xEF\xBC\x95"s,
                                   "5\xA0"s,
                                   "(5)"s,
                                   "5 (five)"s,
                                   "%35"s,
                                   "$5"s}) {
    cases.push_back(
        {"Content-Length: " + value, Post("Content-Length: " + value + "\r\n", "hello")});
  }
  return cases;
}

FramingCases CodingCases() {
  const std::string end = "0\r\n\r\n";
  FramingCases cases = {
      {"chunked", Chunked("5\r\nhello\r\n0\r\n\r\n"), Want::kBoth, "hello"},
      {"chunked, nothing in it", Chunked(end), Want::kBoth, ""},
      {"CHUNKED", Post("TRANSFER-ENCODING: CHUNKED\r\n", end), Want::kBoth, ""},
      {"ChUnKeD", Post("tRaNsFeR-eNcOdInG: ChUnKeD\r\n", end), Want::kBoth, ""},
      {"chunked with blanks around",
       Post("Transfer-Encoding: \t chunked \t\r\n", end),
       Want::kBoth,
       "",
       {},
       "",
       Stricter::kNginx,
       std::string(kTabIsBlank)},
      {"chunked without a blank", Post("Transfer-Encoding:chunked\r\n", end), Want::kBoth, ""},
      {"GET, chunked",
       "GET /case-$NNN HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" +
           "5\r\nhello\r\n"s + end,
       Want::kBoth, "hello"},
      {"chunked, not ended", Chunked("5000\r\nhello"), Want::kWaits},
      {"CL.TE", Post("Content-Length: 6\r\nTransfer-Encoding: chunked\r\n", end + "G")},
      {"CL.TE, a request behind it",
       Post("Content-Length: " + std::to_string(end.size() + Smuggled().size()) +
                "\r\nTransfer-Encoding: chunked\r\n",
            end + Smuggled())},
      {"TE.CL",
       Post("Transfer-Encoding: chunked\r\nContent-Length: 4\r\n", ChunkOf(Smuggled()) + end)},
      {"TE with length 0", Post("Transfer-Encoding: chunked\r\nContent-Length: 0\r\n", end)},
      {"TE with a bad length", Post("Transfer-Encoding: chunked\r\nContent-Length: x\r\n", end)},
      {"TE, length far behind",
       Post("Transfer-Encoding: chunked\r\nA: b\r\nC: d\r\nContent-Length: 5\r\n", end)},
      {"TE in HTTP/1.0",
       "POST /case-$NNN HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + end},
      {"TE in HTTP/1.0 kept alive",
       "POST /case-$NNN HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\nTransfer-Encoding: "
       "chunked\r\n\r\n" +
           end},
      {"TE and length in HTTP/1.0",
       "POST /case-$NNN HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\nContent-Length: "
       "5\r\nTransfer-Encoding: chunked\r\n\r\n" +
           end},
  };
  // Combines each line with both Content-Lengths that a reader without codings would use.
  for (const std::string& line : {"Transfer-Encoding: xchunked"s,
                                  "Transfer-Encoding: chunkedx"s,
                                  "Transfer-Encoding: chunk"s,
                                  "Transfer-Encoding: chunked, identity"s,
                                  "Transfer-Encoding: identity, chunked"s,
                                  "Transfer-Encoding: chunked, chunked"s,
                                  "Transfer-Encoding: gzip, chunked"s,
                                  "Transfer-Encoding: chunked, gzip"s,
                                  "Transfer-Encoding: cow, chunked"s,
                                  "Transfer-Encoding: gzip"s,
                                  "Transfer-Encoding: identity"s,
                                  "Transfer-Encoding:"s,
                                  "Transfer-Encoding: ,"s,
                                  "Transfer-Encoding: ,chunked"s,
                                  "Transfer-Encoding: chunked,"s,
                                  "Transfer-Encoding: \"chunked\""s,
                                  "Transfer-Encoding: 'chunked'"s,
                                  "Transfer-Encoding: chunked;x"s,
                                  "Transfer-Encoding: chunked;q=0"s,
                                  "Transfer-Encoding: chunked x"s,
                                  "Transfer-Encoding: x chunked"s,
                                  "Transfer-Encoding: (x) chunked"s,
                                  "Transfer-Encoding : chunked"s,
                                  "Transfer-Encoding\t: chunked"s,
                                  " Transfer-Encoding: chunked"s,
                                  "\tTransfer-Encoding: chunked"s,
                                  "X: y\r\n Transfer-Encoding: chunked"s,
                                  "Transfer-Encoding:\r\n chunked"s,
                                  "Transfer-Encoding: chunked\r\n identity"s,
                                  "Transfer-Encoding: chunked\r\n\t"s,
                                  "Transfer-Encoding\r\n: chunked"s,
                                  "Transfer-Encoding:\n chunked"s,
                                  "X: y\nTransfer-Encoding: chunked"s,
                                  "X: y\rTransfer-Encoding: chunked"s,
                                  "X: y\r\r\nTransfer-Encoding: chunked"s,
                                  "X: y\n\rTransfer-Encoding: chunked"s,
                                  "Transfer-Encoding: chunked\nX: y"s,
                                  "Transfer-Encoding: chunked\r"s,
                                  "Transfer-Encoding chunked"s,
                                  "Transfer-Encoding"s,
                                  "Transfer-Encoding:: chunked"s,
                                  "Transfer-Encoding; chunked"s,
                                  "Transfer-Encoding=chunked"s,
                                  ": Transfer-Encoding: chunked"s,
                                  "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"s,
                                  "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity"s,
                                  "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked"s,
                                  "Transfer-Encoding: chunked\r\nTransfer-Encoding: x"s,
                                  "Transfer-Encoding: x\r\nTransfer-Encoding: chunked"s,
                                  "Transfer-Encoding:\r\nTransfer-Encoding: chunked"s}) {
    cases.push_back({"no length, " + line, Post(line + "\r\n", end)});
    cases.push_back({"length 5, " + line, Post("Content-Length: 5\r\n" + line + "\r\n", end)});
  }
  // Fields whose names resemble Transfer-Encoding: they do not frame a body, and no server may
  // treat them as framing.
  for (const std::string& name :
       {"Transfer_Encoding"s, "TransferEncoding"s, "X-Transfer-Encoding"s, "Transfer-Encoding2"s,
        "Transfer--Encoding"s, "Transfer.Encoding"s}) {
    cases.push_back(
        {name, Post("Content-Length: 5\r\n" + name + ": chunked\r\n", end), Want::kBoth, end});
  }
  for (const std::string& name : {"Content_Length"s, "ContentLength"s, "X-Content-Length"s,
                                  "Content-Lengt"s, "Content-Lengths"s}) {
    cases.push_back(
        {name, Post("Content-Length: 5\r\n" + name + ": 0\r\n", end), Want::kBoth, end});
  }
  return cases;
}

FramingCases AllFramingCases() {
  FramingCases all;
  for (auto* group : {&LengthCases, &CodingCases, &ChunkCases, &TrailerCases, &RequestLineCases,
                      &HostCases, &FieldCases, &HopCases, &ByteCases}) {
    for (FramingCase& one : group()) all.push_back(std::move(one));
  }
  return all;
}

}  // namespace tidegate::gateway_test
