// SPDX-License-Identifier: Apache-2.0
#include "identity/identity.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <random>
#include <string>
#include <unordered_map>

#include "identity/jwt.hpp"
#include "identity/source_value.hpp"
#include "unit/identity/jwt_signer.hpp"
#include "unit/rules/allocations.hpp"

namespace tidegate {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using Kind = Source::Kind;

constexpr const char* kSecretValue = "sk_live_4242";

Source HeaderSource(std::string name) { return {Kind::kHeader, std::move(name)}; }
const Source kIp{Kind::kClientIp, {}};
const Source kPath{Kind::kPath, {}};

class IdentityTest : public testing::Test {
 protected:
  /// Returns the identity, or "error: " and the message.
  std::string Request(const Per& per, const RequestView& request) {
    return Text(identifier_.FromRequest(per, request, memory_));
  }
  std::string Values(const Per& per, std::vector<NamedValue> values) {
    return Text(identifier_.FromValues(per, values, memory_));
  }
  std::string Key(std::string_view key) { return Text(identifier_.FromKey(key, memory_)); }

  static RequestView From(std::string_view client, std::span<const HeaderField> headers = {}) {
    RequestView request;
    request.path = "/v1/x";
    request.headers = headers;
    request.has_client = true;
    request.client = Address::Parse(client).value();
    return request;
  }

  std::string Text(const Result<std::string_view>& result) {
    std::string text = result ? std::string(*result) : "error: " + result.error().message;
    memory_.release();
    return text;
  }

  std::pmr::monotonic_buffer_resource memory_;
  Identifier identifier_{{.hmac_key = "0123456789abcdef"}};
};

TEST_F(IdentityTest, WritesAddressInPlainText) {
  EXPECT_EQ(Request({{{kIp}}}, From("203.0.113.7")), "client_ip=203.0.113.7");
}

TEST_F(IdentityTest, AddressesOfOneSlash64ShareOneKey) {
  const std::string key = Request({{{kIp}}}, From("2001:db8:1:2::"));
  EXPECT_EQ(key, "client_ip=2001:db8:1:2::");
  std::mt19937_64 random(1);
  for (int i = 0; i < 1000; ++i) {
    RequestView request = From("2001:db8:1:2::");
    Address::Bytes bytes{};
    std::ranges::copy(request.client.bytes(), bytes.begin());
    for (std::size_t b = 8; b < 16; ++b) bytes[b] = static_cast<std::uint8_t>(random());
    request.client = Address(bytes);
    ASSERT_EQ(Request({{{kIp}}}, request), key);
    ASSERT_EQ(Values({{{kIp}}}, {{"", request.client.Text()}}), key);
  }
  const Identifier wide({.hmac_key = "0123456789abcdef", .ipv6_prefix = 48});
  EXPECT_EQ(wide.FromRequest({{{kIp}}}, From("2001:db8:1:2::5"), memory_),
            "client_ip=2001:db8:1::");
}

TEST_F(IdentityTest, MappedAddressEqualsPlainIPv4) {
  EXPECT_EQ(Request({{{kIp}}}, From("::ffff:1.2.3.4")), "client_ip=1.2.3.4");
  EXPECT_EQ(Values({{{kIp}}}, {{"client_ip", "::ffff:1.2.3.4"}}), "client_ip=1.2.3.4");
}

TEST_F(IdentityTest, SecretNeverAppearsInKey) {
  const HeaderField headers[] = {{"X-Api-Key", kSecretValue}, {"Cookie", "sid=sk_live_4242"}};
  RequestView request = From("203.0.113.7", headers);
  request.query = "token=sk_live_4242";
  for (const Source& source :
       {HeaderSource("x-api-key"), Source{Kind::kCookie, "sid"}, Source{Kind::kQuery, "token"}}) {
    const std::string key = Request({{{source}}}, request);
    EXPECT_THAT(key, StartsWith(source.Text() + "=~"));
    EXPECT_THAT(key, Not(HasSubstr("sk_live")));
    EXPECT_EQ(key.size(), source.Text().size() + 2 + KeyedHash::kTextSize);
    EXPECT_EQ(Values({{{source}}}, {{"", kSecretValue}}), key);
  }
  const Source claim{Kind::kJwt, "sub"};
  EXPECT_THAT(Values({{{claim}}}, {{"", kSecretValue}}), StartsWith("jwt:sub=~"));
  EXPECT_THAT(Key(kSecretValue), StartsWith("key=~"));
}

TEST_F(IdentityTest, HmacKeyChangesIdentity) {
  const Identifier other({.hmac_key = "fedcba9876543210"});
  const NamedValue value[] = {{"", "abc"}};
  EXPECT_NE(identifier_.FromValues({{{HeaderSource("a")}}}, value, memory_).value(),
            other.FromValues({{{HeaderSource("a")}}}, value, memory_).value());
}

TEST_F(IdentityTest, RequestAndNamedValuesGiveTheSameKey) {
  const HeaderField headers[] = {{"X-API-Key", " abc\t"}};
  const Per per{{{HeaderSource("x-api-key"), kIp}}};
  const std::string key = Request(per, From("203.0.113.7", headers));
  EXPECT_EQ(Values(per, {{"", "abc"}}), key);
  EXPECT_EQ(Values(per, {{"header:x-api-key", "abc"}}), key);
  EXPECT_EQ(Values(per, {{"header:X-Api-Key", "abc"}}), key);
  EXPECT_EQ(Request(per, From("203.0.113.7")), Values(per, {{"client_ip", "203.0.113.7"}}));
  RequestView request = From("203.0.113.7");
  request.host = "example.com";
  request.path = "/a";
  EXPECT_EQ(Values({{{{Kind::kHost, {}}}}}, {{"", "Example.COM:80"}}),
            Request({{{{Kind::kHost, {}}}}}, request));
  EXPECT_EQ(Values({{{kPath}}}, {{"", "/b/../%61"}}), Request({{{kPath}}}, request));
}

TEST_F(IdentityTest, AddressLikeValueDiffersFromAddress) {
  const HeaderField headers[] = {{"x-api-key", "203.0.113.7"}, {"a", "client_ip=203.0.113.7"}};
  const std::string address = Request({{{kIp}}}, From("203.0.113.7"));
  EXPECT_NE(Request({{{HeaderSource("x-api-key")}}}, From("198.51.100.1", headers)), address);
  EXPECT_NE(Request({{{HeaderSource("a")}}}, From("198.51.100.1", headers)), address);
  EXPECT_NE(Values({{{{Kind::kRoute, {}}}}}, {{"", "203.0.113.7"}}), address);
  EXPECT_NE(Key("203.0.113.7"), address);
  EXPECT_NE(Key("abc"), Values({{{HeaderSource("key")}}}, {{"", "abc"}}));
}

TEST_F(IdentityTest, CountsByAddressWhenHeaderIsMissing) {
  const HeaderField empty[] = {{"x-api-key", ""}, {"x-api-key", "  "}};
  for (const Per& per :
       {Per{{{HeaderSource("x-api-key")}}}, Per{{{HeaderSource("x-api-key"), kIp}}}}) {
    EXPECT_EQ(Request(per, From("203.0.113.7")), "client_ip=203.0.113.7");
    EXPECT_EQ(Request(per, From("203.0.113.7", empty)), "client_ip=203.0.113.7");
    RequestView unknown = From("203.0.113.7");
    unknown.has_client = false;
    EXPECT_THAT(Request(per, unknown), HasSubstr("neither header:x-api-key"));
  }
}

TEST_F(IdentityTest, UsesFirstAlternativeThatIsPresent) {
  const HeaderField headers[] = {{"b", "2"}, {"c", "3"}};
  const Per per{{{HeaderSource("a"), HeaderSource("b"), HeaderSource("c")}}};
  EXPECT_THAT(Request(per, From("203.0.113.7", headers)), StartsWith("header:b=~"));
  EXPECT_THAT(Values(per, {{"header:c", "3"}, {"header:b", "2"}}), StartsWith("header:b=~"));
}

// If different values were accepted, a client could put its real key on the line that the
// application reads, and a new random key on the line that the rule counts.
TEST_F(IdentityTest, RejectsDifferentValuesOfOneHeader) {
  const Per per{{{HeaderSource("x-api-key"), kIp}}};
  const HeaderField differ[] = {{"x-api-key", "abc"}, {"X-Api-Key", "def"}};
  EXPECT_THAT(Request(per, From("203.0.113.7", differ)), HasSubstr("x-api-key has several"));
  const HeaderField equal[] = {{"x-api-key", ""}, {"x-api-key", "abc"}, {"X-Api-Key", "abc"}};
  EXPECT_EQ(Request(per, From("203.0.113.7", equal)), Values(per, {{"", "abc"}}));
}

// Python strips Latin-1 spaces, Java and JavaScript strip Unicode spaces: an invented space behind
// a key must not give the client a fresh quota.
TEST_F(IdentityTest, IgnoresSpacesAroundHeaderValue) {
  const Per per{{{HeaderSource("x-api-key"), kIp}}};
  const std::string plain = Values(per, {{"", "abc"}});
  for (const char* spelling : {" abc", "abc\t ", "abc\xa0",
                               "\x85"
                               "abc\xa0\xa0",
                               "abc\xc2\xa0", "abc \xe2\x80\xa8 ",
                               "\xe3\x80\x80"
                               "abc\xef\xbb\xbf"}) {
    const HeaderField headers[] = {{"x-api-key", spelling}};
    EXPECT_EQ(Request(per, From("203.0.113.7", headers)), plain) << spelling;
    EXPECT_EQ(Values(per, {{"", spelling}}), plain) << spelling;
  }
  const HeaderField inside[] = {{"x-api-key",
                                 "a\xa0"
                                 "bc"}};
  EXPECT_NE(Request(per, From("203.0.113.7", inside)), plain);
  for (const char* letters : {"caf\xc3\xa0", "caf\xc3\x85", "\xe8\x80\x85"}) {
    EXPECT_NE(Values(per, {{"", letters}}), Values(per, {{"", "caf"}})) << letters;
    EXPECT_NE(Values(per, {{"", letters}}), Values(per, {{"", "caf\xc3"}})) << letters;
  }
  const HeaderField only[] = {{"x-api-key", "\xa0"}};
  EXPECT_EQ(Request(per, From("203.0.113.7", only)), "client_ip=203.0.113.7");
}

TEST_F(IdentityTest, IgnoresCaseOfAuthorizationScheme) {
  const Per per{{{HeaderSource("authorization"), kIp}}};
  const std::string plain = Values(per, {{"", "Bearer aBc"}});
  const std::string latin1 = std::string("Bearer\xa0").append("aBc");
  for (const std::string_view spelling :
       {std::string_view("bearer aBc"), std::string_view("BEARER  aBc"),
        std::string_view("Bearer\taBc"), std::string_view("Bearer aBc "),
        std::string_view(latin1)}) {
    const HeaderField headers[] = {{"Authorization", spelling}};
    EXPECT_EQ(Request(per, From("203.0.113.7", headers)), plain) << spelling;
  }
  const HeaderField other[] = {{"Authorization", "Bearer abc"}};
  EXPECT_NE(Request(per, From("203.0.113.7", other)), plain);
}

// Express uses the first of several cookies with the same name, Python the last.
TEST_F(IdentityTest, YieldsIdentityForEveryCookieValue) {
  const Per per{{{{Kind::kCookie, "sid"}}}};
  const auto all = [&](const Per& by, const std::string& line,
                       bool reject = false) -> std::vector<std::string> {
    const HeaderField headers[] = {{"x-key", "k"}, {"Cookie", line}, {"cookie", "sid=z%7a"}};
    const Identifier identifier(
        {.hmac_key = "0123456789abcdef", .reject_duplicate_cookies = reject});
    std::vector<std::string> found;
    CookieChoice cookie;
    do {
      found.push_back(
          Text(identifier.FromRequest(by, From("203.0.113.7", headers), memory_, &cookie)));
    } while (!found.back().starts_with("error") && ++cookie.number < cookie.count);
    return found;
  };
  const auto is = [&](const char* value) { return Values(per, {{"", value}}); };
  const std::string zz = is("zz");
  EXPECT_THAT(all(per, "sid=zz; a=b; sid=\"REAL\""), ElementsAre(zz, is("REAL")))
      << "z%7a was not decoded to zz";
  EXPECT_THAT(all(per, "a=b"), ElementsAre(zz));
  EXPECT_THAT(all(per, "sid=1; sid=2; sid=3; sid=4"), ElementsAre(HasSubstr("several")));
  const Per two{{{{Kind::kCookie, "sid"}}, {{Kind::kCookie, "uid"}}}};
  EXPECT_THAT(all(two, "sid=1; sid=2; uid=3; uid=4"), ElementsAre(HasSubstr("several")));
  EXPECT_THAT(all(per, "sid=1", true), ElementsAre(HasSubstr("several")));
  EXPECT_THAT(all(per, "sid=zz; sid=\"zz\"", true), ElementsAre(zz));
  // Several values matter only in the source that provides the identity.
  const Per key_first{{{HeaderSource("x-key"), {Kind::kCookie, "sid"}}}};
  EXPECT_THAT(all(key_first, "sid=1; sid=2"), ElementsAre(StartsWith("header:x-key=")));
  const Per first_cookie{{{{Kind::kCookie, "sid"}, {Kind::kCookie, "uid"}}}};
  EXPECT_EQ(all(first_cookie, "sid=1; uid=3; uid=4").size(), 2u);
  // Python unescapes quoted values, and accepts commas and white space between cookies.
  for (const char* line : {"sid=\"RE\\101L\"", "sid=\"RE\\AL\"", "sid=RE%41L", "sid = \"REAL\" ",
                           "a=1, sid=REAL", "a=1 sid=REAL", "a=1\tsid=REAL", "a=1 \t,sid=REAL"}) {
    EXPECT_THAT(all(per, line), ElementsAre(is("REAL"), zz)) << line;
  }
  for (const char* line :
       {"sid=REAL, a=1", "sid=REAL\ta=1", "sid=REAL \ta=1", "sid=\"REAL\"\ta=1"}) {
    EXPECT_THAT(all(per, line), ElementsAre(testing::_, is("REAL"), zz)) << line;
  }
  EXPECT_EQ(all(per, "sid=a,b c").size(), 2u);
  // ASP.NET ignores the case of cookie names, PHP turns dots into underscores.
  EXPECT_THAT(all(per, "SID=REAL"), ElementsAre(zz, is("REAL")));
  const Per dotted{{{{Kind::kCookie, "a_b"}}}};
  EXPECT_EQ(all(dotted, "a.b=1; a_b=2").size(), 2u);
  EXPECT_THAT(all(dotted, "a.b=1"), ElementsAre("client_ip=203.0.113.7"))
      << "a name with a dot, which most servers read as another name, was counted";
}

// Quadratic work on a megabyte would take minutes.
TEST_F(IdentityTest, ReadsHugeCookiesInLinearTime) {
  const Per per{{{{Kind::kCookie, "s"}}}};
  for (const std::string& piece : {std::string(","), std::string("\xa0"), std::string("s=b,"),
                                   std::string(" x="), std::string("s=a;"), std::string("\t")}) {
    std::string line = "s=a";
    while (line.size() < (1u << 20)) line += piece;
    line += "x";
    const HeaderField headers[] = {{"Cookie", line}};
    (void)Request(per, From("203.0.113.7", headers));
  }
}

// Rack and old versions of Python also split the query at `;`. PHP turns dots into underscores and
// ends names at a NUL byte.
TEST_F(IdentityTest, RejectsConflictingSpellingsOfAParameter) {
  const Per per{{{{Kind::kQuery, "api_key"}}}};
  RequestView request = From("203.0.113.7");
  for (const char* query :
       {"api_key=f&api.key=REAL", "api.key=REAL&api_key=f", "api_key=f;api_key=REAL",
        "api_key=f&+api_key=REAL", "api_key=f&api_key%00x=REAL", "api_key=f&API_KEY=REAL"}) {
    request.query = query;
    EXPECT_THAT(Request(per, request), HasSubstr("several different values")) << query;
  }
  for (const char* query : {"api_key=REAL&api.key=REAL", "api_key=REAL&x=1;y=2", "api_key=REAL%0A",
                            "api_key=REAL&api_keys=x"}) {
    request.query = query;
    EXPECT_EQ(Request(per, request), Values(per, {{"", "REAL"}})) << query;
  }
  request.query = "api.key=REAL";
  EXPECT_EQ(Request(per, request), "client_ip=203.0.113.7")
      << "a name with a dot, which most servers read as another name, was counted";
}

// If the identities differed, each spelling of a path would have its own quota.
TEST_F(IdentityTest, AllSpellingsOfPathGiveOneIdentity) {
  const Per per{{{kPath}}};
  for (const char* path : {"/v1/x", "/v1/x/", "/v1/x;a", "/v1/x.", "/v1/x%20", "/v1//x"}) {
    RequestView request = From("203.0.113.7");
    request.SetPath(ReadRequestPath(path, {}, memory_).value());
    EXPECT_EQ(Request(per, request), "path=/v1/x") << path;
    EXPECT_EQ(Values(per, {{"", path}}), "path=/v1/x") << path;
  }
}

TEST_F(IdentityTest, JoinsPartsInOrderOfTheRule) {
  const Per per{{{kIp}, {kPath}}};
  EXPECT_EQ(Request(per, From("2001:db8:1:2::9")), "client_ip=2001:db8:1:2::&path=/v1/x");
  EXPECT_EQ(Values(per, {{"path", "/v1/x"}, {"", "2001:db8:1:2::7"}}),
            "client_ip=2001:db8:1:2::&path=/v1/x");
}

TEST_F(IdentityTest, ConstSourceNeedsNoValue) {
  const Source all{Kind::kConst, {}};
  EXPECT_EQ(Request({{{all}}}, From("203.0.113.7")), "const");
  EXPECT_EQ(Values({{{all}}}, {}), "const");
  EXPECT_EQ(Values({{{all}}}, {{"", "anything"}}), "const");
  EXPECT_EQ(Values({{{all}, {kPath}}}, {{"path", "/a"}}), "const&path=/a");
  RequestView unknown;
  EXPECT_EQ(Request({{{all}}}, unknown), "const");
}

TEST_F(IdentityTest, PrefixesKeysWithTheirSource) {
  for (int kind = 0; kind <= static_cast<int>(Kind::kConst); ++kind) {
    const Source plain{static_cast<Kind>(kind), {}};
    EXPECT_EQ(Name(plain.kind), plain.Text());
  }
  RequestView request = From("203.0.113.7");
  request.method = "GET";
  request.host = "example.com";
  request.route = "api";
  EXPECT_EQ(Request({{{{Kind::kMethod, {}}}}}, request), "method=GET");
  EXPECT_EQ(Request({{{{Kind::kHost, {}}}}}, request), "host=example.com");
  EXPECT_EQ(Request({{{{Kind::kRoute, {}}}}}, request), "route=api");
  EXPECT_EQ(Request({{{kPath}}}, request), "path=/v1/x");
}

TEST_F(IdentityTest, PercentEncodesSpecialBytesOfIdentity) {
  RequestView request = From("203.0.113.7");
  request.route = std::string_view("a{}b}{c\r\n\0 %&=~\xff", 16);
  EXPECT_EQ(Request({{{{Kind::kRoute, {}}}}}, request),
            "route=a%7B%7Db%7D%7Bc%0D%0A%00%20%25%26%3D%7E%FF");
  EXPECT_THAT(Values({{{{Kind::kQuery, "a&b={x}~"}}}}, {{"", "v"}}),
              StartsWith("query:a%26b%3D%7Bx%7D%7E=~"));
}

TEST_F(IdentityTest, HashesLongValuesAndRejectsTooLongOnes) {
  const Per per{{{kPath}}};
  RequestView request = From("203.0.113.7");
  const std::string fits = "/" + std::string(127, 'a');
  request.path = fits;
  EXPECT_EQ(Request(per, request), "path=" + fits);
  const std::string longer = fits + "a";
  request.path = longer;
  EXPECT_THAT(Request(per, request), StartsWith("path=~"));
  const std::string odd = "/" + std::string(43, '~');
  request.path = odd;
  EXPECT_THAT(Request(per, request), StartsWith("path=~"))
      << "a path of 130 bytes after encoding was not hashed";
  const std::string longest = "/" + std::string(kMaxIdentityValue - 1, 'a');
  EXPECT_LE(Values(per, {{"", longest}}).size(), 5 + 1 + KeyedHash::kTextSize);
  EXPECT_THAT(Values(per, {{"", longest + "a"}}), HasSubstr("8193 bytes"));
  EXPECT_THAT(Key(longest + "a"), HasSubstr("the most is 8192"));
  request.path = {};
  const std::string megabyte(1 << 20, 'a');
  const HeaderField headers[] = {{"a", megabyte}};
  request.headers = headers;
  EXPECT_THAT(Request({{{HeaderSource("a")}}}, request),
              HasSubstr("error: the value of header:a has"));
}

TEST_F(IdentityTest, ReadsCookiesAsBrowsersSendThem) {
  const Per per{{{{Kind::kCookie, "sid"}}}};
  const std::string key = Values(per, {{"", "abc"}});
  for (const char* line :
       {"sid=abc", "a=b; sid=abc; c=d", "sid=\"abc\"", ";;sid = abc ;", "xsid=no; SID=no; sid=abc",
        "sid; sid=; sid=\"\"; sid=abc; sid=def", "a=\"sid=no\"; sid=abc"}) {
    const HeaderField headers[] = {{"cookie", line}};
    EXPECT_EQ(Request(per, From("203.0.113.7", headers)), key) << line;
  }
  const HeaderField lines[] = {{"Cookie", "a=b"}, {"Cookie", "sid=abc"}};
  EXPECT_EQ(Request(per, From("203.0.113.7", lines)), key);
  const Per equals{{{{Kind::kCookie, "e"}}}};
  const HeaderField inside[] = {{"Cookie", "e=x=y=="}};
  EXPECT_EQ(Request(equals, From("203.0.113.7", inside)), Values(equals, {{"", "x=y=="}}));
  for (const char* line : {"", "sid", "sid=", "=abc", "abc", ";", "sid=\"\"", "Sid=abc"}) {
    const HeaderField headers[] = {{"Cookie", line}};
    EXPECT_EQ(Request(per, From("203.0.113.7", headers)), "client_ip=203.0.113.7") << line;
  }
}

TEST_F(IdentityTest, DecodesQueryParameters) {
  const Per per{{{{Kind::kQuery, "api key"}}}};
  const std::string key = Values(per, {{"", "a b&c"}});
  for (const char* query : {"api+key=a+b%26c", "x=1&api%20key=a%20b%26c&api+key=a%20b%26c",
                            "&&api+key&api+key=&%61pi+key=%61+b%26c"}) {
    RequestView request = From("203.0.113.7");
    request.query = query;
    EXPECT_EQ(Request(per, request), key) << query;
  }
  for (const char* query : {"", "&", "=", "api+key", "api+key=", "api+keyx=1", "api=1", "=a"}) {
    RequestView request = From("203.0.113.7");
    request.query = query;
    EXPECT_EQ(Request(per, request), "client_ip=203.0.113.7") << query;
  }
  RequestView broken = From("203.0.113.7");
  broken.query = "k=100%&k=";
  EXPECT_EQ(Request({{{{Kind::kQuery, "k"}}}}, broken),
            Values({{{{Kind::kQuery, "k"}}}}, {{"", "100%"}}));
  broken.query = "k=%zz%4";
  EXPECT_EQ(Request({{{{Kind::kQuery, "k"}}}}, broken),
            Values({{{{Kind::kQuery, "k"}}}}, {{"", "%zz%4"}}));
}

TEST_F(IdentityTest, RejectsQueryParameterWithTwoValues) {
  // Upstreams differ in which of two values they use: a client could be counted as one value and
  // served as the other.
  RequestView request = From("203.0.113.7");
  request.query = "k=one&k=two";
  EXPECT_THAT(Request({{{{Kind::kQuery, "k"}}}}, request),
              testing::HasSubstr("the query parameter k has several different values"));
}

TEST_F(IdentityTest, UsesClaimsOfValidTokensOnly) {
  const auto jwt = JwtVerifier::Make({.hmac_secret = jwt::kSecret}).value();
  const Identifier identifier({.hmac_key = "0123456789abcdef", .jwt = jwt});
  const Per per{{{{Kind::kJwt, "sub"}, kIp}}};
  const std::string good = jwt::Hs256(R"({"sub":"alice","exp":9999999999})");
  const HeaderField headers[] = {{"Authorization", good}};
  const NamedValue alice[] = {{"", "alice"}};
  EXPECT_EQ(identifier.FromRequest(per, From("203.0.113.7", headers), memory_).value(),
            identifier.FromValues(per, alice, memory_).value());
  EXPECT_EQ(Request(per, From("203.0.113.7", headers)), "client_ip=203.0.113.7")
      << "a claim was used without a verifier";
  const std::string bad = good + "A";
  const HeaderField forged[] = {{"Authorization", bad}};
  EXPECT_EQ(Text(identifier.FromRequest(per, From("203.0.113.7", forged), memory_)),
            "client_ip=203.0.113.7");
  const HeaderField two[] = {{"Authorization", bad}, {"Authorization", good}};
  EXPECT_THAT(Text(identifier.FromRequest(per, From("203.0.113.7", two), memory_)),
              HasSubstr("authorization has several"));
}

TEST_F(IdentityTest, ReportsReasonsOfInvalidIdentities) {
  const Per one{{{HeaderSource("x-api-key"), kIp}}};
  const Per two{{{HeaderSource("x-api-key")}, {kPath}}};
  EXPECT_THAT(Values(one, {{"cookie:x", "1"}}),
              HasSubstr("\"cookie:x\": the identity has values for header:x-api-key or client_ip"));
  EXPECT_THAT(Values(one, {{"header:x-api-keys", "1"}}), HasSubstr("does not count by"));
  EXPECT_THAT(Values(one, {{"header", "1"}}), HasSubstr("does not count by"));
  EXPECT_THAT(Values(one, {}), HasSubstr("no value for header:x-api-key or client_ip"));
  EXPECT_THAT(Values(two, {{"", "abc"}}), HasSubstr("no value for path"));
  EXPECT_THAT(Values(two, {{"path", "/a"}}), HasSubstr("no value for header:x-api-key"));
  EXPECT_THAT(Values(one, {{"", ""}}), HasSubstr("header:x-api-key is empty"));
  EXPECT_THAT(Values(one, {{"", " "}}), HasSubstr("header:x-api-key is empty"));
  EXPECT_THAT(Values(one, {{"client_ip", ""}}), HasSubstr("client_ip is empty"));
  EXPECT_THAT(Values(one, {{"", "a"}, {"header:x-api-key", "b"}}),
              HasSubstr("header:x-api-key twice"));
  EXPECT_THAT(Values(one, {{"client_ip", "1.2.3.4"}, {"client_ip", "1.2.3.4"}}),
              HasSubstr("twice"));
  EXPECT_THAT(Values(one, {{"client_ip", "sk_live_4242"}}),
              testing::AllOf(HasSubstr("not an IP address"), Not(HasSubstr("sk_live"))));
  EXPECT_THAT(Values(one, {{"client_ip", "1.2.3.4:80"}}), HasSubstr("not an IP address"));
  EXPECT_THAT(Values(one, {{"a\r\nb\"", "1"}}), HasSubstr("\"a??b?\""));
  EXPECT_THAT(Key(""), HasSubstr("empty"));
}

TEST_F(IdentityTest, AcceptsAddressWithoutAddressSource) {
  const Per per{{{HeaderSource("x-api-key")}}};
  EXPECT_EQ(Values(per, {{"client_ip", "203.0.113.7"}}), Request(per, From("203.0.113.7")));
}

// Different inputs never give the same key, whatever bytes they contain.
TEST_F(IdentityTest, DifferentPartsGiveDifferentKeys) {
  std::mt19937_64 random(9);
  constexpr std::string_view kBytes("a&=%~{}\0\n/2 6", 13);
  const std::array<Source, 4> sources = {Source{Kind::kRoute, {}}, Source{Kind::kMethod, {}},
                                         HeaderSource("a"), Source{Kind::kJwt, "a&route=a"}};
  std::unordered_map<std::string, std::vector<std::pair<std::string, std::string>>> seen;
  for (int i = 0; i < 100'000; ++i) {
    Per per;
    std::vector<std::pair<std::string, std::string>> input;
    std::vector<Source> left(sources.begin(), sources.end());
    for (std::uint64_t parts = 1 + random() % 3; parts-- > 0;) {
      const std::size_t pick = random() % left.size();
      per.parts.push_back({left[pick]});
      left.erase(left.begin() + static_cast<std::ptrdiff_t>(pick));
      std::string value;
      do value += kBytes[random() % kBytes.size()];
      while (random() % 3 != 0);
      if (per.parts.back().front().kind == Kind::kHeader) value.insert(0, "x").append("x");
      input.emplace_back(per.parts.back().front().Text(), value);
    }
    std::vector<NamedValue> values;
    for (const auto& [source, value] : input) values.push_back({source, value});
    const std::string key = Values(per, values);
    ASSERT_THAT(key, Not(StartsWith("error"))) << key;
    for (const char c : key) ASSERT_TRUE(c > ' ' && c <= '~' && c != '{' && c != '}') << key;
    const auto [known, fresh] = seen.try_emplace(key, input);
    ASSERT_EQ(known->second, input) << key;
  }
  EXPECT_GT(seen.size(), 10'000u);
}

TEST_F(IdentityTest, AllocatesOnlyFromGivenMemory) {
  const HeaderField headers[] = {{"host", "a"},
                                 {"x-api-key", "0123456789abcdef01234567"},
                                 {"cookie", "sid=0123456789abcdef01234567"}};
  RequestView request = From("2001:db8::1", headers);
  request.query = "a=b%20c";
  const Per per{{{HeaderSource("x-api-key")},
                 {kIp},
                 {kPath},
                 {{Kind::kCookie, "sid"}},
                 {{Kind::kQuery, "a"}}}};
  const NamedValue values[] = {{"", "abc"},
                               {"client_ip", "1.2.3.4"},
                               {"path", "/a/../b"},
                               {"cookie:sid", "x"},
                               {"query:a", "y"}};
  std::array<std::byte, 4096> room;
  std::pmr::monotonic_buffer_resource memory(room.data(), room.size(),
                                             std::pmr::null_memory_resource());
  const std::uint64_t before = AllocationsOfThisThread();
  const bool good = identifier_.FromRequest(per, request, memory) &&
                    identifier_.FromValues(per, values, memory) &&
                    identifier_.FromKey("some longer key, 32 bytes or so", memory);
  EXPECT_EQ(AllocationsOfThisThread(), before);
  EXPECT_TRUE(good);
}

}  // namespace
}  // namespace tidegate
