// SPDX-License-Identifier: Apache-2.0
// Tests TLS at every listener: accepted versions, cipher suites and protocols, and the response to
// clients without TLS.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "service/secure/listeners.hpp"
#include "service/secure/tls_stream.hpp"

namespace tidegate::service {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::StartsWith;

class TlsListenerTest : public testing::TestWithParam<ListenerId> {
 protected:
  explicit TlsListenerTest(const ListenTls& tls = TlsFor())
      : service_(AllListenersTls(tls, upstream_.url())) {}

  std::unique_ptr<TlsStream> Connect(const TlsOptions& options = {}) {
    return std::make_unique<TlsStream>(At(service_, GetParam()), options);
  }

  behaviour::ScriptedUpstream upstream_{behaviour::ScriptedUpstream::Ok()};
  Service service_;
};
std::string ListenerName(const testing::TestParamInfo<ListenerId>& of) {
  return std::string(Name(of.param));
}

// --- Versions ---------------------------------------------------------------------

TEST_P(TlsListenerTest, AcceptsTls12And13) {
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    auto stream = Connect({.least = version, .most = version});
    ASSERT_TRUE(stream->shaken()) << stream->problem();
    EXPECT_EQ(stream->version(), version);
    EXPECT_EQ(stream->certificate(), "test");
    EXPECT_TRUE(Served(std::move(stream), GetParam()));
  }
}

TEST_P(TlsListenerTest, RejectsTls10And11) {
  for (const int version : {TLS1_VERSION, TLS1_1_VERSION}) {
    const auto stream = Connect({.least = version, .most = version});
    EXPECT_FALSE(stream->shaken());
    EXPECT_THAT(stream->problem(), HasSubstr("protocol version"))
        << "the server must send an alert";
  }
  EXPECT_TRUE(Served(Connect(), GetParam())) << "clients with a newer version must be served";
}

/// TLS 1.2 is accepted only with authenticated encryption and ephemeral keys.
TEST_P(TlsListenerTest, RefusesWeakCipherSuites) {
  ListenTls tls;
  tls.certificates = {PairFor({"test"}, behaviour::Authority::Key::kRsa), PairFor({"test"})};
  Service service(AllListenersTls(tls, upstream_.url()));
  const auto connect = [&](const std::string& suites) {
    return std::make_unique<TlsStream>(
        At(service, GetParam()),
        TlsOptions{.least = TLS1_2_VERSION, .most = TLS1_2_VERSION, .suites = suites});
  };
  for (const std::string suite :
       {"ECDHE-RSA-AES128-SHA256", "ECDHE-RSA-AES256-SHA384", "ECDHE-RSA-AES128-SHA",
        "ECDHE-ECDSA-AES128-SHA256", "ECDHE-ECDSA-AES256-SHA", "AES128-GCM-SHA256",
        "AES256-GCM-SHA384", "AES128-SHA256", "AES256-SHA", "DHE-RSA-AES128-GCM-SHA256",
        "DHE-RSA-AES128-SHA256"}) {
    const auto stream = connect(suite);
    EXPECT_FALSE(stream->shaken()) << suite;
    EXPECT_THAT(stream->problem(), HasSubstr("handshake failure")) << suite;
  }
  for (const std::string suite :
       {"ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-AES256-GCM-SHA384", "ECDHE-RSA-CHACHA20-POLY1305",
        "ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-GCM-SHA384",
        "ECDHE-ECDSA-CHACHA20-POLY1305"}) {
    auto stream = connect("ECDHE-RSA-AES128-SHA256:" + suite);
    ASSERT_TRUE(stream->shaken()) << suite << " " << stream->problem();
    EXPECT_EQ(stream->suite(), suite);
    EXPECT_TRUE(Served(std::move(stream), GetParam())) << suite;
  }
}

// --- ALPN -------------------------------------------------------------------------

TEST_P(TlsListenerTest, NegotiatesHttp1OnHttpListeners) {
  auto stream = Connect({.protocols = {"h2", "http/1.1"}});
  ASSERT_TRUE(stream->shaken()) << stream->problem();
  EXPECT_EQ(stream->protocol(), GetParam() == ListenerId::kResp ? "" : "http/1.1");
  EXPECT_TRUE(Served(std::move(stream), GetParam()));
}

TEST_P(TlsListenerTest, HttpListenersRejectClientsThatOfferOnlyH2) {
  auto stream = Connect({.protocols = {"h2"}});
  if (GetParam() == ListenerId::kResp) {
    EXPECT_TRUE(Served(std::move(stream), GetParam()))
        << "the Redis protocol listener ignores ALPN";
    return;
  }
  EXPECT_FALSE(stream->shaken());
  EXPECT_THAT(stream->problem(), HasSubstr("no application protocol"));
}

// --- Clients without TLS ----------------------------------------------------------

TEST_P(TlsListenerTest, AnswersPlaintextWithErrorAboutTls) {
  if (GetParam() == ListenerId::kResp) {
    for (const std::string& bytes : {test::RespCommand({"PING"}), std::string("PING\r\n")}) {
      test::RespClient client(At(service_, GetParam()));
      client.Send(bytes);
      EXPECT_THAT(client.Read(), StartsWith("-ERR this port requires TLS"));
      EXPECT_EQ(client.Read(), "(end)");
    }
    return;
  }
  for (const std::string& bytes : {Get("/healthz"), Post("/v1/decide", ByRule("per-key", "a"))}) {
    HttpClient client(At(service_, GetParam()));
    client.Send(bytes);
    const HttpResponse answer = client.Read();
    EXPECT_EQ(answer.status, 400);
    EXPECT_THAT(answer.body, HasSubstr("TLS"));
    EXPECT_EQ(answer.Json().at("status"), 400);
    EXPECT_EQ(client.WaitForEnd(), HttpClient::End::kClosed);
  }
  EXPECT_EQ(upstream_.requests(), 0);
}

TEST_P(TlsListenerTest, ClosesConnectionOnGarbage) {
  for (const std::string_view bytes :
       {std::string_view("\x16\x03\x01\xff\xff garbage"), std::string_view("\0\0\0\0\0\0", 6),
        std::string_view("\x80\x2e\x01\x00\x02\x00\x15\x00\x00\x00\x10", 11)}) {
    HttpClient client(At(service_, GetParam()));
    client.Send(bytes);
    client.EndSending();
    const HttpClient::End end = client.WaitForEnd();
    EXPECT_NE(end, HttpClient::End::kOpen);
  }
  EXPECT_TRUE(Served(Connect(), GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Listeners, TlsListenerTest, testing::ValuesIn(kListenerIds), ListenerName);

// --- TLS 1.3 only -----------------------------------------------------------------

class Tls13ListenerTest : public TlsListenerTest {
 protected:
  static ListenTls Only13() {
    ListenTls tls = TlsFor();
    tls.min_version = ListenTls::Version::kTls13;
    return tls;
  }
  Tls13ListenerTest() : TlsListenerTest(Only13()) {}
};

TEST_P(Tls13ListenerTest, RejectsTls12) {
  const auto older = Connect({.most = TLS1_2_VERSION});
  EXPECT_FALSE(older->shaken());
  EXPECT_THAT(older->problem(), HasSubstr("protocol version"));
  EXPECT_TRUE(Served(Connect(), GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Listeners, Tls13ListenerTest, testing::ValuesIn(kListenerIds),
                         ListenerName);

// --- Handshakes that hang ---------------------------------------------------------

TEST(TlsDeadlineTest, ClosesHangingHandshake) {
  Service service(
      AllListenersTls(TlsFor(), "http://127.0.0.1:9", "limits: {header_timeout: 300ms}\n"));
  for (const ListenerId listener :
       {ListenerId::kApi, ListenerId::kAdmin, ListenerId::kResp, ListenerId::kGateway}) {
    HttpClient silent(At(service, listener));
    HttpClient begins(At(service, listener));
    begins.Send("\x16\x03\x01\x02");  // Only a part of a record header.
    if (listener != ListenerId::kGateway) {
      EXPECT_TRUE(Served(std::make_unique<TlsStream>(At(service, listener)), listener)) << listener;
    }
    EXPECT_NE(silent.WaitForEnd(), HttpClient::End::kOpen) << listener;
    EXPECT_NE(begins.WaitForEnd(), HttpClient::End::kOpen) << listener;
    EXPECT_EQ(silent.WaitForEnd(0ms) == HttpClient::End::kBytes, false)
        << "a silent client must receive nothing";
  }
}

TEST(TlsDeadlineTest, TrickledBytesDoNotExtendTheDeadline) {
  Service service(
      AllListenersTls(TlsFor(), "http://127.0.0.1:9", "limits: {header_timeout: 300ms}\n"));
  HttpClient client(At(service, ListenerId::kApi));
  client.Send("\x16\x03\x01\x02\x00");
  const auto latest = std::chrono::steady_clock::now() + kPatience;
  while (client.WaitForEnd(10ms) == HttpClient::End::kOpen &&
         std::chrono::steady_clock::now() < latest) {
    client.Send("\x01");
  }
  EXPECT_LT(std::chrono::steady_clock::now(), latest);
}

}  // namespace
}  // namespace tidegate::service
