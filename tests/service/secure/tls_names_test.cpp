// SPDX-License-Identifier: Apache-2.0
// Tests which certificate of a listener a client gets: by the server name that it requests, and by
// the key types that it supports.
#include <gtest/gtest.h>

#include "service/secure/listeners.hpp"
#include "service/secure/tls_stream.hpp"

namespace tidegate::service {
namespace {

using Key = behaviour::Authority::Key;

constexpr std::string_view kEc = "ecdsa_secp256r1_sha256";
constexpr std::string_view kRsa = "rsa_pss_rsae_sha256";

Config ApiWith(std::vector<ListenTls::Certificate> certificates) {
  Config config = Service::ConfigOf("");
  config.listen.api.tls = ListenTls{.certificates = std::move(certificates)};
  return config;
}

struct NameCase {
  std::string_view test;
  std::string name;
  std::string_view gets;
};
class TlsNameTest : public testing::TestWithParam<NameCase> {
 protected:
  static Service& Server() {
    static Service service(
        ApiWith({PairFor({"first.example"}), PairFor({"api.example.com", "api2.example.com"}),
                 PairFor({"*.example.com"}), PairFor({"deep.wild.example.com"}),
                 PairFor({"*.wild.example.com"})}));
    return service;
  }
};

TEST_P(TlsNameTest, ChoosesCertificateByServerName) {
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    auto stream = std::make_unique<TlsStream>(
        Server().api(),
        TlsOptions{.server_name = GetParam().name, .least = version, .most = version});
    ASSERT_TRUE(stream->shaken()) << stream->problem();
    EXPECT_EQ(stream->certificate(), GetParam().gets);
    EXPECT_TRUE(Served(std::move(stream), ListenerId::kApi));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Table, TlsNameTest,
    testing::Values(NameCase{"None", "", "first.example"},
                    NameCase{"First", "first.example", "first.example"},
                    NameCase{"Exact", "api.example.com", "api.example.com"},
                    NameCase{"SecondNameOfOneCertificate", "api2.example.com", "api.example.com"},
                    NameCase{"IgnoresCaseOfName", "API.Example.COM", "api.example.com"},
                    NameCase{"Wildcard", "shop.example.com", "*.example.com"},
                    NameCase{"ExactBeforeWildcard", "deep.wild.example.com",
                             "deep.wild.example.com"},
                    NameCase{"NearerWildcard", "x.wild.example.com", "*.wild.example.com"},
                    NameCase{"WildcardMatchesOneLabelOnly", "a.b.example.com", "first.example"},
                    NameCase{"WildcardMatchesAtLeastOneLabel", "example.com", "first.example"},
                    NameCase{"EndOfAName", "notapi.example.org", "first.example"},
                    NameCase{"Unknown", "elsewhere.test", "first.example"}),
    [](const auto& of) { return std::string(of.param.test); });

TEST(TlsKeysTest, ServesRsaAndEcdsaCertificatesForOneName) {
  for (const bool rsa_first : {false, true}) {
    const auto ec = PairFor({"both.example"}, Key::kEc);
    const auto rsa = PairFor({"both.example"}, Key::kRsa);
    Service service(ApiWith(rsa_first ? std::vector{rsa, ec} : std::vector{ec, rsa}));
    for (const std::string name : {"both.example", ""}) {
      for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
        for (const std::string_view signatures : {kEc, kRsa}) {
          const TlsStream stream(service.api(), {.server_name = name,
                                                 .least = version,
                                                 .most = version,
                                                 .signatures = std::string(signatures)});
          EXPECT_TRUE(stream.shaken()) << signatures << " " << stream.problem();
          EXPECT_EQ(stream.rsa(), signatures == kRsa) << signatures;
        }
      }
    }
  }
}

TEST(TlsKeysTest, ServesWithRsaCertificateOnly) {
  Service service(ApiWith({PairFor({"rsa.example"}, Key::kRsa)}));
  auto stream = std::make_unique<TlsStream>(service.api());
  EXPECT_TRUE(stream->shaken()) << stream->problem();
  EXPECT_TRUE(stream->rsa());
  EXPECT_TRUE(Served(std::move(stream), ListenerId::kApi));
  EXPECT_FALSE(TlsStream(service.api(), {.signatures = std::string(kEc)}).shaken());
}

}  // namespace
}  // namespace tidegate::service
