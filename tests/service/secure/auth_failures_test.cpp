// SPDX-License-Identifier: Apache-2.0
// Tests which failed authentications at the listeners of a server are throttled, counted and
// audited.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "service/secure/callers.hpp"
#include "support/wait.hpp"

namespace tidegate::service {
namespace {

using Auth = ListenSpec::Auth;
using Clients = ListenTls::Clients;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr int kBurst = FailureThrottle::kBurst;

class AuthThrottleTest : public testing::Test {
 protected:
  explicit AuthThrottleTest(std::string_view yaml = {}) : service_(MakeConfig(yaml)) {}
  static Config MakeConfig(std::string_view yaml) {
    Config config = AllListeners("http://127.0.0.1:9", yaml);
    config.listen.api.auth = config.listen.resp.auth = Auth::kRequired;
    config.access.tokens = BothTokens();
    return config;
  }
  static std::string Peek(std::string_view token) {
    std::string line;
    if (!token.empty()) line.append("Authorization: Bearer ").append(token).append("\r\n");
    return Post("/v1/peek", ByRule("per-key", "a"), line);
  }
  int Ask(std::string_view token) {
    HttpClient client(service_.api());
    client.Send(Peek(token));
    return client.Read().status;
  }
  double Failures(std::string_view listener, std::string_view reason) {
    return service_.Metric("tidegate_auth_failures_total{listener=\"" + std::string(listener) +
                           "\",reason=\"" + std::string(reason) + "\"}");
  }
  std::string ReadAudit() {
    HttpClient client(service_.admin());
    client.Send(Get("/v1/audit"));
    return client.Read().body;
  }

  Service service_;
};

TEST_F(AuthThrottleTest, HttpAnswers429AndClosesAfterABurstOfWrongTokens) {
  for (int i = 0; i < kBurst; ++i) EXPECT_EQ(Ask(kWrongToken), 401) << i;
  HttpClient client(service_.api());
  client.Send(Peek(kWrongToken) + Peek(kAllToken));
  const HttpResponse answer = client.Read();
  EXPECT_EQ(answer.status, 429);
  EXPECT_EQ(answer.Field("Retry-After"), "1");
  EXPECT_EQ(answer.Field("Connection"), "close");
  EXPECT_FALSE(answer.Has("WWW-Authenticate"));
  EXPECT_EQ(client.WaitForEnd(), HttpClient::End::kClosed) << "the pipelined request is dropped";
  EXPECT_GE(service_.Metric("tidegate_auth_throttled_total{listener=\"api\"}"), 1);
}

TEST_F(AuthThrottleTest, AcceptsRightTokensFromAThrottledAddress) {
  for (int i = 0; i < 3 * kBurst; ++i) (void)Ask(kWrongToken);
  EXPECT_EQ(Ask(kAllToken), 200);
  test::RespClient client(At(service_, ListenerId::kResp));
  EXPECT_EQ(client.Ask({"AUTH", kAllToken}), "OK");
}

TEST_F(AuthThrottleTest, NeverThrottlesMissingTokens) {
  for (int i = 0; i < 3 * kBurst; ++i) EXPECT_EQ(Ask({}), 401);
  test::RespClient client(At(service_, ListenerId::kResp));
  for (int i = 0; i < 3 * kBurst; ++i) EXPECT_THAT(client.Ask({"PING"}), StartsWith("-NOAUTH"));
  EXPECT_EQ(Failures("api", "missing"), 3 * kBurst);
  EXPECT_EQ(Failures("resp", "missing"), 3 * kBurst);
}

TEST_F(AuthThrottleTest, RespClosesConnectionAfterTooManyWrongTokens) {
  test::RespClient client(At(service_, ListenerId::kResp));
  std::string pipeline;
  for (int i = 0; i < 400; ++i) pipeline += test::RespCommand({"AUTH", kWrongToken});
  client.Send(pipeline);
  int wrong = 0;
  std::string reply = client.Read();
  for (; reply.starts_with("-WRONGPASS"); reply = client.Read()) ++wrong;
  // For each second that the test takes, one more wrong token may be answered.
  EXPECT_GE(wrong, kBurst);
  EXPECT_LT(wrong, 2 * kBurst);
  EXPECT_THAT(reply, StartsWith("-ERR too many wrong tokens"));
  EXPECT_EQ(client.Read(), "(end)");
  test::RespClient hello(At(service_, ListenerId::kResp));
  while (hello.Ask({"HELLO", "3", "AUTH", "default", kWrongToken}).starts_with("-WRONGPASS")) {
  }
  EXPECT_EQ(hello.Read(), "(end)") << "HELLO must count wrong tokens like AUTH";
}

class TrustedProxyThrottleTest : public AuthThrottleTest {
 protected:
  TrustedProxyThrottleTest() : AuthThrottleTest("client_ip: {trusted_proxies: [127.0.0.1]}\n") {}
};

TEST_F(TrustedProxyThrottleTest, NeverThrottlesATrustedProxy) {
  for (int i = 0; i < 2 * kBurst; ++i) EXPECT_EQ(Ask(kWrongToken), 401);
  EXPECT_EQ(Failures("api", "wrong"), 2 * kBurst);
}

// --- Audit --------------------------------------------------------------------------

TEST_F(AuthThrottleTest, AuditsFailuresWithoutTokens) {
  test::RespClient client(At(service_, ListenerId::kResp));
  EXPECT_THAT(client.Ask({"AUTH", "ops", kWrongToken}), StartsWith("-WRONGPASS"));
  ASSERT_TRUE(
      test::WaitUntil([&] { return ReadAudit().find("auth_failed") != std::string::npos; }));
  const std::string audit = ReadAudit();
  EXPECT_THAT(audit, HasSubstr(R"("action":"auth_failed")"));
  EXPECT_THAT(audit, HasSubstr(R"("by":"ops")"));
  EXPECT_THAT(audit, HasSubstr(R"("from":"127.0.0.1")"));
  EXPECT_THAT(audit, HasSubstr("1 failure: resp wrong 1"));
  EXPECT_THAT(audit, Not(HasSubstr(kWrongToken)));
}

TEST_F(AuthThrottleTest, AuditsNoNameThatMayBeAToken) {
  test::RespClient client(At(service_, ListenerId::kResp));
  EXPECT_THAT(client.Ask({"AUTH", kAllToken, "ops"}), StartsWith("-WRONGPASS"));
  ASSERT_TRUE(
      test::WaitUntil([&] { return ReadAudit().find("auth_failed") != std::string::npos; }));
  EXPECT_THAT(ReadAudit(), HasSubstr(R"x("by":"(unknown)")x"));
  EXPECT_THAT(ReadAudit(), Not(HasSubstr(kAllToken)));
}

// --- Failures before the frontend ---------------------------------------------------

class RejectedPeerTest : public testing::TestWithParam<ListenerId> {
 protected:
  static double Failures(Service& service, std::string_view reason) {
    constexpr std::array<std::string_view, 4> kNames{"api", "admin", "gateway", "resp"};
    const std::string_view listener = kNames[static_cast<std::size_t>(GetParam())];
    return service.Metric("tidegate_auth_failures_total{listener=\"" + std::string(listener) +
                          "\",reason=\"" + std::string(reason) + "\"}");
  }
};

TEST_P(RejectedPeerTest, CountsRefusedAndMissingCertificates) {
  Config config = AllListeners();
  SpecOf(config, GetParam()).tls = TlsWithClients(Clients::kRequired);
  if (GetParam() == ListenerId::kAdmin) return;  // The test cannot read its metrics.
  Service service(config);
  const auto visit = [&](const TlsOptions& options) {
    TlsStream stream(At(service, GetParam()), options);
    std::string rest;
    while (stream.Receive(rest) == test::Stream::Got::kBytes) {
    }
  };
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    visit({.own = Theirs().Issue("client", "DNS:client"), .least = version, .most = version});
    visit({.own = Ours().Issue("client", "DNS:client", behaviour::Authority::Validity::kOver),
           .least = version,
           .most = version});
    visit({.least = version, .most = version});
  }
  EXPECT_TRUE(test::WaitUntil([&] { return Failures(service, "certificate") == 4; }))
      << Failures(service, "certificate");
  EXPECT_TRUE(test::WaitUntil([&] { return Failures(service, "missing") == 2; }))
      << Failures(service, "missing");
}

TEST_P(RejectedPeerTest, DoesNotCountScansAsFailures) {
  if (GetParam() == ListenerId::kAdmin) return;  // The test cannot read its metrics.
  Config config = AllListeners();
  SpecOf(config, GetParam()).tls = TlsWithClients(Clients::kRequired);
  Service service(config);
  for (const std::string bytes : {"GET / HTTP/1.1\r\n\r\n", "\x16\x03\x01\x02", "junk"}) {
    test::Stream stream(At(service, GetParam()));
    stream.Send(bytes);
    stream.EndSending();
    std::string rest;
    while (stream.Receive(rest) == test::Stream::Got::kBytes) {
    }
  }
  for (const std::string_view reason : {"certificate", "missing", "wrong"}) {
    EXPECT_EQ(Failures(service, reason), 0) << reason;
  }
}

TEST_P(RejectedPeerTest, CountsUntrustedAndMalformedProxies) {
  if (GetParam() == ListenerId::kAdmin) return;  // The test cannot read its metrics.
  struct Case {
    std::string_view trusted;
    std::string bytes;
    std::string_view reason;
  };
  const Case kCases[] = {{"10.0.0.0/8", ProxyV1("203.0.113.7"), "untrusted_proxy"},
                         {"127.0.0.1", "PROXY TCP9 1 2 3 4\r\n", "proxy_header"}};
  for (const Case& row : kCases) {
    Config config = AllListeners(
        "http://127.0.0.1:9", "client_ip: {trusted_proxies: [" + std::string(row.trusted) + "]}\n");
    SpecOf(config, GetParam()).proxy_protocol = true;
    Service service(config);
    test::Stream stream(At(service, GetParam()));
    stream.Send(row.bytes);
    EXPECT_TRUE(test::WaitUntil([&] { return Failures(service, row.reason) == 1; })) << row.reason;
  }
}

INSTANTIATE_TEST_SUITE_P(Listeners, RejectedPeerTest, testing::ValuesIn(kListenerIds));

}  // namespace
}  // namespace tidegate::service
