// SPDX-License-Identifier: Apache-2.0
// Upstreams over TLS: the gateway forwards requests only to upstreams whose certificates it can
// verify.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <thread>

#include "gateway/behaviour/gateway_fixture.hpp"
#include "gateway/behaviour/log_file.hpp"
#include "gateway/behaviour/tls_side.hpp"
#include "support/wait.hpp"

namespace tidegate::behaviour {
namespace {

using testing::HasSubstr;
using Connection = ScriptedUpstream::Connection;

/// Returns a text in PEM form as a double-quoted YAML string.
std::string Quoted(const std::string& pem) {
  std::string text = "\"";
  for (const char c : pem) text += c == '\n' ? std::string("\\n") : std::string(1, c);
  return text + "\"";
}

const Authority& Ours() {
  static const Authority kOurs("our authority");
  return kOurs;
}
const Authority& Theirs() {
  static const Authority kTheirs("another authority");
  return kTheirs;
}

/// An upstream that answers each request over TLS with the response that `answer` returns.
class TlsUpstream {
 public:
  using Handler = std::function<void(TlsSide&)>;

  explicit TlsUpstream(const Credentials& own, Handler handler = Ok(),
                       const std::string& client_authority = {})
      : context_(own, client_authority),
        upstream_([this, handler = std::move(handler)](Connection& connection) {
          TlsSide side(context_, connection.fd());
          if (!side.Accept()) return;
          ++shaken_;
          handler(side);
          // Wait for the client's end before the socket is closed: a reset could destroy bytes on
          // their way.
          connection.EndSending();
          (void)connection.WaitForEnd();
        }) {}

  static Handler Ok() {
    return [](TlsSide& side) {
      while (!side.ReadRequest().empty()) side.Send(Http("200 OK", {}, "ok"));
    };
  }

  [[nodiscard]] std::string url(std::string_view host = "127.0.0.1") const {
    return "https://" + std::string(host) + ":" + std::to_string(upstream_.port());
  }
  [[nodiscard]] int connections() const { return upstream_.connections(); }
  [[nodiscard]] int shaken() const { return shaken_; }
  [[nodiscard]] int open() const { return upstream_.open(); }

 private:
  std::atomic<int> shaken_{0};
  TlsContext context_;
  ScriptedUpstream upstream_;
};

Credentials Local() { return Ours().Issue("up", "DNS:localhost,IP:127.0.0.1"); }
std::string TrustingOurAuthority(const std::string& more = {}) {
  return "tls: {ca: " + Quoted(Ours().pem()) + more + "}\nretries: off";
}

// --- Verification of the upstream -------------------------------------------------

TEST(UpstreamTlsTest, ReusesConnectionToVerifiedUpstream) {
  TlsUpstream up(Local());
  Gate gate(Routed(up.url(), TrustingOurAuthority()));
  Client client(gate.at());
  for (int i = 0; i < 10; ++i) {
    const HttpResponse answer = client.Get("/");
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.body, "ok");
  }
  EXPECT_EQ(up.connections(), 1);
}

TEST(UpstreamTlsTest, SendsHostOrConfiguredNameAsSni) {
  std::mutex mutex;
  std::string requested;
  const auto note = [&](TlsSide& side) {
    while (!side.ReadRequest().empty()) {
      const std::lock_guard lock(mutex);
      requested = side.server_name();
      side.Send(Http("200 OK"));
    }
  };
  TlsUpstream up(Ours().Issue("up", "DNS:localhost,DNS:api.internal,IP:127.0.0.1"), note);
  const auto name = [&](const std::string& url, const std::string& keys) {
    Gate gate(Routed(url, keys));
    EXPECT_EQ(gate.Get("/").status, 200);
    const std::lock_guard lock(mutex);
    return requested;
  };
  const std::string ca = "tls: {ca: " + Quoted(Ours().pem()) + "}";
  EXPECT_EQ(name(up.url(), ca), "") << "an IP address was sent as a server name";
  EXPECT_EQ(name(up.url("localhost"), ca), "localhost");
  EXPECT_EQ(name(up.url(), TrustingOurAuthority(", server_name: api.internal")), "api.internal");
}

/// A certificate that the gateway must not accept, and the reason that the log gives.
struct UntrustedCertificate {
  std::string_view name;
  std::function<Credentials()> credentials;
  std::string_view why;
};
class UntrustedCertificateTest : public testing::TestWithParam<UntrustedCertificate> {};

TEST_P(UntrustedCertificateTest, AnswersWith502AndLogsWhyVerificationFailed) {
  LogFile log;
  TlsUpstream up(GetParam().credentials());
  Gate gate(Routed(up.url(), TrustingOurAuthority(), log.yaml()));
  const HttpResponse answer = gate.Get("/");
  EXPECT_EQ(answer.status, 502);
  EXPECT_EQ(answer.Field("Content-Type"), "application/problem+json");
  EXPECT_EQ(answer.body.find("certificate"), std::string::npos)
      << "the response tells the client about the certificate";
  const boost::json::object line = log.Line();
  EXPECT_EQ(line.at("outcome"), "connect_failed");
  EXPECT_THAT(std::string(line.at("problem").as_string()), HasSubstr(GetParam().why));
}

TEST_P(UntrustedCertificateTest, AcceptsUpstreamWithoutVerification) {
  TlsUpstream up(GetParam().credentials());
  Gate gate(Routed(up.url(), "tls: {verify: false}"));
  EXPECT_EQ(gate.Get("/").body, "ok");
}

INSTANTIATE_TEST_SUITE_P(
    All, UntrustedCertificateTest,
    testing::Values(
        UntrustedCertificate{"WrongName", [] { return Ours().Issue("up", "DNS:example.com"); },
                             "mismatch"},
        UntrustedCertificate{"WrongAddress", [] { return Ours().Issue("up", "IP:127.0.0.2"); },
                             "mismatch"},
        UntrustedCertificate{"NameInTheSubjectOnly",
                             [] { return Ours().Issue("127.0.0.1", "DNS:example.com"); },
                             "mismatch"},
        UntrustedCertificate{"UnknownAuthority",
                             [] { return Theirs().Issue("up", "IP:127.0.0.1"); }, "local issuer"},
        UntrustedCertificate{
            "Expired",
            [] { return Ours().Issue("up", "IP:127.0.0.1", Authority::Validity::kOver); },
            "expired"}),
    [](const auto& of) { return std::string(of.param.name); });

TEST(UpstreamTlsTest, AnswersWith502WhenUpstreamSpeaksNoTls) {
  LogFile log;
  ScriptedUpstream up([](Connection& connection) {
    connection.Send("HTTP/1.1 400 Bad Request\r\n\r\n");
    (void)connection.WaitForEnd();
  });
  const std::string url = "https://127.0.0.1:" + std::to_string(up.port());
  Gate gate(Routed(url, TrustingOurAuthority(), log.yaml()));
  EXPECT_EQ(gate.Get("/").status, 502);
  EXPECT_THAT(std::string(log.Line().at("problem").as_string()), HasSubstr("handshake"));
}

TEST(UpstreamTlsTest, AnswersWith504WhenHandshakeHangs) {
  ScriptedUpstream up([](Connection& connection) { (void)connection.WaitForEnd(); });
  const std::string url = "https://127.0.0.1:" + std::to_string(up.port());
  Gate gate(Routed(url, TrustingOurAuthority() + "\nconnect_timeout: 150ms"));
  EXPECT_EQ(gate.Get("/").status, 504);
  EXPECT_TRUE(test::WaitUntil([&] { return up.open() == 0; }));
}

// --- The gateway's own certificate ------------------------------------------------------

TEST(UpstreamTlsTest, PresentsClientCertificateToUpstream) {
  std::mutex mutex;
  std::string name;
  const auto note = [&](TlsSide& side) {
    while (!side.ReadRequest().empty()) {
      const std::lock_guard lock(mutex);
      name = side.client_name();
      side.Send(Http("200 OK"));
    }
  };
  const Credentials gateway = Theirs().Issue("the gateway", "DNS:gateway");
  TlsUpstream up(Local(), note, Theirs().pem());
  Gate gate(Routed(up.url(), TrustingOurAuthority(", certificate: " + Quoted(gateway.certificate) +
                                                  ", key: " + Quoted(gateway.key))));
  EXPECT_EQ(gate.Get("/").status, 200);
  const std::lock_guard lock(mutex);
  EXPECT_EQ(name, "the gateway");
}

TEST(UpstreamTlsTest, AnswersWith502WhenClientCertificateIsMissing) {
  TlsUpstream up(Local(), TlsUpstream::Ok(), Theirs().pem());
  Gate gate(Routed(up.url(), TrustingOurAuthority()));
  EXPECT_EQ(gate.Get("/").status, 502);
}

// --- Bodies -------------------------------------------------------------------------------

TEST(UpstreamTlsBodyTest, ForwardsLargeBodiesUnchangedBothWays) {
  TlsUpstream up(Local(), [](TlsSide& side) {
    while (true) {
      const std::string request = side.ReadRequest();
      if (request.empty()) return;
      side.Send(Http("200 OK", {}, request.substr(request.find("\r\n\r\n") + 4)));
    }
  });
  Gate gate(Routed(up.url(), TrustingOurAuthority()));
  Client client(gate.at());
  for (const std::size_t size : {0u, 1u, 16384u, 16385u, 100'000u, 8u << 20}) {
    const std::string body = RandomBytes(size, static_cast<unsigned>(size));
    std::thread sender([&] { client.Send(RequestText("POST", "/", {}, body)); });
    const HttpResponse answer = client.Read();
    sender.join();
    ASSERT_EQ(answer.status, 200);
    ASSERT_TRUE(answer.body == body) << size << " " << answer.body.size();
  }
  EXPECT_EQ(up.connections(), 1);
}

TEST(UpstreamTlsBodyTest, ForwardsBothDirectionsAtOnce) {
  // The response begins with the head of the request, so that both directions are full at the same
  // time. The response ends after the request, because the gateway forwards nothing of a request
  // after its complete response.
  constexpr std::size_t kMuch = 8u << 20;
  const std::string down = RandomBytes(kMuch, 1);
  const std::string upward = RandomBytes(kMuch, 2);
  std::atomic<bool> same{false};
  TlsUpstream up(Local(), [&](TlsSide& side) {
    (void)side.ReadUntil("\r\n\r\n");
    side.Send("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(kMuch) + "\r\n\r\n");
    std::string got;
    constexpr std::size_t kPiece = 65536;
    for (std::size_t at = 0; at < kMuch; at += kPiece) {
      const std::size_t last = at + kPiece == kMuch ? 1 : 0;
      side.Send(std::string_view(down).substr(at, kPiece - last));
      got += side.ReadExactly(kPiece);
    }
    side.Send(std::string_view(down).substr(kMuch - 1));
    same = got == upward;
  });
  Gate gate(Routed(up.url(), TrustingOurAuthority()));
  Client client(gate.at());
  std::thread sender([&] { client.Send(RequestText("POST", "/", {}, upward)); });
  const HttpResponse answer = client.Read();
  sender.join();
  EXPECT_TRUE(answer.body == down) << answer.body.size();
  EXPECT_TRUE(test::WaitUntil([&] { return same.load(); }));
}

TEST(UpstreamTlsBodyTest, TreatsEndWithoutCloseNotifyAsCut) {
  LogFile log;
  TlsUpstream up(Local(), [](TlsSide& side) {
    (void)side.ReadRequest();
    side.Send("HTTP/1.1 200 OK\r\n\r\nsome");
  });
  Gate gate(Routed(up.url(), TrustingOurAuthority(), log.yaml()));
  Client client(gate.at());
  client.Send(GetText("/"));
  const std::string all = client.stream().ReadRest();
  EXPECT_EQ(all.find("0\r\n\r\n"), std::string::npos) << all;
  EXPECT_EQ(log.Line().at("outcome"), "cut");
}

TEST(UpstreamTlsBodyTest, TreatsCloseNotifyAsEndOfBody) {
  TlsUpstream up(Local(), [](TlsSide& side) {
    (void)side.ReadRequest();
    side.Send("HTTP/1.1 200 OK\r\n\r\nall");
    side.EndInOrder();
  });
  Gate gate(Routed(up.url(), TrustingOurAuthority()));
  const HttpResponse answer = gate.Get("/");
  EXPECT_EQ(answer.body, "all");
  EXPECT_TRUE(answer.whole);
}

TEST(UpstreamTlsBodyTest, ForwardsTunnelBothWays) {
  TlsUpstream up(Local(), [](TlsSide& side) {
    (void)side.ReadRequest();
    side.Send("HTTP/1.1 101 Go\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\nhello\n");
    while (true) {
      const std::string line = side.ReadUntil("\n");
      if (line.empty()) break;
      side.Send(line);
    }
    side.Send("bye");
    side.EndInOrder();
  });
  Gate gate(Routed(up.url(), TrustingOurAuthority()));
  Client client(gate.at());
  client.Send(GetText("/", "Upgrade: x\r\nConnection: Upgrade\r\n") + "early\n");
  EXPECT_EQ(client.Read().status, 101);
  EXPECT_EQ(client.stream().ReadExactly(12), "hello\nearly\n");
  client.EndSending();
  EXPECT_EQ(client.stream().ReadRest(), "bye");
}

TEST(UpstreamTlsBodyTest, TunnelForwardsClientBytesAfterUpstreamSendsCloseNotify) {
  std::string got;
  TlsUpstream up(Local(), [&](TlsSide& side) {
    (void)side.ReadRequest();
    side.Send("HTTP/1.1 101 Go\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\nbye");
    side.EndInOrder();
    got = side.ReadUntil("\n");
  });
  Gate gate(Routed(up.url(), TrustingOurAuthority()));
  Client client(gate.at());
  client.Send(GetText("/", "Upgrade: x\r\nConnection: Upgrade\r\n"));
  EXPECT_EQ(client.Read().status, 101);
  EXPECT_EQ(client.stream().ReadRest(), "bye");
  EXPECT_TRUE(client.Send("late\n"));
  client.EndSending();
  EXPECT_TRUE(test::WaitUntil([&] { return up.open() == 0; }));
  EXPECT_EQ(got, "late\n");
}

TEST(UpstreamTlsTest, UsesTlsForHealthChecks) {
  TlsUpstream up(Local());
  Gate gate(Routed(up.url(), TrustingOurAuthority() + "\nhealth: {interval: 100ms, healthy: 1}"));
  EXPECT_TRUE(test::WaitUntil([&] { return up.shaken() >= 2; }));
  EXPECT_EQ(gate.Get("/").status, 200);
}

}  // namespace
}  // namespace tidegate::behaviour
