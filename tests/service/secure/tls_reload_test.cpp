// SPDX-License-Identifier: Apache-2.0
// Certificates that are renewed while connections are open.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "service/secure/doors.hpp"
#include "service/secure/tls_stream.hpp"

namespace tidegate::service {
namespace {

using Clients = ListenTls::Clients;

class TlsReloadTest : public testing::Test {
 protected:
  bool Reload(const Config& config) {
    Problems problems;
    return service_.server().Reload(config, problems);
  }
  Config With(const ListenTls& tls) const { return AllDoorsTls(tls, upstream_.url()); }
  std::string CertificateOf(Door door) { return TlsStream(At(service_, door)).certificate(); }
  bool Becomes(Door door, std::string_view name) {
    return Soon([&] { return CertificateOf(door) == name; });
  }

  behaviour::ScriptedUpstream upstream_{behaviour::ScriptedUpstream::Ok()};
  Service service_{With(TlsFor("old")), 2};
};

TEST_F(TlsReloadTest, OpenConnectionsGoOnAndNewOnesGetTheNewCertificate) {
  TlsRespClient resp(At(service_, Door::kResp));
  TlsHttpClient api(At(service_, Door::kApi));
  TlsHttpClient admin(At(service_, Door::kAdmin));
  TlsHttpClient gateway(At(service_, Door::kGateway));
  const auto all_answer = [&] {
    EXPECT_EQ(resp.Ask({"PING"}), "PONG");
    EXPECT_EQ(api.Ask("/v1/peek", ByRule("per-key", "a")).status, 200);
    admin.Send(Get("/metrics"));
    EXPECT_EQ(admin.Read().status, 200);
    gateway.Send(Get("/"));
    EXPECT_EQ(gateway.Read().status, 200);
  };
  all_answer();
  for (const std::string name : {"new", "newer"}) {
    const Config config = With(TlsFor(name));
    EXPECT_THAT(service_.server().NeedsRestart(config), testing::IsEmpty());
    ASSERT_TRUE(Reload(config));
    for (const Door door : kDoors) EXPECT_TRUE(Becomes(door, name)) << door;
    all_answer();
  }
  EXPECT_EQ(api.tls().certificate(), "old");
}

TEST_F(TlsReloadTest, AnAnswerUnderWayIsFinished) {
  behaviour::Signal go;
  upstream_.Use([&](behaviour::ScriptedUpstream::Connection& connection) {
    behaviour::Request request;
    if (!connection.Read(request)) return;
    connection.Send("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhalf");
    EXPECT_TRUE(go.Wait());
    connection.Send("half");
    (void)connection.WaitForEnd();
  });
  TlsHttpClient client(At(service_, Door::kGateway));
  client.Send(Get("/"));
  ASSERT_TRUE(Soon([&] { return upstream_.requests() == 1; }));
  ASSERT_TRUE(Reload(With(TlsFor("new"))));
  EXPECT_TRUE(Becomes(Door::kGateway, "new"));
  go.Give();
  EXPECT_EQ(client.Read().body, "halfhalf");
}

TEST_F(TlsReloadTest, ABrokenPairIsRefusedAndTheOldStays) {
  const ListenTls::Certificate one = PairFor({"one"});
  const ListenTls::Certificate two = PairFor({"two"});
  ListenTls mixed;
  mixed.certificates = {{one.certificate_pem, two.key_pem}};
  ListenTls second_bad;
  second_bad.certificates = {one, {two.certificate_pem, one.key_pem}};
  ListenTls no_key;
  no_key.certificates = {{one.certificate_pem, ""}};
  ListenTls junk;
  junk.certificates = {{"junk", "junk"}};
  const ListenTls none;
  ListenTls bad_ca = TlsFor("one");
  bad_ca.clients = Clients::kRequired;
  bad_ca.client_ca_pem = "junk";
  for (const ListenTls& tls : {mixed, second_bad, no_key, junk, none, bad_ca}) {
    for (const Door door : kDoors) {
      Config config = With(TlsFor("new"));
      SpecOf(config, door).tls = tls;
      EXPECT_FALSE(Reload(config)) << door;
    }
  }
  for (const Door door : kDoors) EXPECT_EQ(CertificateOf(door), "old") << "all or nothing";
  ASSERT_TRUE(Reload(With(TlsFor("good"))));
  EXPECT_TRUE(Becomes(Door::kApi, "good"));
}

TEST_F(TlsReloadTest, WhatCannotBeTakenOverIsSaid) {
  const auto needs = [&](const auto& change) {
    Config config = With(TlsFor("old"));
    change(config);
    return service_.server().NeedsRestart(config);
  };
  for (const Door door : kDoors) {
    EXPECT_THAT(needs([&](Config& c) { SpecOf(c, door).tls = TlsFor("x"); }), testing::IsEmpty());
    EXPECT_THAT(needs([&](Config& c) { SpecOf(c, door).address = "127.0.0.1:1"; }),
                testing::ElementsAre("listen"));
    EXPECT_THAT(needs([&](Config& c) { SpecOf(c, door).tls.reset(); }),
                testing::ElementsAre("listen"));
    EXPECT_THAT(needs([&](Config& c) { SpecOf(c, door).proxy_protocol = true; }),
                testing::ElementsAre("listen"));
    EXPECT_THAT(needs([&](Config& c) { SpecOf(c, door).auth = ListenSpec::Auth::kRequired; }),
                testing::ElementsAre("listen"));
  }
}

/// A reload that drops TLS altogether must not open the door in the clear.
TEST_F(TlsReloadTest, TlsDoesNotGoAwayWithAReload) {
  (void)Reload(AllDoors(upstream_.url()));
  ASSERT_TRUE(Reload(With(TlsFor("new"))));
  EXPECT_TRUE(Becomes(Door::kApi, "new"));
  Config without = AllDoors(upstream_.url(), "  - {id: extra, per: client_ip, limit: 1/s}\n");
  (void)Reload(without);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(CertificateOf(Door::kApi), "new");
}

// --- Clients' certificates --------------------------------------------------------------

TEST_F(TlsReloadTest, AnotherAuthorityIsAskedOfNewClients) {
  const auto client = [&](const behaviour::Authority& of) {
    return TlsOptions{.own = of.Issue("client", "DNS:client")};
  };
  const auto with = [&](const behaviour::Authority& of) {
    ListenTls tls = TlsWithClients(Clients::kRequired);
    tls.client_ca_pem = of.pem();
    return With(tls);
  };
  ASSERT_TRUE(Reload(with(Ours())));
  const auto served = [&](const TlsOptions& options) {
    return Served(std::make_unique<TlsStream>(At(service_, Door::kResp), options), Door::kResp);
  };
  ASSERT_TRUE(Soon([&] { return !served({}); }));
  EXPECT_FALSE(served(client(Theirs())));
  TlsOptions ours = client(Ours());
  TlsRespClient stays(At(service_, Door::kResp), ours);
  EXPECT_EQ(stays.Ask({"PING"}), "PONG");
  ours.ticket = stays.tls().ticket();
  ASSERT_TRUE(Reload(with(Theirs())));
  EXPECT_TRUE(Soon([&] { return served(client(Theirs())); }));
  EXPECT_TRUE(Soon([&] { return !served(client(Ours())); }));
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(served(ours)) << "nor with a ticket from before";
  EXPECT_EQ(stays.Ask({"PING"}), "PONG");
}

/// On an address that others reach, certificates are something to know callers by: as soon as the
/// door asks for them, nobody else may ask it anything.
TEST(TlsReloadRightsTest, CertificatesThatAreAskedForLaterAreNeeded) {
  const auto with = [](const ListenTls& tls) {
    Config config = AllDoorsTls(tls);
    config.listen.api.address = config.listen.resp.address = "0.0.0.0:0";
    return config;
  };
  Service service(with(TlsFor()));
  const auto ask = [&](const TlsOptions& options = {}) {
    return TlsHttpClient(At(service, Door::kApi), options)
        .Ask("/v1/peek", ByRule("per-key", "a"))
        .status;
  };
  const auto command = [&](const TlsOptions& options = {}) {
    return TlsRespClient(At(service, Door::kResp), options).Ask({"TG.PEEK", "per-key", "a"});
  };
  EXPECT_EQ(ask(), 200);
  EXPECT_THAT(command(), testing::StartsWith("[0,"));
  Problems problems;
  ASSERT_TRUE(service.server().Reload(with(TlsWithClients(Clients::kOptional)), problems));
  EXPECT_TRUE(Soon([&] { return ask() == 401; }));
  EXPECT_TRUE(Soon([&] { return command().starts_with("-NOAUTH"); }));
  const TlsOptions known{.own = Ours().Issue("client", "DNS:client")};
  EXPECT_EQ(ask(known), 200);
  ASSERT_TRUE(service.server().Reload(with(TlsFor()), problems));
  EXPECT_TRUE(Soon([&] { return ask() == 200; }));
  EXPECT_TRUE(Soon([&] { return command().starts_with("[0,"); }));
}

}  // namespace
}  // namespace tidegate::service
