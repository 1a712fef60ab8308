// SPDX-License-Identifier: Apache-2.0
#include "net/tls.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/x509v3.h>

namespace tidegate::net {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

/// A certificate without a signature: the code under test reads only its names.
class NamedCertificate {
 public:
  NamedCertificate() : certificate_(X509_new(), X509_free) {}

  NamedCertificate& Subject(const char* field, std::string_view value) {
    EXPECT_EQ(
        X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate_.get()), field, MBSTRING_UTF8,
                                   reinterpret_cast<const unsigned char*>(value.data()),
                                   static_cast<int>(value.size()), -1, 0),
        1);
    return *this;
  }
  /// Adds an alternative name. `type`: GEN_URI or GEN_DNS.
  NamedCertificate& Name(int type, std::string_view value) {
    ASN1_IA5STRING* const text = ASN1_IA5STRING_new();
    ASN1_STRING_set(text, value.data(), static_cast<int>(value.size()));
    GENERAL_NAME* const name = GENERAL_NAME_new();
    GENERAL_NAME_set0_value(name, type, text);
    sk_GENERAL_NAME_push(names_.get(), name);
    return *this;
  }
  std::shared_ptr<const PeerCertificate> Read() {
    EXPECT_EQ(X509_add1_ext_i2d(certificate_.get(), NID_subject_alt_name, names_.get(), 0,
                                X509V3_ADD_REPLACE),
              1);
    return PeerCertificate::Read(certificate_.get());
  }

 private:
  std::unique_ptr<X509, decltype(&X509_free)> certificate_;
  std::unique_ptr<GENERAL_NAMES, decltype(&GENERAL_NAMES_free)> names_{GENERAL_NAMES_new(),
                                                                       GENERAL_NAMES_free};
};

TEST(PeerCertificateTest, FormatsSubjectAsInRfc2253) {
  NamedCertificate made;
  made.Subject("O", "Example, Inc.").Subject("OU", "b\xc3\xbcro").Subject("CN", "ops\n");
  const auto read = made.Read();
  EXPECT_EQ(read->subject, R"(CN=ops\0A,OU=b\C3\BCro,O=Example\, Inc.)");
  EXPECT_EQ(read->Name(), read->subject);
}

TEST(PeerCertificateTest, TruncatesLongSubjects) {
  NamedCertificate made;
  for (int i = 0; i < 6; ++i) made.Subject("OU", std::string(60, 'x'));
  const auto read = made.Read();
  EXPECT_THAT(read->subject, SizeIs(PeerCertificate::kMaxSubject));
  EXPECT_TRUE(read->subject.ends_with("x..."));
}

TEST(PeerCertificateTest, KeepsPrintableAlternativeNames) {
  NamedCertificate made;
  made.Name(GEN_URI, "spiffe://example.org/a")
      .Name(GEN_DNS, "Host.Example.ORG")
      .Name(GEN_URI, std::string_view("spiffe://example.org/b\0.evil", 28))
      .Name(GEN_DNS, "two words")
      .Name(GEN_DNS, "")
      .Name(GEN_URI, "x://" + std::string(PeerCertificate::kMaxUri, 'x'))
      .Name(GEN_DNS, std::string(PeerCertificate::kMaxDnsName + 1, 'x'));
  const auto read = made.Read();
  EXPECT_THAT(read->subject, IsEmpty());
  EXPECT_THAT(read->uris, ElementsAre("spiffe://example.org/a"));
  EXPECT_THAT(read->dns_names, ElementsAre("host.example.org"));
  EXPECT_EQ(read->Name(), "spiffe://example.org/a");
}

TEST(PeerCertificateTest, KeepsLimitedNumberOfNamesOfEachKind) {
  NamedCertificate made;
  for (int i = 0; i < 100; ++i) made.Name(GEN_DNS, "host" + std::to_string(i));
  const auto read = made.Read();
  EXPECT_THAT(read->dns_names, SizeIs(PeerCertificate::kMaxNames));
  EXPECT_EQ(read->Name(), "host0");
  EXPECT_EQ(PeerCertificate{}.Name(), "(certificate)");
}

}  // namespace
}  // namespace tidegate::net
