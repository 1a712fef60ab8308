// SPDX-License-Identifier: Apache-2.0
// Tests clients that present certificates, at every listener, and clients that resume a session.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "service/secure/listeners.hpp"
#include "service/secure/tls_stream.hpp"

namespace tidegate::service {
namespace {

using behaviour::Authority;
using behaviour::Credentials;
using Clients = ListenTls::Clients;

Credentials Known() { return Ours().Issue("client", "DNS:client"); }

/// The certificate that a client presents, and under which settings of `clients` it is served.
struct Shown {
  std::string_view name;
  std::optional<Credentials> own;
  bool none;
  bool optional;
  bool required;
};
std::vector<Shown> AllShown() {
  return {{"Ours", Known(), true, true, true},
          {"Nothing", {}, true, true, false},
          {"Theirs", Theirs().Issue("client", "DNS:client"), true, false, false},
          {"Expired", Ours().Issue("client", "DNS:client", Authority::Validity::kOver), true, false,
           false}};
}

class TlsClientsTest : public testing::TestWithParam<ListenerId> {
 protected:
  static bool IsServed(Service& service, const Shown& shown, int version) {
    auto stream = std::make_unique<TlsStream>(
        At(service, GetParam()), TlsOptions{.own = shown.own, .least = version, .most = version});
    return Served(std::move(stream), GetParam());
  }
  behaviour::ScriptedUpstream upstream_{behaviour::ScriptedUpstream::Ok()};
};

TEST_P(TlsClientsTest, ServesClientsAccordingToTheirCertificate) {
  for (const Clients clients : {Clients::kNone, Clients::kOptional, Clients::kRequired}) {
    Service service(AllListenersTls(TlsWithClients(clients), upstream_.url()));
    for (const Shown& shown : AllShown()) {
      const bool expected = clients == Clients::kNone       ? shown.none
                            : clients == Clients::kOptional ? shown.optional
                                                            : shown.required;
      for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
        const int before = upstream_.requests();
        EXPECT_EQ(IsServed(service, shown, version), expected)
            << shown.name << " " << static_cast<int>(clients) << " " << version;
        EXPECT_EQ(upstream_.requests() - before, expected && GetParam() == ListenerId::kGateway)
            << shown.name;
      }
    }
  }
}

TEST_P(TlsClientsTest, ClientsResumeSessionsWithTickets) {
  for (const Clients clients : {Clients::kNone, Clients::kOptional, Clients::kRequired}) {
    Service service(AllListenersTls(TlsWithClients(clients), upstream_.url()), 2);
    for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
      TlsOptions options{.own = Known(), .least = version, .most = version};
      const auto visit = [&] {
        auto stream = std::make_unique<TlsStream>(At(service, GetParam()), options);
        EXPECT_TRUE(stream->shaken()) << stream->problem();
        const bool resumed = stream->resumed();
        std::string answer;  // In TLS 1.3, the ticket arrives with the response.
        stream->Send(GetParam() == ListenerId::kResp  ? test::RespCommand({"PING"})
                     : GetParam() == ListenerId::kApi ? Get("/openapi.json")
                                                      : Get("/healthz"));
        EXPECT_EQ(stream->Receive(answer), test::Stream::Got::kBytes) << stream->problem();
        EXPECT_THAT(answer, testing::AnyOf(testing::StartsWith("+PONG"),
                                           testing::StartsWith("HTTP/1.1 200 ")));
        options.ticket = stream->ticket();
        return resumed;
      };
      EXPECT_FALSE(visit());
      for (int i = 0; i < 3; ++i) EXPECT_TRUE(visit()) << version;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Listeners, TlsClientsTest, testing::ValuesIn(kListenerIds),
                         [](const auto& of) { return std::string(Name(of.param)); });

// --- Server names and session tickets -----------------------------------------------

TEST(TlsClientNamesTest, RequiresClientCertificateForEveryServerName) {
  ListenTls tls = TlsWithClients(Clients::kRequired);
  tls.certificates = {PairFor({"first.example"}), PairFor({"second.example"})};
  Config config = Service::ConfigOf("");
  config.listen.api.tls = tls;
  Service service(config);
  for (const std::string name : {"first.example", "second.example", "unknown.example"}) {
    for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
      const TlsOptions without{.server_name = name, .least = version, .most = version};
      TlsOptions known = without;
      known.own = Known();
      EXPECT_FALSE(Served(std::make_unique<TlsStream>(service.api(), without), ListenerId::kApi));
      EXPECT_TRUE(Served(std::make_unique<TlsStream>(service.api(), known), ListenerId::kApi));
    }
  }
}

/// A resumed connection has the rights of the certificate that was presented first, and no other
/// client gets these rights.
TEST(TlsTicketTest, ResumedSessionKeepsItsRights) {
  Config config = AllListenersTls(TlsWithClients(Clients::kOptional));
  config.listen.resp.auth = ListenSpec::Auth::kRequired;
  Service service(config);
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    TlsOptions known{.own = Known(), .least = version, .most = version};
    TlsOptions unknown{.least = version, .most = version};
    for (const bool again : {false, true}) {
      TlsRespClient one(At(service, ListenerId::kResp), known);
      EXPECT_EQ(one.tls().resumed(), again);
      EXPECT_EQ(one.Ask({"TG.RESET", "per-key", "a"}), "0") << version << again;
      known.ticket = one.tls().ticket();
      TlsRespClient other(At(service, ListenerId::kResp), unknown);
      EXPECT_EQ(other.tls().resumed(), again);
      EXPECT_THAT(other.Ask({"TG.PEEK", "per-key", "a"}), testing::StartsWith("-NOAUTH"));
      unknown.ticket = other.tls().ticket();
    }
  }
}

}  // namespace
}  // namespace tidegate::service
