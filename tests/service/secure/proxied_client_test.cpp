// SPDX-License-Identifier: Apache-2.0
// Tests how rules, upstreams and access control treat the client that a PROXY protocol header
// announces.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "service/secure/listeners.hpp"
#include "service/secure/tls_stream.hpp"

namespace tidegate::service {
namespace {

using testing::StartsWith;

class ProxiedClientTest : public testing::Test {
 protected:
  static Config MakeConfig(const std::string& upstream) {
    Config config =
        AllListeners(upstream, "client_ip: {trusted_proxies: [127.0.0.1, 10.0.0.0/8]}\n");
    config.listen.gateway.proxy_protocol = true;
    return config;
  }
  /// Sends a request behind that header to the gateway and returns the response.
  HttpResponse Visit(const std::string& header, std::string_view lines = {}) {
    HttpClient client(At(service_, ListenerId::kGateway));
    std::string request = header + "GET /visits/x HTTP/1.1\r\nHost: test\r\n";
    client.Send(request.append(lines).append("\r\n"));
    return client.Read();
  }
  std::int64_t Left(std::string_view address) {
    return service_.Ask("/v1/peek", ByRule("visits", address)).Json().at("remaining").as_int64();
  }

  behaviour::ScriptedUpstream upstream_{behaviour::ScriptedUpstream::Ok()};
  Service service_{MakeConfig(upstream_.url())};
};

TEST_F(ProxiedClientTest, CountsAndForwardsTheProxiedSource) {
  for (const std::string source : {"203.0.113.7", "2001:db8::7"}) {
    EXPECT_EQ(Visit(ProxyV1(source)).status, 200);
    EXPECT_EQ(upstream_.last().Field("X-Forwarded-For"), source);
    EXPECT_EQ(upstream_.last().Count("X-Forwarded-For"), 1);
    EXPECT_EQ(Visit(ProxyV2(source)).status, 200);
    EXPECT_EQ(upstream_.last().Field("X-Forwarded-For"), source);
    EXPECT_EQ(Left(source), 1);
    EXPECT_EQ(Visit(ProxyV2(source)).status, 200);
    EXPECT_EQ(Visit(ProxyV1(source)).status, 429);
  }
  EXPECT_EQ(Left("127.0.0.1"), 3);
  EXPECT_EQ(Visit(ProxyV1("203.0.113.8")).status, 200) << "another client has its own quota";
}

TEST_F(ProxiedClientTest, CountsThePeerForUnknownAndLocalHeaders) {
  EXPECT_EQ(Visit("PROXY UNKNOWN\r\n").status, 200);
  EXPECT_EQ(Visit("PROXY UNKNOWN 203.0.113.7 127.0.0.1 1 2\r\n").status, 200);
  EXPECT_EQ(upstream_.last().Field("X-Forwarded-For"), "127.0.0.1");
  EXPECT_EQ(Visit(ProxyV2("203.0.113.7", ProxyCommand::kLocal)).status, 200);
  EXPECT_EQ(Left("127.0.0.1"), 0);
  EXPECT_EQ(Left("203.0.113.7"), 3);
}

TEST_F(ProxiedClientTest, DropsForwardingHeadersOfUntrustedSource) {
  const std::string_view claims =
      "X-Forwarded-For: 198.51.100.1\r\nForwarded: for=198.51.100.1\r\nX-Real-IP: 198.51.100.1\r\n"
      "X_Forwarded_For: 198.51.100.1\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: evil\r\n";
  EXPECT_EQ(Visit(ProxyV1("203.0.113.7"), claims).status, 200);
  const test::HttpRequest seen = upstream_.last();
  EXPECT_EQ(seen.Field("X-Forwarded-For"), "203.0.113.7");
  EXPECT_EQ(seen.head.find("198.51.100.1"), std::string::npos) << seen.head;
  EXPECT_EQ(seen.Field("X-Forwarded-Proto"), "http");
  EXPECT_NE(seen.Field("X-Forwarded-Host"), "evil");
  EXPECT_EQ(Left("198.51.100.1"), 3);
  EXPECT_EQ(Left("203.0.113.7"), 2);
}

TEST_F(ProxiedClientTest, TrustsForwardedForOfTrustedSource) {
  EXPECT_EQ(Visit(ProxyV1("10.1.2.3"), "X-Forwarded-For: 198.51.100.1\r\n").status, 200);
  EXPECT_EQ(upstream_.last().Field("X-Forwarded-For"), "198.51.100.1, 10.1.2.3");
  EXPECT_EQ(Left("198.51.100.1"), 2);
  EXPECT_EQ(Left("10.1.2.3"), 3);
}

TEST_F(ProxiedClientTest, TreatsMappedIPv4SourcesAsIPv4) {
  EXPECT_EQ(Visit(ProxyV2("::ffff:203.0.113.7")).status, 200);
  EXPECT_EQ(upstream_.last().Field("X-Forwarded-For"), "203.0.113.7");
  EXPECT_EQ(Visit(ProxyV1("::ffff:203.0.113.7")).status, 200);
  EXPECT_EQ(Visit(ProxyV1("203.0.113.7")).status, 200);
  EXPECT_EQ(Left("203.0.113.7"), 0);
  EXPECT_EQ(Visit(ProxyV2("::ffff:10.1.2.3"), "X-Forwarded-For: 198.51.100.1\r\n").status, 200)
      << "the mapped address of a trusted proxy";
  EXPECT_EQ(Left("198.51.100.1"), 2);
}

TEST_F(ProxiedClientTest, HeaderAppliesToAllRequestsOfTheConnection) {
  HttpClient client(At(service_, ListenerId::kGateway));
  client.Send(ProxyV2("203.0.113.7"));
  for (const int status : {200, 200, 200, 429}) {
    client.Send(Get("/visits/x"));
    EXPECT_EQ(client.Read().status, status);
  }
}

TEST(ProxiedTlsClientTest, ForwardsTheProxiedSourceBehindTls) {
  behaviour::ScriptedUpstream upstream(behaviour::ScriptedUpstream::Ok());
  Config config = AllListeners(upstream.url(), "client_ip: {trusted_proxies: [127.0.0.1]}\n");
  config.listen.gateway.proxy_protocol = true;
  config.listen.gateway.tls = TlsFor();
  Service service(config);
  TlsHttpClient client(At(service, ListenerId::kGateway), {.before = ProxyV2("203.0.113.7")});
  client.Send(Get("/visits/x"));
  EXPECT_EQ(client.Read().status, 200);
  EXPECT_EQ(upstream.last().Field("X-Forwarded-For"), "203.0.113.7");
  EXPECT_EQ(upstream.last().Field("X-Forwarded-Proto"), "https");
}

/// A load balancer connects over IPv4 to an IPv6 socket.
TEST(ProxiedDualStackTest, TrustsMappedIPv4PeerAsIPv4) {
  Config config = AllListeners("http://127.0.0.1:9", "client_ip: {trusted_proxies: [127.0.0.1]}\n");
  config.listen.resp.address = "[::]:0";
  config.listen.resp.proxy_protocol = true;
  Service service(config);
  const std::string at = "127.0.0.1:" + std::to_string(At(service, ListenerId::kResp).port());
  test::RespClient client(net::Endpoint::Parse(at).value());
  client.Send(ProxyV1("203.0.113.7"));
  EXPECT_EQ(client.Ask({"PING"}), "PONG");
}

// --- Rights -------------------------------------------------------------------------

/// Listeners on loopback behind a proxy on the same machine: clients that the proxy announces have
/// the rights of clients on a public address.
class ProxiedRightsTest : public testing::Test {
 protected:
  ProxiedRightsTest() : ProxiedRightsTest(MakeConfig()) {}
  explicit ProxiedRightsTest(const Config& config) : service_(config) {}
  static Config MakeConfig() {
    Config config =
        AllListeners("http://127.0.0.1:9", "client_ip: {trusted_proxies: [127.0.0.1]}\n");
    config.listen.api.proxy_protocol = config.listen.resp.proxy_protocol = true;
    config.listen.admin.proxy_protocol = true;
    config.access.tokens = {{.name = "ops", .secret = "secret-of-operators"}};
    return config;
  }
  int Refund(const std::string& header, std::string_view lines = {}) {
    HttpClient client(service_.api());
    client.Send(header +
                Post("/v1/refund", ByRule("per-key", "a", R"(,"cost":1,"id":"i")"), lines));
    return client.Read().status;
  }
  std::string Command(const std::string& header, std::initializer_list<std::string_view> words) {
    test::RespClient client(At(service_, ListenerId::kResp));
    client.Send(header);
    return client.Ask(words);
  }

  int ReadAdmin(const std::string& header, std::string_view path, std::string_view lines = {}) {
    HttpClient client(service_.admin());
    std::string request = header + "GET ";
    request.append(path).append(" HTTP/1.1\r\nHost: tidegate.example\r\n").append(lines);
    client.Send(request.append("\r\n"));
    return client.Read().status;
  }

  Service service_;
};

const std::vector<std::string>& RemoteHeaders() {
  static const std::vector<std::string> kHeaders{
      ProxyV1("203.0.113.7"),        ProxyV2("2001:db8::7"),
      ProxyV2("::ffff:203.0.113.7"), ProxyV2("203.0.113.7", ProxyCommand::kLocal),
      "PROXY UNKNOWN\r\n",
  };
  return kHeaders;
}
constexpr std::array<std::string_view, 6> kAdminPaths{"/metrics", "/v1/status",    "/v1/rules",
                                                      "/v1/hot",  "/v1/overrides", "/v1/audit"};

class ProxiedWithoutTokensTest : public ProxiedRightsTest {
 protected:
  ProxiedWithoutTokensTest() : ProxiedRightsTest(WithoutTokens()) {}
  static Config WithoutTokens() {
    Config config = MakeConfig();
    config.access.tokens.clear();
    return config;
  }
};

TEST_F(ProxiedWithoutTokensTest, RemoteClientsMayOnlyDecide) {
  for (const std::string& header : RemoteHeaders()) {
    EXPECT_EQ(Refund(header), 403);
    EXPECT_THAT(Command(header, {"TG.RESET", "per-key", "a"}), StartsWith("-NOPERM"));
    EXPECT_THAT(Command(header, {"TG.DEBIT", "per-key", "a", "COST", "9"}), StartsWith("-NOPERM"));
    EXPECT_THAT(Command(header, {"TG.DECIDE", "per-key", "b"}), StartsWith("["));
  }
}

TEST_F(ProxiedWithoutTokensTest, AdminRejectsRemoteClients) {
  for (const std::string& header : RemoteHeaders()) {
    for (const std::string_view path : kAdminPaths) EXPECT_EQ(ReadAdmin(header, path), 403) << path;
    for (const std::string_view path : {"/healthz", "/readyz", "/openapi.json"}) {
      EXPECT_EQ(ReadAdmin(header, path), 200) << path;
    }
  }
  HttpClient client(service_.admin());
  client.Send(ProxyV1("203.0.113.7") + "GET /v1/rules HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
  EXPECT_THAT(client.Read().body, testing::HasSubstr("set `access.tokens`"));
  HttpClient local(service_.admin());
  local.Send(ProxyV1("127.0.0.1") + "GET /v1/rules HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
  EXPECT_EQ(local.Read().status, 200);
}

TEST_F(ProxiedRightsTest, AdminAuthenticatesRemoteClients) {
  for (const std::string& header : RemoteHeaders()) {
    for (const std::string_view path : kAdminPaths) {
      EXPECT_EQ(ReadAdmin(header, path), 401) << path;
      EXPECT_EQ(ReadAdmin(header, path, "Authorization: Bearer secret-of-operators\r\n"), 200)
          << path;
    }
  }
}

TEST_F(ProxiedRightsTest, RemoteClientsMustAuthenticate) {
  for (const std::string& header : RemoteHeaders()) {
    EXPECT_EQ(Refund(header), 401);
    EXPECT_EQ(Refund(header, "Authorization: Bearer secret-of-operators\r\n"), 200);
    EXPECT_THAT(Command(header, {"TG.RESET", "per-key", "a"}), StartsWith("-NOAUTH"));
    EXPECT_THAT(Command(header, {"TG.DECIDE", "per-key", "b"}), StartsWith("-NOAUTH"));
  }
}

TEST_F(ProxiedRightsTest, LocalClientsHaveAllRights) {
  for (const std::string& header : {ProxyV1("127.0.0.1"), ProxyV1("::1"), ProxyV2("127.9.9.9"),
                                    ProxyV2("::ffff:127.0.0.1"), ProxyV2("::1")}) {
    EXPECT_EQ(Refund(header), 200) << header;
    EXPECT_EQ(Command(header, {"TG.RESET", "per-key", "b"}), "0") << header;
  }
}

/// A request to /v1/auth comes from the announced source, so that source must be trusted, not only
/// the load balancer.
TEST_F(ProxiedRightsTest, ForwardAuthTrustsTheSourceNotThePeer) {
  const auto ask = [&](const std::string& header) {
    HttpClient client(service_.api());
    client.Send(header +
                "GET /v1/auth HTTP/1.1\r\nHost: test\r\nX-Forwarded-Uri: /visits/x\r\n"
                "X-Forwarded-Method: GET\r\nX-Forwarded-For: 198.51.100.1\r\n\r\n");
    return client.Read().status;
  };
  EXPECT_EQ(ask(ProxyV1("127.0.0.1")), 200);
  EXPECT_EQ(ask(ProxyV1("203.0.113.7")), 500);
}

}  // namespace
}  // namespace tidegate::service
