// SPDX-License-Identifier: Apache-2.0
// Invalid input: the response names the error, no state changes, and the connection stays usable.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "service/fixture.hpp"

namespace tidegate::service {
namespace {

using testing::HasSubstr;
namespace json = boost::json;

constexpr std::string_view kRules = R"(
api: {inline_quotas: true}
rules:
  - { id: key, match: { path: /key }, per: header:x-api-key, limit: 5/10s }
  - { id: ip, match: { path: /ip }, per: client_ip, limit: 5/10s }
  - { id: both, match: { path: /pair }, per: [client_ip, "header:x-api-key"], limit: 5/10s }
  - { id: path, match: { path: "/p/**" }, per: path, limit: 5/10s }
  - { id: all, match: { path: /all }, per: const, limit: 5/10s }
)";

class BadInputTest : public testing::Test {
 protected:
  /// Checks that the request is rejected with a description and, if `pointer` is not empty, at that
  /// member, and that nothing has changed: not even an entry of the store. The connection answers
  /// the next request.
  void ExpectRefused(std::string_view endpoint, std::string_view body, std::string_view pointer,
                     std::string_view word = {}, int status = 400) {
    const std::string shown(body.substr(0, 200));
    const std::uint64_t entries = service_.server().store().Stats().tracked;
    const HttpResponse answer = client_.Ask(endpoint, body);
    EXPECT_EQ(answer.status, status) << shown << "\n" << answer.body;
    EXPECT_EQ(answer.Field("Content-Type"), "application/problem+json") << shown;
    const json::object problem = answer.Json();
    ASSERT_TRUE(problem.contains("detail")) << shown << answer.body;
    EXPECT_FALSE(problem.at("detail").as_string().empty()) << shown;
    EXPECT_THAT(answer.body, HasSubstr(std::string(word))) << shown;
    const json::value* const at = problem.if_contains("pointer");
    EXPECT_EQ(at == nullptr ? "" : std::string_view(at->as_string()), pointer) << shown;
    EXPECT_EQ(service_.server().store().Stats().tracked, entries) << shown;
    EXPECT_EQ(Remaining("key", "alice"), 4) << shown;
  }
  std::int64_t Remaining(std::string_view rule, std::string_view identity) {
    const HttpResponse answer = client_.Ask("/v1/peek", ByRule(rule, identity));
    EXPECT_EQ(answer.status, 200) << answer.body;
    return answer.status == 200 ? answer.Json().at("remaining").as_int64() : -1;
  }
  int Decide(std::string_view body) { return client_.Ask("/v1/decide", body).status; }

  BadInputTest() { EXPECT_EQ(Decide(ByRule("key", "alice")), 200); }

  Service service_{kRules};
  HttpClient client_{service_.api()};
};

TEST_F(BadInputTest, RejectsInvalidCosts) {
  for (const std::string_view endpoint : {"/v1/decide", "/v1/peek", "/v1/debit", "/v1/refund"}) {
    const std::string id = endpoint == "/v1/refund" ? R"("id":"x",)" : "";
    for (const std::string_view cost :
         {"0", "-1", "2147483648", "9007199254740991", "9007199254740992", "9007199254740993",
          "9223372036854775807", "9223372036854775808", "18446744073709551616",
          "-9223372036854775808", "1.0", "1e0", "1e309", "0.5", "\"1\"", "null", "true", "[1]",
          "{}"}) {
      ExpectRefused(
          endpoint,
          R"({"rule":"key","identity":"alice",)" + id + R"("cost":)" + std::string(cost) + "}",
          "/cost");
    }
    // These costs are not valid JSON.
    for (const std::string_view cost : {"NaN", "Infinity", "-", "+1", "01", "0x1"}) {
      const HttpResponse answer = client_.Ask(
          endpoint, R"({"rule":"key","identity":"alice","cost":)" + std::string(cost) + "}");
      EXPECT_EQ(answer.status, 400) << cost;
    }
  }
  EXPECT_EQ(Remaining("key", "alice"), 4);
}

TEST_F(BadInputTest, DeniesCostAboveBurstPermanently) {
  for (const std::string_view cost : {"6", "2147483647"}) {
    const HttpResponse answer =
        client_.Ask("/v1/decide", ByRule("key", "alice", ",\"cost\":" + std::string(cost)));
    EXPECT_EQ(answer.status, 429);
    EXPECT_TRUE(answer.Json().contains("never"));
    EXPECT_FALSE(answer.Has("Retry-After"));
  }
  EXPECT_EQ(Remaining("key", "alice"), 4);
}

TEST_F(BadInputTest, RejectsInvalidInlineQuotas) {
  const auto refuse = [&](std::string_view limit, std::string_view more = {},
                          std::string_view pointer = "/limit") {
    ExpectRefused("/v1/decide",
                  R"({"key":"k","limit":")" + std::string(limit) + "\"" + std::string(more) + "}",
                  pointer);
  };
  for (const std::string_view limit : {"",
                                       "0/s",
                                       "-1/s",
                                       "1.5/s",
                                       "1/1ns",
                                       "1/0s",
                                       "1/100y",
                                       "1/36500d",
                                       "1/367d",
                                       "/s",
                                       "1/",
                                       "1",
                                       "1/fortnight",
                                       "1 / s",
                                       "01/s",
                                       "1e3/s",
                                       "NaN/s",
                                       "inf/s",
                                       "99999999999999999999/s",
                                       "9223372036854775807/s",
                                       "9223372036854775807/366d",
                                       "2/s\\u0000",
                                       "2/s\\r\\n",
                                       "٣/s"}) {
    refuse(limit);
  }
  refuse("1/s", R"(,"burst":0)", "/burst");
  refuse("1/s", R"(,"burst":-1)", "/burst");
  refuse("1/s", R"(,"burst":9223372036854775808)", "/burst");
  refuse("1/s", R"(,"burst":1.5)", "/burst");
  refuse("1/s", R"(,"burst":5,"algorithm":"fixed_window")", "/limit");
  refuse("1/s", R"(,"algorithm":"leaky")", "/algorithm");
  refuse("1/s", R"(,"algorithm":"")", "/algorithm");
  refuse("10001/s", R"(,"algorithm":"sliding_log")", "/limit");
  ExpectRefused("/v1/decide", R"({"key":"k"})", "/limit");
  ExpectRefused("/v1/decide", R"({"key":"","limit":"1/s"})", "/key");
  ExpectRefused("/v1/decide", R"({"key":"k","limit":1})", "/limit");
  ExpectRefused("/v1/decide", R"({"rule":"key","identity":"alice","limit":"1/s"})", "");
  EXPECT_EQ(Decide(R"({"key":"k","limit":"1/366d"})"), 200);
  EXPECT_EQ(Decide(R"({"key":"l","limit":"1/us"})"), 200);
}

TEST_F(BadInputTest, RejectsInvalidIdentities) {
  ExpectRefused("/v1/decide", ByRule("key", ""), "/identity", "empty");
  ExpectRefused("/v1/decide", ByRule("key", "  \t "), "/identity", "empty");
  ExpectRefused("/v1/decide", ByRule("key", std::string(8193, 'x')), "/identity", "8193");
  ExpectRefused("/v1/decide", ByRule("key", std::string(1'000'000, 'x')), "/identity", "1000000");
  ExpectRefused("/v1/decide", R"({"rule":"key"})", "/identity");
  ExpectRefused("/v1/decide", R"({"rule":"key","identity":{}})", "/identity");
  ExpectRefused("/v1/decide", R"({"rule":"key","identity":{"cookie:x":"y"}})", "/identity",
                "cookie:x");
  ExpectRefused("/v1/decide", R"({"rule":"both","identity":{"header:x-api-key":"a"}})",
                "/identity");
  ExpectRefused("/v1/decide", "{\"rule\":\"key\",\"identity\":\"\xFF\xFE\"}", "/identity");
  ExpectRefused("/v1/decide", "{\"rule\":\"key\",\"identity\":\"\xC0\x80\"}", "/identity");
  ExpectRefused("/v1/decide", "{\"rule\":\"key\",\"identity\":\"\xED\xA0\x80\"}", "/identity");
  for (const std::string_view address :
       {"nonsense", "1.2.3", "1.2.3.4.5", "1.2.3.256", "01.2.3.4", "1.2.3.4:80x", ":::", "::g",
        "1.2.3.4\\u0000", "1.2.3.4\\r\\n", "1.2.3.4/8", "fe80::1%25eth0%", "localhost", "{}",
        "}{"}) {
    ExpectRefused("/v1/decide", R"({"rule":"ip","identity":")" + std::string(address) + "\"}",
                  "/identity");
    ExpectRefused("/v1/decide",
                  R"({"request":{"path":"/ip","client_ip":")" + std::string(address) + "\"}}",
                  "/request/client_ip");
  }
}

/// A body above the limit closes its connection but affects nothing else.
TEST_F(BadInputTest, RejectsBodyAboveTheLimit) {
  HttpClient client(service_.api());
  client.Send(Post("/v1/decide", ByRule("key", std::string(2 << 20, 'x'))));
  EXPECT_EQ(client.Read().status, 413);
  EXPECT_EQ(Remaining("key", "alice"), 4);
}

/// Unusual but valid identities: each has its own bucket and shares none.
TEST_F(BadInputTest, OddIdentitiesHaveTheirOwnBuckets) {
  for (const std::string_view odd : {"\\u0000",
                                     "a\\u0000",
                                     "a",
                                     "a\\r\\nb",
                                     "{}",
                                     "}{",
                                     "{a}",
                                     "a}{b",
                                     "header:x-api-key=alice",
                                     "x-api-key=alice",
                                     "key:alice",
                                     "tb:key:{alice}",
                                     "~alice",
                                     "alice&client_ip=1.2.3.4",
                                     "alice%00",
                                     "alice\\u0000",
                                     "alicE",
                                     "*",
                                     "../alice",
                                     "\\u202ealice",
                                     "const"}) {
    const HttpResponse answer =
        client_.Ask("/v1/decide", R"({"rule":"key","identity":")" + std::string(odd) + "\"}");
    EXPECT_EQ(answer.status, 200) << odd;
    EXPECT_EQ(answer.Json().at("remaining"), 4) << odd;  // Counts the units of this identity only.
    EXPECT_EQ(answer.body.find('\0'), std::string::npos);
  }
  EXPECT_EQ(Remaining("key", "alice"), 4);
}

TEST_F(BadInputTest, KeysOfDifferentSourcesDoNotCollide) {
  for (int i = 0; i < 5; ++i) EXPECT_EQ(Decide(ByRule("ip", "203.0.113.7")), 200);
  EXPECT_EQ(Decide(ByRule("ip", "203.0.113.7")), 429);
  EXPECT_EQ(Decide(ByRule("key", "203.0.113.7")), 200);
  EXPECT_EQ(Decide(R"({"key":"203.0.113.7","limit":"5/10s"})"), 200);
  EXPECT_EQ(Decide(R"({"key":"client_ip=203.0.113.7","limit":"5/10s"})"), 200);
  EXPECT_EQ(Decide(R"({"rule":"path","identity":"/p/x&client_ip=203.0.113.7"})"), 200);
}

TEST_F(BadInputTest, CompoundKeysWithShiftedPartsDoNotCollide) {
  const auto ask = [&](std::string_view address, std::string_view key) {
    return client_.Ask("/v1/decide", R"({"rule":"both","identity":{"client_ip":")" +
                                         std::string(address) + R"(","header:x-api-key":")" +
                                         std::string(key) + "\"}}");
  };
  EXPECT_EQ(ask("1.2.3.4", "a").Json().at("remaining"), 4);
  EXPECT_EQ(ask("1.2.3.4", "a&header:x-api-key=b").Json().at("remaining"), 4);
  EXPECT_EQ(ask("1.2.3.5", "a").Json().at("remaining"), 4);
  EXPECT_EQ(ask("1.2.3.4", "a").Json().at("remaining"), 3);
}

TEST_F(BadInputTest, CountsMappedIPv4AddressAsIPv4) {
  std::int64_t left = 5;
  for (const std::string_view text :
       {"1.2.3.4", "::ffff:1.2.3.4", "::FFFF:102:304", "0:0:0:0:0:ffff:1.2.3.4"}) {
    const HttpResponse answer = client_.Ask("/v1/decide", ByRule("ip", text));
    EXPECT_EQ(answer.Json().at("remaining"), --left) << text;
  }
  const HttpResponse answer =
      client_.Ask("/v1/decide", R"({"request":{"path":"/ip","client_ip":"::ffff:1.2.3.4"}})");
  EXPECT_EQ(answer.Json().at("remaining"), 0);
  EXPECT_EQ(Decide(ByRule("ip", "1.2.3.4")), 429);
}

TEST_F(BadInputTest, CountsIPv6Slash64AsOneClient) {
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(Decide(ByRule("ip", "2001:db8:1:2::" + std::to_string(i + 1))), 200);
  }
  EXPECT_EQ(Decide(ByRule("ip", "2001:db8:1:2:ffff:ffff:ffff:ffff")), 429);
  EXPECT_EQ(Decide(R"({"request":{"path":"/ip","client_ip":"2001:db8:1:2:a:b:c:d"}})"), 429);
  EXPECT_EQ(Decide(ByRule("ip", "2001:db8:1:3::1")), 200);
}

TEST_F(BadInputTest, RejectsInvalidJson) {
  for (const std::string_view body :
       {"", " ", "{", "}", "[]", "[{}]", "null", "1", "\"x\"", "{]", "nul", "\xEF\xBB\xBF{}"}) {
    ExpectRefused("/v1/decide", body, "");
    ExpectRefused("/v1/decide/batch", body, "");
  }
  const std::string good = ByRule("key", "alice");
  for (const std::string_view behind : {"x", "{}", ",", "]", "}", "/**/", "//"}) {
    ExpectRefused("/v1/decide", good + std::string(behind), "");
  }
  ExpectRefused("/v1/decide", good + '\0', "");
  for (std::size_t size = 0; size < good.size(); ++size) {
    const HttpResponse answer = client_.Ask("/v1/decide", good.substr(0, size));
    EXPECT_EQ(answer.status, 400) << good.substr(0, size);
  }
  EXPECT_EQ(Remaining("key", "alice"), 4);
}

TEST_F(BadInputTest, RejectsDeepNesting) {
  for (const std::string_view piece : {"[", "{\"request\":", "{\"identity\":", "{\"a\":"}) {
    std::string deep;
    while (deep.size() < 900'000) deep += piece;
    const HttpResponse answer = client_.Ask("/v1/decide", deep);
    EXPECT_EQ(answer.status, 400) << piece;
  }
  EXPECT_EQ(Remaining("key", "alice"), 4);
}

TEST_F(BadInputTest, RejectsDuplicateAndUnknownMembers) {
  ExpectRefused("/v1/decide", R"({"rule":"key","rule":"ip","identity":"alice"})", "/rule", "twice");
  ExpectRefused("/v1/decide", R"({"rule":"key","identity":"alice","identity":"bob"})", "/identity",
                "twice");
  ExpectRefused("/v1/decide", R"({"rule":"key","identity":"alice","cost":1,"c\u006fst":1})",
                "/cost", "twice");
  ExpectRefused("/v1/decide", R"({"rule":"key","identitty":"alice"})", "/identitty", "identity");
  ExpectRefused("/v1/decide", R"({"rule":"key","identity":"alice","__proto__":{}})", "/__proto__");
  ExpectRefused("/v1/decide", R"({"request":{"path":"/key","methd":"GET"}})", "/request/methd",
                "method");
  ExpectRefused("/v1/decide", R"({"requests":[]})", "/requests");
  ExpectRefused("/v1/decide", "{\"a\\r\\nSet-Cookie: x\":1}", "/a\r\nSet-Cookie: x");
}

TEST_F(BadInputTest, RejectsMembersOfWrongType) {
  ExpectRefused("/v1/decide", R"({"rule":1,"identity":"alice"})", "/rule");
  ExpectRefused("/v1/decide", R"({"rule":null,"identity":"alice"})", "/rule");
  ExpectRefused("/v1/decide", R"({"rule":"key","identity":7})", "/identity");
  ExpectRefused("/v1/decide", R"({"rule":"key","identity":["alice"]})", "/identity");
  ExpectRefused("/v1/decide", R"({"request":[]})", "/request");
  ExpectRefused("/v1/decide", R"({"request":{"headers":{"x-api-key":1}}})",
                "/request/headers/x-api-key");
}

TEST_F(BadInputTest, RejectsIncompleteAndContradictoryMembers) {
  ExpectRefused("/v1/decide", "{}", "");
  ExpectRefused("/v1/decide", R"({"identity":"alice"})", "");
  ExpectRefused("/v1/decide", R"({"rule":"key","identity":"alice","request":{}})", "");
  ExpectRefused("/v1/decide", R"({"request":{},"identity":"alice"})", "/identity");
  ExpectRefused("/v1/decide", R"({"rule":"key","identity":"alice","id":"x"})", "/id");
  ExpectRefused("/v1/decide", R"({"rule":"kee","identity":"alice"})", "/rule", "key", 404);
  ExpectRefused("/v1/decide", R"({"rule":"","identity":"alice"})", "/rule", "", 404);
  ExpectRefused("/v1/decide", R"({"rule":"key\u0000","identity":"alice"})", "/rule", "", 404);
  ExpectRefused("/v1/debit", ByRule("key", "alice"), "/cost");
  ExpectRefused("/v1/refund", ByRule("key", "alice", R"(,"id":"")"), "/id");
  ExpectRefused("/v1/refund", ByRule("key", "alice", ",\"id\":\"" + std::string(257, 'x') + "\""),
                "/id");
  ExpectRefused("/v1/refund", ByRule("key", "alice", R"(,"id":"x","age_ms":-1)"), "/age_ms");
  ExpectRefused("/v1/refund", ByRule("key", "alice", R"(,"id":"x","age_ms":9223372036854775807)"),
                "/age_ms");
}

TEST_F(BadInputTest, RejectsInvalidRequestAttributes) {
  ExpectRefused("/v1/decide", R"({"request":{"path":"key"}})", "/request/path");
  ExpectRefused("/v1/decide", R"({"request":{"path":"/../../etc"}})", "/request/path");
  ExpectRefused("/v1/decide", R"({"request":{"path":"/%zz"}})", "/request/path");
  ExpectRefused("/v1/decide", R"({"request":{"path":"/a\u0000b"}})", "/request/path");
  ExpectRefused("/v1/decide", R"({"request":{"path":"/","host":"a b"}})", "/request/host");
  // The request has no client address.
  ExpectRefused("/v1/decide", R"({"request":{"path":"/ip"}})", "/request");
  ExpectRefused("/v1/decide",
                R"({"request":{"path":"/key","headers":{"x-api-key":["alice","bob"]}}})",
                "/request", "x-api-key");
  std::string many = R"({"request":{"path":"/key","headers":{"a":[)";
  for (int i = 0; i < 129; ++i) many += i == 0 ? "\"x\"" : ",\"x\"";
  ExpectRefused("/v1/decide", many + "]}}}", "/request/headers/a");
}

}  // namespace
}  // namespace tidegate::service
