// SPDX-License-Identifier: Apache-2.0
// Cases about request lines, Host, other fields, and fields that concern one connection only.
#include "gateway/framing_case.hpp"

namespace tidegate::gateway_test {

using namespace std::string_literals;

FramingCases RequestLineCases() {
  const std::string rest = "\r\nHost: a\r\n\r\n";
  // HAProxy requires that Host equals the host of the target.
  const std::string overrides =
      "RFC 9112, 3.2.2: the target's host counts, and is what is forwarded";
  const auto line = [&rest](std::string_view target) {
    return std::string("GET ").append(target).append(" HTTP/1.1").append(rest);
  };
  FramingCases cases = {
      {"an empty line before", "\r\n" + Get(""), Want::kBoth, ""},
      {"two empty lines before", "\r\n\r\n" + Get(""), Want::kBoth, ""},
      {"ten empty lines before", "\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n" + Get(""), Want::kBoth,
       ""},
      {"an empty line after a body", Post("Content-Length: 5\r\n", "hello\r\n"), Want::kBoth,
       "hello"},
      {"empty lines after a chunked body", Chunked("5\r\nhello\r\n0\r\n\r\n\r\n\r\n"), Want::kBoth,
       "hello"},
      {"with a query", "GET /case-$NNN?a=b&c=/d?e HTTP/1.1" + rest, Want::kBoth, ""},
      {"absolute-form", "GET http://a/case-$NNN HTTP/1.1" + rest, Want::kBoth, ""},
      {"absolute-form of another host",
       "GET http://b/case-$NNN HTTP/1.1" + rest,
       Want::kBoth,
       "",
       {},
       "b",
       Stricter::kHaproxy,
       overrides},
      {"absolute-form of another port",
       "GET http://a:81/case-$NNN HTTP/1.1" + rest,
       Want::kBoth,
       "",
       {},
       "a:81",
       Stricter::kHaproxy,
       overrides},
      {"OPTIONS", "OPTIONS /case-$NNN HTTP/1.1" + rest, Want::kBoth, ""},
  };
  for (const std::string& bad : {"GET  /case-$NNN HTTP/1.1"s,
                                 "GET /case-$NNN  HTTP/1.1"s,
                                 "GET\t/case-$NNN HTTP/1.1"s,
                                 "GET /case-$NNN\tHTTP/1.1"s,
                                 " GET /case-$NNN HTTP/1.1"s,
                                 "\tGET /case-$NNN HTTP/1.1"s,
                                 "GET /case-$NNN HTTP/1.1 "s,
                                 "GET /case-$NNN HTTP/1.1\t"s,
                                 "GET /case-$NNN"s,
                                 "GET /case-$NNN "s,
                                 "GET"s,
                                 "/case-$NNN HTTP/1.1"s,
                                 "GET HTTP/1.1"s,
                                 "GET  HTTP/1.1"s,
                                 "GET case-$NNN HTTP/1.1"s,
                                 "GET /case-$NNN HTTP/1.1 HTTP/1.1"s,
                                 "GET /case-$NNN x HTTP/1.1"s,
                                 "GET /case-$NNN HTTP/0.9"s,
                                 "GET /case-$NNN HTTP/1.2"s,
                                 "GET /case-$NNN HTTP/1.10"s,
                                 "GET /case-$NNN HTTP/1.01"s,
                                 "GET /case-$NNN HTTP/01.1"s,
                                 "GET /case-$NNN HTTP/2.0"s,
                                 "GET /case-$NNN HTTP/2"s,
                                 "GET /case-$NNN HTTP/9.9"s,
                                 "GET /case-$NNN HTTP/1"s,
                                 "GET /case-$NNN HTTP/1."s,
                                 "GET /case-$NNN HTTP/.1"s,
                                 "GET /case-$NNN HTTP/1,1"s,
                                 "GET /case-$NNN HTTP 1.1"s,
                                 "GET /case-$NNN http/1.1"s,
                                 "GET /case-$NNN Http/1.1"s,
                                 "GET /case-$NNN HTTPS/1.1"s,
                                 "GET /case-$NNN ICY/1.1"s,
                                 "GET /case-$NNN RTSP/1.0"s,
                                 "GET /case-$NNN#f HTTP/1.1"s,
                                 "G ET /case-$NNN HTTP/1.1"s,
                                 "GE\0T /case-$NNN HTTP/1.1"s,
                                 "GET /case-$NNN\0 HTTP/1.1"s,
                                 "GET /case-$NNN HTTP/1.1\0"s,
                                 "GET /case-$NNN HTTP/1.1\rX"s,
                                 "GET /case-$NNN HTTP/1.1\r"s,
                                 "GET /case-$NNN\r HTTP/1.1"s,
                                 "GET /case-$NNN\n HTTP/1.1"s,
                                 "GET\r\n/case-$NNN HTTP/1.1"s,
                                 "GET /case-$NNN\r\n HTTP/1.1"s,
                                 "GET: /case-$NNN HTTP/1.1"s,
                                 "GET(x) /case-$NNN HTTP/1.1"s,
                                 "GET /a b/case-$NNN HTTP/1.1"s,
                                 "GET /a\tb/case-$NNN HTTP/1.1"s,
                                 "GET http:///case-$NNN HTTP/1.1"s,
                                 "GET http:/case-$NNN HTTP/1.1"s,
                                 "GET ://a/case-$NNN HTTP/1.1"s,
                                 "GET http://u@a/case-$NNN HTTP/1.1"s,
                                 "GET http://u:p@a/case-$NNN HTTP/1.1"s,
                                 "GET http://a:b/case-$NNN HTTP/1.1"s,
                                 "GET http://a:99999/case-$NNN HTTP/1.1"s,
                                 "GET http://a b/case-$NNN HTTP/1.1"s,
                                 "GET ftp://a/case-$NNN HTTP/1.1"s,
                                 "GET file:///case-$NNN HTTP/1.1"s,
                                 "GET * HTTP/1.1"s,
                                 "GET a:80 HTTP/1.1"s}) {
    cases.push_back({"the line " + bad, bad + rest});
  }
  // Browsers and older clients do not encode these characters, and nginx and HAProxy forward them.
  for (const std::string& part :
       {"|"s, "["s, "]"s, "^"s, "{"s, "}"s, "\""s, "`"s, "<"s, ">"s, "\\"s}) {
    cases.push_back({"a query with " + part, line("/case-$NNN?a=" + part + "b"), Want::kBoth, ""});
    // Some servers treat a backslash as a slash, so the gateway rejects a path with a backslash for
    // a reason other than framing.
    if (part == "\\") continue;
    cases.push_back({"a path with " + part, line("/a" + part + "b/case-$NNN"), Want::kBoth, ""});
  }
  // HAProxy 2.6 rejects some of these bytes and forwards others.
  const std::string utf8 =
      "HTTP clients send UTF-8 unencoded; no byte from 0x80 on ends a target or a line";
  for (const std::string& target : {"/case-$NNN?a=\xC3\xA9"s, "/case-$NNN?a=\xE6\xBC\xA2"s,
                                    "/case-$NNN?a=\x80\xFF"s, "/\xC3\xA9/case-$NNN"s}) {
    cases.push_back({"bytes from 0x80 on in " + target,
                     line(target),
                     Want::kBoth,
                     "",
                     {},
                     "",
                     Stricter::kHaproxy,
                     utf8});
  }
  for (const std::string& part : {" "s, "\t"s, "\0"s, "\x01"s, "\x1F"s, "\x7F"s, "#"s, "\v"s}) {
    cases.push_back({"a query with " + part, line("/case-$NNN?a=" + part + "b")});
  }
  for (const std::string& host : {"a|b"s, "a\\b"s, "a\xE9"s, "{a}"s}) {
    cases.push_back({"absolute-form of host " + host, line("http://" + host + "/case-$NNN")});
  }
  cases.push_back({"a CRLF and a LF before", "\r\n\n" + Get("")});
  cases.push_back({"a CRLF and a CR before", "\r\n\r" + Get("")});
  cases.push_back({"empty lines beyond the limit of the head", [] {
                     std::string lines;
                     for (int i = 0; i < 10'000; ++i) lines += "\r\n";
                     return lines + Get("");
                   }()});
  cases.push_back({"a line that ends with LF", "GET /case-$NNN HTTP/1.1\nHost: a\r\n\r\n"});
  cases.push_back({"all lines end with LF", "GET /case-$NNN HTTP/1.1\nHost: a\n\n"});
  cases.push_back({"all lines end with CR", "GET /case-$NNN HTTP/1.1\rHost: a\r\r"});
  cases.push_back({"a LF before", "\n" + Get("")});
  cases.push_back({"a CR before", "\r" + Get("")});
  cases.push_back({"the preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"});
  cases.push_back({"a TLS hello", "\x16\x03\x01\x02\0\x01\0\x01\xFC\x03\x03"s});
  cases.push_back({"CONNECT", "CONNECT a:80 HTTP/1.1" + rest});
  cases.push_back({"CONNECT with a path", "CONNECT /case-$NNN HTTP/1.1" + rest});
  return cases;
}

FramingCases HostCases() {
  const std::string line = "GET /case-$NNN HTTP/1.1\r\n";
  FramingCases cases = {
      {"a port", line + "Host: a:80\r\n\r\n", Want::kBoth, ""},
      {"an address", line + "Host: 127.0.0.1\r\n\r\n", Want::kBoth, ""},
      {"an IPv6 address", line + "Host: [::1]:80\r\n\r\n", Want::kBoth, ""},
      {"upper case", line + "HOST: A.EXAMPLE\r\n\r\n", Want::kBoth, ""},
      {"HTTP/1.0 without Host", "GET /case-$NNN HTTP/1.0\r\n\r\n", Want::kFirst, ""},
      {"no Host", line + "\r\n"},
      {"no Host but another field", line + "X: y\r\n\r\n"},
      {"Host twice", line + "Host: a\r\nHost: b\r\n\r\n"},
      {"the same Host twice", line + "Host: a\r\nHost: a\r\n\r\n"},
      {"Host twice, one empty", line + "Host: a\r\nHost:\r\n\r\n"},
      {"Host twice in HTTP/1.0", "GET /case-$NNN HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n"},
      {"Host hidden by a fold", line + "Host: a\r\n Host: b\r\n\r\n"},
      {"Host hidden by a blank", line + "Host : a\r\n\r\n"},
      {"Host after a fold", line + "X: y\r\n Host: a\r\n\r\n"},
      {"absolute-form without Host", "GET http://a/case-$NNN HTTP/1.1\r\n\r\n"},
      {"absolute-form with two Hosts",
       "GET http://a/case-$NNN HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"},
  };
  for (const std::string& value :
       {""s,     " "s,      "u@a"s,    "u:p@a"s, "a:b"s,      "a:80x"s, "a:80:80"s, "a:99999"s,
        "a:-1"s, "a:+80"s,  "a:0x50"s, "a: 80"s, "a :80"s,    "a b"s,   "a,b"s,     "a, b"s,
        "a/b"s,  "a/../b"s, "a?b"s,    "a#b"s,   "http://a"s, "[::1"s,  "::1"s,     "[::1]x"s,
        "[a"s,   "a]"s,     "[]"s,     "a\\b"s,  "\"a\""s,    "<a>"s,   "a;b"s,     "a\tb"s,
        "a\0b"s, "a\x7f"s,  "a\xE9"s,  "*"s,     "a|b"s,      "a`b"s,   "{a}"s,     "a^b"s}) {
    const std::string host = "Host: " + value;
    cases.push_back({host, line + host + "\r\n\r\n"});
  }
  return cases;
}

FramingCases FieldCases() {
  FramingCases cases = {
      {"an underscore in a name", Get("X_Y: z\r\n"), Want::kBoth, ""},
      {"odd characters in a name", Get("!#$%&'*+-.^_`|~1: z\r\n"), Want::kBoth, ""},
      {"an empty value", Get("X:\r\nY: \r\n"), Want::kBoth, ""},
      {"a tab in a value", Get("X: a\tb\r\n"), Want::kBoth, ""},
      {"bytes from 0x80 in a value", Get("X: \xC3\xA9\xFF\r\n"), Want::kBoth, ""},
      {"a repeated field", Get("X: a\r\nX: b\r\n"), Want::kBoth, ""},
      {"Expect", Post("Content-Length: 5\r\nExpect: 100-continue\r\n", "hello"), Want::kBoth,
       "hello"},
      {"Expect, chunked",
       Post("Transfer-Encoding: chunked\r\nExpect: 100-continue\r\n", "5\r\nhello\r\n0\r\n\r\n"),
       Want::kBoth, "hello"},
      {"Expect without a body", Get("Expect: 100-continue\r\n"), Want::kBoth, ""},
      {"an unknown expectation", Get("Expect: everything\r\n")},
      {"a list of expectations", Get("Expect: 100-continue, x\r\n")},
      {"a field of 20 KiB", Get("X: " + std::string(20 << 10, 'y') + "\r\n")},
      {"a target of 20 KiB",
       "GET /case-$NNN/" + std::string(20 << 10, 'y') + " HTTP/1.1\r\nHost: a\r\n\r\n"},
      {"a NUL before the name", Get("\0X: y\r\n"s)},
  };
  std::string many;
  for (int i = 0; i < 200; ++i) many += "X: y\r\n";
  cases.push_back({"200 fields", Get(many)});
  for (const std::string& line : {"X Y: z"s,
                                  "X : y"s,
                                  "X\t: y"s,
                                  ": y"s,
                                  ":"s,
                                  " : y"s,
                                  "X"s,
                                  "X y"s,
                                  " X: y"s,
                                  "\tX: y"s,
                                  "X: y\r\n z"s,
                                  "X: y\r\n\tz"s,
                                  "X: y\r\n  "s,
                                  "X: y\n z"s,
                                  "X: y\nZ: z"s,
                                  "X: y\rZ: z"s,
                                  "X: y\r"s,
                                  "X: \0"s,
                                  "X: \x01"s,
                                  "X: \x08"s,
                                  "X: \v"s,
                                  "X: \f"s,
                                  "X: \x1B[0m"s,
                                  "X: \x7F"s,
                                  "X\xC3\xA9: y"s,
                                  "(X): y"s,
                                  "X,Y: z"s,
                                  "X/Y: z"s,
                                  "X;Y: z"s,
                                  "X=Y: z"s,
                                  "X@Y: z"s,
                                  "[X]: y"s,
                                  "\"X\": y"s,
                                  "{X}: y"s,
                                  "X\\Y: z"s,
                                  "<X>: y"s,
                                  "X?: y"s,
                                  "GET /smuggled-$NNN HTTP/1.1"s,
                                  "\r"s,
                                  "X: y\r\n\r X: y"s}) {
    cases.push_back({"the field line " + line, Get(line + "\r\n")});
    cases.push_back({"the field line " + line + ", with a body",
                     Post("Content-Length: 5\r\n" + line + "\r\n", "hello")});
  }
  return cases;
}

FramingCases HopCases() {
  const std::string five = "Content-Length: 5\r\n";
  return {
      {"Connection: close", Get("Connection: close\r\n"), Want::kFirst, ""},
      {"Connection: close, keep-alive", Get("Connection: close, keep-alive\r\n"), Want::kFirst, ""},
      {"Connection: keep-alive",
       Get("Connection: keep-alive\r\nKeep-Alive: timeout=5\r\n"),
       Want::kBoth,
       "",
       {"keep-alive"}},
      {"Connection names a field",
       Get("Connection: x-foo\r\nX-Foo: y\r\n"),
       Want::kBoth,
       "",
       {"x-foo"}},
      {"Connection names two fields",
       Get("Connection: x-foo, X-BAR\r\nX-Foo: y\r\nX-Bar: z\r\n"),
       Want::kBoth,
       "",
       {"x-foo", "x-bar"}},
      {"two Connection fields",
       Get("Connection: x-foo\r\nConnection: x-bar\r\nX-Foo: y\r\nX-Bar: z\r\n"),
       Want::kBoth,
       "",
       {"x-foo", "x-bar"}},
      {"Connection with empty elements",
       Get("Connection: ,x-foo,,\r\nX-Foo: y\r\n"),
       Want::kBoth,
       "",
       {"x-foo"}},
      {"Connection names Content-Length", Post("Connection: content-length\r\n" + five, "hello"),
       Want::kBoth, "hello"},
      {"Connection names Transfer-Encoding",
       Post("Connection: transfer-encoding\r\nTransfer-Encoding: chunked\r\n",
            "5\r\nhello\r\n0\r\n\r\n"),
       Want::kBoth, "hello"},
      {"Connection names Host",
       Get("Connection: host, x-foo\r\nX-Foo: y\r\n"),
       Want::kBoth,
       "",
       {"x-foo"}},
      {"Connection names Connection", Get("Connection: connection\r\n"), Want::kBoth, ""},
      {"Connection is no list of tokens", Get("Connection: a b\r\n")},
      {"Connection with quotes", Get("Connection: \"close\"\r\n")},
      {"Proxy-Connection",
       Get("Proxy-Connection: keep-alive\r\n"),
       Want::kBoth,
       "",
       {"proxy-connection"}},
      {"TE: trailers", Get("TE: trailers\r\nConnection: TE\r\n"), Want::kBoth, ""},
      {"TE: chunked", Get("TE: chunked\r\n"), Want::kBoth, ""},
      {"Upgrade: h2c",
       Get("Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: "
           "AAMAAABkAAQAAP__\r\n"),
       Want::kBoth,
       "",
       {"http2-settings"}},
      {"Upgrade without Connection", Get("Upgrade: websocket\r\n"), Want::kBoth, "", {"upgrade"}},
      {"Upgrade with a body", Post("Connection: upgrade\r\nUpgrade: x\r\n" + five, "hello"),
       Want::kBoth, "hello"},
      {"Keep-Alive alone", Get("Keep-Alive: timeout=5\r\n"), Want::kBoth, "", {"keep-alive"}},
  };
}

}  // namespace tidegate::gateway_test
