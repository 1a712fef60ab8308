// SPDX-License-Identifier: Apache-2.0
// Upgrades: the gateway opens a tunnel after the upstream's 101, never before, and does not change
// the tunnel's bytes.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <thread>

#include "gateway/behaviour/gateway_fixture.hpp"
#include "support/wait.hpp"

namespace tidegate::behaviour {
namespace {

using namespace std::string_view_literals;
using Connection = ScriptedUpstream::Connection;

constexpr std::string_view kSwitchingProtocols =
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Accept: abc\r\n\r\n";
constexpr std::string_view kUpgradeRequestLines =
    "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: xyz\r\n"
    "Sec-WebSocket-Version: 13\r\n";

/// Accepts the upgrade, sends all received bytes back until the client ends its side, and then
/// sends `last`.
void EchoUntilEnd(Connection& connection, std::string_view last = {}) {
  HttpRequest request;
  if (!connection.ReadHead(request)) return;
  connection.Send(kSwitchingProtocols);
  while (true) {
    const std::string line = connection.ReadUntil("\n");
    if (line.empty()) break;
    connection.Send(line);
  }
  connection.Send(last);
}

/// Sends the upgrade request, and reads the 101 response.
HttpResponse OpenTunnel(Client& client) {
  HttpResponse answer = client.Ask(GetText("/ws", kUpgradeRequestLines));
  EXPECT_EQ(answer.status, 101);
  return answer;
}

// --- Tunnels ----------------------------------------------------------------------

TEST(TunnelTest, ForwardsBytesBothWaysAfter101) {
  ScriptedUpstream up([](Connection& connection) { EchoUntilEnd(connection); });
  Gate gate(Routed(up.url()));
  Client client(gate.at());
  const HttpResponse answer = OpenTunnel(client);
  EXPECT_EQ(answer.Field("Upgrade"), "websocket");
  EXPECT_EQ(answer.Field("Connection"), "Upgrade");
  EXPECT_EQ(answer.Field("Sec-WebSocket-Accept"), "abc");
  EXPECT_FALSE(answer.Has("Content-Length"));
  EXPECT_FALSE(answer.Has("Transfer-Encoding"));
  for (const std::string_view line : {"one\n"sv, "GET / HTTP/1.1\n"sv, "\0\xff\x80 bytes\n"sv}) {
    client.Send(line);
    EXPECT_EQ(client.stream().ReadUntil("\n"), line);
  }
  const HttpRequest request = up.last();
  EXPECT_EQ(request.Field("Upgrade"), "websocket");
  EXPECT_EQ(request.Field("Connection"), "Upgrade");
  EXPECT_EQ(request.Field("Sec-WebSocket-Key"), "xyz");
}

TEST(TunnelTest, ForwardsBytesSentRightAfterTheRequest) {
  ScriptedUpstream up([](Connection& connection) { EchoUntilEnd(connection); });
  Gate gate(Routed(up.url()));
  Client client(gate.at());
  // The gateway must buffer more than fits into one of its buffers.
  const std::string early = std::string(40'000, 'e') + "\n";
  client.Send(GetText("/ws", kUpgradeRequestLines) + early);
  EXPECT_EQ(client.Read().status, 101);
  EXPECT_EQ(client.stream().ReadUntil("\n"), early);
  client.Send("more\n");
  EXPECT_EQ(client.stream().ReadUntil("\n"), "more\n");
}

TEST(TunnelTest, ForwardsBytesSentRightAfterThe101) {
  ScriptedUpstream up([](Connection& connection) {
    HttpRequest request;
    if (!connection.ReadHead(request)) return;
    connection.Send(std::string(kSwitchingProtocols) + "hello\nHTTP/1.1 200 OK\r\n\r\n");
    (void)connection.WaitForEnd();
  });
  Gate gate(Routed(up.url()));
  Client client(gate.at());
  OpenTunnel(client);
  EXPECT_EQ(client.stream().ReadUntil("\r\n\r\n"), "hello\nHTTP/1.1 200 OK\r\n\r\n");
}

TEST(TunnelTest, ForwardsInterimResponsesBefore101) {
  ScriptedUpstream up([](Connection& connection) {
    HttpRequest request;
    if (!connection.ReadHead(request)) return;
    connection.Send("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" +
                    std::string(kSwitchingProtocols) + "!");
    (void)connection.WaitForEnd();
  });
  Gate gate(Routed(up.url()));
  Client client(gate.at());
  EXPECT_EQ(client.Ask(GetText("/ws", kUpgradeRequestLines)).status, 103);
  EXPECT_EQ(client.Read().status, 101);
  EXPECT_EQ(client.stream().ReadExactly(1), "!");
}

TEST(TunnelTest, NeverReusesUpstreamConnection) {
  ScriptedUpstream up([](Connection& connection) { EchoUntilEnd(connection); });
  Gate gate(Routed(up.url()));
  for (int i = 0; i < 3; ++i) {
    Client client(gate.at());
    OpenTunnel(client);
    client.EndSending();
    EXPECT_EQ(client.stream().ReadRest(), "");
  }
  EXPECT_EQ(up.connections(), 3);
  EXPECT_TRUE(test::WaitUntil([&] { return up.open() == 0; }));
}

// --- Rejected upgrades ------------------------------------------------------------

class RejectedUpgradeTest : public testing::TestWithParam<std::string_view> {};

TEST_P(RejectedUpgradeTest, ForwardsResponseAndKeepsConnections) {
  ScriptedUpstream up(ScriptedUpstream::Each([](const HttpRequest& request) {
    return request.Has("Upgrade") ? Http(GetParam(), "Upgrade: websocket\r\n", "no")
                                  : Http("200 OK", {}, "plain");
  }));
  Gate gate(Routed(up.url()));
  Client client(gate.at());
  for (int i = 0; i < 3; ++i) {
    const HttpResponse answer = client.Ask(GetText("/ws", kUpgradeRequestLines));
    EXPECT_EQ(answer.status, std::stoi(std::string(GetParam())));
    EXPECT_EQ(answer.body, "no");
    EXPECT_NE(answer.Field("Connection"), "close");
    EXPECT_EQ(client.Get("/").body, "plain") << "the connection was not kept alive";
  }
  EXPECT_EQ(up.connections(), 1);
}
INSTANTIATE_TEST_SUITE_P(All, RejectedUpgradeTest,
                         testing::Values("200 OK", "400 Bad Request", "426 Upgrade Required"));

TEST(UpgradeTest, AnswersRequestPipelinedAfterRejectedUpgrade) {
  ScriptedUpstream up(ScriptedUpstream::Each(
      [](const HttpRequest& request) { return Http("200 OK", {}, request.target()); }));
  Gate gate(Routed(up.url()));
  Client client(gate.at());
  client.Send(GetText("/ws", kUpgradeRequestLines) + GetText("/next"));
  EXPECT_EQ(client.Read().body, "/ws");
  EXPECT_EQ(client.Read().body, "/next");
}

class UnsupportedUpgradeTest : public testing::TestWithParam<std::string_view> {};

TEST_P(UnsupportedUpgradeTest, NeverForwardsUnsupportedUpgrade) {
  ScriptedUpstream up(ScriptedUpstream::Ok());
  Gate gate(Routed(up.url()));
  Client client(gate.at());
  const HttpResponse answer =
      client.Get("/", std::string(GetParam()) + "HTTP2-Settings: AAMAAABk\r\n");
  EXPECT_TRUE(answer.status == 200 || answer.status == 400) << answer.status;
  if (answer.status == 400) return;
  EXPECT_FALSE(up.last().Has("Upgrade")) << up.last().head;
  EXPECT_FALSE(up.last().Has("HTTP2-Settings"));
  EXPECT_EQ(up.last().Field("Connection").find("pgrade"), std::string::npos);
}
INSTANTIATE_TEST_SUITE_P(
    All, UnsupportedUpgradeTest,
    testing::Values("Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\n",
                    "Upgrade: H2C\r\nConnection: upgrade\r\n",
                    "Upgrade: websocket, h2c\r\nConnection: Upgrade\r\n",
                    "Upgrade: websocket\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n",
                    "Upgrade: h2c,\r\nConnection: Upgrade\r\n",
                    "Upgrade: HTTP/2.0\r\nConnection: Upgrade\r\n",
                    "Upgrade: websocket\r\n",  // The Connection field does not list `upgrade`.
                    "Upgrade: TLS/1.2\r\nConnection: Upgrade\r\n"));

/// Returns a handler that responds with 101 even if the client did not request an upgrade.
ScriptedUpstream::Handler Switching() {
  return [](Connection& connection) {
    HttpRequest request;
    if (!connection.ReadHead(request)) return;
    connection.Send(kSwitchingProtocols);
    (void)connection.WaitForEnd();
  };
}

TEST(UpgradeTest, AnswersWith502ToUnrequested101) {
  ScriptedUpstream up(Switching());
  Gate gate(Routed(up.url()));
  Client client(gate.at());
  const HttpResponse answer = client.Get("/");
  EXPECT_EQ(answer.status, 502);
  EXPECT_EQ(answer.Field("Content-Type"), "application/problem+json");
  EXPECT_TRUE(test::WaitUntil([&] { return up.open() == 0; }));
  const HttpResponse h2c = client.Get("/", "Upgrade: h2c\r\nConnection: Upgrade\r\n");
  EXPECT_EQ(h2c.status, 502) << "the h2c upgrade was forwarded";
}

TEST(UpgradeTest, AnswersWith502To101ForHttp10Client) {
  ScriptedUpstream up(Switching());
  Gate gate(Routed(up.url()));
  Client client(gate.at());
  client.Send("GET /ws HTTP/1.0\r\nHost: test\r\n" + std::string(kUpgradeRequestLines) + "\r\n");
  EXPECT_EQ(client.Read().status, 502);
}

/// Protocols that the client requests, and the Upgrade lines of the upstream's 101 response.
struct Protocols {
  std::string_view requested;
  std::string_view answered;
  int status;
};
class UpgradeProtocolTest : public testing::TestWithParam<Protocols> {};

TEST_P(UpgradeProtocolTest, Accepts101OnlyForTheRequestedProtocol) {
  ScriptedUpstream up([](Connection& connection) {
    HttpRequest request;
    if (!connection.ReadHead(request)) return;
    connection.Send("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n" +
                    std::string(GetParam().answered) + "\r\n");
    (void)connection.WaitForEnd();
  });
  Gate gate(Routed(up.url()));
  Client client(gate.at());
  const HttpResponse answer = client.Get(
      "/ws", "Connection: Upgrade\r\nUpgrade: " + std::string(GetParam().requested) + "\r\n");
  EXPECT_EQ(answer.status, GetParam().status);
  if (answer.status == 101) return;
  EXPECT_EQ(answer.Field("Content-Type"), "application/problem+json");
  EXPECT_TRUE(test::WaitUntil([&] { return up.open() == 0; }))
      << "the gateway reused the connection";
}
INSTANTIATE_TEST_SUITE_P(
    All, UpgradeProtocolTest,
    testing::Values(Protocols{"websocket", "Upgrade: websocket\r\n", 101},
                    Protocols{"WebSocket", "Upgrade: websocket\r\n", 101},
                    Protocols{"websocket", "UPGRADE:\tWEBSOCKET \r\n", 101},
                    Protocols{"foo/1", "Upgrade: FOO/1\r\n", 101},
                    Protocols{"foo", "Upgrade: foo/2\r\n", 101},
                    Protocols{"websocket", "Upgrade: h2c\r\n", 502},
                    Protocols{"websocket", "Upgrade: websockets\r\n", 502},
                    Protocols{"websocket", "Upgrade: web\r\n", 502},
                    Protocols{"foo/1", "Upgrade: foo/2\r\n", 502},
                    Protocols{"foo/1", "Upgrade: foo\r\n", 502},
                    Protocols{"websocket", "Upgrade: websocket, h2c\r\n", 502},
                    Protocols{"websocket", "Upgrade: websocket\r\nUpgrade: h2c\r\n", 502},
                    Protocols{"websocket", "Upgrade:\r\n", 502}, Protocols{"websocket", "", 502}));

TEST(UpgradeTest, DoesNotUpgradeRequestWithBody) {
  ScriptedUpstream up(Switching());
  Gate gate(Routed(up.url()));
  Client client(gate.at());
  client.Send("POST /ws HTTP/1.1\r\nHost: test\r\n" + std::string(kUpgradeRequestLines) +
              "Content-Length: 4\r\n\r\nbody");
  const HttpResponse answer = client.Read();
  EXPECT_NE(answer.status, 101);
}

// --- End of a tunnel --------------------------------------------------------------

TEST(TunnelEndTest, ForwardsUpstreamBytesAfterClientHalfCloses) {
  ScriptedUpstream up([](Connection& connection) { EchoUntilEnd(connection, "the last word"); });
  Gate gate(Routed(up.url()));
  Client client(gate.at());
  OpenTunnel(client);
  client.Send("a\n");
  client.EndSending();
  EXPECT_EQ(client.stream().ReadRest(), "a\nthe last word");
}

TEST(TunnelEndTest, ForwardsClientBytesAfterUpstreamHalfCloses) {
  std::string got;
  ScriptedUpstream up([&](Connection& connection) {
    HttpRequest request;
    if (!connection.ReadHead(request)) return;
    connection.Send(std::string(kSwitchingProtocols) + "bye\n");
    connection.EndSending();
    got = connection.ReadRest();
  });
  Gate gate(Routed(up.url()));
  Client client(gate.at());
  OpenTunnel(client);
  EXPECT_EQ(client.stream().ReadRest(), "bye\n")
      << "the client did not receive the end of the stream";
  const std::string late = RandomBytes(1u << 20);
  for (const std::string_view piece : {std::string_view("late\n"), std::string_view(late)}) {
    EXPECT_TRUE(client.Send(piece));
  }
  EXPECT_EQ(up.open(), 1);
  client.EndSending();
  EXPECT_TRUE(test::WaitUntil([&] { return up.open() == 0; }))
      << "the upstream did not receive the client's end";
  EXPECT_TRUE(got == "late\n" + late) << got.size();
}

TEST(TunnelEndTest, ForwardsAllBytesToSlowClientAfterUpstreamHalfCloses) {
  const std::string much = RandomBytes(8u << 20);
  std::string got;
  ScriptedUpstream up([&](Connection& connection) {
    HttpRequest request;
    if (!connection.ReadHead(request)) return;
    connection.Send(std::string(kSwitchingProtocols) + much);
    connection.EndSending();
    got = connection.ReadRest();
  });
  Gate gate(Routed(up.url()));
  Client client(gate.at(), 65536);
  OpenTunnel(client);
  EXPECT_TRUE(client.Send("while it is blocked\n"));
  (void)client.stream().Readable(std::chrono::milliseconds{50});
  EXPECT_TRUE(client.stream().ReadRest() == much);
  EXPECT_TRUE(client.Send("after the end\n"));
  client.stream().Close();
  EXPECT_TRUE(test::WaitUntil([&] { return up.open() == 0; }));
  EXPECT_EQ(got, "while it is blocked\nafter the end\n");
}

TEST(TunnelEndTest, EndsTunnelWhenBothSidesCloseAtOnce) {
  for (int round = 0; round < 20; ++round) {
    Signal go;
    ScriptedUpstream up([&](Connection& connection) {
      HttpRequest request;
      if (!connection.ReadHead(request)) return;
      connection.Send(kSwitchingProtocols);
      (void)go.Wait();
      connection.EndSending();
      EXPECT_TRUE(connection.WaitForEnd());
    });
    Gate gate(Routed(up.url()));
    Client client(gate.at());
    OpenTunnel(client);
    go.Give();
    client.EndSending();
    EXPECT_EQ(client.stream().ReadRest(), "");
    EXPECT_TRUE(test::WaitUntil([&] { return up.open() == 0; }));
    EXPECT_TRUE(test::WaitUntil([&] {
      return gate.Metric(R"(tidegate_gateway_requests_total{route="all",outcome="passed"})") == 1;
    }));
  }
}

TEST(TunnelEndTest, EndsTunnelWhenClientSendsToClosedUpstream) {
  ScriptedUpstream up([](Connection& connection) {
    HttpRequest request;
    if (!connection.ReadHead(request)) return;
    connection.Send(kSwitchingProtocols);
  });
  Gate gate(Routed(up.url()));
  Client client(gate.at());
  OpenTunnel(client);
  EXPECT_EQ(client.stream().ReadRest(), "");
  EXPECT_TRUE(test::WaitUntil([&] { return up.open() == 0; }));
  // The upstream's kernel responds to the first bytes with a reset, after which the gateway cannot
  // send any more.
  client.Send("anybody there?\n");
  EXPECT_TRUE(test::WaitUntil([&] {
    return gate.Metric(R"(tidegate_gateway_requests_total{route="all",outcome="passed"})") == 1;
  }));
}

TEST(TunnelEndTest, EndsTunnelHalfClosedByUpstreamAfterIdleTimeout) {
  ScriptedUpstream up([](Connection& connection) {
    HttpRequest request;
    if (!connection.ReadHead(request)) return;
    connection.Send(kSwitchingProtocols);
    connection.EndSending();
    EXPECT_TRUE(connection.WaitForEnd());
  });
  Gate gate(Routed(up.url(), "idle_timeout: 200ms"));
  Client client(gate.at());
  const auto begun = std::chrono::steady_clock::now();
  OpenTunnel(client);
  EXPECT_EQ(client.stream().ReadRest(), "");
  EXPECT_TRUE(client.Send("."));
  EXPECT_TRUE(test::WaitUntil([&] { return up.open() == 0; }))
      << "the tunnel is still open after the idle timeout";
  EXPECT_GE(std::chrono::steady_clock::now() - begun, std::chrono::milliseconds{200});
  EXPECT_TRUE(test::WaitUntil([&] {
    return gate.Metric(R"(tidegate_gateway_requests_total{route="all",outcome="passed"})") == 1;
  }));
}

TEST(TunnelEndTest, EndsTunnelHalfClosedByClientAfterIdleTimeout) {
  Signal go;
  ScriptedUpstream up([&](Connection& connection) {
    HttpRequest request;
    if (!connection.ReadHead(request)) return;
    connection.Send(kSwitchingProtocols);
    EXPECT_EQ(connection.ReadRest(), "");
    (void)go.Wait();  // The upstream neither sends bytes nor closes the connection.
  });
  Gate gate(Routed(up.url(), "idle_timeout: 200ms"));
  Client client(gate.at());
  OpenTunnel(client);
  client.EndSending();
  EXPECT_EQ(client.stream().ReadRest(), "");
  EXPECT_EQ(up.open(), 1) << "the upstream ended the tunnel before the idle timeout did";
  go.Give();
}

TEST(TunnelEndTest, ForwardsAllBytesThatUpstreamSendsBeforeItCloses) {
  const std::string much = RandomBytes(3u << 20);
  ScriptedUpstream up([&](Connection& connection) {
    HttpRequest request;
    if (!connection.ReadHead(request)) return;
    connection.Send(std::string(kSwitchingProtocols) + much);
  });
  Gate gate(Routed(up.url()));
  Client client(gate.at());
  OpenTunnel(client);
  EXPECT_TRUE(test::WaitUntil([&] { return up.open() == 0; }))
      << "the upstream has not closed its connection";
  const std::string all = client.stream().ReadRest();
  EXPECT_EQ(all.size(), much.size());
  EXPECT_TRUE(all == much);
}

TEST(TunnelEndTest, ClosesUpstreamWhenClientResets) {
  ScriptedUpstream up([](Connection& connection) {
    HttpRequest request;
    if (!connection.ReadHead(request)) return;
    connection.Send(kSwitchingProtocols);
    EXPECT_TRUE(connection.WaitForEnd());
  });
  Gate gate(Routed(up.url()));
  {
    Client client(gate.at());
    OpenTunnel(client);
    client.stream().Reset();
  }
  EXPECT_TRUE(test::WaitUntil([&] { return up.open() == 0; }));
  EXPECT_TRUE(test::WaitUntil([&] {
    return gate.Metric("tidegate_upstream_target_requests{upstream=\"up\",target=\"127.0.0.1:" +
                       std::to_string(up.port()) + "\"}") == 0;
  }));
}

TEST(TunnelEndTest, ClosesClientWhenUpstreamResets) {
  Signal go;
  ScriptedUpstream up([&](Connection& connection) {
    HttpRequest request;
    if (!connection.ReadHead(request)) return;
    connection.Send(kSwitchingProtocols);
    (void)go.Wait();
    connection.Reset();
  });
  Gate gate(Routed(up.url()));
  Client client(gate.at());
  OpenTunnel(client);
  go.Give();
  EXPECT_NE(client.WaitForEnd(), Client::End::kOpen);
}

TEST(TunnelEndTest, ClosesBothSidesAfterIdleTimeout) {
  ScriptedUpstream up([](Connection& connection) { EchoUntilEnd(connection); });
  Gate gate(Routed(up.url(), "idle_timeout: 200ms"));
  Client client(gate.at());
  OpenTunnel(client);
  const auto begun = std::chrono::steady_clock::now();
  // One byte at a time keeps the tunnel open for longer than the idle timeout.
  while (std::chrono::steady_clock::now() - begun < std::chrono::milliseconds{500}) {
    client.Send(".\n");
    ASSERT_EQ(client.stream().ReadUntil("\n"), ".\n");
    (void)client.stream().Readable(std::chrono::milliseconds{20});
  }
  EXPECT_EQ(client.WaitForEnd(), Client::End::kClosed);
  EXPECT_TRUE(test::WaitUntil([&] { return up.open() == 0; }));
}

TEST(TunnelEndTest, DrainKeepsTunnelOpen) {
  ScriptedUpstream up([](Connection& connection) { EchoUntilEnd(connection); });
  Gate gate(Routed(up.url()));
  Client client(gate.at());
  OpenTunnel(client);
  Signal drained;
  gate.server().Drain([&] { drained.Give(); });
  for (int i = 0; i < 20; ++i) {
    client.Send("still\n");
    ASSERT_EQ(client.stream().ReadUntil("\n"), "still\n");
  }
  EXPECT_FALSE(drained.given()) << "draining ended although the tunnel is open";
}

TEST(TunnelEndTest, StopClosesTunnel) {
  ScriptedUpstream up([](Connection& connection) { EchoUntilEnd(connection); });
  auto gate = std::make_unique<Gate>(Routed(up.url()));
  Client client(gate->at());
  OpenTunnel(client);
  gate->server().Drain([] {});
  gate.reset();  // Stops the server, as the end of drain_timeout does.
  EXPECT_NE(client.WaitForEnd(), Client::End::kOpen);
  EXPECT_TRUE(test::WaitUntil([&] { return up.open() == 0; }));
}

TEST(TunnelEndTest, DrainEndsWhenLastTunnelEnds) {
  ScriptedUpstream up([](Connection& connection) { EchoUntilEnd(connection); });
  Gate gate(Routed(up.url()));
  Client client(gate.at());
  OpenTunnel(client);
  Signal drained;
  gate.server().Drain([&] { drained.Give(); });
  client.EndSending();
  EXPECT_EQ(client.stream().ReadRest(), "");
  client.stream().Close();
  EXPECT_TRUE(drained.Wait());
}

// --- Large transfers ----------------------------------------------------------------

TEST(TunnelBackpressureTest, ForwardsMegabytesBothWaysAtOnce) {
  constexpr std::size_t kMuch = 16u << 20;
  const std::string down = RandomBytes(kMuch, 1);
  const std::string upward = RandomBytes(kMuch, 2);
  std::string got;
  ScriptedUpstream up([&](Connection& connection) {
    HttpRequest request;
    if (!connection.ReadHead(request)) return;
    connection.Send(kSwitchingProtocols);
    std::thread sender([&] { connection.Send(down); });
    got = connection.ReadExactly(kMuch);
    sender.join();
  });
  Gate gate(Routed(up.url()));
  Client client(gate.at(), 65536);
  OpenTunnel(client);
  std::thread sender([&] { client.Send(upward); });
  const std::string mine = client.stream().ReadExactly(kMuch);
  sender.join();
  EXPECT_TRUE(mine == down) << mine.size();
  EXPECT_EQ(client.stream().ReadRest(), "");
  EXPECT_TRUE(test::WaitUntil([&] { return up.open() == 0; }));
  EXPECT_TRUE(got == upward) << got.size();
}

TEST(TunnelBackpressureTest, SlowUpstreamStallsOnlyBytesFromClient) {
  Signal read;
  constexpr std::size_t kMost = 64u << 20;
  ScriptedUpstream up([&](Connection& connection) {
    HttpRequest request;
    if (!connection.ReadHead(request)) return;
    connection.Send(kSwitchingProtocols);
    connection.Send("hello\n");
    (void)read.Wait();
    (void)connection.WaitForEnd();
  });
  Gate gate(Routed(up.url()));
  Client client(gate.at());
  OpenTunnel(client);
  const timeval briefly{.tv_sec = 0, .tv_usec = 300'000};
  setsockopt(client.fd(), SOL_SOCKET, SO_SNDTIMEO, &briefly, sizeof briefly);
  const std::string piece(65536, 'x');
  std::size_t sent = 0;
  while (sent < kMost) {
    const ssize_t now = ::send(client.fd(), piece.data(), piece.size(), MSG_NOSIGNAL);
    if (now <= 0) break;
    sent += static_cast<std::size_t>(now);
  }
  EXPECT_LT(sent, kMost / 2) << "the gateway buffered all bytes";
  EXPECT_EQ(client.stream().ReadUntil("\n"), "hello\n") << "the other direction is stalled";
  read.Give();
}

}  // namespace
}  // namespace tidegate::behaviour
