// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstdio>

#include "gateway/framing_case.hpp"

namespace tidegate::gateway_test {
namespace {

using namespace std::string_view_literals;

/// Bytes that are not allowed in a token and that some readers skip, trim or stop at.
constexpr std::string_view kBytes =
    "\0\x01\x08\t\n\v\f\r\x1B\x1F \"(),/:;<=>?@[\\]{}\x7F\x80\x85\xA0\xAD\xFF"sv;

/// A place in a request, into which the byte under test is inserted: between `before` and `after`.
struct Place {
  std::string name;
  std::string before, after;
  std::string_view valid;   ///< Bytes that are allowed in this place.
  Want want = Want::kBoth;  ///< Expected result of a request with an allowed byte.
};

std::vector<Place> Places() {
  // A colon inside these names makes another field of them: a request without a body, followed by
  // bytes that are not a request.
  const std::string host = "\r\nHost: a\r\n";
  const std::string end = "\r\n\r\n0\r\n\r\n";
  return {
      {"before the method", "", Get(""), ""},
      {"in the method", "G", "ET /case-$NNN HTTP/1.1" + host + "\r\n", ""},
      {"behind the method", "GET", " /case-$NNN HTTP/1.1" + host + "\r\n", ""},
      {"in the version", "GET /case-$NNN HTTP", "/1.1" + host + "\r\n", ""},
      {"behind the version", "GET /case-$NNN HTTP/1.1", host + "\r\n", ""},
      {"before Transfer-Encoding", "POST /case-$NNN HTTP/1.1" + host,
       "Transfer-Encoding: chunked" + end, ""},
      {"in Transfer-Encoding", "POST /case-$NNN HTTP/1.1" + host + "Transfer",
       "-Encoding: chunked" + end, ":", Want::kFirst},
      {"behind Transfer-Encoding", "POST /case-$NNN HTTP/1.1" + host + "Transfer-Encoding",
       ": chunked" + end, ""},
      {"before chunked", "POST /case-$NNN HTTP/1.1" + host + "Transfer-Encoding:", "chunked" + end,
       " \t"},
      {"in chunked", "POST /case-$NNN HTTP/1.1" + host + "Transfer-Encoding: chu", "nked" + end,
       ""},
      {"behind chunked", "POST /case-$NNN HTTP/1.1" + host + "Transfer-Encoding: chunked", end,
       " \t"},
      {"in Content-Length", "POST /case-$NNN HTTP/1.1" + host + "Content", "-Length: 5" + end, ":",
       Want::kFirst},
      {"behind Content-Length", "POST /case-$NNN HTTP/1.1" + host + "Content-Length", ": 5" + end,
       ""},
      {"before a length", "POST /case-$NNN HTTP/1.1" + host + "Content-Length:", "5" + end, " \t"},
      {"behind a length", "POST /case-$NNN HTTP/1.1" + host + "Content-Length: 5", end, " \t"},
      {"in Host", "GET /case-$NNN HTTP/1.1\r\nHo", "st: a\r\n\r\n", ""},
      {"in the host", "GET /case-$NNN HTTP/1.1\r\nHost: a", "b\r\n\r\n", ""},
      {"in a chunk's size",
       "POST /case-$NNN HTTP/1.1" + host + "Transfer-Encoding: chunked\r\n\r\n0",
       "5\r\nhello\r\n0\r\n\r\n", ""},
      {"behind a chunk's size",
       "POST /case-$NNN HTTP/1.1" + host + "Transfer-Encoding: chunked\r\n\r\n5",
       "\r\nhello\r\n0\r\n\r\n", " \t"},
      {"in a query", "GET /case-$NNN?a=", "b HTTP/1.1" + host + "\r\n",
       "\"(),/:;<=>?@[\\]{}\x80\x85\xA0\xAD\xFF"},
  };
}

std::string NameOf(char byte) {
  std::array<char, 8> text{};
  std::snprintf(text.data(), text.size(), "0x%02X",
                static_cast<unsigned>(static_cast<unsigned char>(byte)));
  return text.data();
}

}  // namespace

FramingCases ByteCases() {
  FramingCases cases;
  for (const Place& place : Places()) {
    for (const char byte : kBytes) {
      const bool valid = place.valid.find(byte) != std::string_view::npos;
      FramingCase& one = cases.emplace_back();
      one.name = NameOf(byte) + " " + place.name;
      one.raw = place.before + byte + place.after;
      one.want = valid ? place.want : Want::kRefused;
      if (valid && byte == '\t' && place.name != "behind a chunk's size") {
        one.stricter = Stricter::kNginx;
        one.why = kTabIsBlank;
      }
      if (valid && static_cast<unsigned char>(byte) >= 0x80) {
        one.stricter = Stricter::kHaproxy;
        one.why = "clients send UTF-8 unencoded; no byte from 0x80 on ends a target or a line";
      }
    }
  }
  return cases;
}

}  // namespace tidegate::gateway_test
