// SPDX-License-Identifier: Apache-2.0
// What went wrong once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "gateway/behaviour/gateway_fixture.hpp"
#include "service/secure/callers.hpp"

namespace tidegate::service {
namespace {

using behaviour::ScriptedUpstream;
using testing::HasSubstr;

/// OpenSSL reads on while what comes is no data: one connection had a reactor for itself.
TEST(SecureRegressionTest, AFloodOfKeyUpdatesEndsTheConnection) {
  ScriptedUpstream upstream(ScriptedUpstream::Ok());
  Service service(AllDoorsTls(TlsFor(), upstream.url()));
  for (const Door door : kDoors) {
    TlsStream flood(At(service, door), {.least = TLS1_3_VERSION});
    ASSERT_TRUE(flood.shaken());
    // In one piece, so that they are all there when the first is read.
    const int on = 1;
    const int off = 0;
    ASSERT_EQ(setsockopt(flood.fd(), IPPROTO_TCP, TCP_CORK, &on, sizeof on), 0);
    for (int i = 0; i < 500; ++i) (void)flood.UpdateKeysNow();
    ASSERT_EQ(setsockopt(flood.fd(), IPPROTO_TCP, TCP_CORK, &off, sizeof off), 0);
    std::string ignored;
    EXPECT_NE(flood.Receive(ignored), Stream::Got::kNothing) << door;
    EXPECT_TRUE(ignored.empty());
    EXPECT_TRUE(Served(std::make_unique<TlsStream>(At(service, door)), door)) << door;
  }
}

TEST(SecureRegressionTest, AFewKeyUpdatesDoNotMatter) {
  Service service(AllDoorsTls(TlsFor()));
  TlsHttpClient client(At(service, Door::kApi), {.least = TLS1_3_VERSION});
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(client.tls().UpdateKeysNow());
    EXPECT_EQ(client.Ask("/v1/peek", ByRule("per-key", "a")).status, 200);
  }
}

/// An answer that ends where the connection does was cut off, and said goodbye in good order.
TEST(SecureRegressionTest, WhatIsCutOffIsNotToldAsWhole) {
  ScriptedUpstream upstream([](ScriptedUpstream::Connection& connection) {
    behaviour::Request request;
    (void)connection.ReadHead(request);
    connection.Send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n");
  });
  Service service(AllDoorsTls(TlsFor(), upstream.url()));
  TlsStream client(At(service, Door::kGateway));
  ASSERT_TRUE(client.Send("GET / HTTP/1.0\r\nHost: t\r\n\r\n"));
  std::string answer;
  Stream::Got got = Stream::Got::kBytes;
  while (got == Stream::Got::kBytes) got = client.Receive(answer);
  EXPECT_EQ(got, Stream::Got::kCut) << answer;
}

// --- A reload takes tokens away at once; what shall guard a door instead may need a restart -----

class GuardedDoorsTest : public testing::Test {
 protected:
  static Config Public() {
    Config config = AllDoors();
    for (const Door door : {Door::kApi, Door::kAdmin, Door::kResp}) {
      SpecOf(config, door).address = "0.0.0.0:0";
    }
    config.access.tokens = BothTokens();
    return config;
  }
  bool Reload(const Config& config) { return service_.server().Reload(config, problems_); }
  bool Guarded() {
    return HttpClient(service_.api()).Ask("/v1/peek", ByRule("per-key", "a")).status == 401 &&
           RespClient(At(service_, Door::kResp)).Ask({"PING"}).starts_with("-NOAUTH");
  }

  Service service_{Public()};
  Problems problems_;
};

TEST_F(GuardedDoorsTest, CertificatesInsteadOfTokensNeedARestart) {
  Config config = Public();
  config.access.tokens.clear();
  for (const Door door : {Door::kApi, Door::kAdmin, Door::kResp}) {
    SpecOf(config, door).tls = TlsWithClients(ListenTls::Clients::kRequired);
  }
  EXPECT_FALSE(Reload(config));
  EXPECT_EQ(problems_.size(), 3u);
  EXPECT_THAT(problems_.at(0).message, HasSubstr("restart"));
  EXPECT_TRUE(Guarded());
}

TEST_F(GuardedDoorsTest, DoorsThatMoveToLoopbackNeedARestart) {
  Config config = AllDoors();
  EXPECT_FALSE(Reload(config)) << "and no tokens";
  EXPECT_TRUE(Guarded());
  config.access.tokens = BothTokens();
  EXPECT_TRUE(Reload(config)) << "the tokens are still there";
  EXPECT_TRUE(Guarded());
}

TEST_F(GuardedDoorsTest, ADoorMayBeOpenedOnPurpose) {
  Config config = Public();
  config.access.tokens.clear();
  EXPECT_TRUE(Reload(config));
  EXPECT_TRUE(Soon([&] { return !Guarded(); }));
}

// --- Strangers ----------------------------------------------------------------------------------

/// Half a command and a whole one in turn began the time anew.
TEST(SecureRegressionTest, StrangersHaveSoLongToSayWhoTheyAre) {
  Config config = AllDoors("http://127.0.0.1:9", "limits: {header_timeout: 300ms}\n");
  config.listen.resp.auth = ListenSpec::Auth::kRequired;
  config.access.tokens = BothTokens();
  Service service(config);
  RespClient client(At(service, Door::kResp));
  const auto latest = std::chrono::steady_clock::now() + kPatience;
  bool served = true;
  while (served && std::chrono::steady_clock::now() < latest) {
    client.Send("*1\r\n$4\r\nPI");
    client.Send("NG\r\n");
    served = client.Read().starts_with("-NOAUTH");
  }
  EXPECT_FALSE(served);
}

}  // namespace
}  // namespace tidegate::service
