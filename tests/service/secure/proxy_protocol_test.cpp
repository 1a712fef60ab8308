// SPDX-License-Identifier: Apache-2.0
// Tests connections that begin with a PROXY protocol header, at every listener, with and without
// TLS: which are served and which are closed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "service/secure/listeners.hpp"
#include "service/secure/tls_stream.hpp"
#include "support/wait.hpp"

namespace tidegate::service {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kTrusting = "client_ip: {trusted_proxies: [127.0.0.1]}\n";
constexpr std::string_view kTrustsOthers = "client_ip: {trusted_proxies: [10.0.0.0/8]}\n";

Config Proxied(const std::string& upstream, std::string_view yaml) {
  Config config = AllListeners(upstream, yaml);
  for (const ListenerId listener : kListenerIds) SpecOf(config, listener).proxy_protocol = true;
  return config;
}

enum class Through : bool { kPlain, kTls };
class ProxyProtocolTest : public testing::TestWithParam<std::tuple<ListenerId, Through>> {
 protected:
  static ListenerId listener() { return std::get<0>(GetParam()); }
  static bool tls() { return std::get<1>(GetParam()) == Through::kTls; }
  Config With(std::string_view yaml) const {
    Config config = Proxied(upstream_.url(), yaml);
    if (!tls()) return config;
    static const ListenTls kTls = TlsFor();
    for (const ListenerId each : kListenerIds) SpecOf(config, each).tls = kTls;
    return config;
  }
  bool IsServed(Service& service, const std::string& header, bool trickle = false) {
    if (tls()) {
      const TlsOptions options{.before = header, .trickle = trickle};
      return Served(std::make_unique<TlsStream>(At(service, listener()), options), listener());
    }
    auto stream = std::make_unique<test::Stream>(At(service, listener()));
    const std::size_t piece = trickle ? 1 : header.size();
    for (std::size_t at = 0; at < header.size(); at += piece) {
      stream->Send(std::string_view(header).substr(at, piece));
    }
    return Served(std::move(stream), listener());
  }
  /// Returns whether the server closes the connection without a response after these bytes.
  bool IsClosed(Service& service, std::string_view bytes) {
    HttpClient client(At(service, listener()));
    client.Send(bytes);
    const HttpClient::End end = client.WaitForEnd();
    return end == HttpClient::End::kClosed || end == HttpClient::End::kReset;
  }

  behaviour::ScriptedUpstream upstream_{behaviour::ScriptedUpstream::Ok()};
};

TEST_P(ProxyProtocolTest, AcceptsHeadersOfTrustedPeer) {
  Service service(With(kTrusting));
  for (const std::string& header :
       {ProxyV1("203.0.113.7"), ProxyV1("2001:db8::7"), ProxyV2("203.0.113.7"),
        ProxyV2("2001:db8::7"), ProxyV2("203.0.113.7", ProxyCommand::kLocal),
        ProxyV2("203.0.113.7", ProxyCommand::kProxy,
                std::string_view("\x03\x00\x04\x61\x62\x63\x64", 7)),
        ProxyV2("203.0.113.7", ProxyCommand::kProxy, std::string(1'000, '\x04')),
        std::string("PROXY UNKNOWN\r\n"), std::string("PROXY UNKNOWN some words\r\n"),
        std::string("\r\n\r\n\0\r\nQUIT\n\x20\x00\x00\x00", 16)}) {
    EXPECT_TRUE(IsServed(service, header)) << header;
    EXPECT_TRUE(IsServed(service, header, true)) << "sent byte by byte: " << header;
  }
}

TEST_P(ProxyProtocolTest, ClosesConnectionsOfUntrustedPeers) {
  Service service(With(kTrustsOthers));
  for (const std::string& header :
       {ProxyV1("203.0.113.7"), ProxyV1("10.0.0.1"), ProxyV2("10.0.0.1"),
        ProxyV2("203.0.113.7", ProxyCommand::kLocal), std::string("PROXY UNKNOWN\r\n")}) {
    EXPECT_TRUE(IsClosed(service, header + Get("/healthz"))) << header;
    EXPECT_FALSE(IsServed(service, header)) << header;
  }
  EXPECT_EQ(upstream_.connections(), 0);
}

TEST_P(ProxyProtocolTest, ClosesConnectionOnMalformedHeader) {
  Service service(With(kTrusting));
  std::string version1 = ProxyV2("203.0.113.7");
  version1[12] = '\x11';
  std::string short_block = ProxyV2("203.0.113.7");
  short_block[15] = '\x04';
  for (const std::string& bytes :
       {Get("/healthz"), test::RespCommand({"PING"}), std::string("PING\r\n"),
        std::string("\x16\x03\x01\x02\x00\x01\x00", 7), std::string("\0\0\0\0", 4),
        std::string("PROXY TCP4 203.0.113.7\r\n"), std::string("PROXY TCP9 a b 1 2\r\n"),
        std::string("PROXY TCP4 203.0.113.7 127.0.0.1 4000 80\n") + Get("/"),
        std::string("PROXY TCP4 203.0.113.999 127.0.0.1 4000 80\r\n"),
        std::string("PROXY TCP4 2001:db8::1 ::1 4000 80\r\n"),
        std::string("PROXY TCP4 203.0.113.7 127.0.0.1 70000 80\r\n"),
        "proxy tcp4 203.0.113.7 127.0.0.1 4000 80\r\n" + Get("/"),
        "PROXY UNKNOWN " + std::string(200, 'x'), " " + ProxyV1("203.0.113.7"), version1,
        short_block + Get("/"), std::string("\r\n\r\n\0\r\nQUIX\n\x21\x11\0\x0c", 16)}) {
    EXPECT_TRUE(IsClosed(service, bytes)) << bytes;
  }
  EXPECT_FALSE(IsServed(service, ""));
  EXPECT_EQ(upstream_.connections(), 0);
  EXPECT_TRUE(IsServed(service, ProxyV1("203.0.113.7")))
      << "a valid connection must still be served";
}

TEST_P(ProxyProtocolTest, TimesOutWaitingForTheHeader) {
  Service service(With(std::string(kTrusting) + "limits: {header_timeout: 200ms}\n"));
  HttpClient silent(At(service, listener()));
  HttpClient half(At(service, listener()));
  HttpClient most(At(service, listener()));
  half.Send("PROXY TCP4 203.0.113.7 ");
  most.Send(ProxyV2("203.0.113.7").substr(0, 27));
  EXPECT_EQ(silent.WaitForEnd(), HttpClient::End::kClosed);
  EXPECT_NE(half.WaitForEnd(), HttpClient::End::kOpen);
  EXPECT_NE(most.WaitForEnd(), HttpClient::End::kOpen);
}

TEST_P(ProxyProtocolTest, RejectsSecondHeader) {
  Service service(With(kTrusting));
  EXPECT_FALSE(IsServed(service, ProxyV1("203.0.113.7") + ProxyV1("127.0.0.1")));
}

TEST_P(ProxyProtocolTest, TrustChangesWithAReload) {
  Service service(With(kTrustsOthers), 2);
  const auto reload = [&](std::string_view yaml) {
    Problems problems;
    return service.server().Reload(With(yaml), problems);
  };
  const auto served = [&] { return IsServed(service, ProxyV1("203.0.113.7")); };
  EXPECT_FALSE(served());
  ASSERT_TRUE(reload(kTrusting));
  EXPECT_TRUE(test::WaitUntil(served));
  ASSERT_TRUE(reload(kTrustsOthers));
  EXPECT_TRUE(test::WaitUntil([&] { return !served(); }));
}

INSTANTIATE_TEST_SUITE_P(Listeners, ProxyProtocolTest,
                         testing::Combine(testing::ValuesIn(kListenerIds),
                                          testing::Values(Through::kPlain, Through::kTls)),
                         [](const auto& of) {
                           return std::string(Name(std::get<0>(of.param))) +
                                  (std::get<1>(of.param) == Through::kTls ? "Tls" : "Plain");
                         });

class ProxySegmentTest : public testing::TestWithParam<ListenerId> {};

TEST_P(ProxySegmentTest, AcceptsHeaderAndRequestsInOneSegment) {
  behaviour::ScriptedUpstream upstream(behaviour::ScriptedUpstream::Ok());
  Service service(Proxied(upstream.url(), kTrusting));
  for (const std::string& header : {ProxyV1("203.0.113.7"), ProxyV2("2001:db8::7")}) {
    if (GetParam() == ListenerId::kResp) {
      test::RespClient client(At(service, GetParam()));
      client.Send(header + test::RespCommand({"PING"}) + test::RespCommand({"ECHO", "x"}));
      EXPECT_EQ(client.Read(), "PONG");
      EXPECT_EQ(client.Read(), "\"x\"");
    } else {
      HttpClient client(At(service, GetParam()));
      const std::string request =
          Get(GetParam() == ListenerId::kApi ? "/openapi.json" : "/healthz");
      client.Send(std::string(header).append(request).append(request));
      EXPECT_EQ(client.Read().status, 200);
      EXPECT_EQ(client.Read().status, 200);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Listeners, ProxySegmentTest, testing::ValuesIn(kListenerIds),
                         [](const auto& of) { return std::string(Name(of.param)); });

TEST(ProxyProtocolOffTest, RejectsHeaderWhenNotConfigured) {
  Service service(AllListeners("http://127.0.0.1:9", kTrusting));
  HttpClient client(At(service, ListenerId::kApi));
  client.Send(ProxyV1("203.0.113.7") + Get("/openapi.json"));
  EXPECT_EQ(client.Read().status, 400) << "the server must not detect the header by itself";
  test::RespClient resp(At(service, ListenerId::kResp));
  resp.Send(ProxyV1("203.0.113.7"));
  EXPECT_THAT(resp.Read(), testing::StartsWith("-ERR"));
}

TEST(ProxyProtocolClientsTest, RequiresClientCertificateAfterTheHeader) {
  Config config = Proxied("http://127.0.0.1:9", kTrusting);
  config.listen.resp.tls = TlsWithClients(ListenTls::Clients::kRequired);
  Service service(config);
  const TlsOptions known{.own = Ours().Issue("client", "DNS:client"),
                         .before = ProxyV2("203.0.113.7")};
  TlsRespClient client(At(service, ListenerId::kResp), known);
  EXPECT_EQ(client.Ask({"TG.RESET", "per-key", "a"}), "0") << "a certificate has all rights";
  TlsRespClient unknown(At(service, ListenerId::kResp), {.before = ProxyV2("203.0.113.7")});
  EXPECT_EQ(unknown.Ask({"PING"}), "(end)");
}

}  // namespace
}  // namespace tidegate::service
