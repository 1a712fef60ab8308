// SPDX-License-Identifier: Apache-2.0
// Tests a gateway whose clients use TLS: forwarded fields, long bodies, tunnels, and clients that
// disconnect.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <thread>

#include "gateway/behaviour/gateway_fixture.hpp"
#include "service/secure/listeners.hpp"
#include "service/secure/tls_stream.hpp"
#include "support/wait.hpp"

namespace tidegate::service {
namespace {

using behaviour::Http;
using behaviour::RandomBytes;
using behaviour::ScriptedUpstream;
using test::HttpRequest;
using Connection = ScriptedUpstream::Connection;

Config GatewayTls(const ScriptedUpstream& upstream, std::string_view more = {}) {
  Config config = AllListeners(upstream.url(), more);
  config.listen.gateway.tls = TlsFor();
  return config;
}

TEST(TlsGatewayTest, SendsForwardedProtoToUpstreams) {
  ScriptedUpstream upstream(ScriptedUpstream::Ok());
  Service secure(GatewayTls(upstream));
  TlsHttpClient client(At(secure, ListenerId::kGateway));
  client.Send("GET / HTTP/1.1\r\nHost: test\r\nX-Forwarded-Proto: http\r\n\r\n");
  EXPECT_EQ(client.Read().status, 200);
  EXPECT_EQ(upstream.last().Field("X-Forwarded-Proto"), "https");
  EXPECT_EQ(upstream.last().Count("X-Forwarded-Proto"), 1);
  Service plain(AllListeners(upstream.url()));
  HttpClient other(At(plain, ListenerId::kGateway));
  other.Send("GET / HTTP/1.1\r\nHost: test\r\nX-Forwarded-Proto: https\r\n\r\n");
  EXPECT_EQ(other.Read().status, 200);
  EXPECT_EQ(upstream.last().Field("X-Forwarded-Proto"), "http");
}

// After 32 pipelined requests, the turn of a connection ends with the next request in its buffer.
// In an earlier version, the head of that request was parsed in a small buffer that was freed when
// the client disconnected, so the access log read freed memory.
TEST(TlsGatewayTest, LogsRequestOfClientThatHangsUpAfterPipeline) {
  std::atomic<bool> reached{false};
  ScriptedUpstream upstream(ScriptedUpstream::Each([&](const test::HttpRequest&) {
    reached = true;
    // Simulates an upstream that takes time.
    std::this_thread::sleep_for(std::chrono::milliseconds{300});
    return Http("200 OK");
  }));
  const std::string log = testing::TempDir() + "tls_gateway_access.log";
  (void)std::remove(log.c_str());
  Config config = GatewayTls(upstream, "deny: [{path: /denied}]\naccess_log: \"" + log + "\"\n");
  {
    Service service(config);
    TlsHttpClient client(At(service, ListenerId::kGateway));
    std::string pipeline;
    for (int i = 0; i < 32; ++i) pipeline += "GET /denied HTTP/1.1\r\nHost: test\r\n\r\n";
    client.Send(pipeline + "GET /the-last-one HTTP/1.1\r\nHost: last.example\r\n\r\n");
    ASSERT_TRUE(test::WaitUntil([&] { return reached.load(); }));
    client.EndSending();
    (void)client.WaitForEnd();
  }
  std::ifstream in(log);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  EXPECT_THAT(text, testing::HasSubstr(R"("path":"/the-last-one")"));
  EXPECT_THAT(text, testing::HasSubstr(R"("host":"last.example")"));
  (void)std::remove(log.c_str());
}

TEST(TlsGatewayTest, ForwardsLargeBodiesBothWays) {
  constexpr std::size_t kMuch = 8u << 20;
  const std::string up = RandomBytes(kMuch, 1);
  const std::string down = RandomBytes(kMuch, 2);
  std::atomic<bool> same{false};
  ScriptedUpstream upstream(ScriptedUpstream::Each([&](const test::HttpRequest& request) {
    same = request.body == up;
    return Http("200 OK", {}, down);
  }));
  Service service(GatewayTls(upstream));
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    same = false;
    TlsHttpClient client(At(service, ListenerId::kGateway), {.least = version, .most = version});
    ASSERT_TRUE(client.Send(Post("/", up)));
    const HttpResponse answer = client.Read();
    EXPECT_EQ(answer.status, 200);
    EXPECT_TRUE(answer.body == down) << answer.body.size();
    EXPECT_TRUE(same);
  }
}

TEST(TlsGatewayTest, DeliversWholeResponseToSlowReader) {
  const std::string down = RandomBytes(4u << 20, 3);
  ScriptedUpstream upstream(
      ScriptedUpstream::Each([&](const test::HttpRequest&) { return Http("200 OK", {}, down); }));
  Service service(GatewayTls(upstream));
  TlsHttpClient slow(At(service, ListenerId::kGateway), {.receive_buffer = 4096});
  slow.Send(Get("/"));
  ASSERT_TRUE(test::WaitUntil([&] { return upstream.requests() == 1; }));
  TlsHttpClient quick(At(service, ListenerId::kGateway));
  quick.Send(Get("/"));
  EXPECT_TRUE(quick.Read().body == down) << "other clients must be served";
  EXPECT_TRUE(slow.Read().body == down);
}

TEST(TlsGatewayTest, TunnelsUpgradedConnectionBothWays) {
  ScriptedUpstream upstream([](Connection& connection) {
    test::HttpRequest request;
    if (!connection.ReadHead(request)) return;
    connection.Send("HTTP/1.1 101 Go\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nhello\n");
    while (true) {
      const std::string line = connection.ReadUntil("\n");
      if (line.empty()) break;
      connection.Send(line);
    }
    connection.Send("bye");
  });
  Service service(GatewayTls(upstream));
  TlsStream client(At(service, ListenerId::kGateway));
  client.Send(
      "GET /ws HTTP/1.1\r\nHost: test\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nearly\n");
  std::string got;
  const auto read_until = [&](std::string_view end) {
    while (!got.ends_with(end) && client.Receive(got) == test::Stream::Got::kBytes) {
    }
    return std::exchange(got, {});
  };
  EXPECT_THAT(read_until("early\n"), testing::StartsWith("HTTP/1.1 101 "));
  const std::string much = RandomBytes(100'000) + "end\n";
  client.Send(much);
  EXPECT_TRUE(read_until("end\n") == much);
  client.EndSending();
  EXPECT_EQ(read_until("bye"), "bye");
  EXPECT_EQ(client.Receive(got), test::Stream::Got::kEnd) << client.problem();
}

// --- Clients that disconnect ------------------------------------------------------------

enum class Leaves : std::uint8_t { kInOrder, kWithoutCloseNotify, kReset };
class TlsDisconnectTest : public testing::TestWithParam<Leaves> {};

TEST_P(TlsDisconnectTest, ClosesUpstreamConnectionWhenTheClientLeaves) {
  behaviour::Signal ended;
  ScriptedUpstream upstream([&](Connection& connection) {
    test::HttpRequest request;
    if (connection.Read(request) && connection.WaitForEnd()) ended.Give();
  });
  Service service(GatewayTls(upstream));
  auto client = std::make_unique<TlsStream>(At(service, ListenerId::kGateway));
  client->Send(Get("/hang"));
  ASSERT_TRUE(test::WaitUntil([&] { return upstream.requests() == 1; }));
  if (GetParam() == Leaves::kInOrder) client->EndSending();
  if (GetParam() == Leaves::kReset) {
    const linger now{.l_onoff = 1, .l_linger = 0};
    setsockopt(client->fd(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
  }
  client.reset();
  EXPECT_TRUE(ended.Wait());
  EXPECT_TRUE(test::WaitUntil(
      [&] { return service.Metric("tidegate_connections{listener=\"gateway\"}") == 0; }));
}

INSTANTIATE_TEST_SUITE_P(Ways, TlsDisconnectTest,
                         testing::Values(Leaves::kInOrder, Leaves::kWithoutCloseNotify,
                                         Leaves::kReset));

}  // namespace
}  // namespace tidegate::service
