// SPDX-License-Identifier: Apache-2.0
#include "unit/config/config_folder.hpp"
#include "unit/config/config_reading.hpp"
#include "unit/config/self_signed.hpp"

namespace tidegate {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;
using May = TokenSpec::May;

const std::string kYaml = "access: { tokens: 'file:tokens' }\n";
const std::string kToken = "0123456789abcdef";

class TokenFileTest : public ConfigFolder {
 protected:
  std::vector<TokenSpec> GoodTokens(const std::string& text) const {
    Write("tokens", text);
    return Good(kYaml, folder_).access.tokens;
  }
  std::string ProblemsOf(const std::string& text) const {
    Write("tokens", text);
    const ConfigReading reading = Read(kYaml, folder_);
    EXPECT_FALSE(reading.config) << text;
    return ProblemText(reading);
  }
};

TEST_F(TokenFileTest, ReadsOneTokenPerLine) {
  EXPECT_THAT(GoodTokens("# who      token            may\n"
                         "\n"
                         "shop       " +
                         kToken +
                         "\n"
                         "  \t# indented\n"
                         "\tCI.run-1_x\t~!\"#$%&'()*+,-./\t ask \r\n"
                         "ops        #123456789abcdef all"),
              ElementsAre(TokenSpec{"shop", kToken, May::kAll},
                          TokenSpec{"CI.run-1_x", "~!\"#$%&'()*+,-./", May::kAsk},
                          TokenSpec{"ops", "#123456789abcdef", May::kAll}));
  EXPECT_THAT(GoodTokens("a " + std::string(128, 'x') + "\n\n\n"), SizeIs(1));
}

TEST(AccessConfigTest, IsEmptyByDefault) {
  EXPECT_EQ(Good("rules: []\n").access, Config::Access{});
}

TEST(AccessConfigTest, ReadsTokensFromFileTextAndEnvironment) {
  EXPECT_THAT(
      Good("access:\n  tokens: |\n    a 0123456789abcdef\n    b ${KEY} ask\n").access.tokens,
      ElementsAre(TokenSpec{"a", kToken, May::kAll},
                  TokenSpec{"b", "hunter2-hunter2-hunter2", May::kAsk}));
}

TEST_F(TokenFileTest, ReportsLineOfInvalidToken) {
  const struct {
    std::string text;
    std::string expected;
  } cases[] = {
      {"a\n", "line 1: has a name, but no token; write `NAME TOKEN`"},
      {"#\n\na=b " + kToken + "\n",
       "line 3: the name should have 1 to 64 of the characters A-Z a-z 0-9 . _ -"},
      {std::string(65, 'a') + " " + kToken, "line 1: the name should have 1 to 64"},
      {"a 0123456789abcde\n", "line 1: the token has 15 characters, and should have 16 to 128; "},
      {"a " + std::string(129, 'x'), "line 1: the token has 129 characters, and should have 16"},
      {"a 0123456789abcde\x7f", "line 1: the token should have printable ASCII characters only"},
      {"a 0123456789abcdef\xc3\xa4", "line 1: the token should have printable ASCII characters"},
      {"a " + kToken + " write", "line 1: the third word should be `ask` or `all`"},
      {"a " + kToken + " ask me", "line 1: has more than three words; write `NAME TOKEN`"},
      {"a " + kToken + "\r\nb " + kToken + "x\r\na " + kToken + "y",
       "line 3: has the same name as li"},
      {"a " + kToken + "\n\nb " + kToken, "line 3: has the same token as line 1"},
      {"a 0123456789abcde\nb 0123456789abcde\n", "line 2: has the same token as line 1"},
      {"",
       "has no token, so every caller would be rejected; write one per line, as in `NAME TOKEN`"},
      {"# none\n\n", "has no token"},
  };
  for (const auto& [text, expected] : cases) {
    EXPECT_THAT(ProblemsOf(text), HasSubstr("1:19: error: access.tokens: " + expected)) << text;
  }
}

TEST_F(TokenFileTest, RejectsMoreThanAThousandTokens) {
  std::string text;
  for (int i = 0; i < 1'000; ++i) {
    text += "n" + std::to_string(i) + " " + kToken + std::to_string(i) + "\n";
  }
  EXPECT_THAT(GoodTokens(text), SizeIs(1'000));
  EXPECT_EQ(ProblemsOf(text + "more " + kToken + "\nand " + kToken + "\n"),
            "1:19: error: access.tokens: line 1001: there are more than 1,000 tokens\n");
  EXPECT_THAT(ProblemsOf(std::string((1u << 20) + 1, '#')), HasSubstr("is larger than 1024 KiB"));
}

// An operator who swaps the words of a line must not find the token in the log.
TEST_F(TokenFileTest, NeverShowsTokens) {
  for (const std::string line :
       {"SECRETsecret1234 a", "a b SECRETsecret1234", "a=b SECRETsecret1234", "SECRETsecret1234",
        "a SECRETsecret1234 SECRET", "a SECRETsecret1234 ask SECRET", "a SECRET",
        "a SECRETsecret1234\na SECRETsecret1234", "SECRET=secret1234 x"}) {
    EXPECT_THAT(ProblemsOf(line), Not(HasSubstr("SECRET"))) << line;
  }
}

TEST(AccessConfigTest, RejectsInvalidAccessSections) {
  const BadCase cases[] = {
      {"access: {}\n", "1:9: error: access: needs `tokens`, as in `tokens: file:PATH`, or `certi"},
      {"access: s3cret\n", "1:9: error: access: should be a map with keys such as `tokens`"},
      {"access: { token: x }\n", "1:11: error: access: unknown key `token`; did you mean `tokens`"},
      {"access: { tokens: [a] }\n", "1:19: error: access.tokens: should be a text, but is a list"},
      {"access: { tokens: 'file:absent' }\n",
       "1:19: error: access.tokens: there is no file `/nonexistent/absent`"},
  };
  for (const BadCase& bad : cases) ExpectProblem(bad);
}

// --- Certificates -------------------------------------------------------------------

class AccessCertificateListTest : public ConfigFolder {
 protected:
  using Field = CertificateSpec::Field;

  void SetUp() override {
    ConfigFolder::SetUp();
    const SelfSigned mine;
    Write("c.pem", mine.Certificate());
    Write("k.pem", mine.Key());
  }
  /// Returns a configuration whose admin listener requires client certificates. `list` begins on
  /// line 2.
  static std::string Yaml(const std::string& list, const std::string& client_ca = "file:c.pem") {
    std::string yaml = "access: { certificates:\n" + list + " }\n";
    yaml +=
        "listen: { admin: { address: '0.0.0.0:9180', tls: { certificates: [ { certificate: "
        "'file:c.pem', key: 'file:k.pem' } ]";
    if (!client_ca.empty()) yaml += ", client_ca: '" + client_ca + "'";
    return yaml + " } } }\n";
  }
  std::string ProblemsOf(const std::string& list) const {
    const ConfigReading reading = Read(Yaml(list), folder_);
    EXPECT_FALSE(reading.config) << list;
    return "\n" + ProblemText(reading);
  }
};

TEST_F(AccessCertificateListTest, NamesCallersBySubjectUriOrDnsName) {
  const std::string list = R"([ { name: ops, subject: "CN=ops,O=Example\\, Inc." },)"
                           R"( { name: billing, uri: spiffe://example.org/billing, may: ask },)"
                           R"( { name: ci.1, dns: CI.example.org, may: all } ])";
  EXPECT_THAT(
      Good(Yaml(list), folder_).access.certificates,
      ElementsAre(
          CertificateSpec{"ops", Field::kSubject, "CN=ops,O=Example\\, Inc.", May::kAll},
          CertificateSpec{"billing", Field::kUri, "spiffe://example.org/billing", May::kAsk},
          CertificateSpec{"ci.1", Field::kDns, "ci.example.org", May::kAll}));
}

TEST_F(AccessCertificateListTest, ReportsLineAndColumnOfInvalidEntries) {
  const std::string first = "access.certificates[0]";
  const struct {
    std::string list;
    std::string expected;
  } cases[] = {
      {"[]", "2:1: error: access.certificates: names no certificate, so that none would have"},
      {"x", "2:1: error: access.certificates: should be a list"},
      {"[ { subject: CN=a } ]", "2:3: error: " + first + ": needs a `name`"},
      {"[ { name: a } ]", "2:3: error: " + first + ": needs exactly one of `subject`, `uri` and"},
      {"[ { name: a, dns: b, uri: 'c://d' } ]", "2:3: error: " + first + ": needs exactly one of"},
      {"[ { name: 'a b', dns: b } ]", "2:11: error: " + first + ".name: should have 1 to 64"},
      {"[ { name: a, dns: b, may: write } ]",
       "2:27: error: " + first + ".may: should be `ask` or `all`"},
      {"[ { name: a, subject: ops } ]", "2:23: error: " + first + ".subject: should be the subj"},
      {"[ { name: a, subject: '/CN=ops' } ]", "2:23: error: " + first + ".subject: should be the"},
      {"[ { name: a, subject: 'CN = ops' } ]", "2:23: error: " + first + ".subject: should be the"},
      {"[ { name: a, subject: 'CN=ops, O=x' } ]", "2:23: error: " + first + ".subject: should be"},
      {"[ { name: a, subject: 'subject=CN=ops' } ]", "2:23: error: " + first + ".subject: should"},
      {"[ { name: a, subject: 'CN=\xc3\xa4' } ]", "2:23: error: " + first + ".subject: should be"},
      {"[ { name: a, subject: 'CN=" + std::string(250, 'x') + "' } ]",
       "2:23: error: " + first + ".subject: has more than 252 bytes"},
      {"[ { name: a, uri: example.org } ]", "2:19: error: " + first + ".uri: should be a URI"},
      {"[ { name: a, dns: '' } ]", "2:19: error: " + first + ".dns: should be a DNS name"},
      {"[ { name: a, dns: b },\n{ name: a, dns: c } ]",
       "3:1: error: access.certificates[1]: `a` is the name of two certificates; the first is on "
       "line 2"},
      {"[ { name: a, dns: b },\n{ name: c, dns: B } ]",
       "3:1: error: access.certificates[1]: `b` is listed already, on line 2"},
  };
  for (const auto& [list, expected] : cases) {
    EXPECT_THAT(ProblemsOf(list), HasSubstr("\n" + expected)) << list;
  }
}

TEST_F(AccessCertificateListTest, RejectsListWithoutListenerWithClientCa) {
  const std::string list = "[ { name: a, dns: b } ]";
  EXPECT_THAT(ProblemText(Read(Yaml(list, ""), folder_)),
              HasSubstr("2:1: error: access.certificates: has no effect: no listener requests "
                        "client certificates; set `client_ca`"));
}

/// Callers of a listener without TLS cannot present a certificate, so a list of certificates does
/// not authenticate them.
TEST_F(AccessCertificateListTest, ListDoesNotAuthenticateCallersWithoutTls) {
  const std::string yaml = Yaml("[ { name: a, dns: b } ]");
  const std::string api = "api: { address: '127.0.0.1:8081', auth: required }, admin:";
  std::string with_api = yaml;
  with_api.replace(with_api.find("admin:"), 6, api);
  EXPECT_THAT(ProblemText(Read(with_api, folder_)),
              HasSubstr("error: listen.api.auth: no caller could authenticate"));
  EXPECT_TRUE(Read(yaml, folder_).config) << ProblemText(Read(yaml, folder_));
}

}  // namespace
}  // namespace tidegate
