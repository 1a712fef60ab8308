// SPDX-License-Identifier: Apache-2.0
// Clients that are slow, disconnect, flood the gateway or send malformed requests: each costs
// little, and other clients are still served.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <thread>

#include "gateway/behaviour/gateway_fixture.hpp"
#include "support/wait.hpp"

namespace tidegate::behaviour {
namespace {

using Connection = ScriptedUpstream::Connection;

/// Expects a problem response with `status`, after which the gateway closes the connection.
void ExpectRefused(Client& client, const HttpResponse& answer, int status) {
  EXPECT_EQ(answer.status, status) << answer.head << answer.body;
  EXPECT_EQ(answer.Field("Content-Type"), "application/problem+json");
  EXPECT_EQ(answer.Field("Connection"), "close");
  EXPECT_EQ(answer.Field("Cache-Control"), "no-store");
  EXPECT_EQ(answer.Json().at("status"), status);
  EXPECT_EQ(client.stream().ReadRest(), "") << "bytes after the response";
}

// --- Slow clients -----------------------------------------------------------------

TEST(SlowClientTest, AnswersWith408WhenRequestHeadStalls) {
  ScriptedUpstream up(ScriptedUpstream::Ok());
  Gate gate(Routed(up.url(), {}, "limits: {header_timeout: 200ms}\n"));
  Client client(gate.at());
  const auto begun = std::chrono::steady_clock::now();
  client.Send("GET / HTTP/1.1\r\nHost: te");
  ExpectRefused(client, client.Read(), 408);
  EXPECT_GE(std::chrono::steady_clock::now() - begun, std::chrono::milliseconds{200});
  EXPECT_EQ(up.requests(), 0);
}

TEST(SlowClientTest, AnswersWith408WhenRequestHeadArrivesTooSlowly) {
  ScriptedUpstream up(ScriptedUpstream::Ok());
  Gate gate(Routed(up.url(), {}, "limits: {header_timeout: 200ms}\n"));
  Client client(gate.at());
  client.Send("GET / HTTP/1.1\r\nHost: test\r\nX-Drip: ");
  const auto begun = std::chrono::steady_clock::now();
  while (!client.stream().Readable(std::chrono::milliseconds{20}) &&
         std::chrono::steady_clock::now() - begun < kPatience) {
    if (!client.Send("x")) break;
  }
  EXPECT_EQ(client.Read().status, 408) << "the timeout was restarted by each byte";
}

TEST(SlowClientTest, AppliesHeaderTimeoutToSecondRequest) {
  ScriptedUpstream up(ScriptedUpstream::Ok());
  Gate gate(Routed(up.url(), {}, "limits: {header_timeout: 200ms}\n"));
  Client client(gate.at());
  client.Send(GetText("/") + "GET / HTTP/1.1\r\nHo");
  EXPECT_EQ(client.Read().status, 200);
  ExpectRefused(client, client.Read(), 408);
}

TEST(SlowClientTest, ClosesIdleConnectionWithoutResponse) {
  ScriptedUpstream up(ScriptedUpstream::Ok());
  Gate gate(Routed(up.url(), {}, "limits: {idle_timeout: 200ms}\n"));
  Client fresh(gate.at());
  EXPECT_EQ(fresh.WaitForEnd(), Client::End::kClosed);
  Client used(gate.at());
  EXPECT_EQ(used.Get("/").status, 200);
  EXPECT_EQ(used.WaitForEnd(), Client::End::kClosed);
}

class SlowRequestBodyTest : public testing::TestWithParam<std::string_view> {};

TEST_P(SlowRequestBodyTest, AnswersWith408AndCutsUpstreamRequest) {
  std::atomic<int> broken{0};
  ScriptedUpstream up([&](Connection& connection) {
    HttpRequest request;
    if (!connection.ReadHead(request)) return;
    connection.ReadBody(request);
    if (!request.whole) ++broken;
  });
  Gate gate(Routed(up.url(), {}, "limits: {body_timeout: 200ms}\n"));
  Client client(gate.at());
  client.Send("POST / HTTP/1.1\r\nHost: test\r\n" + std::string(GetParam()));
  ExpectRefused(client, client.Read(), 408);
  EXPECT_TRUE(test::WaitUntil([&] { return broken == 1; }));
  EXPECT_EQ(up.connections(), 1) << "the gateway retried although the client was at fault";
}
INSTANTIATE_TEST_SUITE_P(All, SlowRequestBodyTest,
                         testing::Values("Content-Length: 10\r\n\r\n12345",
                                         "Content-Length: 10\r\n\r\n",
                                         "Content-Length: 1000000\r\n\r\n12345",
                                         "Transfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n",
                                         "Transfer-Encoding: chunked\r\n\r\n5\r\n123"));

// --- Clients that disconnect ------------------------------------------------------

/// Bytes that a client sends before it disconnects, and whether it resets the connection.
struct Vanishing {
  std::string_view name;
  std::string_view body;
  bool reset;
};
class DisconnectingClientTest : public testing::TestWithParam<Vanishing> {};

TEST_P(DisconnectingClientTest, UpstreamSeesNoCompleteRequestAfterDisconnect) {
  std::atomic<int> broken{0};
  std::atomic<int> whole{0};
  ScriptedUpstream up([&](Connection& connection) {
    HttpRequest request;
    while (connection.ReadHead(request)) {
      connection.ReadBody(request);
      ++(request.whole ? whole : broken);
      if (!request.whole) return;
      connection.Send(Http("200 OK", {}, "ok"));
    }
  });
  Gate gate(Routed(up.url()));
  EXPECT_EQ(gate.Get("/").status, 200);
  {
    Client client(gate.at());
    client.Send("POST / HTTP/1.1\r\nHost: test\r\n" + std::string(GetParam().body));
    ASSERT_TRUE(test::WaitUntil([&] { return up.requests() == 2; }));
    if (GetParam().reset) client.stream().Reset();
  }
  EXPECT_TRUE(test::WaitUntil([&] { return broken == 1; }));
  EXPECT_EQ(gate.Get("/").body, "ok");
  EXPECT_EQ(whole, 2);
  EXPECT_EQ(up.connections(), 2) << "the gateway reused the connection of the aborted request";
  EXPECT_EQ(gate.Metric("tidegate_gateway_requests_total{route=\"all\",outcome=\"client_gone\"}"),
            1);
}

INSTANTIATE_TEST_SUITE_P(
    All, DisconnectingClientTest,
    testing::Values(
        Vanishing{"Length", "Content-Length: 10\r\n\r\n12345", false},
        Vanishing{"LengthReset", "Content-Length: 10\r\n\r\n12345", true},
        Vanishing{"Chunks", "Transfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n", false},
        Vanishing{"ChunksReset", "Transfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n", true},
        Vanishing{"InAChunk", "Transfer-Encoding: chunked\r\n\r\n5\r\n123", false},
        Vanishing{"BeforeTheLastLine", "Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n", false},
        Vanishing{"BeforeAByte", "Content-Length: 10\r\n\r\n", false}),
    [](const auto& of) { return std::string(of.param.name); });

TEST(DisconnectingClientTest, ClosesUpstreamConnectionWhenWaitingClientLeaves) {
  ScriptedUpstream up([](Connection& connection) {
    HttpRequest request;
    if (!connection.Read(request)) return;
    EXPECT_TRUE(connection.WaitForEnd());
  });
  Gate gate(Routed(up.url()));
  {
    Client client(gate.at());
    client.Send(GetText("/"));
    ASSERT_TRUE(test::WaitUntil([&] { return up.requests() == 1; }));
  }
  EXPECT_TRUE(test::WaitUntil([&] { return up.open() == 0; }));
}

// --- Requests above a limit ---------------------------------------------------------

TEST(RequestSizeLimitTest, AnswersWith431ToTooLongHead) {
  ScriptedUpstream up(ScriptedUpstream::Ok());
  Gate gate(Routed(up.url(), {}, "limits: {header_bytes: 4KiB}\n"));
  Client client(gate.at());
  EXPECT_EQ(client.Get("/", "X-Fits: " + std::string(3800, 'x') + "\r\n").status, 200);
  client.Send(GetText("/", "X-Long: " + std::string(5000, 'x') + "\r\n"));
  ExpectRefused(client, client.Read(), 431);
  EXPECT_EQ(up.requests(), 1);
}

TEST(RequestSizeLimitTest, AnswersWith431ToEndlessHead) {
  ScriptedUpstream up(ScriptedUpstream::Ok());
  Gate gate(Routed(up.url()));
  Client client(gate.at());
  client.Send("GET / HTTP/1.1\r\nHost: test\r\nX-Endless: " + std::string(100'000, 'x'));
  ExpectRefused(client, client.Read(), 431);
}

TEST(RequestSizeLimitTest, AnswersWith431ToTooManyFields) {
  ScriptedUpstream up(ScriptedUpstream::Ok());
  Gate gate(Routed(up.url(), {}, "limits: {header_count: 20}\n"));
  Client client(gate.at());
  std::string lines;
  for (int i = 0; i < 19; ++i) lines += "X-" + std::to_string(i) + ": 1\r\n";
  EXPECT_EQ(client.Get("/", lines).status, 200)
      << "20 fields, including Host, are within the limit";
  client.Send(GetText("/", lines + "X-More: 1\r\n"));
  ExpectRefused(client, client.Read(), 431);
}

TEST(RequestSizeLimitTest, AnswersWith414ToTooLongTarget) {
  ScriptedUpstream up(ScriptedUpstream::Ok());
  Gate gate(Routed(up.url()));
  Client client(gate.at());
  client.Send(GetText("/" + std::string(15'000, 'a')));
  ExpectRefused(client, client.Read(), 414);
  Client endless(gate.at());
  endless.Send("GET /" + std::string(40'000, 'a'));
  ExpectRefused(endless, endless.Read(), 414);
}

TEST(RequestSizeLimitTest, AppliesConfiguredTargetLimit) {
  ScriptedUpstream up(ScriptedUpstream::Ok());
  Gate gate(Routed(up.url(), {}, "limits: {header_bytes: 64KiB, target_bytes: 32KiB}\n"));
  Client client(gate.at());
  const std::string target = "/" + std::string((32u << 10) - 1, 'a');
  EXPECT_EQ(client.Get(target).status, 200);
  EXPECT_EQ(up.last().target(), target);
  client.Send(GetText(target + "a"));
  ExpectRefused(client, client.Read(), 414);
  service::HttpClient api(gate.server().api());
  api.Send("GET " + target + " HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(api.Read().status, 404) << "the API has another limit than the gateway";
}

TEST(RequestSizeLimitTest, AppliesSeparateLimitsToResponses) {
  const auto fields = [](int count) {
    std::string lines;
    for (int i = 1; i < count; ++i)
      lines += "X-" + std::to_string(i) + ": " + std::to_string(i) + "\r\n";
    return lines;  // Http() adds one more field: Content-Length.
  };
  ScriptedUpstream up(ScriptedUpstream::Each([&](const HttpRequest& request) {
    if (request.target().starts_with("/long")) {
      return Http("200 OK",
                  "X: " + std::string(std::stoul(request.target().substr(5)), 'x') + "\r\n");
    }
    return Http("200 OK", fields(std::stoi(request.target().substr(1))), "x");
  }));
  const auto status = [](Gate& gate, const std::string& target) { return gate.Get(target).status; };
  {
    Gate gate(Routed(up.url(), {}, "limits: {header_bytes: 1KiB, header_count: 5}\n"));
    EXPECT_EQ(status(gate, "/128"), 200) << "the request limit was applied to a response";
    EXPECT_EQ(status(gate, "/129"), 502);
    EXPECT_EQ(status(gate, "/long15000"), 200);
    EXPECT_EQ(status(gate, "/long17000"), 502);
  }
  Gate gate(Routed(up.url(), {},
                   "gateway: {response_header_count: 1000, response_header_bytes: 1MiB}\n"));
  const HttpResponse answer = gate.Get("/1000");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.Field("X-999"), "999");
  EXPECT_EQ(status(gate, "/1001"), 502);
  EXPECT_EQ(gate.Get("/long1000000").Field("X").size(), 1'000'000u);
  EXPECT_EQ(status(gate, "/long1100000"), 502);
  // A reload changes both limits, also for upstream connections that have been used before.
  EXPECT_TRUE(gate.Reload(Routed(up.url(), {}, "gateway: {response_header_count: 10}\n")));
  EXPECT_EQ(status(gate, "/10"), 200);
  EXPECT_EQ(status(gate, "/11"), 502);
}

class MalformedRequestTest : public testing::TestWithParam<std::string_view> {};

TEST_P(MalformedRequestTest, AnswersMalformedRequestWith400AndCloses) {
  ScriptedUpstream up(ScriptedUpstream::Ok());
  Gate gate(Routed(up.url()));
  Client client(gate.at());
  client.Send(std::string(GetParam()) + GetText("/smuggled"));
  ExpectRefused(client, client.Read(), 400);
  EXPECT_EQ(up.requests(), 0);
  EXPECT_EQ(gate.Get("/").status, 200);
}
INSTANTIATE_TEST_SUITE_P(
    All, MalformedRequestTest,
    testing::Values("\x16\x03\x01\x02\x01\x01\r\n\r\n", "GET /\r\n\r\n", "GET / HTTP/1.1\r\n\r\n",
                    "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
                    "GET / HTTP/1.1\r\nHost : a\r\n\r\n", "GET / HTTP/1.1\nHost: a\n\n",
                    "GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n",
                    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n"
                    "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\n",
                    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: x\r\n\r\n",
                    "GET / HTTP/1.1\r\nHost: a\r\nX: a\rb\r\n\r\n",
                    "GET /\x01 HTTP/1.1\r\nHost: a\r\n\r\n", "*1\r\n$4\r\nPING\r\n\r\n"));

// --- Many connections -----------------------------------------------------------------

/// Raises the limit on open files to `count`: this process holds both ends of each connection.
/// Returns false if the hard limit is lower.
bool AllowDescriptors(rlim_t count) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_max < count) return false;
  limit.rlim_cur = std::max(limit.rlim_cur, count);
  return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

TEST(ManyConnectionsTest, ServesOtherClientsDuringAThousandIncompleteRequests) {
  if (!AllowDescriptors(4000)) GTEST_SKIP() << "the limit on open files is below 4000";
  ScriptedUpstream up(ScriptedUpstream::Ok());
  Gate gate(Routed(up.url(), {}, "limits: {header_timeout: 2s}\n"));
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 1000; ++i) {
    clients.push_back(std::make_unique<Client>(gate.at()));
    clients.back()->Send("GET / HTTP/1.1\r\nHost: t");
  }
  Client other(gate.at());
  for (int i = 0; i < 50; ++i) EXPECT_EQ(other.Get("/").status, 200);
  for (auto& client : clients) ExpectRefused(*client, client->Read(), 408);
  EXPECT_EQ(up.requests(), 50);
}

TEST(ManyConnectionsTest, AnswersWith503AboveMaxConnections) {
  ScriptedUpstream up(ScriptedUpstream::Ok());
  Gate gate(Routed(up.url(), {}, "limits: {connections: 2}\n"));
  Client one(gate.at());
  EXPECT_EQ(one.Get("/").status, 200);
  auto two = std::make_unique<Client>(gate.at());
  EXPECT_EQ(two->Get("/").status, 200);
  Client three(gate.at());
  const HttpResponse answer = three.Read();
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(answer.Field("Retry-After"), "1");
  EXPECT_EQ(one.Get("/").status, 200);
  two.reset();
  EXPECT_TRUE(test::WaitUntil([&] {
    Client again(gate.at());
    again.Send(GetText("/"));
    return again.stream().ReadUntil("\r\n").find("200") != std::string::npos;
  }));
}

TEST(ManyConnectionsTest, AnswersPipelinedFloodInOrderAndServesOtherClients) {
  ScriptedUpstream up(ScriptedUpstream::Each(
      [](const HttpRequest& request) { return Http("200 OK", {}, request.target()); }));
  Gate gate(Routed(up.url()));
  constexpr int kFlood = 5000;
  std::string all;
  for (int i = 0; i < kFlood; ++i) all += GetText("/" + std::to_string(i));
  Client flood(gate.at());
  Client other(gate.at());
  std::thread sender([&] { flood.Send(all); });
  for (int i = 0; i < kFlood; ++i) {
    const HttpResponse answer = flood.Read();
    ASSERT_EQ(answer.body, "/" + std::to_string(i));
    if (i % 1000 == 0) {
      EXPECT_EQ(other.Get("/other").body, "/other");
    }
  }
  sender.join();
}

// --- Clients that do not read -----------------------------------------------------------

TEST(NonReadingClientTest, StopsReadingFromClientThatReadsNoResponses) {
  ScriptedUpstream up(ScriptedUpstream::Ok(std::string(1000, 'x')));
  Gate gate(Routed(up.url()));
  Client client(gate.at(), 4096);
  const timeval briefly{.tv_sec = 0, .tv_usec = 300'000};
  setsockopt(client.fd(), SOL_SOCKET, SO_SNDTIMEO, &briefly, sizeof briefly);
  std::string piece;
  for (int i = 0; i < 500; ++i) piece += GetText("/");
  constexpr std::size_t kMost = 32u << 20;
  std::size_t sent = 0;
  while (sent < kMost) {
    const ssize_t now = ::send(client.fd(), piece.data(), piece.size(), MSG_NOSIGNAL);
    if (now <= 0) break;
    sent += static_cast<std::size_t>(now);
  }
  EXPECT_LT(sent, kMost);
  EXPECT_EQ(gate.Get("/").status, 200);
}

TEST(NonReadingClientTest, DropsResponseThatClientDoesNotRead) {
  const std::string much(32u << 20, 'x');
  ScriptedUpstream up([&](Connection& connection) {
    HttpRequest request;
    if (!connection.Read(request)) return;
    connection.Send(Http("200 OK", {}, much));
    (void)connection.WaitForEnd();
  });
  Gate gate(Routed(up.url(), {}, "limits: {body_timeout: 200ms}\n"));
  Client client(gate.at(), 4096);
  client.Send(GetText("/"));
  EXPECT_TRUE(test::WaitUntil([&] { return up.requests() == 1; }));
  EXPECT_TRUE(test::WaitUntil([&] { return up.open() == 0; }))
      << "the upstream connection is still open although the client reads nothing";
  EXPECT_EQ(gate.Metric("tidegate_gateway_requests_total{route=\"all\",outcome=\"client_gone\"}"),
            1);
}

}  // namespace
}  // namespace tidegate::behaviour
