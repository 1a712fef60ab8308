// SPDX-License-Identifier: Apache-2.0
// Header fields that the gateway forwards, drops because they concern one connection only, or
// writes itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gateway/behaviour/gateway_fixture.hpp"

namespace tidegate::behaviour {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;
constexpr std::string_view kTrusted = "client_ip: {trusted_proxies: [127.0.0.1]}\n";

class HeaderFieldsTest : public testing::Test {
 protected:
  explicit HeaderFieldsTest(std::string_view more = {}) : gate_(Routed(up_.url(), {}, more)) {}
  /// Sends a GET request with the field lines `lines` and returns the request that the upstream
  /// receives.
  HttpRequest Sent(std::string_view lines) {
    EXPECT_EQ(gate_.Get("/", lines).status, 200) << lines;
    return up_.last();
  }
  /// Returns the response that the client receives if the upstream's response has the field lines
  /// `lines`.
  HttpResponse Got(std::string_view lines) {
    up_.EndConnections();
    up_.Use(ScriptedUpstream::Each(
        [text = Http("200 OK", lines, "x")](const HttpRequest&) { return text; }));
    return gate_.Get("/");
  }
  ScriptedUpstream up_{ScriptedUpstream::Ok()};
  Gate gate_;
};
class TrustedPeerHeaderFieldsTest : public HeaderFieldsTest {
 protected:
  TrustedPeerHeaderFieldsTest() : HeaderFieldsTest(kTrusted) {}
};

TEST_F(HeaderFieldsTest, DropsHopByHopFieldsOfRequests) {
  const HttpRequest request = Sent(
      "Connection: keep-alive, X-Private, x-other\r\nKeep-Alive: timeout=5\r\nX-Private: 1\r\n"
      "X-OTHER: 2\r\nProxy-Connection: keep-alive\r\nTE: gzip\r\nUpgrade: h2c\r\n"
      "HTTP2-Settings: AAMAAABkAAQAAP__\r\nX-Public: 3\r\nProxy: http://evil\r\n");
  for (const std::string_view name :
       {"Keep-Alive", "X-Private", "X-Other", "Proxy-Connection", "TE", "Upgrade", "HTTP2-Settings",
        "Proxy", "Transfer-Encoding", "Content-Length"}) {
    EXPECT_FALSE(request.Has(name)) << name;
  }
  EXPECT_EQ(request.Field("X-Public"), "3");
  EXPECT_THAT(request.Field("Connection"), testing::Not(HasSubstr("X-Private")));
}

TEST_F(HeaderFieldsTest, DropsHopByHopFieldsOfResponses) {
  const HttpResponse answer =
      Got("Connection: keep-alive, X-Private\r\nKeep-Alive: timeout=5\r\nX-Private: 1\r\n"
          "Proxy-Connection: x\r\nUpgrade: h2\r\nTE: x\r\nTrailer: X-T\r\nX-Public: 3\r\n");
  for (const std::string_view name :
       {"Connection", "Keep-Alive", "X-Private", "Proxy-Connection", "Upgrade", "TE", "Trailer"}) {
    EXPECT_FALSE(answer.Has(name)) << name;
  }
  EXPECT_EQ(answer.Field("X-Public"), "3");
}

TEST_F(HeaderFieldsTest, NeverForwardsFieldNamedInOverlongConnectionHeader) {
  std::string names = "Connection: x-secret";
  for (int i = 0; i < 60; ++i) names += ", x-" + std::to_string(i);
  const HttpResponse answer = gate_.Get("/", names + "\r\nX-Secret: 1\r\n");
  if (answer.status == 200) {
    EXPECT_FALSE(up_.last().Has("X-Secret"));
  } else {
    EXPECT_EQ(answer.status, 400);
  }
}

TEST_F(HeaderFieldsTest, KeepsOrderCaseAndNumberOfFields) {
  const HttpRequest request = Sent("X-A: 1\r\nx-B: 2\r\nX-a: 3\r\nCookie: a\r\nCookie: b\r\n");
  const std::size_t at =
      request.head.find("X-A: 1\r\nx-B: 2\r\nX-a: 3\r\nCookie: a\r\nCookie: b\r\n");
  EXPECT_NE(at, std::string::npos) << request.head;
  const HttpResponse answer = Got("Set-Cookie: a=1\r\nSet-Cookie: b=2\r\nX-cAsE: x\r\n");
  EXPECT_THAT(answer.head, HasSubstr("Set-Cookie: a=1\r\nSet-Cookie: b=2\r\nX-cAsE: x\r\n"));
}

TEST_F(HeaderFieldsTest, DropsForwardedFieldsOfUntrustedPeer) {
  const HttpRequest request = Sent(
      "X-Forwarded-For: 1.2.3.4\r\nX-Forwarded-For: 5.6.7.8\r\nX-Forwarded-Proto: https\r\n"
      "X-Forwarded-Host: evil\r\nX-Forwarded-Port: 443\r\nX-Forwarded-Prefix: /evil\r\n"
      "Forwarded: for=1.2.3.4\r\nX-Real-IP: 1.2.3.4\r\nTrue-Client-IP: 1.2.3.4\r\n"
      "X-Client-IP: 1.2.3.4\r\n");
  EXPECT_EQ(request.fields.List("X-Forwarded-For"), "127.0.0.1");
  EXPECT_EQ(request.fields.List("X-Forwarded-Proto"), "http");
  EXPECT_EQ(request.fields.List("X-Forwarded-Host"), "test");
  EXPECT_EQ(request.head.find("1.2.3.4"), std::string::npos) << request.head;
  EXPECT_EQ(request.head.find("evil"), std::string::npos) << request.head;
  EXPECT_EQ(request.head.find("443"), std::string::npos) << request.head;
}

TEST_F(HeaderFieldsTest, DropsFieldsSpelledWithUnderscores) {
  const HttpRequest request = Sent(
      "X_Forwarded_For: 1.2.3.4\r\nX-Forwarded_For: 1.2.3.4\r\nX_Real_IP: 1.2.3.4\r\n"
      "X_Forwarded_Proto: evil\r\nX_Request_Id: evil\r\nX_Forwarded-Host: evil\r\n"
      "Content_Length: 1234\r\nTransfer_Encoding: evil\r\nX_Api_Key: evil\r\n");
  EXPECT_EQ(request.head.find("1.2.3.4"), std::string::npos) << request.head;
  EXPECT_EQ(request.head.find("evil"), std::string::npos) << request.head;
  EXPECT_EQ(request.head.find("1234"), std::string::npos) << request.head;
}

TEST(UnderscoreFieldsTest, ForwardsUnderscoreFieldsOnlyIfConfigured) {
  // A rule that counts by x-api-key does not see X_Api_Key, which many upstreams treat as the same
  // field.
  ScriptedUpstream up(ScriptedUpstream::Ok());
  for (const bool wanted : {false, true}) {
    Gate gate(Routed(up.url(), {}, wanted ? "gateway: {underscores: true}\n" : ""));
    const std::string more = "my_field: 1\r\nX_Forwarded_For: 1.2.3.4\r\n";
    EXPECT_EQ(gate.Get("/", more).status, 200);
    EXPECT_EQ(up.last().Has("my_field"), wanted);
    EXPECT_EQ(up.last().head.find("1.2.3.4"), std::string::npos);
  }
}

TEST_F(TrustedPeerHeaderFieldsTest, AppendsPeerToForwardedFieldsOfTrustedPeer) {
  const HttpRequest request = Sent(
      "X-Forwarded-For: 1.2.3.4\r\nX-Forwarded-For: 5.6.7.8\r\nX-Forwarded-Proto: https\r\n"
      "X-Forwarded-Host: shop.example\r\nX-Request-Id: abc-123\r\n");
  EXPECT_EQ(request.fields.List("X-Forwarded-For"), "1.2.3.4, 5.6.7.8, 127.0.0.1");
  EXPECT_EQ(request.fields.List("X-Forwarded-Proto"), "https");
  EXPECT_EQ(request.fields.List("X-Forwarded-Host"), "shop.example");
  EXPECT_EQ(request.fields.List("X-Request-Id"), "abc-123");
}

TEST_F(TrustedPeerHeaderFieldsTest, DropsUnderscoreSpellingsFromTrustedPeer) {
  // The trusted proxy writes X-Forwarded-For itself, but may forward a client's X_Forwarded_For
  // unchanged.
  const HttpRequest request = Sent(
      "X-Forwarded-For: 5.6.7.8\r\nX_Forwarded_For: 1.2.3.4\r\nX_Real_IP: 1.2.3.4\r\n"
      "X_Forwarded_Proto: evil\r\n");
  EXPECT_EQ(request.fields.List("X-Forwarded-For"), "5.6.7.8, 127.0.0.1");
  EXPECT_EQ(request.head.find("1.2.3.4"), std::string::npos) << request.head;
  EXPECT_EQ(request.head.find("evil"), std::string::npos) << request.head;
  EXPECT_EQ(request.fields.List("X-Forwarded-Proto"), "http");
}

TEST_F(TrustedPeerHeaderFieldsTest, ReplacesInvalidRequestId) {
  for (const std::string& odd :
       {std::string("a b"), std::string("\"x\""), std::string(500, 'x'), std::string("a,b")}) {
    const HttpRequest request = Sent("X-Request-Id: " + odd + "\r\n");
    EXPECT_THAT(request.fields.List("X-Request-Id"), MatchesRegex("[0-9a-f]{32}")) << odd;
  }
}

TEST_F(HeaderFieldsTest, SendsOneRequestIdToClientAndUpstream) {
  const HttpResponse first = gate_.Get("/", "X-Request-Id: mine\r\n");
  const std::string id = up_.last().Field("X-Request-Id");
  EXPECT_THAT(id, MatchesRegex("[0-9a-f]{32}"))
      << "the gateway used the request id of an untrusted client";
  EXPECT_EQ(up_.last().Count("X-Request-Id"), 1);
  EXPECT_EQ(first.Field("X-Request-Id"), id);
  EXPECT_NE(gate_.Get("/").Field("X-Request-Id"), id);
}

TEST_F(HeaderFieldsTest, ForwardsTraceFieldsAndAppendsVia) {
  const HttpRequest request = Sent(
      "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n"
      "tracestate: a=b\r\nVia: 1.0 fred\r\nAuthorization: Bearer x\r\n");
  EXPECT_EQ(request.Field("traceparent"),
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
  EXPECT_EQ(request.Field("tracestate"), "a=b");
  EXPECT_EQ(request.Field("Authorization"), "Bearer x");
  EXPECT_EQ(request.fields.List("Via"), "1.0 fred, 1.1 tidegate");
}

TEST_F(HeaderFieldsTest, AddsDateOnlyIfUpstreamSentNone) {
  EXPECT_EQ(Got("Date: Tue, 15 Nov 1994 08:12:31 GMT\r\n").fields.List("Date"),
            "Tue, 15 Nov 1994 08:12:31 GMT");
  const HttpResponse added = Got({});
  EXPECT_EQ(added.Count("Date"), 1);
  EXPECT_THAT(added.Field("Date"), HasSubstr(" GMT"));
}

TEST_F(HeaderFieldsTest, ForwardsEmptyAndNonAsciiValues) {
  const HttpRequest request =
      Sent("X-Empty:\r\nX-High: caf\xc3\xa9\r\nX-Tab: a\tb\r\nX-Space:  c  \r\n");
  EXPECT_TRUE(request.Has("X-Empty"));
  EXPECT_EQ(request.Field("X-High"), "caf\xc3\xa9");
  EXPECT_EQ(request.Field("X-Tab"), "a\tb");
  EXPECT_EQ(request.Field("X-Space"), "c");
}

TEST_F(HeaderFieldsTest, ForwardsRawCharactersOfQueryUnchanged) {
  for (const std::string query :
       {"a={\"b\":[1,2]}", "a|b^c`d", "x=<y>&z=\\", "q=\xC3\xA9\xFF", "a=%zz"}) {
    EXPECT_EQ(gate_.Get("/p?" + query).status, 200) << query;
    EXPECT_EQ(up_.last().target(), "/p?" + query);
  }
  for (const std::string bad : {"a#b", "a\x7F", "a\x01", "a\tb"}) {
    EXPECT_EQ(gate_.Get("/p?" + bad).status, 400) << bad;
  }
}

TEST_F(HeaderFieldsTest, SkipsEmptyLinesBetweenRequests) {
  Client client(gate_.at());
  client.Send("\r\n\r\n" + RequestText("POST", "/1", {}, "x") + "\r\n" + GetText("/2") +
              "\r\n\r\n\r\n" + GetText("/3"));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(client.Read().status, 200);
  EXPECT_EQ(up_.last().target(), "/3");
}

TEST(BareLineFeedTest, AcceptsBareLfInResponsesOnlyIfConfigured) {
  ScriptedUpstream up(ScriptedUpstream::Each([](const HttpRequest& request) -> std::string {
    if (request.target() == "/chunked") {
      return "HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n5\nhello\n0\nX-Sum: 1\n\n";
    }
    if (request.target() == "/cr") return "HTTP/1.1 200 OK\rContent-Length: 0\n\n";
    return "HTTP/1.1 200 OK\nX-A: b \r\nContent-Length: 5\n\nhello";
  }));
  {
    Gate strict(Routed(up.url()));
    EXPECT_EQ(strict.Get("/").status, 502);
    EXPECT_EQ(strict.Get("/chunked").status, 502);
  }
  Gate gate(Routed(up.url(), "accept_bare_lf: true"));
  Client client(gate.at());
  for (int i = 0; i < 2; ++i) {
    const HttpResponse answer = client.Get("/");
    EXPECT_EQ(answer.body, "hello");
    EXPECT_EQ(answer.Field("X-A"), "b");
    const HttpResponse chunked = client.Get("/chunked");
    EXPECT_EQ(chunked.body, "hello");
    EXPECT_EQ(chunked.trailers.Value("X-Sum"), "1");
    EXPECT_EQ(chunked.head.find("\n\n"), std::string::npos) << "the response head has a bare LF";
  }
  EXPECT_EQ(client.Get("/cr").status, 502) << "the gateway accepted a bare CR";
}

TEST_F(HeaderFieldsTest, ForwardsReasonPhrases) {
  up_.Use(ScriptedUpstream::Each([](const HttpRequest&) { return Http("299 Quite Fine"); }));
  EXPECT_EQ(gate_.Get("/").start, "HTTP/1.1 299 Quite Fine");
  up_.EndConnections();
  up_.Use(ScriptedUpstream::Each(
      [](const HttpRequest&) { return "HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n"; }));
  EXPECT_EQ(gate_.Get("/").start, "HTTP/1.1 200 ");
}

}  // namespace
}  // namespace tidegate::behaviour
