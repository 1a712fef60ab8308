// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "gateway/variants/variant_rows.hpp"

namespace tidegate::gateway_test {
namespace {

using Kind = IdentityRow::Kind;
using Auth = IdentityRow::Auth;
using Rows = std::vector<IdentityRow>;

void AddHeaders(Rows& rows) {
  const auto add = [&rows](std::string name, std::string fields) {
    rows.push_back({Kind::kHeader, std::move(name), std::move(fields)});
  };
  add("as it is", "X-Api-Key: $KEY\r\n");
  add("name in lower case", "x-api-key: $KEY\r\n");
  add("name in upper case", "X-API-KEY: $KEY\r\n");
  add("no space", "X-Api-Key:$KEY\r\n");
  add("leading spaces", "X-Api-Key:    $KEY\r\n");
  add("trailing spaces", "X-Api-Key: $KEY   \r\n");
  add("leading tab", "X-Api-Key:\t$KEY\r\n");
  add("trailing tab", "X-Api-Key: $KEY\t \t\r\n");
  for (const std::string space : {"\xA0", "\x85", "\x0B", "\x0C", "\x1C", "\x1D", "\x1E", "\x1F",
                                  "\xC2\xA0", "\xE3\x80\x80"}) {
    add("space of another kind behind", "X-Api-Key: $KEY" + space + "\r\n");
    add("space of another kind before", "X-Api-Key: " + space + "$KEY\r\n");
    add("space of another kind and a usual one", "X-Api-Key: $KEY " + space + " \r\n");
  }
  add("control character", "X-Api-Key: $KEY\x01\r\n");
  add("DEL", "X-Api-Key: $KEY\x7F\r\n");
  add("the same twice", "X-Api-Key: $KEY\r\nX-Api-Key: $KEY\r\n");
  add("another before", "X-Api-Key: other\r\nX-Api-Key: $KEY\r\n");
  add("another behind", "X-Api-Key: $KEY\r\nX-Api-Key: other\r\n");
  add("an empty one before", "X-Api-Key:\r\nX-Api-Key: $KEY\r\n");
  add("an empty one behind", "X-Api-Key: $KEY\r\nX-Api-Key:\r\n");
  add("another name in other case", "X-Api-Key: other\r\nx-aPI-kEY: $KEY\r\n");
  add("list", "X-Api-Key: $KEY, other\r\n");
  add("list, last", "X-Api-Key: other, $KEY\r\n");
  add("trailing comma", "X-Api-Key: $KEY,\r\n");
  add("leading comma", "X-Api-Key: ,$KEY\r\n");
  add("underscores", "X_Api_Key: $KEY\r\n");
  add("one underscore", "X-Api_Key: $KEY\r\n");
  add("underscores beside another", "X-Api-Key: other\r\nX_Api_Key: $KEY\r\n");
  add("underscores before another", "X_Api_Key: $KEY\r\nX-Api-Key: other\r\n");
  add("folded", "X-Api-Key:\r\n $KEY\r\n");
  add("folded behind", "X-Api-Key: $KEY\r\n \r\n");
  add("space before the colon", "X-Api-Key : $KEY\r\n");
  add("tab before the colon", "X-Api-Key\t: $KEY\r\n");
  add("a line before it that is folded", "X-Other: a\r\n X-Api-Key: $KEY\r\n");
  add("bare LF before it", "X-Other: a\nX-Api-Key: $KEY\r\n");
  add("bare CR before it", "X-Other: a\rX-Api-Key: $KEY\r\n");
  for (const std::string connection :
       {"X-Api-Key", "x-api-key", "close, X-Api-Key", "X-Api-Key, close", "\tX-Api-Key ",
        "keep-alive,,X-Api-Key", "X_Api_Key"}) {
    rows.push_back({Kind::kHeader,
                    "named in Connection: " + connection,
                    Joined({"Connection: ", connection, "\r\nX-Api-Key: $KEY\r\n"}),
                    {},
                    {},
                    Auth::kNotForwarded});
  }
  rows.push_back({Kind::kHeader,
                  "named in a second Connection",
                  "Connection: close\r\nX-Api-Key: $KEY\r\nConnection: X-Api-Key\r\n",
                  {},
                  {},
                  Auth::kNotForwarded});
  rows.push_back({Kind::kHeader,
                  "named in Connection, underscores",
                  "Connection: X-Api-Key\r\nX_Api_Key: $KEY\r\n",
                  {},
                  {},
                  Auth::kNotForwarded});
  for (const std::string trailer : {"X-Api-Key", "x-api-key", "X_Api_Key", "X-Api_Key"}) {
    for (const std::string announced : {"", "Trailer: X-Api-Key\r\n", "TE: trailers\r\n"}) {
      rows.push_back({Kind::kHeader, Joined({"trailer ", trailer, " ", announced}),
                      announced + "Transfer-Encoding: chunked\r\n", "",
                      Joined({"2\r\nhi\r\n0\r\n", trailer, ": $KEY\r\n\r\n"}),
                      Auth::kNotForwarded});
    }
  }
}

void AddCookies(Rows& rows) {
  for (const auto& [name, value] : std::vector<std::pair<std::string, std::string>>{
           {"as it is", "sid=$KEY"},
           {"among others", "a=b; sid=$KEY; c=d"},
           {"another before", "sid=zz; sid=$KEY"},
           {"another behind", "sid=$KEY; sid=zz"},
           {"two others around", "sid=yy; sid=$KEY; sid=zz"},
           {"the same twice", "sid=$KEY; sid=$KEY"},
           {"an empty one before", "sid=; sid=$KEY"},
           {"an empty one behind", "sid=$KEY; sid="},
           {"one without a value before", "sid; sid=$KEY"},
           {"quoted", "sid=\"$KEY\""},
           {"quoted, another before", "sid=\"zz\"; sid=\"$KEY\""},
           {"half quoted", "sid=\"$KEY"},
           {"space before the sign", "sid =$KEY"},
           {"space behind the sign", "sid= $KEY"},
           {"spaces around", " sid = $KEY ; a=b"},
           {"tab before the sign", "sid\t=$KEY"},
           {"no space between", "a=b;sid=$KEY"},
           {"spaces between", "a=b;   sid=$KEY"},
           {"tab between", "a=b;\tsid=$KEY"},
           {"empty pairs", ";; sid=$KEY;;"},
           {"trailing semicolon", "sid=$KEY;"},
           {"comma between", "a=b, sid=$KEY"},
           {"comma without space", "a=b,sid=$KEY"},
           {"comma behind", "sid=$KEY, a=b"},
           {"tab and another behind", "sid=$KEY\tj0=x"},
           {"space, tab and another behind", "sid=$KEY \tj1=x"},
           {"quoted, tab and another behind", "sid=\"$KEY\"\tj2=x"},
           {"made up, tab, real", "sid=fresh\tsid=$KEY"},
           {"tab only between", "a=b\tsid=$KEY"},
           {"encoded letter", "sid=%$K1$REST"},
           {"encoded letter, quoted", "sid=\"%$K1$REST\""},
           {"octal escape in quotes", "sid=\"\\$K8$REST\""},
           {"backslash in quotes", "sid=\"\\$KEY\""},
           {"encoded name", "%73id=$KEY"},
           {"name in upper case", "SID=$KEY"},
           {"version", "$Version=1; sid=$KEY; $Path=/"},
           {"space of another kind behind", "sid=$KEY\xA0"},
           {"space of another kind before the name", "a=b; \xC2\xA0sid=$KEY"},
           {"space of another kind behind the name", "sid\xC2\xA0=$KEY"},
           {"space of another kind before the value", "sid=\xC2\xA0$KEY; a=b"},
           {"space of another kind behind the value", "sid=$KEY\xC2\xA0; a=b"},
           {"inside a quoted value", "a=\"b; sid=zz\"; sid=$KEY"},
           {"a quote that does not end", "a=\"b; sid=$KEY"},
           {"name with a prefix", "__Host-sid=zz; sid=$KEY"}}) {
    rows.push_back({Kind::kCookie, name, "Cookie: " + value + "\r\n"});
  }
  rows.push_back({Kind::kCookie, "second line", "Cookie: a=b\r\nCookie: sid=$KEY\r\n"});
  rows.push_back(
      {Kind::kCookie, "second line, another before", "Cookie: sid=zz\r\nCookie: sid=$KEY\r\n"});
  rows.push_back(
      {Kind::kCookie, "second line, another behind", "Cookie: sid=$KEY\r\nCookie: sid=zz\r\n"});
  rows.push_back({Kind::kCookie, "name of the field in upper case", "COOKIE: sid=$KEY\r\n"});
  rows.push_back({Kind::kCookie,
                  "named in Connection",
                  "Connection: cookie\r\nCookie: sid=$KEY\r\n",
                  {},
                  {},
                  Auth::kNotForwarded});
}

void AddQueries(Rows& rows) {
  for (const auto& [name, query] : std::vector<std::pair<std::string, std::string>>{
           {"as it is", "api_key=$KEY"},
           {"among others", "a=b&api_key=$KEY&c=d"},
           {"another before", "api_key=zz&api_key=$KEY"},
           {"another behind", "api_key=$KEY&api_key=zz"},
           {"two others around", "api_key=yy&api_key=$KEY&api_key=zz"},
           {"the same twice", "api_key=$KEY&api_key=$KEY"},
           {"an empty one before", "api_key=&api_key=$KEY"},
           {"one without a value before", "api_key&api_key=$KEY"},
           {"an empty one behind", "api_key=$KEY&api_key="},
           {"encoded letter", "api_key=%$K1$REST"},
           {"encoded name", "%61pi_key=$KEY"},
           {"encoded underscore", "api%5Fkey=$KEY"},
           {"encoded underscore, lower case", "api%5fkey=$KEY"},
           {"encoded both", "%61pi%5fkey=%$K1$REST"},
           {"another before, encoded", "api_key=zz&%61pi_key=$KEY"},
           {"another behind, encoded", "%61pi_key=$KEY&api_key=zz"},
           {"empty pairs", "&&api_key=$KEY&&"},
           {"question marks", "?api_key=zz&api_key=$KEY"},
           {"semicolon between", "a=b;api_key=$KEY"},
           {"fragment", "api_key=$KEY#x"},
           {"equals sign encoded", "api_key%3d$KEY"},
           {"ampersand encoded", "a=b%26api_key=$KEY"},
           {"brackets", "api_key[]=$KEY"},
           {"brackets encoded", "api_key%5b%5d=$KEY"},
           {"brackets beside it", "api_key=zz&api_key[]=$KEY"},
           {"broken encoding beside it", "a=%zz&api_key=$KEY"},
           {"plus behind", "api_key=$KEY+"},
           {"space behind", "api_key=$KEY%20"},
           {"name in upper case", "API_KEY=$KEY"}}) {
    rows.push_back({Kind::kQuery, name, "", query});
  }
}

void AddAuthorization(Rows& rows) {
  for (const auto& [name, value] : std::vector<std::pair<std::string, std::string>>{
           {"as it is", "$SCHEME $KEY"},
           {"scheme in lower case", "$scheme $KEY"},
           {"scheme in upper case", "$SCHEMA $KEY"},
           {"two spaces", "$SCHEME  $KEY"},
           {"many spaces", "$SCHEME        $KEY"},
           {"tab", "$SCHEME\t$KEY"},
           {"space and tab", "$SCHEME \t $KEY"},
           {"spaces around", "   $SCHEME $KEY   "},
           {"lower case and two spaces", "$scheme  $KEY"},
           {"space of another kind", "$SCHEME\xA0$KEY"},
           {"space of another kind behind", "$SCHEME $KEY\xA0"},
           {"form feed", "$SCHEME\x0C$KEY"},
           {"separator", "$SCHEME\x1C$KEY"}}) {
    for (const Kind kind : {Kind::kAuthorization, Kind::kBasic}) {
      rows.push_back({kind, name, "Authorization: " + value + "\r\n"});
    }
  }
  for (const auto& [name, fields] : std::vector<std::pair<std::string, std::string>>{
           {"another before", "Authorization: Bearer zz\r\nAuthorization: Bearer $KEY\r\n"},
           {"another behind", "Authorization: Bearer $KEY\r\nAuthorization: Bearer zz\r\n"},
           {"the same twice", "Authorization: Bearer $KEY\r\nAuthorization: Bearer $KEY\r\n"},
           {"another scheme before", "Authorization: Basic zz\r\nAuthorization: Bearer $KEY\r\n"},
           {"name in lower case", "authorization: Bearer $KEY\r\n"}}) {
    rows.push_back({Kind::kAuthorization, name, fields});
  }
  rows.push_back({Kind::kAuthorization,
                  "named in Connection",
                  "Connection: authorization\r\nAuthorization: Bearer $KEY\r\n",
                  {},
                  {},
                  Auth::kNotForwarded});
}

}  // namespace

std::vector<IdentityRow> IdentityRows() {
  Rows rows;
  AddHeaders(rows);
  AddCookies(rows);
  AddQueries(rows);
  AddAuthorization(rows);
  return rows;
}

std::vector<ForwardedRow> ForwardedRows() {
  using Fallback = ForwardedRow::Fallback;
  const auto line = [](const std::string& value) { return "X-Forwarded-For: " + value + "\r\n"; };
  return {
      {"as it is", line("$IP")},
      {"trailing comma", line("$IP,")},
      {"trailing comma and space", line("$IP, ")},
      {"trailing commas", line("$IP, , ,")},
      {"trailing tab", line("$IP,\t")},
      {"leading comma", line(",$IP")},
      {"empty elements before", line(" , ,$IP")},
      {"empty element in between", line("198.51.100.7,,$IP")},
      {"an empty line behind", line("$IP") + "X-Forwarded-For:\r\n"},
      {"an empty line before", "X-Forwarded-For:\r\n" + line("$IP")},
      {"a line of commas behind", line("$IP") + line(",,")},
      {"an untrusted address before", line("198.51.100.7, $IP")},
      {"an untrusted address on a line before", line("198.51.100.7") + line("$IP")},
      {"junk before", line("junk, $IP")},
      {"junk on a line before", line("junk") + line("$IP")},
      {"junk without space before", line("junk,$IP")},
      {"unknown before", line("unknown, $IP")},
      {"bytes before", line("\xFF\xFE, $IP")},
      {"a long one before", line(std::string(2000, 'x') + ", $IP")},
      {"many before", line([] {
         std::string many;
         for (int i = 0; i < 200; ++i) many += "198.51.100.7, ";
         return many + "$IP";
       }())},
      {"with a port", line("$IP:1234")},
      {"with a port behind another", line("junk, $IP:1234")},
      {"quoted", line("\"$IP\""), Fallback::kProxy},
      {"mapped to IPv6", line("::ffff:$IP")},
      {"mapped, in brackets", line("[::ffff:$IP]")},
      {"mapped, with a port", line("[::ffff:$IP]:80")},
      {"mapped, in upper case", line("::FFFF:$IP")},
      {"spaces around", line("   $IP   ")},
      {"tabs around", line("\t$IP\t")},
      {"a trusted proxy behind", line("$IP, 127.0.0.1")},
      {"a trusted proxy behind, and a comma", line("$IP, 127.0.0.1,")},
      {"name in lower case", "x-forwarded-for: $IP\r\n"},
      {"junk behind", line("$IP, junk"), Fallback::kProxy},
      {"junk behind on a line", line("$IP") + line("junk"), Fallback::kProxy},
      {"unknown behind", line("$IP, unknown"), Fallback::kProxy},
      {"an obfuscated name behind", line("$IP, _hidden"), Fallback::kProxy},
      {"an address with letters", line("$IPx"), Fallback::kProxy},
      {"an address with a zone", line("$IP%1"), Fallback::kProxy},
      {"leading zeros", line("0$IP"), Fallback::kProxy},
      {"two in one element", line("$IP $IP"), Fallback::kProxy},
      {"space of another kind", line("$IP\xA0"), Fallback::kProxy},
      {"semicolon", line("$IP; x"), Fallback::kProxy},
      {"a port that is none", line("$IP:"), Fallback::kProxy},
      {"a port too large", line("$IP:99999"), Fallback::kProxy},
      {"only commas", line(",,,"), Fallback::kProxy},
      {"only junk", line("junk"), Fallback::kProxy},
      {"nothing", "X-Forwarded-For:\r\n", Fallback::kProxy},
      {"underscores beside another", line("$IP") + "X_Forwarded_For: 198.51.100.9\r\n"},
      {"X-Real-IP beside it", line("$IP") + "X-Real-IP: 198.51.100.9\r\n"},
      {"Forwarded beside it", line("$IP") + "Forwarded: for=198.51.100.9\r\n"},
      {"named in Connection", "Connection: x-forwarded-for\r\n" + line("$IP"), Fallback::kProxy},
  };
}

}  // namespace tidegate::gateway_test
