// SPDX-License-Identifier: Apache-2.0
#include "config/pem.hpp"
#include "unit/config/config_folder.hpp"
#include "unit/config/config_reading.hpp"
#include "unit/config/self_signed.hpp"

namespace tidegate {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;
using Clients = ListenTls::Clients;
using Version = ListenTls::Version;

constexpr long kDay = 86'400;

/// Returns a configuration whose listener has this content of `tls`, which begins on line 3, column
/// 12.
std::string Yaml(const std::string& tls) {
  return "listen:\n  api: { address: '127.0.0.1:8443',\n    tls: { " + tls +
         " } }\napi: { inline_quotas: true }\n";
}
const std::string kPair = "certificates: [ { certificate: 'file:c.pem', key: 'file:k.pem' } ]";

class ListenTlsConfigTest : public ConfigFolder {
 protected:
  void SetUp() override {
    ConfigFolder::SetUp();
    Write("c.pem", mine_.Certificate());
    Write("k.pem", mine_.Key());
  }
  ListenTls GoodTls(const std::string& tls) const {
    const Config config = Good(Yaml(tls), folder_);
    EXPECT_TRUE(config.listen.api.tls);
    return config.listen.api.tls.value_or(ListenTls{});
  }
  std::string ProblemsOf(const std::string& tls) const {
    return ProblemText(Read(Yaml(tls), folder_));
  }
  const SelfSigned mine_;
};

TEST_F(ListenTlsConfigTest, ReadsEveryKey) {
  const SelfSigned other;
  Write("c2.pem", other.Certificate() + mine_.Certificate());
  Write("k2.pem", other.Key());
  Write("ca.pem", other.Certificate());
  const ListenTls tls = GoodTls(
      "certificates: [ { certificate: 'file:c.pem', key: 'file:k.pem' }, { key: 'file:k2.pem', "
      "certificate: 'file:c2.pem' } ], client_ca: 'file:ca.pem', client_certificates: optional, "
      "min_version: '1.3'");
  ASSERT_THAT(tls.certificates, SizeIs(2));
  EXPECT_EQ(tls.certificates[0].certificate_pem + "\n", mine_.Certificate());
  EXPECT_EQ(tls.certificates[0].key_pem + "\n", mine_.Key());
  EXPECT_EQ(tls.certificates[1].certificate_pem + "\n", other.Certificate() + mine_.Certificate());
  EXPECT_EQ(tls.certificates[1].key_pem + "\n", other.Key());
  EXPECT_EQ(tls.client_ca_pem + "\n", other.Certificate());
  EXPECT_EQ(tls.clients, Clients::kOptional);
  EXPECT_EQ(tls.min_version, Version::kTls13);
}

TEST_F(ListenTlsConfigTest, HasDefaultsForTlsSettings) {
  const ListenTls tls = GoodTls(kPair);
  EXPECT_EQ(tls.client_ca_pem, "");
  EXPECT_EQ(tls.clients, Clients::kNone);
  EXPECT_EQ(tls.min_version, Version::kTls12);
  EXPECT_EQ(GoodTls(kPair + ", client_certificates: none, min_version: 1.2"), tls);
  EXPECT_EQ(GoodTls(kPair + ", client_ca: 'file:c.pem'").clients, Clients::kRequired);
}

TEST_F(ListenTlsConfigTest, ReportsLineAndColumnOfMistakes) {
  Write("other.pem", SelfSigned().Key());
  Write("locked.pem", mine_.Key("open sesame"));
  Write("empty.pem", "");
  const std::string first = "listen.api.tls.certificates[0]";
  const struct {
    std::string tls;
    std::string expected;
  } cases[] = {
      {"", "3:10: error: listen.api.tls: needs `certificates`: a list, as in `- { certificate: "},
      {"min_version: '1.3'", "3:10: error: listen.api.tls: needs `certificates`"},
      {"certificates: []", "3:26: error: listen.api.tls.certificates: names no certificate"},
      {"certificates: { }", "3:26: error: listen.api.tls.certificates: should be a list"},
      {"certificates: [ 'file:c.pem' ]",
       "3:28: error: " + first + ": should be a map with keys such as `certificate`"},
      {"certificates: [ { } ]", "3:28: error: " + first + ": needs a `certificate` and its `key`"},
      {"certificates: [ { certificate: 'file:c.pem' } ]",
       "3:43: error: " + first + ".certificate: needs its `key` too"},
      {"certificates: [ { key: 'file:k.pem' } ]",
       "3:35: error: " + first + ".key: needs its `certificate` too"},
      {"certificates: [ { key: 'file:other.pem', certificate: 'file:c.pem' } ]",
       "3:35: error: " + first + ".key: is not the key of `certificate`"},
      {"certificates: [ { key: 'file:locked.pem', certificate: 'file:c.pem' } ]",
       "3:35: error: " + first + ".key: should be a private key in PEM form without a passphrase"},
      {"certificates: [ { key: 'file:empty.pem', certificate: 'file:c.pem' } ]",
       "3:35: error: " + first + ".key: is empty, and should be a private key in PEM form"},
      {"certificates: [ { certificate: 'file:empty.pem', key: 'file:k.pem' } ]",
       "3:43: error: " + first + ".certificate: should be certificates in PEM form"},
      {"certificates: [ { key: 'file:k.pem', certificate: 'file:k.pem' } ]",
       "3:62: error: " + first + ".certificate: should be certificates in PEM form"},
      {"certificates: [ { key: 'file:absent', certificate: 'file:c.pem' } ]",
       "3:35: error: " + first + ".key: there is no file `" + folder_ + "/absent`"},
      {"certificates: [ { cert: x } ]", "3:30: error: " + first + ": unknown key `cert`"},
      {"client_ca: s3cret, " + kPair,
       "3:23: error: listen.api.tls.client_ca: should be certificates in PEM form"},
      {"client_certificates: required, " + kPair,
       "3:33: error: listen.api.tls.client_certificates: needs `client_ca`, the authorities by"},
      {"client_certificates: optional, " + kPair,
       "3:33: error: listen.api.tls.client_certificates: needs `client_ca`"},
      {"client_certificates: none, client_ca: 'file:c.pem', " + kPair,
       "3:33: error: listen.api.tls.client_certificates: the listener requests no certificates, so "
       "that `client_ca` has no effect"},
      {"client_certificates: true, " + kPair,
       "3:33: error: listen.api.tls.client_certificates: should be `none`, `optional` or"},
      {"min_version: '1.1', " + kPair,
       "3:25: error: listen.api.tls.min_version: should be `1.2` or `1.3`, but is `1.1`"},
  };
  for (const auto& [tls, expected] : cases) {
    EXPECT_THAT("\n" + ProblemsOf(tls), HasSubstr("\n" + expected)) << tls;
  }
}

TEST_F(ListenTlsConfigTest, ReadsRevocationLists) {
  const std::string crls = mine_.Crl() + SelfSigned().Crl();
  Write("crl.pem", crls);
  const std::string tls = kPair + ", client_ca: 'file:c.pem', client_crl: 'file:crl.pem'";
  EXPECT_EQ(GoodTls(tls).client_crl_pem + "\n", crls);
  EXPECT_EQ(ProblemsOf(tls), "");
  const std::vector<WatchedFile> files = Read(Yaml(tls), folder_).files;
  EXPECT_TRUE(std::ranges::any_of(files, [](const WatchedFile& file) {
    return file.path.ends_with("crl.pem");
  })) << "the file is not watched for changes";
}

TEST_F(ListenTlsConfigTest, WarnsAboutRevocationListsThatAreNotValidNow) {
  const std::string tls = "client_crl: 'file:crl.pem', client_ca: 'file:c.pem', " + kPair;
  const std::string where = "3:24: warning: listen.api.tls.client_crl: the CRL of `CN=self` ";
  Write("crl.pem", mine_.Crl() + mine_.Crl(-10 * kDay, -kDay));
  (void)GoodTls(tls);
  EXPECT_THAT(ProblemsOf(tls),
              testing::MatchesRegex(
                  where + "expired on 20[0-9-]+ [0-9:]+ UTC: until you provide a valid CRL, "
                          "clients with certificates of that authority are rejected\n"));
  Write("crl.pem", mine_.Crl(kDay, 2 * kDay));
  EXPECT_THAT(ProblemsOf(tls), HasSubstr(where + "is not valid before 20"));
}

TEST_F(ListenTlsConfigTest, RejectsUnusableRevocationLists) {
  Write("crl.pem", mine_.Crl());
  Write("broken.pem", mine_.Crl() + "-----BEGIN X509 CRL-----\nAAAA\n-----END X509 CRL-----\n");
  const std::string ca = "client_ca: 'file:c.pem', " + kPair;
  for (const std::string_view file : {"c.pem", "broken.pem", "k.pem"}) {
    EXPECT_THAT(
        ProblemsOf(std::string("client_crl: 'file:").append(file).append("', ").append(ca)),
        HasSubstr("3:24: error: listen.api.tls.client_crl: should be certificate revocation "
                  "lists in PEM form"))
        << file;
  }
  EXPECT_THAT(ProblemsOf("client_crl: 'file:crl.pem', " + kPair),
              HasSubstr("3:24: error: listen.api.tls.client_crl: needs `client_ca`"));
}

TEST_F(ListenTlsConfigTest, ReportsEachMistakeOnce) {
  for (const std::string tls :
       {"certificates: [ { key: 'file:absent', certificate: 'file:c.pem' } ]",
        "certificates: [ { key: 'file:k.pem', certificate: 'x' } ]"}) {
    EXPECT_THAT(Read(Yaml(tls), folder_).problems, SizeIs(1)) << ProblemsOf(tls);
  }
}

TEST_F(ListenTlsConfigTest, WarnsAboutCertificatesThatAreNotValidNow) {
  const SelfSigned over(-10 * kDay, -5);
  const SelfSigned early(kDay, 10 * kDay);
  const auto problems = [&](const std::string& certificates, const SelfSigned& first) {
    Write("dated.pem", certificates);
    Write("dated.key", first.Key());
    const std::string tls =
        "certificates: [ { certificate: 'file:dated.pem', key: 'file:dated.key' } ]";
    (void)GoodTls(tls);
    return ProblemsOf(tls);
  };
  const std::string where = "3:43: warning: listen.api.tls.certificates[0].certificate: ";
  EXPECT_THAT(problems(over.Certificate(), over), HasSubstr(where + "expired on 20"));
  EXPECT_THAT(problems(early.Certificate(), early), HasSubstr(where + "is not valid before 20"));
  EXPECT_THAT(problems(mine_.Certificate() + over.Certificate(), mine_),
              HasSubstr(where + "certificate 2 of its chain expired on 20"));
  EXPECT_EQ(problems(mine_.Certificate() + mine_.Certificate(), mine_), "");
}

TEST(PemCertificateTest, ReportsExpiryDateOfCertificate) {
  const SelfSigned over(-1'000 * kDay, -900 * kDay);
  const std::time_t then = std::time(nullptr) - 900 * kDay;
  char day[16];
  std::strftime(day, sizeof day, "%Y-%m-%d", std::gmtime(&then));
  EXPECT_THAT(OutOfDate(over.Certificate()).value_or(""),
              HasSubstr("expired on " + std::string{day}));
}

// The server watches these files for changes. It needs the digests, but must not keep the content.
TEST_F(ListenTlsConfigTest, RecordsEveryFileReadWithItsDigest) {
  Write("tokens", "a 0123456789abcdef\n");
  const std::string yaml = Yaml(kPair + ", client_ca: 'file:c.pem'") +
                           "access: { tokens: 'file:" + folder_ +
                           "/tokens' }\nidentity: { hmac_key: 'file:absent' }\n";
  const auto seen = [&](const std::string& name, const std::string& content) {
    return WatchedFile{.path = folder_ + "/" + name, .content = DigestOf(content)};
  };
  const WatchedFile certificate = seen("c.pem", mine_.Certificate());
  const WatchedFile key = seen("k.pem", mine_.Key());
  const WatchedFile tokens = seen("tokens", "a 0123456789abcdef\n");
  EXPECT_THAT(Read(yaml, folder_).files, ElementsAre(certificate, key, tokens, seen("absent", "")));
  Write("t.yaml", yaml);
  EXPECT_THAT(LoadConfig(folder_ + "/t.yaml").files,
              ElementsAre(seen("t.yaml", yaml), certificate, key, tokens, seen("absent", "")));
  EXPECT_THAT(LoadConfig(folder_ + "/gone.yaml").files, ElementsAre(seen("gone.yaml", "")));
  EXPECT_EQ(DigestOfFile(certificate.path), certificate.content);
  Write("large", std::string(100'000, 'x'));
  EXPECT_EQ(DigestOfFile(folder_ + "/large"), DigestOf(std::string(100'000, 'x')));
  EXPECT_TRUE(DigestOfFile(folder_).none());
  EXPECT_TRUE(DigestOfFile(folder_ + "/absent").none());
}

}  // namespace
}  // namespace tidegate
