// SPDX-License-Identifier: Apache-2.0
// A client of each frontend disconnects while the store holds its call. The frontend must close the
// connection at once and drop the call. When the store later answers the call, no memory of the
// client may be used and nothing may leak, which the address sanitizer checks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frontends/api_frontend.hpp"
#include "frontends/resp/resp_frontend.hpp"
#include "gateway/gateway.hpp"
#include "service/late_store.hpp"
#include "service/late_support.hpp"
#include "support/wait.hpp"

namespace tidegate::service {
namespace {

using testing::HasSubstr;

constexpr std::string_view kConfig = R"(
client_ip: { trusted_proxies: [127.0.0.1] }
listen: { gateway: "127.0.0.1:0", resp: "127.0.0.1:0" }
access_log: off
rules:
  - { id: r, match: { path: /** }, per: header:x-api-key | client_ip, limit: 1000/m }
routes: [ { id: all, upstream: up } ]
upstreams: { up: { targets: [ "http://127.0.0.1:9" ] } }
)";
constexpr std::string_view kLeases = R"(
listen: { gateway: "127.0.0.1:0" }
access_log: off
rules:
  - { id: r, match: { path: /** }, per: client_ip, algorithm: concurrency, limit: 1/m }
routes: [ { id: all, upstream: up } ]
upstreams: { up: { targets: [ "http://127.0.0.1:9" ] } }
)";

/// A frontend's listener on its own reactor, with a store that answers late.
class VanishedClientTest : public testing::Test {
 protected:
  void Begin(std::string_view yaml = kConfig) { late_.emplace(yaml); }
  template <class Listener, class Frontend>
  void Listen(Frontend& frontend) {
    auto socket = net::Listen(net::Endpoint::Parse("127.0.0.1:0").value()).value();
    port_ = net::Endpoint::OfSocket(socket.get()).port();
    listener_ = std::make_unique<Listener>(reactor_, std::move(socket), frontend,
                                           net::Listener::Options{.limits = {}, .open = &open_});
    listener_->Start();
    thread_ = std::thread([this] { reactor_.Run(std::nullopt); });
  }
  /// Sends `text`, resets the connection once the store holds `calls` calls, and then lets the
  /// store answer.
  void Vanish(const std::string& text, std::size_t calls) {
    Client client(port_);
    client.Send(text);
    AwaitHeld(late_->store, calls);
    client.Abort();
    EXPECT_TRUE(test::WaitUntil([&] { return listener_->stats().open == 0; }))
        << "the connection stays open until the store answers";
    EXPECT_EQ(late_->store.held, calls);
    RunOn(reactor_, [&] { late_->store.FinishAll(); });
    AwaitRounds(reactor_);
  }
  /// Sends `text` on a new connection, lets the store answer, and returns the response.
  [[nodiscard]] std::string AskAgain(const std::string& text, std::string_view until) {
    Client client(port_);
    client.Send(text);
    EXPECT_TRUE(test::WaitUntil([&] { return late_->store.held > 0; }));
    RunOn(reactor_, [&] { late_->store.FinishAll(); });
    return client.Receive(until);
  }
  void TearDown() override {
    reactor_.Stop();
    if (thread_.joinable()) thread_.join();
    listener_.reset();
  }

  std::optional<LatePipeline> late_;
  net::Reactor reactor_{Patient()};
  FailureThrottle throttle_{1};
  AuthFailures failures_{"test", throttle_};
  std::atomic<std::size_t> open_{0};
  std::unique_ptr<net::Listener> listener_;
  std::uint16_t port_ = 0;
  std::thread thread_;
};

TEST_F(VanishedClientTest, HttpApiDropsPendingCall) {
  Begin();
  ApiFrontend frontend(late_->pipeline, failures_);
  Listen<net::HttpListener>(frontend);
  const std::string decide = Post("/v1/decide", R"({"rule":"r","identity":"a"})");
  Vanish(decide, 1);
  Vanish(decide + decide, 1);  // The second request waits for the first one.
  EXPECT_THAT(AskAgain(decide, "]}\n"), HasSubstr("\"remaining\":997"));
  TearDown();
}

TEST_F(VanishedClientTest, HttpApiDropsAllCallsOfABatch) {
  Begin();
  ApiFrontend frontend(late_->pipeline, failures_);
  Listen<net::HttpListener>(frontend);
  std::string body = R"({"requests":[{"rule":"r","identity":"a"})";
  for (int i = 0; i < 63; ++i) body += R"(,{"rule":"r","identity":"a"})";
  Vanish(Post("/v1/decide/batch", body + "]}"), 64);
  EXPECT_THAT(AskAgain(Post("/v1/decide", R"({"rule":"r","identity":"a"})"), "]}\n"),
              HasSubstr("\"remaining\":935"));
  TearDown();
}

TEST_F(VanishedClientTest, ForwardAuthDropsPendingCall) {
  Begin();
  ApiFrontend frontend(late_->pipeline, failures_);
  Listen<net::HttpListener>(frontend);
  const std::string auth =
      "GET /v1/auth HTTP/1.1\r\nHost: x\r\nX-Forwarded-Uri: /a\r\nX-Forwarded-Method: GET\r\n"
      "X-Forwarded-Host: x\r\nX-Forwarded-For: 203.0.113.7\r\n\r\n";
  Vanish(auth, 1);
  EXPECT_THAT(AskAgain(auth, "\r\n\r\n"), HasSubstr("RateLimit: \"r\";r=998"));
  TearDown();
}

TEST_F(VanishedClientTest, RespDropsAllCallsOfAPipeline) {
  Begin();
  RespFrontend frontend(late_->pipeline, failures_, "test");
  Listen<RespListener>(frontend);
  Vanish("TG.DECIDE r a\r\nTG.DECIDE r a\r\nNONSENSE\r\nTG.DECIDE r a\r\n", 2);
  // TG.RESET waits for the command before it, so it is never started.
  Vanish("TG.DECIDE r a\r\nTG.RESET r a\r\n", 1);
  EXPECT_THAT(AskAgain("TG.DECIDE r a\r\n", "quota"), HasSubstr(":996\r\n"));
  TearDown();
}

TEST_F(VanishedClientTest, GatewayDropsPendingCall) {
  Begin();
  Gateway gateway(reactor_, late_->pipeline, {});
  Listen<GatewayListener>(gateway);
  Vanish("GET /a HTTP/1.1\r\nHost: x\r\n\r\n", 1);
  EXPECT_THAT(AskAgain("GET /a HTTP/1.1\r\nHost: x\r\n\r\n", "r=99"),
              HasSubstr("RateLimit: \"r\";r=998"));
  TearDown();
}

TEST_F(VanishedClientTest, GatewayReleasesLeaseGrantedAfterTheClientLeft) {
  Begin(kLeases);
  Gateway gateway(reactor_, late_->pipeline, {});
  Listen<GatewayListener>(gateway);
  Vanish("GET /a HTTP/1.1\r\nHost: x\r\n\r\n", 1);
  EXPECT_EQ(late_->store.held, 0u);  // FinishAll has also answered the release.
  const std::string next = AskAgain("GET /a HTTP/1.1\r\nHost: x\r\n\r\n", "\r\n\r\n");
  EXPECT_THAT(next, testing::Not(HasSubstr("429"))) << "the lease is still held";
  // Lets the store answer the release of the second lease.
  RunOn(reactor_, [&] { late_->store.FinishAll(); });
  TearDown();
}

}  // namespace
}  // namespace tidegate::service
