// SPDX-License-Identifier: Apache-2.0
// Tests the rights that `access.certificates` gives to the names in client certificates, and where
// these names appear.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "service/secure/callers.hpp"
#include "support/wait.hpp"

namespace tidegate::service {
namespace {

using behaviour::Credentials;
using Named = CertificateSpec::Field;
using May = TokenSpec::May;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

const std::string kSpiffe = "spiffe://example.org/billing";

Credentials Ops() { return Ours().Issue("ops", "DNS:host7.example.org"); }
Credentials Billing() { return Ours().Issue("host 8", "DNS:Host8.example.org,URI:" + kSpiffe); }
Credentials UnlistedClient() { return Ours().Issue("eve", "DNS:eve.example.org"); }

/// `ops` has all rights, by its subject; `billing` may decide, by its URI.
std::vector<CertificateSpec> BothListed() {
  return {{"operations", Named::kSubject, "CN=ops", May::kAll},
          {"billing", Named::kUri, kSpiffe, May::kAsk}};
}

Config With(std::vector<CertificateSpec> certificates) {
  Config config = AllListenersTls(TlsWithClients(ListenTls::Clients::kOptional));
  config.access.certificates = std::move(certificates);
  return config;
}

const std::string kRefund = ByRule("per-key", "a", R"(,"cost":1,"id":"i")");

int Status(Service& service, const std::string& path, const std::string& body,
           const std::optional<Credentials>& own, std::string_view token = {}) {
  TlsHttpClient client(service.api(), {.own = own});
  std::string line = token.empty() ? "" : "X-Tidegate-Token: ";
  if (!token.empty()) line.append(token).append("\r\n");
  client.Send(Post(path, body, line));
  return client.Read().status;
}

TEST(AccessCertificatesTest, GivesCertificateTheRightsOfItsEntry) {
  Service service(With(BothListed()));
  const std::string peek = ByRule("per-key", "a");
  EXPECT_EQ(Status(service, "/v1/peek", peek, Ops()), 200);
  EXPECT_EQ(Status(service, "/v1/refund", kRefund, Ops()), 200);
  EXPECT_EQ(Status(service, "/v1/peek", peek, Billing()), 200);
  EXPECT_EQ(Status(service, "/v1/refund", kRefund, Billing()), 403);
  EXPECT_EQ(Status(service, "/v1/peek", peek, UnlistedClient()), 401);
  EXPECT_EQ(Status(service, "/v1/refund", kRefund, UnlistedClient()), 401);
  EXPECT_EQ(Status(service, "/v1/peek", peek, {}), 200)
      << "callers on loopback need no credentials";
}

TEST(AccessCertificatesTest, RespGivesCertificateTheRightsOfItsEntry) {
  Service service(With(BothListed()));
  const auto ask = [&](const Credentials& own, std::initializer_list<std::string_view> command) {
    TlsRespClient client(At(service, ListenerId::kResp), {.own = own});
    return client.Ask(command);
  };
  EXPECT_EQ(ask(Ops(), {"TG.RESET", "per-key", "a"}), "0");
  EXPECT_THAT(ask(Billing(), {"TG.PEEK", "per-key", "a"}), StartsWith("[0,3,3"));
  EXPECT_THAT(ask(Billing(), {"TG.RESET", "per-key", "a"}), HasSubstr("-NOPERM this certificate"));
  EXPECT_THAT(ask(UnlistedClient(), {"TG.PEEK", "per-key", "a"}), StartsWith("-NOAUTH"));
  EXPECT_THAT(ask(UnlistedClient(), {"PING"}), StartsWith("-NOAUTH"));
}

TEST(AccessCertificatesTest, RecognizesCertificateByDnsName) {
  Service service(With({{"hosts", Named::kDns, "host8.example.org", May::kAll}}));
  EXPECT_EQ(Status(service, "/v1/refund", kRefund, Billing()), 200);
  EXPECT_EQ(Status(service, "/v1/refund", kRefund, Ops()), 401);
}

TEST(AccessCertificatesTest, CertificateHasAllRightsWithoutAccessList) {
  Service service(With({}));
  EXPECT_EQ(Status(service, "/v1/refund", kRefund, UnlistedClient()), 200);
}

TEST(AccessCertificatesTest, ForwardAuthReturns500ForUnknownCertificate) {
  Config config = With(BothListed());
  config.client_ip.policy.trusted_proxies = {Network::Parse("127.0.0.1").value()};
  Service service(config);
  const auto ask = [&](const Credentials& own) {
    TlsHttpClient client(service.api(), {.own = own});
    client.Send(
        "GET /v1/auth HTTP/1.1\r\nHost: test\r\nX-Forwarded-Uri: /visits/x\r\n"
        "X-Forwarded-Method: GET\r\nX-Forwarded-For: 198.51.100.1\r\n\r\n");
    return client.Read();
  };
  EXPECT_EQ(ask(Billing()).status, 200) << ask(Billing()).body;
  const HttpResponse refused = ask(UnlistedClient());
  EXPECT_EQ(refused.status, 500);
  EXPECT_THAT(refused.body, HasSubstr("unknown certificate"));
}

TEST(AccessCertificatesTest, TokenTakesPrecedenceOverCertificate) {
  Config config = With(BothListed());
  config.access.tokens = BothTokens();
  Service service(config);
  EXPECT_EQ(Status(service, "/v1/refund", kRefund, UnlistedClient(), kAllToken), 200);
  EXPECT_EQ(Status(service, "/v1/refund", kRefund, Billing(), kAllToken), 200);
  EXPECT_EQ(Status(service, "/v1/refund", kRefund, Ops(), kAskToken), 403);
  EXPECT_EQ(Status(service, "/v1/refund", kRefund, Ops(), kWrongToken), 401);
}

TEST(AccessCertificatesTest, RightsChangeOnReloadForOpenConnections) {
  Service service(With(BothListed()));
  TlsHttpClient http(service.api(), {.own = Ops()});
  TlsRespClient resp(At(service, ListenerId::kResp), {.own = Ops()});
  const auto refund = [&] {
    http.Send(Post("/v1/refund", kRefund));
    return http.Read().status;
  };
  EXPECT_EQ(refund(), 200);
  EXPECT_EQ(resp.Ask({"TG.RESET", "per-key", "a"}), "0");
  Problems problems;
  const Config less = With({{"ops", Named::kSubject, "CN=ops", May::kAsk}});
  EXPECT_THAT(service.server().NeedsRestart(less), testing::IsEmpty());
  ASSERT_TRUE(service.server().Reload(less, problems));
  EXPECT_TRUE(test::WaitUntil([&] { return refund() == 403; }));
  EXPECT_TRUE(test::WaitUntil([&] {
    return resp.Ask({"TG.RESET", "per-key", "a"}).starts_with("-NOPERM");
  }));
  ASSERT_TRUE(service.server().Reload(With({BothListed()[1]}), problems));
  EXPECT_TRUE(test::WaitUntil([&] { return refund() == 401; }));
  EXPECT_TRUE(test::WaitUntil([&] { return resp.Ask({"PING"}).starts_with("-NOAUTH"); }));
}

/// The client learns that its certificate is unknown; the log contains the subject of the
/// certificate.
TEST(AccessCertificatesTest, LogsSubjectOfUnknownCertificate) {
  Service service(With(BothListed()));
  testing::internal::CaptureStderr();
  TlsHttpClient client(service.api(), {.own = UnlistedClient()});
  client.Send(Post("/v1/peek", ByRule("per-key", "a")));
  const HttpResponse answer = client.Read();
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_EQ(answer.status, 401);
  EXPECT_THAT(answer.body, HasSubstr("unknown certificate"));
  EXPECT_THAT(answer.body, Not(HasSubstr("eve")));
  EXPECT_THAT(log, HasSubstr("client certificate refused"));
  EXPECT_THAT(log,
              HasSubstr(R"(by="CN=eve"  problem="the certificate is not in access.certificates")"));
}

TEST(AccessCertificatesTest, AuditNamesCallerByCertificate) {
  const auto by = [](Service& service, const Credentials& own) {
    TlsHttpClient client(At(service, ListenerId::kAdmin), {.own = own});
    const std::string body = R"({"rule":"per-key","identity":"a"})";
    client.Send(
        "POST /v1/ban HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        "Content-Length: " +
        std::to_string(body.size()) + "\r\n\r\n" + body);
    EXPECT_EQ(client.Read().status, 200);
    client.Send("GET /v1/audit?limit=1 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
    return client.Read().body;
  };
  Service listed(With(BothListed()));
  EXPECT_THAT(by(listed, Ops()), HasSubstr(R"("by":"operations")"));
  Service unlisted(With({}));
  EXPECT_THAT(by(unlisted, Ops()), HasSubstr(R"("by":"CN=ops")"));
  EXPECT_THAT(by(unlisted, Billing()), HasSubstr(R"("by":"CN=host 8")"));
}

}  // namespace
}  // namespace tidegate::service
