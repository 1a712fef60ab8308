// SPDX-License-Identifier: Apache-2.0
// Interim responses, trailers, responses without a body, and HTTP/1.0 on either side.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gateway/behaviour/gateway_fixture.hpp"
#include "support/wait.hpp"

namespace tidegate::behaviour {
namespace {

using testing::HasSubstr;
using Connection = ScriptedUpstream::Connection;

constexpr std::string_view kExpecting =
    "POST / HTTP/1.1\r\nHost: test\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n";

// --- Expect: 100-continue ---------------------------------------------------------

TEST(ExpectContinueTest, Forwards100ContinueFromUpstream) {
  ScriptedUpstream up([](Connection& connection) {
    HttpRequest request;
    while (connection.ReadHead(request)) {
      if (request.Has("Expect")) connection.Send("HTTP/1.1 100 Continue\r\n\r\n");
      connection.ReadBody(request);
      connection.Send(Http("200 OK", {}, request.body));
    }
  });
  Gate gate(Routed(up.url()));
  Client client(gate.at());
  for (int i = 0; i < 3; ++i) {
    client.Send(kExpecting);
    ASSERT_EQ(client.Read().status, 100);
    client.Send("body");
    EXPECT_EQ(client.Read().body, "body");
    EXPECT_EQ(up.last().Field("Expect"), "100-continue");
  }
  EXPECT_EQ(up.connections(), 1);
}

TEST(ExpectContinueTest, ForwardsFinalResponseInsteadOf100AndClosesConnection) {
  ScriptedUpstream up([](Connection& connection) {
    HttpRequest request;
    if (connection.ReadHead(request)) connection.Send(Http("401 Unauthorized", {}, "no"));
    (void)connection.WaitForEnd();
  });
  Gate gate(Routed(up.url()));
  Client client(gate.at());
  client.Send(kExpecting);
  const HttpResponse answer = client.Read();
  EXPECT_EQ(answer.status, 401);
  EXPECT_EQ(answer.body, "no");
  // The gateway cannot know whether the client still sends the body: it must close the connection
  // and announce that.
  EXPECT_EQ(answer.Field("Connection"), "close");
  client.EndSending();
  EXPECT_EQ(client.WaitForEnd(), Client::End::kClosed);
}

TEST(ExpectContinueTest, ServesClientThatDoesNotWaitForContinue) {
  ScriptedUpstream up(ScriptedUpstream::Each(
      [](const HttpRequest& request) { return Http("200 OK", {}, request.body); }));
  Gate gate(Routed(up.url()));
  Client client(gate.at());
  client.Send(std::string(kExpecting) + "body");
  EXPECT_EQ(client.Read().body, "body");
  client.Send(kExpecting);
  ASSERT_TRUE(test::WaitUntil([&] { return up.requests() == 2; }));
  client.Send("body");
  EXPECT_EQ(client.Read().body, "body");
}

TEST(ExpectContinueTest, RejectsUnknownExpectationsWith417) {
  ScriptedUpstream up(ScriptedUpstream::Ok());
  Gate gate(Routed(up.url()));
  EXPECT_EQ(gate.Get("/", "Expect: miracles\r\n").status, 417);
}

TEST(ExpectContinueTest, IgnoresUnknownExpectationsWhenConfigured) {
  ScriptedUpstream up(ScriptedUpstream::Each(
      [](const HttpRequest& request) { return Http("200 OK", {}, request.body); }));
  Gate gate(Routed(up.url(), {}, "gateway: {unknown_expect: ignore}\n"));
  Client client(gate.at());
  for (const std::string_view value : {"a-miracle", "", "100-continue, a-miracle"}) {
    const HttpResponse answer =
        client.Ask(RequestText("POST", "/", "Expect: " + std::string(value) + "\r\n", "hello"));
    EXPECT_EQ(answer.status, 200) << value;
    EXPECT_EQ(answer.body, "hello");
    EXPECT_EQ(up.last().Field("Expect").find("miracle"), std::string::npos);
  }
  EXPECT_TRUE(gate.Reload(Routed(up.url(), {}, "gateway: {unknown_expect: reject}\n")));
  EXPECT_EQ(gate.Get("/", "Expect: a-miracle\r\n").status, 417);
  service::HttpClient api(gate.server().api());
  api.Send("GET /v1/none HTTP/1.1\r\nHost: a\r\nExpect: a-miracle\r\n\r\n");
  EXPECT_EQ(api.Read().status, 417) << "the API accepts an unknown expectation";
}

TEST(InterimResponseTest, ForwardsEarlyHintsBeforeFinalResponse) {
  Signal seen;
  ScriptedUpstream up([&](Connection& connection) {
    HttpRequest request;
    if (!connection.Read(request)) return;
    connection.Send("HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n");
    if (!seen.Wait()) return;
    connection.Send(Http("200 OK", {}, "page"));
  });
  Gate gate(Routed(up.url()));
  Client client(gate.at());
  client.Send(GetText("/"));
  const HttpResponse hints = client.Read();
  EXPECT_EQ(hints.status, 103);
  EXPECT_EQ(hints.Field("Link"), "</style.css>; rel=preload");
  seen.Give();
  EXPECT_EQ(client.Read().body, "page");
}

TEST(InterimResponseTest, OmitsInterimResponsesForHttp10Client) {
  ScriptedUpstream up(ScriptedUpstream::Each([](const HttpRequest&) {
    return "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + Http("200 OK", {}, "page");
  }));
  Gate gate(Routed(up.url()));
  Client client(gate.at());
  EXPECT_EQ(client.Ask("GET / HTTP/1.0\r\nHost: test\r\n\r\n").body, "page");
}

// --- Content-Length and status codes --------------------------------------------------

TEST(ContentLengthTest, ForwardsRepeatedEqualContentLengthOnce) {
  for (const std::string_view lines :
       {"Content-Length: 5\r\nContent-Length: 5\r\n", "Content-Length: 5, 5\r\n"}) {
    ScriptedUpstream up(ScriptedUpstream::Each([lines](const HttpRequest&) {
      return "HTTP/1.1 200 OK\r\n" + std::string(lines) + "\r\nhello";
    }));
    Gate gate(Routed(up.url()));
    Client client(gate.at());
    for (int i = 0; i < 2; ++i) {
      const HttpResponse answer = client.Get("/");
      EXPECT_EQ(answer.body, "hello");
      EXPECT_EQ(answer.fields.List("Content-Length"), "5");
    }
    EXPECT_EQ(up.connections(), 1);
  }
}

TEST(ContentLengthTest, AnswersWith502ToDifferentContentLengths) {
  ScriptedUpstream up(ScriptedUpstream::Each([](const HttpRequest&) {
    return "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!";
  }));
  Gate gate(Routed(up.url()));
  EXPECT_EQ(gate.Get("/").status, 502);
}

TEST(StatusCodeTest, ForwardsAndCountsStatusesFrom600To999) {
  ScriptedUpstream up(ScriptedUpstream::Each([](const HttpRequest& request) {
    return Http(request.target().substr(1) + " Odd", {}, "body");
  }));
  Gate gate(Routed(up.url()));
  Client client(gate.at());
  for (const int status : {600, 777, 999}) {
    const HttpResponse answer = client.Get("/" + std::to_string(status));
    EXPECT_EQ(answer.status, status);
    EXPECT_EQ(answer.body, "body");
  }
  EXPECT_EQ(gate.Metric(R"(tidegate_gateway_responses_total{route="all",code="other"})"), 3);
  EXPECT_EQ(gate.Metric(R"(tidegate_gateway_responses_total{route="all",code="5xx"})"), 0);
}

// --- Trailers -----------------------------------------------------------------------

TEST(TrailersTest, ForwardsTrailersInBothDirections) {
  ScriptedUpstream up(ScriptedUpstream::Each([](const HttpRequest& request) {
    return "HTTP/1.1 200 OK\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n" +
           Chunked(request.body, 3,
                   "X-Sum: " + request.trailers.Value("X-In") + "\r\ngrpc-status: 0\r\n");
  }));
  Gate gate(Routed(up.url()));
  Client client(gate.at());
  for (int i = 0; i < 3; ++i) {
    const HttpResponse answer = client.Ask(
        "POST / HTTP/1.1\r\nHost: test\r\nTE: trailers\r\nConnection: TE\r\nTrailer: X-In\r\n"
        "Transfer-Encoding: chunked\r\n\r\n" +
        Chunked("hello", 2, "X-In: " + std::to_string(i) + "\r\n"));
    EXPECT_EQ(answer.body, "hello");
    EXPECT_EQ(answer.trailers.Value("X-Sum"), std::to_string(i));
    EXPECT_EQ(answer.trailers.Value("grpc-status"), "0");
    EXPECT_FALSE(answer.Has("X-Sum")) << "a trailer was merged into the head";
    EXPECT_EQ(answer.Field("Trailer"), "X-Sum");
  }
  const HttpRequest request = up.last();
  EXPECT_EQ(request.Field("TE"), "trailers");
  EXPECT_EQ(request.Field("Connection"), "TE");
  EXPECT_EQ(request.Field("Trailer"), "X-In");
  EXPECT_FALSE(request.Has("X-In"));
}

TEST(TrailersTest, DropsForbiddenTrailersOfRequests) {
  for (const std::string_view line :
       {"Content-Length: 5", "Transfer-Encoding: chunked", "Host: evil", "Content-Encoding: gzip",
        "X-Forwarded-For: 1.2.3.4", "X-Request-Id: evil", "Connection: close",
        "Authorization: evil", "Cookie: evil=1", "Date: x", "Expires: 0"}) {
    std::mutex mutex;
    test::HttpFields trailers;
    ScriptedUpstream up(ScriptedUpstream::Each([&](const HttpRequest& request) {
      const std::lock_guard lock(mutex);
      trailers = request.trailers;
      return Http("200 OK");
    }));
    Gate gate(Routed(up.url()));
    Client client(gate.at());
    const HttpResponse answer =
        client.Ask("POST / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n" +
                   Chunked("hello", 5, std::string(line) + "\r\nX-Sum: 1\r\n"));
    EXPECT_EQ(answer.status, 200) << line;
    const std::lock_guard lock(mutex);
    EXPECT_EQ(trailers.Count(line.substr(0, line.find(':'))), 0) << line;
    EXPECT_EQ(trailers.Value("X-Sum"), "1") << line;
  }
}

class ForbiddenTrailerTest : public testing::TestWithParam<std::string_view> {};

TEST_P(ForbiddenTrailerTest, DropsForbiddenTrailersOfResponses) {
  const std::string line(GetParam());
  ScriptedUpstream up(ScriptedUpstream::Each([&](const HttpRequest&) {
    return "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" +
           Chunked("hello", 5, "X-Before: 1\r\n" + line + "\r\nX-After: 2\r\n");
  }));
  Gate gate(Routed(up.url()));
  Client client(gate.at());
  const HttpResponse answer = client.Get("/", "TE: trailers\r\nConnection: TE\r\n");
  EXPECT_EQ(answer.body, "hello");
  EXPECT_TRUE(answer.whole);
  EXPECT_EQ(answer.trailers.Count(line.substr(0, line.find(':'))), 0);
  EXPECT_EQ(answer.trailers.Value("X-Before"), "1");
  EXPECT_EQ(answer.trailers.Value("X-After"), "2");
  EXPECT_EQ(client.Get("/").status, 200) << "the connection does not serve the next request";
}
INSTANTIATE_TEST_SUITE_P(
    All, ForbiddenTrailerTest,
    testing::Values("Content-Length: 5", "Transfer-Encoding: chunked", "Connection: close",
                    "Content-Encoding: gzip", "Content-Type: text/html", "Content-Range: bytes 0-1",
                    "Set-Cookie: evil=1", "Location: /evil", "Cache-Control: public", "Vary: x",
                    "Keep-Alive: timeout=1", "Upgrade: websocket", "Trailer: X-More",
                    "WWW-Authenticate: Basic", "X-Request-Id: evil", "RateLimit: \"x\";r=100",
                    "RateLimit-Policy: \"x\";q=100", "Retry-After: 1", "Date: never", "Expires: 0",
                    "Host: evil"));

TEST(TrailersTest, ForwardsServerTimingTrailer) {
  ScriptedUpstream up(ScriptedUpstream::Each([](const HttpRequest&) {
    return "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" +
           Chunked("hello", 5, "Server-Timing: db;dur=5\r\n");
  }));
  Gate gate(Routed(up.url()));
  EXPECT_EQ(gate.Get("/").trailers.Value("Server-Timing"), "db;dur=5");
}

TEST(ChunkedBodyTest, AcceptsWhiteSpaceInChunkSizeLines) {
  ScriptedUpstream up(ScriptedUpstream::Each([](const HttpRequest& request) {
    return "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" +
           std::string("2  \r\nok\r\n5\t; a = b\r\n") + request.body + "\r\n0 \r\n\r\n";
  }));
  Gate gate(Routed(up.url()));
  Client client(gate.at());
  for (int i = 0; i < 2; ++i) {
    const HttpResponse answer = client.Ask(
        "POST / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n"
        "5 ; ext = \"x y\" \r\nhello\r\n0 \r\n\r\n");
    EXPECT_EQ(answer.body, "okhello");
  }
}

// --- Responses without a body ----------------------------------------------------------

TEST(ResponseWithoutBodyTest, HeadResponseHasLengthButNoBody) {
  ScriptedUpstream up(ScriptedUpstream::Each([](const HttpRequest& request) -> std::string {
    if (request.method() == "HEAD") {
      return request.target() == "/chunked"
                 ? "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                 : "HTTP/1.1 200 OK\r\nContent-Length: 1234\r\n\r\n";
    }
    return Http("200 OK", {}, "body");
  }));
  Gate gate(Routed(up.url()));
  Client client(gate.at());
  client.Send("HEAD / HTTP/1.1\r\nHost: test\r\n\r\n");
  EXPECT_EQ(client.Read(Client::Body::kNo).Field("Content-Length"), "1234");
  client.Send("HEAD /chunked HTTP/1.1\r\nHost: test\r\n\r\n");
  EXPECT_EQ(client.Read(Client::Body::kNo).status, 200);
  EXPECT_EQ(client.Get("/").body, "body");
  EXPECT_EQ(up.connections(), 1);
}

TEST(ResponseWithoutBodyTest, DeniedHeadRequestGetsNoBody) {
  ScriptedUpstream up(ScriptedUpstream::Ok());
  Gate gate(Routed(up.url(), {}, "rules: [{id: one, per: client_ip, limit: 1/h}]\n"));
  Client client(gate.at());
  EXPECT_EQ(client.Get("/").status, 200);
  client.Send("HEAD / HTTP/1.1\r\nHost: test\r\n\r\n");
  EXPECT_EQ(client.Read(Client::Body::kNo).status, 429);
  EXPECT_EQ(client.Get("/").status, 429) << "the connection does not serve the next request";
}

TEST(ResponseWithoutBodyTest, DropsFramingFieldsOf204AndClosesUpstreamConnection) {
  for (const std::string_view framed : {"Content-Length: 5\r\n\r\nhello",
                                        "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
                                        "Transfer-Encoding: chunked\r\n\r\n"}) {
    ScriptedUpstream up(ScriptedUpstream::Each([framed](const HttpRequest& request) {
      return request.target() == "/204" ? "HTTP/1.1 204 No Content\r\n" + std::string(framed)
                                        : Http("200 OK", {}, "body");
    }));
    Gate gate(Routed(up.url()));
    Client client(gate.at());
    for (const std::string_view method : {"GET", "HEAD"}) {
      client.Send(std::string(method) + " /204 HTTP/1.1\r\nHost: test\r\n\r\n");
      const HttpResponse none = client.Read();
      EXPECT_EQ(none.status, 204);
      EXPECT_FALSE(none.Has("Content-Length"));
      EXPECT_FALSE(none.Has("Transfer-Encoding"));
      EXPECT_EQ(client.Get("/").body, "body")
          << "the client's connection does not serve the next request";
    }
    EXPECT_EQ(up.connections(), 3) << "the upstream connection of a 204 was reused";
  }
}

TEST(ResponseWithoutBodyTest, ForwardsNoContentAndNotModifiedWithoutBody) {
  ScriptedUpstream up(ScriptedUpstream::Each([](const HttpRequest& request) -> std::string {
    if (request.target() == "/204") return "HTTP/1.1 204 No Content\r\n\r\n";
    if (request.target() == "/304") {
      return "HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\nContent-Length: 777\r\n\r\n";
    }
    return Http("200 OK", {}, "body");
  }));
  Gate gate(Routed(up.url()));
  Client client(gate.at());
  const HttpResponse none = client.Get("/204");
  EXPECT_EQ(none.status, 204);
  EXPECT_FALSE(none.Has("Content-Length"));
  EXPECT_FALSE(none.Has("Transfer-Encoding"));
  const HttpResponse same = client.Get("/304");
  EXPECT_EQ(same.status, 304);
  EXPECT_EQ(same.Field("ETag"), "\"x\"");
  EXPECT_EQ(client.Get("/").body, "body");
  EXPECT_EQ(up.connections(), 1);
}

// --- HTTP/1.0 -------------------------------------------------------------------------

TEST(Http10Test, ClosesHttp10ClientUnlessItRequestsKeepAlive) {
  ScriptedUpstream up(ScriptedUpstream::Ok());
  Gate gate(Routed(up.url()));
  Client closing(gate.at());
  EXPECT_EQ(closing.Ask("GET / HTTP/1.0\r\n\r\n").body, "ok")
      << "an HTTP/1.0 request without Host failed";
  EXPECT_EQ(closing.WaitForEnd(), Client::End::kClosed);
  EXPECT_EQ(up.last().start, "GET / HTTP/1.1");
  EXPECT_TRUE(up.last().Has("Host"));
  EXPECT_THAT(up.last().Field("Via"), HasSubstr("1.0 tidegate"));
  Client keeping(gate.at());
  for (int i = 0; i < 3; ++i) {
    const HttpResponse answer =
        keeping.Ask("GET / HTTP/1.0\r\nHost: test\r\nConnection: keep-alive\r\n\r\n");
    EXPECT_EQ(answer.body, "ok");
    EXPECT_EQ(answer.Field("Connection"), "keep-alive");
  }
}

TEST(Http10Test, SendsChunkedResponseToHttp10ClientUntilClose) {
  ScriptedUpstream up(ScriptedUpstream::Each([](const HttpRequest&) {
    return "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + Chunked("hello, world", 5);
  }));
  Gate gate(Routed(up.url()));
  Client client(gate.at());
  client.Send("GET / HTTP/1.0\r\nHost: test\r\nConnection: keep-alive\r\n\r\n");
  const HttpResponse answer = client.Read();
  EXPECT_FALSE(answer.Has("Transfer-Encoding"));
  EXPECT_EQ(answer.Field("Connection"), "close");
  EXPECT_EQ(answer.body, "hello, world");
}

TEST(Http10Test, ResetsHttp10ClientWhenResponseIsCut) {
  // The body ends at the end of the connection: after an orderly close, half a response would look
  // complete.
  Signal seen;
  ScriptedUpstream up([&](Connection& connection) {
    HttpRequest request;
    if (!connection.Read(request)) return;
    connection.Send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n");
    (void)seen.Wait();
  });
  Gate gate(Routed(up.url()));
  Client client(gate.at());
  client.Send("GET / HTTP/1.0\r\nHost: test\r\n\r\n");
  (void)client.stream().ReadUntil("half");
  seen.Give();
  EXPECT_EQ(client.WaitForEnd(), Client::End::kReset);
}

TEST(Http10Test, ForwardsHttp10ResponseAsChunks) {
  ScriptedUpstream up([](Connection& connection) {
    HttpRequest request;
    if (!connection.Read(request)) return;
    connection.Send("HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nuntil ");
    connection.Send("the end");
  });
  Gate gate(Routed(up.url()));
  Client client(gate.at());
  for (int i = 0; i < 2; ++i) {
    const HttpResponse answer = client.Get("/");
    EXPECT_EQ(answer.start, "HTTP/1.1 200 OK");
    EXPECT_EQ(answer.Field("Transfer-Encoding"), "chunked");
    EXPECT_EQ(answer.body, "until the end");
    EXPECT_TRUE(answer.whole);
  }
  EXPECT_EQ(up.connections(), 2);
}

TEST(Http10Test, KeepsHttp10UpstreamConnectionOnlyIfAnnounced) {
  std::string lines;
  ScriptedUpstream up(ScriptedUpstream::Each([&](const HttpRequest&) {
    return "HTTP/1.0 200 OK\r\n" + lines + "Content-Length: 2\r\n\r\nok";
  }));
  Gate gate(Routed(up.url()));
  Client client(gate.at());
  for (int i = 0; i < 2; ++i) EXPECT_EQ(client.Get("/").body, "ok");
  EXPECT_EQ(up.connections(), 2);
  lines = "Connection: keep-alive\r\n";
  for (int i = 0; i < 3; ++i) EXPECT_EQ(client.Get("/").body, "ok");
  EXPECT_EQ(up.connections(), 3);
}

}  // namespace
}  // namespace tidegate::behaviour
