// SPDX-License-Identifier: Apache-2.0
#include "gateway/proxy_head.hpp"

#include <gtest/gtest.h>

#include <string>

#include "compiled_rules.hpp"

namespace tidegate {
namespace {

enum class Peer : std::uint8_t { kUnknown, kTrusted };

/// Returns the head of `request` as the gateway sends it to an upstream.
std::string Written(const std::string& request, Peer peer = Peer::kUnknown,
                    const HeaderEdits& edits = {}) {
  const auto rules = CompiledRules(
      "rules: [{id: a, limit: 1/s, per: 'header:x-key | cookie:sid'}]\n"
      "deny: [{header: {x-match: 'y'}}]\n");
  net::HeadParser parser;
  net::HttpHead head;
  EXPECT_EQ(parser.Parse(request, {}, head), net::Parsed::kDone) << parser.refusal().reason;
  RequestFields fields;
  EXPECT_TRUE(fields.Classify(head, {.trusted = peer == Peer::kTrusted, .rules = *rules}));
  Introduction about;
  about.path = head.path;
  about.host = head.host;
  about.peer = "192.0.2.1";
  about.scheme = "http";
  about.request_id = "id-1";
  about.upgrade = !UpgradeProtocol(head).empty();
  net::OutBuffer out;
  WriteRequestHead(out, head, fields, about, edits);
  return std::string(out.view());
}

TEST(RequestHeadTest, AddsForwardedFieldsRequestIdAndVia) {
  EXPECT_EQ(
      Written("GET /a?b=c HTTP/1.1\r\nHost: x.example:8080\r\nAccept: */*\r\n\r\n"),
      "GET /a?b=c HTTP/1.1\r\nHost: x.example:8080\r\nAccept: */*\r\nX-Forwarded-For: 192.0.2.1\r\n"
      "X-Forwarded-Proto: http\r\nX-Forwarded-Host: x.example:8080\r\nX-Request-Id: id-1\r\n"
      "Via: 1.1 tidegate\r\n\r\n");
}

TEST(RequestHeadTest, DropsHopByHopFields) {
  const std::string head = Written(
      "POST / HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, X-Secret\r\nX-Secret: "
      "1\r\nKeep-Alive: 5\r\n"
      "Proxy-Connection: close\r\nTE: trailers, deflate\r\nUpgrade: h2c\r\nHTTP2-Settings: "
      "AAA\r\nProxy: evil\r\n"
      "Content_Length: 3\r\nContent-Length: 5\r\n\r\n");
  for (const auto* gone : {"X-Secret", "Keep-Alive", "Proxy", "Upgrade", "HTTP2", "_", "deflate"}) {
    EXPECT_EQ(head.find(gone), std::string::npos) << gone << " in " << head;
  }
  EXPECT_NE(head.find("TE: trailers\r\nConnection: TE\r\nContent-Length: 5\r\n\r\n"),
            std::string::npos)
      << head;
}

TEST(RequestHeadTest, WritesFramingFieldOnceAtTheEnd) {
  const std::string head =
      Written("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: CHUNKED\r\nTrailer: X-Sum\r\n\r\n");
  EXPECT_NE(head.find("Trailer: X-Sum\r\n"), std::string::npos);
  EXPECT_TRUE(head.ends_with("Transfer-Encoding: chunked\r\n\r\n")) << head;
}

TEST(RequestHeadTest, DropsForwardedFieldsOfUntrustedPeers) {
  const std::string request =
      "GET / HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 1.1.1.1\r\nX_Forwarded_For: "
      "2.2.2.2\r\nForwarded: for=3.3.3.3\r\n"
      "X-Real-IP: 4.4.4.4\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Port: 1\r\nX-Request-Id: "
      "theirs\r\nX-Forwarded-For: 5.5.5.5\r\n\r\n";
  const std::string strange = Written(request);
  for (const auto* gone :
       {"1.1.1.1", "2.2.2.2", "3.3.3.3", "4.4.4.4", "5.5.5.5", "https", "theirs"}) {
    EXPECT_EQ(strange.find(gone), std::string::npos) << gone;
  }
  const std::string trusted = Written(request, Peer::kTrusted);
  EXPECT_NE(trusted.find("X-Forwarded-For: 1.1.1.1, 5.5.5.5, 192.0.2.1\r\n"), std::string::npos)
      << trusted;
  EXPECT_NE(trusted.find("X-Forwarded-Proto: https\r\n"), std::string::npos);
  EXPECT_EQ(trusted.find("X-Forwarded-Proto: http\r\n"), std::string::npos);
}

TEST(RequestHeadTest, ConnectionHeaderCannotRemoveEndToEndFields) {
  const std::string head = Written(
      "GET / HTTP/1.1\r\nHost: x\r\n"
      "Connection: X-Forwarded-Proto, Cookie, AUTHORIZATION, X-Key, x-match, Content-Type, "
      "X-Hop\r\n"
      "X-Forwarded-Proto: https\r\nCookie: a=1\r\nAuthorization: Basic eA==\r\nX-Key: k\r\n"
      "X-Match: m\r\nContent-Type: text/plain\r\nX-Hop: h\r\n\r\n",
      Peer::kTrusted);
  for (const auto* kept : {"X-Forwarded-Proto: https\r\n", "Cookie: a=1\r\n", "Authorization: ",
                           "X-Key: k\r\n", "X-Match: m\r\n", "Content-Type: text/plain\r\n"}) {
    EXPECT_NE(head.find(kept), std::string::npos) << kept << " not in " << head;
  }
  EXPECT_EQ(head.find("X-Hop"), std::string::npos) << head;
}

TEST(RequestHeadTest, DropsPathAndMethodOverridesOfUntrustedPeers) {
  const std::string request =
      "GET / HTTP/1.1\r\nHost: x\r\nX-Original-URL: /a\r\nX-Rewrite-URL: /b\r\n"
      "X_Rewrite_Url: /c\r\nX-Original-Method: PUT\r\n\r\n";
  const std::string untrusted = Written(request);
  for (const auto* gone : {"/a", "/b", "/c", "PUT"}) {
    EXPECT_EQ(untrusted.find(gone), std::string::npos) << gone << " in " << untrusted;
  }
  const std::string trusted = Written(request, Peer::kTrusted);
  EXPECT_NE(trusted.find("X-Original-URL: /a\r\n"), std::string::npos) << trusted;
  EXPECT_EQ(trusted.find("/c"), std::string::npos) << trusted;
}

TEST(RequestHeadTest, AppliesConfiguredHeaderEdits) {
  const HeaderEdits edits{.set = {{"x-env", "prod"}}, .remove = {"x-debug"}};
  const std::string head =
      Written("GET / HTTP/1.1\r\nHost: x\r\nX-Env: dev\r\nX-Debug: 1\r\nX-Env: test\r\n\r\n",
              Peer::kUnknown, edits);
  EXPECT_NE(head.find("x-env: prod\r\n"), std::string::npos);
  EXPECT_EQ(head.find("dev"), std::string::npos);
  EXPECT_EQ(head.find("test"), std::string::npos);
  EXPECT_EQ(head.find("Debug"), std::string::npos);
}

TEST(RequestHeadTest, ForwardsUpgradeToSingleNonHttpProtocolOnly) {
  const auto upgrades = [](const std::string& protocol, const std::string& more = "") {
    return Written("GET /ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: " + protocol +
                   "\r\n" + more + "\r\n")
               .find("Connection: Upgrade\r\nUpgrade: " + protocol + "\r\n") != std::string::npos;
  };
  EXPECT_TRUE(upgrades("websocket"));
  EXPECT_TRUE(upgrades("WebSocket"));
  EXPECT_FALSE(upgrades("h2c"));
  EXPECT_FALSE(upgrades("H2C"));
  EXPECT_FALSE(upgrades("websocket, h2c"));
  EXPECT_FALSE(upgrades("HTTP/2.0"));
  EXPECT_FALSE(upgrades("TLS/1.2"));
  EXPECT_FALSE(upgrades("websocket", "Content-Length: 5\r\n"));
  EXPECT_FALSE(upgrades("websocket", "Transfer-Encoding: chunked\r\n"));
}

TEST(RequestHeadTest, AcceptsOnlyPlainShortRequestIds) {
  const auto given = [](const std::string& id) {
    const std::string request = "GET / HTTP/1.1\r\nHost: x\r\nX-Request-Id: " + id + "\r\n\r\n";
    net::HeadParser parser;
    net::HttpHead head;
    EXPECT_EQ(parser.Parse(request, {}, head), net::Parsed::kDone);
    RequestFields fields;
    EXPECT_TRUE(fields.Classify(head, {.trusted = true, .rules = *CompiledRules("rules: []\n")}));
    return std::string(GivenRequestId(head, fields));
  };
  EXPECT_EQ(given("abc-123_x.y:z/+="), "abc-123_x.y:z/+=");
  EXPECT_EQ(given("a\"b"), "");
  EXPECT_EQ(given("a b"), "");
  EXPECT_EQ(given(std::string(128, 'a')), std::string(128, 'a'));
  EXPECT_EQ(given(std::string(129, 'a')), "");
}

std::string Answered(const std::string& response, const AnswerNotes& notes,
                     OlderFields* older = nullptr, const HeaderEdits& edits = {}) {
  net::ResponseParser parser;
  net::ResponseHead head;
  EXPECT_EQ(parser.Parse(response, {}, net::AnswerTo::kOther, head), net::Parsed::kDone)
      << parser.reason();
  net::OutBuffer out;
  const OlderFields written = WriteAnswerHead(out, head, notes, edits);
  if (older != nullptr) *older = written;
  return std::string(out.view());
}

TEST(ResponseHeadTest, DropsFramingAndConnectionFields) {
  EXPECT_EQ(
      Answered("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close, X-Hop\r\nX-Hop: "
               "1\r\nServer: s\r\n"
               "X-Request-Id: theirs\r\nKeep-Alive: timeout=5\r\nX-Forwarded-Odd: kept\r\n\r\n",
               {.request_id = "ours", .date = "now"}),
      "Server: s\r\nX-Forwarded-Odd: kept\r\nDate: now\r\nX-Request-Id: ours\r\n");
}

TEST(ResponseHeadTest, KeepsTheDate) {
  EXPECT_EQ(
      Answered("HTTP/1.1 204 No Content\r\nDate: then\r\n\r\n", {.request_id = "r", .date = "now"}),
      "Date: then\r\nX-Request-Id: r\r\n");
}

TEST(ResponseHeadTest, KeepsLegacyRateLimitFieldsOfTighterQuota) {
  Decision ours;
  ours.remaining = 10;
  const std::string theirs =
      "HTTP/1.1 204 No Content\r\nX-RateLimit-Limit: 9\r\nX-RateLimit-Remaining: "
      "3\r\nX-RateLimit-Reset: 1\r\n"
      "RateLimit-Remaining: 30\r\nRateLimit-Limit: 40\r\nRateLimit: \"x\";r=1\r\n\r\n";
  OlderFields older;
  const std::string head = Answered(
      theirs, {.request_id = {}, .date = "d", .governing = &ours, .older = {true, true}}, &older);
  // The upstream's quota has less left: its fields stay, and Tidegate's are not written.
  EXPECT_FALSE(older.x_ratelimit);
  EXPECT_TRUE(older.ratelimit);  // Tidegate's quota has less left.
  EXPECT_NE(head.find("X-RateLimit-Remaining: 3\r\n"), std::string::npos);
  EXPECT_NE(head.find("X-RateLimit-Limit: 9\r\n"), std::string::npos);
  EXPECT_EQ(head.find("\nRateLimit-Remaining"), std::string::npos);
  EXPECT_EQ(head.find("\nRateLimit-Limit"), std::string::npos);
  EXPECT_NE(head.find("RateLimit: \"x\";r=1\r\n"), std::string::npos);
}

}  // namespace
}  // namespace tidegate
