// SPDX-License-Identifier: Apache-2.0
#include <iterator>
#include <sstream>
#include <string>

#include "gateway/variants/variant_rows.hpp"

namespace tidegate::gateway_test {
namespace {

using namespace std::string_literals;
using Strings = std::vector<std::string>;

/// Returns the words of a text.
Strings Words(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

/// Returns strings that replace the `/` before the first segment.
Strings Prefixes() {
  Strings all = Words(R"(
      // /// /./ /.// /%2e/ /%2E/ /%2f /%2F /%5c /%5C /\ \ /x/../ /x//../ /x/..// /x/.././
      /x/y/../../ /x/%2e%2e/ /x/.%2e/ /x/%2E./ /../ /x/../../ /..%2f /%2e%2e%2f /x/..%2f /x/..%2F
      /x%2f../ /x%2f..%2f /x/%2e%2e%2f /x/..%5c /x/..\ /x\..\ /x%5c..%5c /x/..;/ /x/..;a=b/
      /x/%2e%2e;/ /x/..%3b/ /.;/ /.;a/ /;/ /;a=b/ /%3b/ /x/..%20/ /x/..%09/ /x/..%00/ /x/..%23/
      /x/..%3f/ /x/%252e%252e/ /x/..%252f /%252f /%c0%af /x/..%c0%af /x/%c0%ae%c0%ae/
      /x/%e0%80%ae%2e/ /%ef%bc%8f /x/..%ef%bc%8f /x/%ef%bc%8e%ef%bc%8e/ /%u002f /%20/ /%09/ /%00/
      /free/..;/ /free/%2e%2e%5c /x/..../../ /.../../)");
  all.emplace_back("/ /");
  return all;
}

/// Returns strings that replace the `/` between two segments.
Strings Joints() {
  return Words(R"(
      %2f %2F %5c %5C \ // /// /./ /%2e/ /y/../ /y/%2e%2e/ /y/..;/ /y/..%2f /y%2f../ /y/..%5c
      /./%2f /;/ ;/ ;x/ ;x=y/ %3b/ %3bx/ ;x=y/;z/ %20/ %09/ %00/ %0a/ /%20/ ./ ../ /.;/ %252f
      %25%32%66 %c0%af %e0%80%af %ef%bc%8f %e2%88%95 /%2f %2f/ %2f%2f %5c%5c \\ /\ /%5c)");
}

/// Returns strings to append after the last segment.
Strings Suffixes() {
  Strings all = Words(R"(
      / // /// /. /./ /%2e /%2E/ /y/.. /y/../ /y/%2e%2e /y/..; /y/..;/ /.; /; /;x=y
      ; ;x ;x=y ;x=y;z ;/ ;x/ ;/.. ;x=/../.. %3b %3B %3bx %3bx=y
      %2f %2F %2f%2f %2f. %2fy%2f.. /y%2f.. /y/..%2f %5c %5C \ \. /\ /%5c /y\..
      . .. ... ./ %2e %2e%2e ./. %20 %20%20 %20/ /%20 %20. .%20 %09 %0a %0A %0b %0c %0d %0d%0a
      %00 %00.txt %00/../x %1c %1f %7f %85 %a0 %A0 %c2%85 %c2%a0 %C2%A0 %e2%80%83 %e2%80%a8
      %e3%80%80 %e2%80%8b %ef%bb%bf + ? ?? ?x ?x=/../.. ?/../../x ?x#y ?%2f.. ?; ;?x /?x
      # #x #/../../x #?x %23 %23x %3f %3fx %252f %2520 %253b %c0%af %ef%bc%8f %c0%80
      % %2 %zz %u0020 \#x %20;x ;x%20 %3bx%20 .;x %20%2f)");
  for (const char* const raw : {"\xA0", "\x85", "\xC2\xA0", "\xC2\x85", "\xE3\x80\x80", "\xA0?x",
                                "\xA0#", "\t", "\x0B", "\x0C", "\x1C", "\x7F", "\xFE\xFF"}) {
    all.emplace_back(raw);
  }
  return all;
}

/// Returns paths with the segments `first` and `second` in which some letters are percent-encoded.
Strings Encoded(const std::string& first, const std::string& second) {
  const auto hex = [](char c, bool upper) {
    const char* const digits = upper ? "0123456789ABCDEF" : "0123456789abcdef";
    const auto byte = static_cast<unsigned char>(c);
    return "%"s + digits[byte / 16] + digits[byte % 16];
  };
  const auto whole = [&](const std::string& text, bool upper) {
    std::string all;
    for (const char c : text) all += hex(c, upper);
    return all;
  };
  const std::string rest = first.substr(1);
  return {
      "/" + hex(first[0], false) + rest + "/" + second,
      "/" + first + "/" + hex(second[0], true) + second.substr(1),
      "/" + whole(first, false) + "/" + whole(second, true),
      "/" + whole(first + "/" + second, false),
      whole("/" + first + "/" + second, false),
      "/%25" + hex(first[0], false).substr(1) + rest + "/" + second,
      "/%u00" + hex(first[0], false).substr(1) + rest + "/" + second,
      "/%" + hex(first[0], false) + rest + "/" + second,
      "/%c1%" + hex(static_cast<char>(first[0] + 0x40), false).substr(1) + rest + "/" + second,
      "/%ef%bd%" + hex(static_cast<char>(first[0] + 0x20), false).substr(1) + rest + "/" + second};
}

/// Adds rows with one change to the path each.
void AddSingles(std::vector<PathRow>& rows) {
  struct Resource {
    std::string method, first, second;
  };
  for (const auto& [method, first, second] :
       std::vector<Resource>{{"GET", "admin", "x"}, {"POST", "v1", "login"}}) {
    for (const std::string& prefix : Prefixes()) {
      rows.push_back({"prefix", method, Joined({prefix, first, "/", second})});
    }
    for (const std::string& joint : Joints()) {
      rows.push_back({"joint", method, Joined({"/", first, joint, second})});
    }
    for (const std::string& target : Encoded(first, second)) {
      rows.push_back({"encoded letters", method, target});
    }
  }
  for (const std::string& suffix : Suffixes()) {
    rows.push_back({"suffix", "POST", "/v1/login" + suffix});
    rows.push_back({"suffix", "GET", "/admin" + suffix});
  }
}

/// Adds rows with two changes to the path each.
void AddPairs(std::vector<PathRow>& rows) {
  const Strings prefixes = {"//",       "/./",     "/x/../", "/x/%2e%2e/", "/%2f",
                            "/x/..%2f", "/x/..;/", "/;a/",   "/x/..%5c",   "\\"};
  const Strings suffixes = {"/", "/.", "//", ";x", "%20", ".", "%2f", "%3bx", "?x=/..", "%09"};
  for (const std::string& prefix : prefixes) {
    for (const std::string& suffix : suffixes) {
      rows.push_back({"pair", "POST", Joined({prefix, "v1/login", suffix})});
      rows.push_back({"pair", "GET", Joined({prefix, "admin", suffix})});
    }
  }
  for (const std::string joint : {"%2f", "//", "/./", ";x/", "\\", "/y/../"}) {
    for (const std::string suffix : {"/", ";x", "%20", ".", "%2f"}) {
      rows.push_back({"pair", "POST", Joined({"/v1", joint, "login", suffix})});
    }
  }
  for (const std::string suffix : {"/", ";x", "%20", "/.", "%2f", "."}) {
    rows.push_back({"pair", "post", "/v1/login" + suffix});
    rows.push_back({"pair", "POST", "http://$HOST/v1/login" + suffix});
    rows.push_back({"pair", "POST", "/v1/%6cogin" + suffix});
  }
}

void AddMethods(std::vector<PathRow>& rows) {
  for (const char* const method :
       {"post", "Post", "pOST", "POSt", "post ", "POST\xA0", "\xA0POST", "POST.", "POST\\", "POST;",
        "\"POST\"", "POST,", "P%4fST", "POST\x0B", "POST\x7F"}) {
    rows.push_back({"method", method, "/v1/login"});
  }
  for (const char* const method : {"get", "HEAD", "OPTIONS", "PUT", "DELETE", "PATCH", "TRACE",
                                   "CONNECT", "PROPFIND", "X", "QUERY"}) {
    rows.push_back({"method", method, "/admin/x"});
  }
}

void AddAbsoluteForms(std::vector<PathRow>& rows) {
  const Strings beginnings = {"http://$HOST",
                              "HTTP://$HOST",
                              "http://$HOST:80",
                              "http://user@$HOST",
                              "https://$HOST",
                              "http://$HOST/",
                              "http://$HOST/x/..",
                              "http://$HOST/x/..%2f..",
                              "http://$HOST\\",
                              "http://$HOST/.",
                              "http:",
                              "http:/",
                              "http://",
                              "http:///",
                              "//$HOST",
                              "///$HOST",
                              "ws://$HOST",
                              "foo://$HOST",
                              "/http://$HOST",
                              "http://$HOST?",
                              "http://$HOST#",
                              "http://$HOST/free?",
                              "http://$HOST/x/%2e%2e",
                              "http://other.test@$HOST",
                              "http://$HOST@other.test",
                              "http%3a//$HOST"};
  for (const std::string& beginning : beginnings) {
    rows.push_back({"absolute form", "POST", beginning + "/v1/login"});
    rows.push_back({"absolute form", "GET", beginning + "/admin/x"});
  }
}

void AddQueries(std::vector<PathRow>& rows) {
  for (const char* const target : {"/free?/../v1/login",
                                   "/free?x=/v1/login",
                                   "/free#/../v1/login",
                                   "/free#/../../v1/login",
                                   "/free?x#/../v1/login",
                                   "/free%3f/../v1/login",
                                   "/free%3f/../../v1/login",
                                   "/free%23/../v1/login",
                                   "?/v1/login",
                                   "?/../v1/login",
                                   "*",
                                   "v1/login",
                                   "./v1/login",
                                   "../v1/login",
                                   "/free;/../v1/login",
                                   "/free;/../../v1/login",
                                   "/free%3b/../v1/login",
                                   "/v1/login/..;/login",
                                   "/v1/../v1/login",
                                   "/v1/login/../login",
                                   "/v1/login/../../free",
                                   "/v1/login/%2e%2e/x",
                                   "/v1/x;/../login",
                                   "/v1/x;/..;/login",
                                   "/v1;/login;",
                                   "/v1/%2e/login",
                                   "/v1/.%2flogin",
                                   "/v1%2f.%2flogin",
                                   "/V1/../v1/login",
                                   "/v1/login&x",
                                   "/v1/login,x",
                                   "/v1/login=x",
                                   "/v1/login:",
                                   "/v1/login|",
                                   "/v1/login'",
                                   "/v1/login\"",
                                   "/v1/login{}",
                                   "/v1/login[]",
                                   "/v1/login^",
                                   "/v1/login`",
                                   "/v1/login<",
                                   "/v1/login*",
                                   "/v1/login!",
                                   "/v1/login~",
                                   "/v1/login$",
                                   "/v1/login@x"}) {
    rows.push_back({"query and others", "POST", target});
  }
}

void AddLines(std::vector<PathRow>& rows) {
  for (const std::string target : {"/v1/login", "/v1/login/", "/v1/%6cogin"}) {
    for (const std::string& line :
         {"POST  "s + target + " HTTP/1.1", "POST\t"s + target + " HTTP/1.1",
          "POST "s + target + "\tHTTP/1.1", "POST "s + target + "  HTTP/1.1",
          "POST "s + target + " HTTP/1.1 ", " POST "s + target + " HTTP/1.1",
          "\tPOST "s + target + " HTTP/1.1", "POST\x0B"s + target + " HTTP/1.1",
          "POST\x0C"s + target + "\x0CHTTP/1.1", "POST\x1C"s + target + " HTTP/1.1",
          "POST\xA0"s + target + " HTTP/1.1", "POST "s + target + "\xA0HTTP/1.1",
          "POST "s + target + "\x85HTTP/1.1", "POST "s + target + " HTTP/1.0",
          "POST "s + target + " http/1.1", "POST "s + target + " HTTP/1.2",
          "POST "s + target + " HTTP/01.1"}) {
      rows.push_back({.group = "request line", .method = {}, .target = {}, .line = line + "\r\n"});
    }
  }
  for (const std::string& line :
       {"GET /admin/x"s, "GET /admin/x "s, "GET /admin/x HTTP/0.9"s, "GET /admin/x x HTTP/1.1"s,
        "GET /free /admin/x HTTP/1.1"s, "GET /admin/x\r HTTP/1.1"s, "GET\r /admin/x HTTP/1.1"s,
        "\r\nGET /admin/x HTTP/1.1"s, "\nGET /admin/x HTTP/1.1"s, "\rGET /admin/x HTTP/1.1"s,
        "\x01GET /admin/x HTTP/1.1"s, "GET /free\x01/../admin/x HTTP/1.1"s}) {
    rows.push_back({.group = "request line", .method = {}, .target = {}, .line = line + "\r\n"});
  }
}

}  // namespace

std::string Joined(std::initializer_list<std::string_view> parts) {
  std::string whole;
  for (const std::string_view part : parts) whole += part;
  return whole;
}

std::vector<PathRow> PathRows() {
  std::vector<PathRow> rows;
  AddSingles(rows);
  AddPairs(rows);
  AddMethods(rows);
  AddAbsoluteForms(rows);
  AddQueries(rows);
  AddLines(rows);
  return rows;
}

std::vector<PathRow> CaseRows() {
  std::vector<PathRow> rows;
  for (const std::string path : {"/v1/LOGIN", "/V1/login", "/V1/LOGIN", "/v1/Login", "/v1/logiN",
                                 "/v1/%4cogin", "/%561/login", "/v1/L%6fgin", "/v1/%6cOGIN"}) {
    for (const std::string suffix : {"", "/", "?x", "//", "/.", "#x", "\xA0"}) {
      rows.push_back({"case", "POST", path + suffix});
    }
    for (const std::string prefix : {"/.", "/x/..", "/", "http://$HOST"}) {
      rows.push_back({"case", "POST", prefix + path});
    }
  }
  for (const std::string path :
       {"/ADMIN", "/Admin", "/aDMIN", "/%41DMIN", "/%41dmin", "/admi%4e"}) {
    for (const std::string suffix : {"", "/", "/x", "/x/", "/x/../y", "?x", "//x"}) {
      rows.push_back({"case", "GET", path + suffix});
    }
    for (const std::string prefix : {"/.", "/x/..", "/", "http://$HOST"}) {
      rows.push_back({"case", "GET", Joined({prefix, path, "/x"})});
    }
  }
  // U+017F and U+212A are `s` and `k` to readers that apply Unicode case folding; U+0131 is an `i`
  // without a dot, whose upper case is `I`.
  for (const std::string target : {"/adm%c4%b1n/x", "/ADM%C4%B0N/x", "/adm\xC4\xB1n/x"}) {
    rows.push_back({"case", "GET", target});
  }
  return rows;
}

std::vector<PathRow> HeaderRows() {
  std::vector<PathRow> rows;
  for (const std::string name :
       {"X-Original-URL", "X-Rewrite-URL", "x-original-url", "X-REWRITE-URL", "X_Original_URL",
        "X_Rewrite_URL", "X-Original_URL", "x_rewrite-url"}) {
    for (const std::string path : {"/admin/x", "http://a.test/admin/x", " /admin/x ", "/admin"}) {
      rows.push_back({"header", "GET", "/free", Joined({name, ": ", path, "\r\n"})});
    }
    rows.push_back({"header", "POST", "/free", name + ": /v1/login\r\n"});
    rows.push_back(
        {"header", "GET", "/free", Joined({name, ": /admin/x\r\n", name, ": /free\r\n"})});
    rows.push_back(
        {"header", "GET", "/free", Joined({"Connection: ", name, "\r\n", name, ": /admin/x\r\n"})});
  }
  return rows;
}

std::vector<PathRow> MethodOverrideRows() {
  std::vector<PathRow> rows;
  for (const std::string name :
       {"X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override", "X_HTTP_Method_Override"}) {
    rows.push_back({"method override", "GET", "/v1/login", name + ": POST\r\n"});
  }
  return rows;
}

}  // namespace tidegate::gateway_test
