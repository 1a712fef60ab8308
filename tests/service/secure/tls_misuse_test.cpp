// SPDX-License-Identifier: Apache-2.0
// Tests TLS clients that renew keys without end, responses that are cut off, and clients that never
// authenticate.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "gateway/behaviour/gateway_fixture.hpp"
#include "service/secure/callers.hpp"
#include "support/wait.hpp"

namespace tidegate::service {
namespace {

using behaviour::ScriptedUpstream;
using testing::HasSubstr;

/// OpenSSL keeps reading while it receives no data. In an earlier version, one such connection
/// occupied a reactor completely.
TEST(TlsMisuseTest, EndsConnectionThatFloodsKeyUpdates) {
  ScriptedUpstream upstream(ScriptedUpstream::Ok());
  Service service(AllListenersTls(TlsFor(), upstream.url()));
  for (const ListenerId listener : kListenerIds) {
    TlsStream flood(At(service, listener), {.least = TLS1_3_VERSION});
    ASSERT_TRUE(flood.shaken());
    // Sends all key updates in one piece, so that all have arrived when the server reads the first.
    const int on = 1;
    const int off = 0;
    ASSERT_EQ(setsockopt(flood.fd(), IPPROTO_TCP, TCP_CORK, &on, sizeof on), 0);
    for (int i = 0; i < 500; ++i) (void)flood.UpdateKeysNow();
    ASSERT_EQ(setsockopt(flood.fd(), IPPROTO_TCP, TCP_CORK, &off, sizeof off), 0);
    std::string ignored;
    EXPECT_NE(flood.Receive(ignored), test::Stream::Got::kNothing) << listener;
    EXPECT_TRUE(ignored.empty());
    EXPECT_TRUE(Served(std::make_unique<TlsStream>(At(service, listener)), listener)) << listener;
  }
}

TEST(TlsMisuseTest, AcceptsAFewKeyUpdates) {
  Service service(AllListenersTls(TlsFor()));
  TlsHttpClient client(At(service, ListenerId::kApi), {.least = TLS1_3_VERSION});
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(client.tls().UpdateKeysNow());
    EXPECT_EQ(client.Ask("/v1/peek", ByRule("per-key", "a")).status, 200);
  }
}

/// The response ends with the connection and was cut off. The connection must therefore end without
/// close_notify, or the client would take the response for complete.
TEST(TlsMisuseTest, TruncatedResponseEndsWithoutCloseNotify) {
  ScriptedUpstream upstream([](ScriptedUpstream::Connection& connection) {
    test::HttpRequest request;
    (void)connection.ReadHead(request);
    connection.Send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n");
  });
  Service service(AllListenersTls(TlsFor(), upstream.url()));
  TlsStream client(At(service, ListenerId::kGateway));
  ASSERT_TRUE(client.Send("GET / HTTP/1.0\r\nHost: t\r\n\r\n"));
  std::string answer;
  test::Stream::Got got = test::Stream::Got::kBytes;
  while (got == test::Stream::Got::kBytes) got = client.Receive(answer);
  EXPECT_EQ(got, test::Stream::Got::kCut) << answer;
}

/// Alternating parts of a command and whole commands must not restart the deadline.
TEST(TlsMisuseTest, ClosesConnectionsThatDoNotAuthenticateInTime) {
  Config config = AllListeners("http://127.0.0.1:9", "limits: {header_timeout: 300ms}\n");
  config.listen.resp.auth = ListenSpec::Auth::kRequired;
  config.access.tokens = BothTokens();
  Service service(config);
  test::RespClient client(At(service, ListenerId::kResp));
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
