// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <memory>
#include <string>

namespace tidegate {

/// A new key and a certificate that is signed with this key, in PEM form.
class SelfSigned {
 public:
  /// Makes a certificate that is valid from `from` until `until`, both in seconds from now.
  explicit SelfSigned(long from = 0, long until = 3'600)
      : key_(EVP_EC_gen("P-256"), EVP_PKEY_free), certificate_(X509_new(), X509_free) {
    X509_gmtime_adj(X509_getm_notBefore(certificate_.get()), from);
    X509_gmtime_adj(X509_getm_notAfter(certificate_.get()), until);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate_.get()), "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>("self"), -1, -1, 0);
    X509_set_issuer_name(certificate_.get(), X509_get_subject_name(certificate_.get()));
    X509_set_pubkey(certificate_.get(), key_.get());
    X509_sign(certificate_.get(), key_.get(), EVP_sha256());
  }

  [[nodiscard]] std::string Certificate() const {
    return Pem([&](BIO* bio) { PEM_write_bio_X509(bio, certificate_.get()); });
  }
  /// Returns an empty certificate revocation list of this authority, valid from `from` until
  /// `until`, in seconds from now.
  [[nodiscard]] std::string Crl(long from = 0, long until = 3'600) const {
    const std::unique_ptr<X509_CRL, decltype(&X509_CRL_free)> crl(X509_CRL_new(), X509_CRL_free);
    const std::unique_ptr<ASN1_TIME, decltype(&ASN1_TIME_free)> begins(
        X509_gmtime_adj(nullptr, from), ASN1_TIME_free);
    const std::unique_ptr<ASN1_TIME, decltype(&ASN1_TIME_free)> ends(
        X509_gmtime_adj(nullptr, until), ASN1_TIME_free);
    X509_CRL_set_version(crl.get(), X509_CRL_VERSION_2);
    X509_CRL_set_issuer_name(crl.get(), X509_get_subject_name(certificate_.get()));
    X509_CRL_set1_lastUpdate(crl.get(), begins.get());
    X509_CRL_set1_nextUpdate(crl.get(), ends.get());
    X509_CRL_sign(crl.get(), key_.get(), EVP_sha256());
    return Pem([&](BIO* bio) { PEM_write_bio_X509_CRL(bio, crl.get()); });
  }
  /// Returns the private key, encrypted with `passphrase`; empty: not encrypted.
  [[nodiscard]] std::string Key(std::string passphrase = {}) const {
    return Pem([&](BIO* bio) {
      PEM_write_bio_PrivateKey(bio, key_.get(), passphrase.empty() ? nullptr : EVP_aes_128_cbc(),
                               nullptr, 0, nullptr,
                               passphrase.empty() ? nullptr : passphrase.data());
    });
  }

 private:
  template <class Write>
  static std::string Pem(Write&& write) {
    const std::unique_ptr<BIO, decltype(&BIO_free)> bio(BIO_new(BIO_s_mem()), BIO_free);
    write(bio.get());
    char* data = nullptr;
    const long size = BIO_get_mem_data(bio.get(), &data);
    return {data, static_cast<std::size_t>(size)};
  }

  std::shared_ptr<EVP_PKEY> key_;
  std::shared_ptr<X509> certificate_;
};

}  // namespace tidegate
