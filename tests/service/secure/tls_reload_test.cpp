// SPDX-License-Identifier: Apache-2.0
// Tests certificates that are renewed while connections are open.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "service/secure/listeners.hpp"
#include "service/secure/tls_stream.hpp"
#include "support/wait.hpp"

namespace tidegate::service {
namespace {

using Clients = ListenTls::Clients;

class TlsReloadTest : public testing::Test {
 protected:
  bool Reload(const Config& config) {
    Problems problems;
    return service_.server().Reload(config, problems);
  }
  Config With(const ListenTls& tls) const { return AllListenersTls(tls, upstream_.url()); }
  std::string CertificateOf(ListenerId listener) {
    return TlsStream(At(service_, listener)).certificate();
  }
  bool ServesCertificate(ListenerId listener, std::string_view name) {
    return test::WaitUntil([&] { return CertificateOf(listener) == name; });
  }

  behaviour::ScriptedUpstream upstream_{behaviour::ScriptedUpstream::Ok()};
  Service service_{With(TlsFor("old")), 2};
};

TEST_F(TlsReloadTest, KeepsOpenConnectionsAndServesNewCertificate) {
  TlsRespClient resp(At(service_, ListenerId::kResp));
  TlsHttpClient api(At(service_, ListenerId::kApi));
  TlsHttpClient admin(At(service_, ListenerId::kAdmin));
  TlsHttpClient gateway(At(service_, ListenerId::kGateway));
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
    for (const ListenerId listener : kListenerIds)
      EXPECT_TRUE(ServesCertificate(listener, name)) << listener;
    all_answer();
  }
  EXPECT_EQ(api.tls().certificate(), "old");
}

TEST_F(TlsReloadTest, FinishesResponseInProgress) {
  behaviour::Signal go;
  upstream_.Use([&](behaviour::ScriptedUpstream::Connection& connection) {
    test::HttpRequest request;
    if (!connection.Read(request)) return;
    connection.Send("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhalf");
    EXPECT_TRUE(go.Wait());
    connection.Send("half");
    (void)connection.WaitForEnd();
  });
  TlsHttpClient client(At(service_, ListenerId::kGateway));
  client.Send(Get("/"));
  ASSERT_TRUE(test::WaitUntil([&] { return upstream_.requests() == 1; }));
  ASSERT_TRUE(Reload(With(TlsFor("new"))));
  EXPECT_TRUE(ServesCertificate(ListenerId::kGateway, "new"));
  go.Give();
  EXPECT_EQ(client.Read().body, "halfhalf");
}

TEST_F(TlsReloadTest, KeepsOldCertificateWhenTheNewPairIsInvalid) {
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
    for (const ListenerId listener : kListenerIds) {
      Config config = With(TlsFor("new"));
      SpecOf(config, listener).tls = tls;
      EXPECT_FALSE(Reload(config)) << listener;
    }
  }
  for (const ListenerId listener : kListenerIds)
    EXPECT_EQ(CertificateOf(listener), "old") << "a reload must replace all certificates or none";
  ASSERT_TRUE(Reload(With(TlsFor("good"))));
  EXPECT_TRUE(ServesCertificate(ListenerId::kApi, "good"));
}

TEST_F(TlsReloadTest, ReportsListenerChangesThatNeedARestart) {
  const auto needs = [&](const auto& change) {
    Config config = With(TlsFor("old"));
    change(config);
    return service_.server().NeedsRestart(config);
  };
  for (const ListenerId listener : kListenerIds) {
    EXPECT_THAT(needs([&](Config& c) { SpecOf(c, listener).tls = TlsFor("x"); }),
                testing::IsEmpty());
    EXPECT_THAT(needs([&](Config& c) { SpecOf(c, listener).address = "127.0.0.1:1"; }),
                testing::ElementsAre("listen"));
    EXPECT_THAT(needs([&](Config& c) { SpecOf(c, listener).tls.reset(); }),
                testing::ElementsAre("listen"));
    EXPECT_THAT(needs([&](Config& c) { SpecOf(c, listener).proxy_protocol = true; }),
                testing::ElementsAre("listen"));
    EXPECT_THAT(needs([&](Config& c) { SpecOf(c, listener).auth = ListenSpec::Auth::kRequired; }),
                testing::ElementsAre("listen"));
  }
}

/// A reload that removes TLS must not make the listener serve plain text.
TEST_F(TlsReloadTest, ReloadCannotTurnTlsOff) {
  (void)Reload(AllListeners(upstream_.url()));
  ASSERT_TRUE(Reload(With(TlsFor("new"))));
  EXPECT_TRUE(ServesCertificate(ListenerId::kApi, "new"));
  Config without = AllListeners(upstream_.url(), "  - {id: extra, per: client_ip, limit: 1/s}\n");
  (void)Reload(without);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(CertificateOf(ListenerId::kApi), "new");
}

// --- Client certificates ----------------------------------------------------------------

TEST_F(TlsReloadTest, AppliesNewClientAuthorityToNewConnections) {
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
    return Served(std::make_unique<TlsStream>(At(service_, ListenerId::kResp), options),
                  ListenerId::kResp);
  };
  ASSERT_TRUE(test::WaitUntil([&] { return !served({}); }));
  EXPECT_FALSE(served(client(Theirs())));
  TlsOptions ours = client(Ours());
  TlsRespClient stays(At(service_, ListenerId::kResp), ours);
  EXPECT_EQ(stays.Ask({"PING"}), "PONG");
  ours.ticket = stays.tls().ticket();
  ASSERT_TRUE(Reload(with(Theirs())));
  EXPECT_TRUE(test::WaitUntil([&] { return served(client(Theirs())); }));
  EXPECT_TRUE(test::WaitUntil([&] { return !served(client(Ours())); }));
  for (int i = 0; i < 10; ++i)
    EXPECT_FALSE(served(ours)) << "a ticket of the old authority must not be accepted";
  EXPECT_EQ(stays.Ask({"PING"}), "PONG");
}

/// On a public address, certificates can authenticate callers: as soon as the listener accepts
/// them, it serves no client without one.
TEST(TlsReloadRightsTest, RequiresCertificatesOnceConfigured) {
  const auto with = [](const ListenTls& tls) {
    Config config = AllListenersTls(tls);
    config.listen.api.address = config.listen.resp.address = "0.0.0.0:0";
    return config;
  };
  Service service(with(TlsFor()));
  const auto ask = [&](const TlsOptions& options = {}) {
    return TlsHttpClient(At(service, ListenerId::kApi), options)
        .Ask("/v1/peek", ByRule("per-key", "a"))
        .status;
  };
  const auto command = [&](const TlsOptions& options = {}) {
    return TlsRespClient(At(service, ListenerId::kResp), options).Ask({"TG.PEEK", "per-key", "a"});
  };
  EXPECT_EQ(ask(), 200);
  EXPECT_THAT(command(), testing::StartsWith("[0,"));
  Problems problems;
  ASSERT_TRUE(service.server().Reload(with(TlsWithClients(Clients::kOptional)), problems));
  EXPECT_TRUE(test::WaitUntil([&] { return ask() == 401; }));
  EXPECT_TRUE(test::WaitUntil([&] { return command().starts_with("-NOAUTH"); }));
  const TlsOptions known{.own = Ours().Issue("client", "DNS:client")};
  EXPECT_EQ(ask(known), 200);
  ASSERT_TRUE(service.server().Reload(with(TlsFor()), problems));
  EXPECT_TRUE(test::WaitUntil([&] { return ask() == 200; }));
  EXPECT_TRUE(test::WaitUntil([&] { return command().starts_with("[0,"); }));
}

}  // namespace
}  // namespace tidegate::service
