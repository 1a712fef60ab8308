// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <memory>
#include <string>

namespace tidegate {

/// A fresh key and a certificate that it has signed for itself, in PEM form.
class SelfSigned {
 public:
  /// Valid from so many seconds after now until so many after it.
  explicit SelfSigned(long from = 0, long until = 3'600)
      : key_(EVP_EC_gen("P-256"), EVP_PKEY_free), certificate_(X509_new(), X509_free) {
    X509_gmtime_adj(X509_getm_notBefore(certificate_.get()), from);
    X509_gmtime_adj(X509_getm_notAfter(certificate_.get()), until);
    X509_set_pubkey(certificate_.get(), key_.get());
    X509_sign(certificate_.get(), key_.get(), EVP_sha256());
  }

  [[nodiscard]] std::string Certificate() const {
    return Pem([&](BIO* bio) { PEM_write_bio_X509(bio, certificate_.get()); });
  }
  /// With a passphrase unless that is empty.
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
