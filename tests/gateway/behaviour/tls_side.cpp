// SPDX-License-Identifier: Apache-2.0
#include "gateway/behaviour/tls_side.hpp"

#include <gtest/gtest.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <array>
#include <csignal>
#include <utility>

namespace tidegate::behaviour {
namespace {

using Bio = std::unique_ptr<BIO, decltype([](BIO* bio) { BIO_free_all(bio); })>;
using Certificate = std::unique_ptr<X509, decltype([](X509* one) { X509_free(one); })>;
using PrivateKey = std::unique_ptr<EVP_PKEY, decltype([](EVP_PKEY* key) { EVP_PKEY_free(key); })>;

std::string TextOf(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return {data, static_cast<std::size_t>(size)};
}

std::string PemOf(X509* certificate) {
  const Bio bio(BIO_new(BIO_s_mem()));
  EXPECT_EQ(PEM_write_bio_X509(bio.get(), certificate), 1);
  return TextOf(bio.get());
}

std::string PemOf(EVP_PKEY* key) {
  const Bio bio(BIO_new(BIO_s_mem()));
  EXPECT_EQ(PEM_write_bio_PrivateKey(bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr), 1);
  return TextOf(bio.get());
}

void AddExtension(X509* to, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, to, nullptr, nullptr, 0);
  X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str());
  EXPECT_NE(extension, nullptr) << value;
  EXPECT_EQ(X509_add_ext(to, extension, -1), 1);
  X509_EXTENSION_free(extension);
}

constexpr long kDay = 24L * 3600;

/// Returns a certificate without extensions and without a signature.
Certificate Blank(EVP_PKEY* key, const std::string& name, long from, long to) {
  static long serial = 1;
  Certificate one(X509_new());
  X509_set_version(one.get(), X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(one.get()), ++serial);
  X509_gmtime_adj(X509_getm_notBefore(one.get()), from);
  X509_gmtime_adj(X509_getm_notAfter(one.get()), to);
  X509_set_pubkey(one.get(), key);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(one.get()), "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  return one;
}

}  // namespace

// --- Certificates -----------------------------------------------------------------

Authority::Authority(const std::string& name) : key_(EVP_EC_gen("P-256")) {
  Certificate own = Blank(key_, name, -kDay, kDay);
  X509_set_issuer_name(own.get(), X509_get_subject_name(own.get()));
  AddExtension(own.get(), own.get(), NID_basic_constraints, "critical,CA:TRUE");
  EXPECT_NE(X509_sign(own.get(), key_, EVP_sha256()), 0);
  pem_ = PemOf(own.get());
  certificate_ = own.release();
}

Authority::~Authority() {
  X509_free(certificate_);
  EVP_PKEY_free(key_);
}

Credentials Authority::Issue(const std::string& common_name, const std::string& names,
                             Validity validity, Key kind) const {
  const PrivateKey key(kind == Key::kEc ? EVP_EC_gen("P-256") : EVP_RSA_gen(2048));
  const long end = validity == Validity::kOver ? -3600 : kDay;
  const Certificate one = Blank(key.get(), common_name, -kDay, end);
  X509_set_issuer_name(one.get(), X509_get_subject_name(certificate_));
  AddExtension(one.get(), certificate_, NID_subject_alt_name, names);
  EXPECT_NE(X509_sign(one.get(), key_, EVP_sha256()), 0);
  return {PemOf(one.get()), PemOf(key.get())};
}

std::string Authority::Crl(const std::vector<Credentials>& revoked, Validity validity) const {
  using Revocation = std::unique_ptr<X509_CRL, decltype([](X509_CRL* crl) { X509_CRL_free(crl); })>;
  using Moment =
      std::unique_ptr<ASN1_TIME, decltype([](ASN1_TIME* time) { ASN1_TIME_free(time); })>;
  const Revocation crl(X509_CRL_new());
  const Moment from(X509_gmtime_adj(nullptr, -kDay));
  const Moment to(X509_gmtime_adj(nullptr, validity == Validity::kOver ? -3600 : kDay));
  X509_CRL_set_version(crl.get(), X509_CRL_VERSION_2);
  X509_CRL_set_issuer_name(crl.get(), X509_get_subject_name(certificate_));
  X509_CRL_set1_lastUpdate(crl.get(), from.get());
  X509_CRL_set1_nextUpdate(crl.get(), to.get());
  for (const Credentials& each : revoked) {
    const Bio bio(
        BIO_new_mem_buf(each.certificate.data(), static_cast<int>(each.certificate.size())));
    const Certificate certificate(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
    X509_REVOKED* const entry = X509_REVOKED_new();
    X509_REVOKED_set_serialNumber(entry, X509_get_serialNumber(certificate.get()));
    X509_REVOKED_set_revocationDate(entry, from.get());
    EXPECT_EQ(X509_CRL_add0_revoked(crl.get(), entry), 1);
  }
  X509_CRL_sort(crl.get());
  EXPECT_NE(X509_CRL_sign(crl.get(), key_, EVP_sha256()), 0);
  const Bio bio(BIO_new(BIO_s_mem()));
  EXPECT_EQ(PEM_write_bio_X509_CRL(bio.get(), crl.get()), 1);
  return TextOf(bio.get());
}

// --- TlsSide ------------------------------------------------------------------------

TlsContext::TlsContext(const Credentials& own, const std::string& client_authority)
    : context_(SSL_CTX_new(TLS_server_method())) {
  // OpenSSL writes without MSG_NOSIGNAL, so a write to a closed socket would raise SIGPIPE.
  std::signal(SIGPIPE, SIG_IGN);
  const auto read = [](const std::string& pem) {
    return Bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  };
  const Certificate certificate(
      PEM_read_bio_X509(read(own.certificate).get(), nullptr, nullptr, nullptr));
  const PrivateKey key(PEM_read_bio_PrivateKey(read(own.key).get(), nullptr, nullptr, nullptr));
  EXPECT_EQ(SSL_CTX_use_certificate(context_, certificate.get()), 1);
  EXPECT_EQ(SSL_CTX_use_PrivateKey(context_, key.get()), 1);
  if (client_authority.empty()) return;
  const Certificate trusted(
      PEM_read_bio_X509(read(client_authority).get(), nullptr, nullptr, nullptr));
  EXPECT_EQ(X509_STORE_add_cert(SSL_CTX_get_cert_store(context_), trusted.get()), 1);
  SSL_CTX_set_verify(context_, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
}

TlsContext::~TlsContext() { SSL_CTX_free(context_); }

TlsSide::TlsSide(const TlsContext& context, int socket)
    : Stream(::dup(socket)), ssl_(SSL_new(context.get())) {
  SSL_set_fd(ssl_, fd());
}

TlsSide::~TlsSide() {
  SSL_free(ssl_);
  ERR_clear_error();
}

bool TlsSide::Accept() {
  ERR_clear_error();
  return SSL_accept(ssl_) == 1;
}

bool TlsSide::Send(std::string_view bytes) {
  std::size_t sent = 0;
  ERR_clear_error();
  return bytes.empty() || SSL_write_ex(ssl_, bytes.data(), bytes.size(), &sent) == 1;
}

test::Stream::Got TlsSide::Receive(std::string& to) {
  std::array<char, 16384> buffer;
  std::size_t got = 0;
  ERR_clear_error();
  if (SSL_read_ex(ssl_, buffer.data(), buffer.size(), &got) != 1) return Got::kCut;
  to.append(buffer.data(), got);
  return Got::kBytes;
}

std::string TlsSide::ReadRequest() {
  std::string text = ReadUntil("\r\n\r\n");
  if (!text.ends_with("\r\n\r\n")) return {};
  constexpr std::string_view kLength = "Content-Length: ";
  if (const std::size_t at = text.find(kLength); at != std::string::npos) {
    text += ReadExactly(std::stoul(text.substr(at + kLength.size())));
  }
  return text;
}

void TlsSide::EndInOrder() {
  ERR_clear_error();
  (void)SSL_shutdown(ssl_);
}

std::string TlsSide::client_name() const {
  const Certificate one(SSL_get1_peer_certificate(ssl_));
  if (one == nullptr) return {};
  std::array<char, 256> name{};
  X509_NAME_get_text_by_NID(X509_get_subject_name(one.get()), NID_commonName, name.data(),
                            static_cast<int>(name.size()));
  return name.data();
}

std::string TlsSide::server_name() const {
  const char* const name = SSL_get_servername(ssl_, TLSEXT_NAMETYPE_host_name);
  return name == nullptr ? "" : name;
}

}  // namespace tidegate::behaviour
