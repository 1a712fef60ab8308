// SPDX-License-Identifier: Apache-2.0
// Tests client certificates that a CRL revokes, at every listener, with and without session
// tickets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "service/secure/listeners.hpp"
#include "service/secure/tls_stream.hpp"
#include "support/wait.hpp"

namespace tidegate::service {
namespace {

using behaviour::Authority;
using behaviour::Credentials;
using Clients = ListenTls::Clients;

const Credentials& Honest() {
  static const Credentials kHonest = Ours().Issue("honest", "DNS:honest");
  return kHonest;
}
const Credentials& Revoked() {
  static const Credentials kRevoked = Ours().Issue("revoked", "DNS:revoked");
  return kRevoked;
}

ListenTls WithCrl(std::string crl, Clients clients = Clients::kRequired) {
  ListenTls tls = TlsWithClients(clients);
  tls.client_crl_pem = std::move(crl);
  return tls;
}

class TlsRevocationTest : public testing::TestWithParam<ListenerId> {
 protected:
  bool IsServed(Service& service, const Credentials& own, int version) {
    return Served(
        std::make_unique<TlsStream>(At(service, GetParam()),
                                    TlsOptions{.own = own, .least = version, .most = version}),
        GetParam());
  }
  behaviour::ScriptedUpstream upstream_{behaviour::ScriptedUpstream::Ok()};
};

TEST_P(TlsRevocationTest, RefusesRevokedCertificates) {
  for (const Clients clients : {Clients::kOptional, Clients::kRequired}) {
    Service service(AllListenersTls(WithCrl(Ours().Crl({Revoked()}), clients), upstream_.url()));
    for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
      EXPECT_TRUE(IsServed(service, Honest(), version)) << version;
      EXPECT_FALSE(IsServed(service, Revoked(), version)) << version;
    }
  }
}

TEST_P(TlsRevocationTest, RefusesAllCertificatesOfAnAuthorityWithoutAValidCrl) {
  ListenTls missing = WithCrl(Ours().Crl({}));
  missing.client_ca_pem += Theirs().pem();
  Service without(AllListenersTls(missing, upstream_.url()));
  Service expired(
      AllListenersTls(WithCrl(Ours().Crl({}, Authority::Validity::kOver)), upstream_.url()));
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    EXPECT_TRUE(IsServed(without, Honest(), version)) << version;
    EXPECT_FALSE(IsServed(without, Theirs().Issue("client", "DNS:client"), version)) << version;
    EXPECT_FALSE(IsServed(expired, Honest(), version)) << version;
  }
}

/// A ticket of an earlier connection must not admit a client whose certificate was revoked
/// meanwhile.
TEST_P(TlsRevocationTest, ReloadInvalidatesTicketsOfRevokedCertificates) {
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    Service service(AllListenersTls(WithCrl(Ours().Crl({})), upstream_.url()), 2);
    const auto visit = [&](TlsOptions& options) {
      auto stream = std::make_unique<TlsStream>(At(service, GetParam()), options);
      std::string answer;  // TLS 1.3 sends the ticket with the response.
      stream->Send(GetParam() == ListenerId::kResp  ? test::RespCommand({"PING"})
                   : GetParam() == ListenerId::kApi ? Get("/openapi.json")
                                                    : Get("/healthz"));
      const bool served = stream->Receive(answer) == test::Stream::Got::kBytes;
      if (served) options.ticket = stream->ticket();
      return std::pair(served, stream->resumed());
    };
    TlsOptions honest{.own = Honest(), .least = version, .most = version};
    TlsOptions revoked{.own = Revoked(), .least = version, .most = version};
    for (TlsOptions* const client : {&honest, &revoked}) {
      EXPECT_EQ(visit(*client), std::pair(true, false)) << version;
      EXPECT_EQ(visit(*client), std::pair(true, true)) << version;
    }
    Problems problems;
    const Config config = AllListenersTls(WithCrl(Ours().Crl({Revoked()})), upstream_.url());
    EXPECT_THAT(service.server().NeedsRestart(config), testing::IsEmpty());
    ASSERT_TRUE(service.server().Reload(config, problems));
    // Each reactor adopts the new configuration separately.
    EXPECT_TRUE(test::WaitUntil([&] { return !visit(revoked).first; })) << version;
    for (int i = 0; i < 4; ++i) EXPECT_FALSE(visit(revoked).first) << version;
    EXPECT_TRUE(visit(honest).first) << version;
    EXPECT_EQ(visit(honest), std::pair(true, true)) << version;
  }
}

/// Uses a client without a certificate, because a client with one is refused anyway.
TEST_P(TlsRevocationTest, TicketsAreIgnoredWhenACrlHasExpired) {
  for (const auto validity : {Authority::Validity::kNow, Authority::Validity::kOver}) {
    Service service(
        AllListenersTls(WithCrl(Ours().Crl({}, validity), Clients::kOptional), upstream_.url()));
    for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
      TlsOptions options{.least = version, .most = version};
      for (const bool again : {false, true}) {
        TlsStream stream(At(service, GetParam()), options);
        ASSERT_TRUE(stream.shaken()) << stream.problem();
        EXPECT_EQ(stream.resumed(), again && validity == Authority::Validity::kNow) << version;
        std::string answer;
        stream.Send(GetParam() == ListenerId::kResp  ? test::RespCommand({"PING"})
                    : GetParam() == ListenerId::kApi ? Get("/openapi.json")
                                                     : Get("/healthz"));
        EXPECT_EQ(stream.Receive(answer), test::Stream::Got::kBytes) << stream.problem();
        options.ticket = stream.ticket();
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Listeners, TlsRevocationTest, testing::ValuesIn(kListenerIds),
                         [](const auto& of) { return std::string(Name(of.param)); });

}  // namespace
}  // namespace tidegate::service
