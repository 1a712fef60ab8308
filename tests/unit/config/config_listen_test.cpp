// SPDX-License-Identifier: Apache-2.0
// Configuration of listeners: addresses, PROXY protocol and authentication.
// config_listen_tls_test.cpp tests their TLS settings, except for authentication.
#include "unit/config/config_folder.hpp"
#include "unit/config/config_reading.hpp"
#include "unit/config/self_signed.hpp"

namespace tidegate {
namespace {

using testing::HasSubstr;
using testing::Not;
using Auth = ListenSpec::Auth;

const std::string kTokens = "access: { tokens: 'a 0123456789abcdef' }\n";
const std::string kGatewayRest =
    "routes: [ { upstream: api } ]\nupstreams: { api: { targets: 'http://h' } }\n";

std::string Listen(const std::string& listeners) { return "listen: { " + listeners + " }\n"; }

/// Returns the warnings about a valid configuration, which gives no reason for warnings about other
/// sections.
std::string Warned(const std::string& yaml, const std::string& folder = "/nonexistent") {
  const ConfigReading reading = Read(yaml + "api: { inline_quotas: true }\n", folder);
  EXPECT_TRUE(reading.config) << ProblemText(reading) << "in:\n" << yaml;
  return ProblemText(reading);
}

TEST(ListenConfigTest, AcceptsAddressAsListener) {
  const Config::Listen listen = Good(
                                    "listen:\n"
                                    "  api: '[::1]:1'\n"
                                    "  admin: { address: 'localhost:2' }\n"
                                    "  resp: 127.0.0.1:6380\n")
                                    .listen;
  EXPECT_EQ(listen.api, ListenSpec("[::1]:1"));
  EXPECT_EQ(listen.admin, ListenSpec("127.0.0.1:2"));
  EXPECT_EQ(listen.resp, ListenSpec("127.0.0.1:6380"));
  EXPECT_TRUE(listen.gateway.off());
}

TEST(ListenConfigTest, OpensOnlyNamedListeners) {
  EXPECT_EQ(Good("rules: []\n").listen, Config::Listen{});
  const Config::Listen listen = Good("listen: { api: '127.0.0.1:8081' }\n").listen;
  EXPECT_EQ(listen.api, ListenSpec("127.0.0.1:8081"));
  EXPECT_TRUE(listen.admin.off());
  EXPECT_TRUE(listen.resp.off());
  EXPECT_TRUE(listen.gateway.off());
  EXPECT_EQ(listen.api.auth, Auth::kByAddress);
  EXPECT_FALSE(listen.api.proxy_protocol);
  EXPECT_FALSE(listen.api.tls);
}

TEST(ListenConfigTest, ReadsEveryKeyOfAListener) {
  const Config::Listen listen = Good("client_ip: { trusted_proxies: [10.0.0.1] }\n" + kTokens +
                                     "listen:\n"
                                     "  api: { address: '0.0.0.0:1', auth: open }\n"
                                     "  resp: { auth: required, address: '127.0.0.1:3' }\n"
                                     "  gateway: { address: '127.0.0.1:4', proxy_protocol: true }\n"
                                     "  admin: { address: off, proxy_protocol: false }\n" +
                                     kGatewayRest)
                                    .listen;
  EXPECT_EQ(listen.api.auth, Auth::kOpen);
  EXPECT_EQ(listen.resp.auth, Auth::kRequired);
  EXPECT_EQ(listen.resp.address, "127.0.0.1:3");
  EXPECT_TRUE(listen.gateway.proxy_protocol);
  EXPECT_EQ(listen.gateway.auth, Auth::kByAddress);
  EXPECT_EQ(listen.admin, ListenSpec());
}

TEST(BadListenConfigTest, ReportsBadAddresses) {
  const BadCase cases[] = {
      {Listen("resp: { }"), "1:17: error: listen.resp: needs an `address`, as in `address: "},
      {Listen("api: { auth: open }"), "1:16: error: listen.api: needs an `address`"},
      {Listen("api: { adress: 'localhost:1' }"), "1:18: error: listen.api: unknown key `adress`"},
      {Listen("api: { address: 8081 }"), "1:27: error: listen.api.address: should be an address"},
      {Listen("api: [a]"), "1:16: error: listen.api: should be an address and a port, as in"},
      {Listen("api: { address: off, proxy_protocol: 1 }"),
       "1:48: error: listen.api.proxy_protocol: should be `true` or `false`"},
      {Listen("api: { address: off, auth: yes }"),
       "1:38: error: listen.api.auth: should be `required` or `open`, but is `yes`"},
      {Listen("api: { address: off, tls: on }"),
       "1:37: error: listen.api.tls: should be a map with keys such as `certificates`"},
      {Listen("gateway: { address: '127.0.0.1:1', auth: required }") + kGatewayRest,
       "1:52: error: listen.gateway.auth: does not apply to the gateway"},
      {Listen("gateway: { proxy_protocol: false }"),
       "1:20: error: listen.gateway: needs an `address`"},
  };
  for (const BadCase& bad : cases) ExpectProblem(bad);
}

// A wrong address is reported once, without errors that only follow from it.
TEST(BadListenConfigTest, ReportsEachMistakeOnce) {
  for (const std::string& yaml :
       {Listen("admin: { address: 'x:1', auth: open }"),
        Listen("admin: '0.0.0.0:1'") + "access: { tokens: 'a short' }\n",
        Listen("admin: '0.0.0.0:1'") + "access: none\n",
        Listen("api: { address: 'localhost:1', auth: required }") + "access: {}\n",
        Listen("api: { address: 'localhost:1', proxy_protocol: true }") +
            "client_ip: { trusted_proxies: [x] }\n",
        Listen("gateway: { address: x }") + kGatewayRest}) {
    EXPECT_EQ(Read(yaml).problems.size(), 1u) << ProblemText(Read(yaml)) << "in:\n" << yaml;
  }
}

TEST(BadListenConfigTest, RejectsTwoListenersAtOneAddress) {
  const std::string names[] = {"api", "admin", "resp", "gateway"};
  for (std::size_t i = 0; i < 4; ++i) {
    for (std::size_t j = i + 1; j < 4; ++j) {
      const std::string rest = j == 3 ? kGatewayRest : "";
      ExpectProblem({"listen:\n  " + names[j] + ": { address: '[::1]:7' }\n  " + names[i] +
                         ": '[0::1]:7'\n" + rest,
                     "2:" + std::to_string(names[j].size() + 16) + ": error: listen." + names[j] +
                         ": has the same address as `" + names[i] +
                         "`; give them different ports"});
    }
  }
  (void)Good(Listen("resp: '127.0.0.1:0', api: '127.0.0.1:0', admin: '127.0.0.2:8081'"));
}

TEST(BadListenConfigTest, RejectsProxyProtocolWithoutTrustedProxies) {
  const std::string listener = "{ address: '127.0.0.1:1', proxy_protocol: true }";
  const auto check = [&](const std::string& name) {
    const std::string yaml =
        Listen(name + ": " + listener) + (name == "gateway" ? kGatewayRest : "");
    ExpectProblem({yaml, "1:" + std::to_string(11 + name.size() + 2 + 42) + ": error: listen." +
                             name +
                             ".proxy_protocol: is accepted from trusted proxies only, and none are "
                             "configured, so that every connection would be rejected; name your "
                             "balancers, as in `client_ip: { trusted_proxies: [10.0.0.0/8] }`"});
    (void)Good("client_ip: { trusted_proxies: [10.0.0.0/8] }\n" + yaml);
  };
  for (const char* name : {"api", "admin", "resp", "gateway"}) check(name);
}

class ListenAuthenticationTest : public ConfigFolder {
 protected:
  void SetUp() override {
    ConfigFolder::SetUp();
    const SelfSigned mine;
    Write("c", mine.Certificate());
    Write("k", mine.Key());
  }
  /// Returns the YAML of a listener with TLS.
  static std::string TlsListener(const std::string& address, const std::string& tls,
                                 const std::string& more = {}) {
    return "{ address: '" + address + "'" + more +
           ", tls: { certificates: [ { certificate: 'file:c', key: 'file:k' } ]" + tls + " } }";
  }
  const std::string required_ = ", client_ca: 'file:c'";
  const std::string optional_ = ", client_ca: 'file:c', client_certificates: optional";
};

TEST_F(ListenAuthenticationTest, RequiresTokensOrClientCertificatesForPublicAdmin) {
  const std::string open =
      "1:18: error: listen.admin: is not a loopback address, so operators must authenticate: "
      "configure tokens with `access: { tokens: file:PATH }`, or require client certificates with "
      "`client_ca` and `client_certificates: required` in the listener's `tls`";
  ExpectProblem({Listen("admin: '0.0.0.0:1'"), open});
  ExpectProblem({Listen("admin: '192.0.2.1:1'"), open});
  ExpectProblem({Listen("admin: '[::]:1'"), open});
  const auto problems = [&](const std::string& listener) {
    return ProblemText(Read(Listen("admin: " + listener), folder_));
  };
  EXPECT_THAT(problems(TlsListener("0.0.0.0:1", "")),
              HasSubstr("listen.admin: is not a loopback address"));
  EXPECT_THAT(problems(TlsListener("0.0.0.0:1", optional_)),
              HasSubstr("1:29: error: listen.admin: is not a loopback address"));
  EXPECT_EQ(Warned(Listen("admin: " + TlsListener("0.0.0.0:1", required_)), folder_), "");
  EXPECT_EQ(Warned(kTokens + Listen("admin: " + TlsListener("0.0.0.0:1", "")), folder_), "");
  (void)Good(kTokens + Listen("admin: '0.0.0.0:1'"));
}

TEST_F(ListenAuthenticationTest, ClientCertificatesDoNotPermitOpenAdminOnPublicAddress) {
  const std::string open = "listen.admin.auth: `open` would let anyone operate this server";
  ExpectProblem(
      {Listen("admin: { address: '0.0.0.0:1', auth: open }") + kTokens, "1:48: error: " + open});
  EXPECT_THAT(
      ProblemText(
          Read(Listen("admin: " + TlsListener("0.0.0.0:1", required_, ", auth: open")), folder_)),
      HasSubstr(open));
  (void)Good(Listen("admin: { address: '127.0.0.1:1', auth: open }"));
}

TEST_F(ListenAuthenticationTest, RequiresTokensOrClientCertificatesForRequiredAuth) {
  const auto check = [&](const std::string& name) {
    const auto at = std::to_string(11 + name.size() + 2 + 32);
    const std::string plain = Listen(name + ": { address: '127.0.0.1:1', auth: required }");
    ExpectProblem({plain, "1:" + at + ": error: listen." + name +
                              ".auth: no caller could authenticate, so all would be rejected: "
                              "configure tokens with `access: { tokens: file:PATH }`, or"});
    EXPECT_EQ(Warned(plain + kTokens), "");
    for (const std::string& clients : {required_, optional_}) {
      EXPECT_EQ(
          Warned(Listen(name + ": " + TlsListener("127.0.0.1:1", clients, ", auth: required")),
                 folder_),
          "");
    }
    for (const char* const clients : {"", ", client_certificates: none"}) {
      EXPECT_THAT(ProblemText(Read(
                      Listen(name + ": " + TlsListener("127.0.0.1:1", clients, ", auth: required")),
                      folder_)),
                  HasSubstr("no caller could authenticate"));
    }
  };
  for (const char* name : {"api", "resp", "admin"}) check(name);
}

TEST_F(ListenAuthenticationTest, ClientCertificatesAuthenticateCallersLikeTokens) {
  const std::string what =
      ": anyone who reaches it can request decisions and use up the limits of others; operations "
      "that give "
      "quota back are refused there. ";
  const auto check = [&](const std::string& name) {
    const auto at = [&](std::size_t more) {
      return "1:" + std::to_string(11 + name.size() + 2 + more) + ": warning: listen." + name;
    };
    const std::string no_callers = ": is not a loopback address, and callers cannot authenticate" +
                                   what + "Give callers tokens with `access.tokens`\n";
    EXPECT_EQ(Warned(Listen(name + ": '0.0.0.0:1'")), at(0) + no_callers);
    EXPECT_EQ(Warned(Listen(name + ": '[::]:1'")), at(0) + no_callers);
    EXPECT_EQ(Warned(Listen(name + ": " + TlsListener("0.0.0.0:1", "")), folder_),
              at(11) + no_callers);
    EXPECT_EQ(Warned(Listen(name + ": " + TlsListener("0.0.0.0:1", optional_)), folder_), "");
    EXPECT_EQ(Warned(Listen(name + ": " + TlsListener("0.0.0.0:1", required_)), folder_), "");
    EXPECT_EQ(Warned(Listen(name + ": " + TlsListener("0.0.0.0:1", "")) + kTokens, folder_), "");
    const std::string open = Listen(name + ": { address: '0.0.0.0:1', auth: open }");
    EXPECT_EQ(Warned(open),
              at(30) + ".auth: is `open` on an address that is not a loopback address" + what +
                  "To require the tokens of `access.tokens`, write `required`\n");
    for (const char* listener : {"'[::1]:81'", "127.9.9.9:81", "off", "localhost:81",
                                 "{ address: 'localhost:81', auth: open }"}) {
      EXPECT_EQ(Warned(Listen(name + ": " + listener)), "") << listener;
    }
  };
  for (const char* name : {"api", "resp"}) check(name);
}

TEST_F(ListenAuthenticationTest, WarnsAboutTokensSentUnencrypted) {
  const std::string clear =
      "callers send their tokens unencrypted, and anyone who can read the traffic can use them";
  const auto check = [&](const std::string& name) {
    EXPECT_THAT(Warned(Listen(name + ": '0.0.0.0:1'") + kTokens),
                HasSubstr("1:" + std::to_string(11 + name.size() + 2) + ": warning: listen." +
                          name + ": " + clear));
    EXPECT_EQ(Warned(Listen(name + ": " + TlsListener("0.0.0.0:1", "")) + kTokens, folder_), "");
    EXPECT_EQ(Warned(Listen(name + ": { address: 'localhost:1', auth: required }") + kTokens), "");
  };
  for (const char* name : {"api", "resp", "admin"}) check(name);
  EXPECT_THAT(Warned(Listen("api: { address: '0.0.0.0:1', auth: open }") + kTokens),
              Not(HasSubstr(clear)));
}

TEST(ListenWarningsTest, WarnsAboutUnusedTokens) {
  const std::string idle = "1:9: warning: access: has no effect: callers on loopback need no token";
  EXPECT_THAT(Warned(kTokens), HasSubstr(idle));
  EXPECT_THAT(Warned(kTokens + Listen("api: off, admin: off")), HasSubstr(idle));
  EXPECT_THAT(Warned(kTokens + Listen("gateway: '0.0.0.0:1'") + kGatewayRest), HasSubstr(idle));
  EXPECT_THAT(Warned(kTokens + Listen("api: { address: '0.0.0.0:1', auth: open }")),
              HasSubstr(idle));
  EXPECT_THAT(Warned(kTokens + Listen("resp: '0.0.0.0:1'")), Not(HasSubstr("has no effect")));
  EXPECT_EQ(Warned(kTokens + Listen("api: { address: 'localhost:1', auth: required }")), "");
  EXPECT_THAT(Warned(kTokens + "client_ip: { trusted_proxies: [127.0.0.1] }\n" +
                     Listen("api: { address: 'localhost:1', proxy_protocol: true }")),
              Not(HasSubstr("access: has no effect")));
}

TEST(ListenConfigTest, EqualListenersCompareEqual) {
  const auto api = [](const std::string& listener) {
    return Good(Listen("api: " + listener)).listen;
  };
  EXPECT_EQ(api("'127.0.0.1:1'"), api("{ address: 'localhost:1' }"));
  EXPECT_NE(api("'127.0.0.1:1'"), api("{ address: '127.0.0.1:1', auth: open }"));
}

}  // namespace
}  // namespace tidegate
