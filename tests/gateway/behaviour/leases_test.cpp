// SPDX-License-Identifier: Apache-2.0
// A concurrency rule limits the requests in progress: a request returns its lease however it ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gateway/behaviour/gateway_fixture.hpp"
#include "support/wait.hpp"

namespace tidegate::behaviour {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kOne =
    "rules: [{id: one, per: client_ip, algorithm: concurrency, limit: 1/60s}]\n";
constexpr std::string_view kMe = "127.0.0.1";

/// A gateway with a concurrency limit of 1, and an upstream that holds the first request until the
/// test releases it.
class GatewayLeaseTest : public testing::Test {
 protected:
  using Connection = ScriptedUpstream::Connection;

  /// Returns a handler that reads a request, signals its arrival, and then calls `then`.
  ScriptedUpstream::Handler Held(std::function<void(Connection&)> then) {
    return [this, then = std::move(then)](Connection& connection) {
      HttpRequest request;
      if (!connection.Read(request)) return;
      came_.Give();
      then(connection);
    };
  }
  void Begin(std::string_view upstream_keys = {}, std::string_view rules = kOne) {
    gate_.emplace(Routed(up_->url(), upstream_keys, rules));
    first_ = std::make_unique<Client>(gate_->at());
    first_->Send(GetText("/slow", first_lines_));
    ASSERT_TRUE(came_.Wait());
    EXPECT_EQ(gate_->Remaining("one", kMe), 0);
    EXPECT_EQ(gate_->Get("/").status, 429) << "the first request still holds its lease";
  }
  bool Freed() {
    return test::WaitUntil([this] { return gate_->Remaining("one", kMe) == 1; });
  }

  Signal came_;
  Signal go_;
  std::string first_lines_;
  std::optional<ScriptedUpstream> up_;
  std::optional<Gate> gate_;
  std::unique_ptr<Client> first_;
};

TEST_F(GatewayLeaseTest, FreesLeaseAfterNormalResponse) {
  up_.emplace(Held([this](Connection& connection) {
    (void)go_.Wait();
    connection.Send(Http("200 OK", {}, "done"));
  }));
  Begin();
  const HttpResponse denied = gate_->Get("/");
  EXPECT_EQ(denied.status, 429);
  EXPECT_TRUE(denied.Has("Retry-After"));
  EXPECT_EQ(up_->requests(), 1);
  go_.Give();
  EXPECT_EQ(first_->Read().body, "done");
  EXPECT_TRUE(Freed());
}

TEST_F(GatewayLeaseTest, HoldsLeaseUntilLastByteOfResponse) {
  up_.emplace(Held([this](Connection& connection) {
    connection.Send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab");
    (void)go_.Wait();
    connection.Send("cd");
  }));
  Begin();
  EXPECT_EQ(first_->stream().ReadUntil("\r\n\r\n").substr(0, 15), "HTTP/1.1 200 OK");
  EXPECT_EQ(first_->stream().ReadExactly(2), "ab");
  EXPECT_EQ(gate_->Get("/").status, 429);
  go_.Give();
  EXPECT_EQ(first_->stream().ReadExactly(2), "cd");
  EXPECT_TRUE(Freed());
}

TEST_F(GatewayLeaseTest, FreesLeaseWhenClientDisconnects) {
  up_.emplace(Held([](Connection& connection) { (void)connection.WaitForEnd(); }));
  Begin();
  first_.reset();
  EXPECT_TRUE(Freed());
  EXPECT_TRUE(test::WaitUntil([this] { return up_->open() == 0; }))
      << "the upstream connection is still open";
}

TEST_F(GatewayLeaseTest, FreesLeaseWhenClientResetsConnection) {
  up_.emplace(Held([](Connection& connection) { (void)connection.WaitForEnd(); }));
  Begin();
  first_->stream().Reset();
  EXPECT_TRUE(Freed());
}

TEST_F(GatewayLeaseTest, FreesLeaseWhenUpstreamIsKilled) {
  up_.emplace(Held([](Connection& connection) { (void)connection.WaitForEnd(); }));
  Begin("retries: off");
  up_->EndConnections(test::Stream::How::kReset);
  EXPECT_EQ(first_->Read().status, 502);
  EXPECT_TRUE(Freed());
}

TEST_F(GatewayLeaseTest, FreesLeaseWhenUpstreamTimesOut) {
  up_.emplace(Held([](Connection& connection) { (void)connection.WaitForEnd(); }));
  Begin("response_timeout: 300ms");
  EXPECT_EQ(first_->Read().status, 504);
  EXPECT_TRUE(Freed());
}

TEST_F(GatewayLeaseTest, FreesLeaseOnMalformedResponse) {
  up_.emplace(Held([this](Connection& connection) {
    (void)go_.Wait();
    connection.Send("SSH-2.0-OpenSSH_9.2\r\n");
  }));
  Begin();
  go_.Give();
  EXPECT_EQ(first_->Read().status, 502);
  EXPECT_TRUE(Freed());
}

TEST_F(GatewayLeaseTest, FreesLeaseWhenTunnelEnds) {
  first_lines_ = "Connection: Upgrade\r\nUpgrade: chat\r\n";
  up_.emplace(Held([](Connection& connection) {
    connection.Send("HTTP/1.1 101 Go\r\nConnection: Upgrade\r\nUpgrade: chat\r\n\r\n");
    (void)connection.WaitForEnd();
  }));
  Begin();
  EXPECT_EQ(first_->Read().status, 101);
  EXPECT_EQ(gate_->Get("/").status, 429) << "the open tunnel does not hold its lease";
  first_->stream().Close();
  EXPECT_TRUE(Freed());
}

TEST_F(GatewayLeaseTest, HoldsNoLeaseForRequestWithoutRoute) {
  up_.emplace(ScriptedUpstream::Ok());
  Gate gate("routes: [{match: {path: /here}, upstream: up}]\nupstreams: {up: {targets: \"" +
            up_->url() + "\"}}\n" + std::string(kOne));
  Client client(gate.at());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(client.Get("/there").status, 404);
  EXPECT_EQ(client.Get("/here").status, 200);
  EXPECT_EQ(gate.Remaining("one", kMe), 1);
}

TEST_F(GatewayLeaseTest, RenewsLeaseOfLongRequest) {
  up_.emplace(Held([this](Connection& connection) {
    (void)go_.Wait();
    connection.Send(Http("200 OK"));
  }));
  // The gateway renews the lease every 200 ms of real time. The lease expires by the clock that
  // this test moves.
  Begin({}, "rules: [{id: one, per: client_ip, algorithm: concurrency, limit: 1/600ms}]\n");
  const auto whole = [this] {
    return gate_->Peek("one", kMe).at("reset_after_ms").as_int64() == 600;
  };
  for (int i = 0; i < 2; ++i) {
    gate_->Advance(400ms);
    ASSERT_FALSE(whole());
    ASSERT_TRUE(test::WaitUntil(whole)) << "the lease was not renewed";
  }
  EXPECT_EQ(gate_->Get("/").status, 429) << "800 ms after a lease of 600 ms was granted";
  go_.Give();
  EXPECT_EQ(first_->Read().status, 200);
  EXPECT_TRUE(Freed());
}

}  // namespace
}  // namespace tidegate::behaviour
