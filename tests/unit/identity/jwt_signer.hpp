// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <openssl/bio.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

#include <memory>
#include <string>
#include <string_view>

namespace tidegate::jwt {

inline const std::string kSecret = "0123456789abcdef0123456789abcdef";

inline std::string Base64Url(std::string_view bytes) {
  std::string text(4 * ((bytes.size() + 2) / 3) + 1, '\0');
  const int size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                                   reinterpret_cast<const unsigned char*>(bytes.data()),
                                   static_cast<int>(bytes.size()));
  text.resize(static_cast<std::size_t>(size));
  while (text.ends_with('=')) text.pop_back();
  for (char& c : text) c = c == '+' ? '-' : c == '/' ? '_' : c;
  return text;
}

/// A key pair that signs tokens as a token issuer does.
class Signer {
 public:
  static Signer Rsa(unsigned bits = 2048) { return Signer(EVP_RSA_gen(bits)); }
  static Signer Ec(const char* curve) { return Signer(EVP_EC_gen(curve)); }

  std::string PublicPem() const {
    return Pem([&](BIO* bio) { PEM_write_bio_PUBKEY(bio, key_.get()); });
  }
  std::string PrivatePem() const {
    return Pem([&](BIO* bio) {
      PEM_write_bio_PrivateKey(bio, key_.get(), nullptr, nullptr, 0, nullptr, nullptr);
    });
  }

  std::string Sign(const EVP_MD* digest, std::string_view text, std::size_t half = 0) const {
    EVP_MD_CTX* const context = EVP_MD_CTX_new();
    std::string signature(1024, '\0');
    std::size_t size = signature.size();
    EVP_DigestSignInit(context, nullptr, digest, nullptr, key_.get());
    EXPECT_EQ(EVP_DigestSign(context, reinterpret_cast<unsigned char*>(signature.data()), &size,
                             reinterpret_cast<const unsigned char*>(text.data()), text.size()),
              1);
    EVP_MD_CTX_free(context);
    signature.resize(size);
    return half == 0 ? signature : Raw(signature, half);
  }

 private:
  explicit Signer(EVP_PKEY* key) : key_(key, EVP_PKEY_free) {}

  static std::string Raw(const std::string& der, std::size_t half) {
    const auto* bytes = reinterpret_cast<const unsigned char*>(der.data());
    ECDSA_SIG* const signature = d2i_ECDSA_SIG(nullptr, &bytes, static_cast<long>(der.size()));
    std::string raw(2 * half, '\0');
    auto* const out = reinterpret_cast<unsigned char*>(raw.data());
    BN_bn2binpad(ECDSA_SIG_get0_r(signature), out, static_cast<int>(half));
    BN_bn2binpad(ECDSA_SIG_get0_s(signature), out + half, static_cast<int>(half));
    ECDSA_SIG_free(signature);
    return raw;
  }

  template <class Write>
  static std::string Pem(Write&& write) {
    BIO* const bio = BIO_new(BIO_s_mem());
    write(bio);
    char* data = nullptr;
    const long size = BIO_get_mem_data(bio, &data);
    std::string pem(data, static_cast<std::size_t>(size));
    BIO_free(bio);
    return pem;
  }

  std::shared_ptr<EVP_PKEY> key_;
};

inline std::string Mac(const EVP_MD* digest, std::string_view secret, std::string_view text) {
  std::string mac(EVP_MAX_MD_SIZE, '\0');
  unsigned size = 0;
  HMAC(digest, secret.data(), static_cast<int>(secret.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(),
       reinterpret_cast<unsigned char*>(mac.data()), &size);
  mac.resize(size);
  return mac;
}

/// Returns `Bearer` and a token with this header and payload, signed by `sign(text)`.
template <class Sign>
std::string Bearer(std::string_view header, std::string_view payload, Sign&& sign) {
  const std::string text = Base64Url(header) + "." + Base64Url(payload);
  return "Bearer " + text + "." + Base64Url(sign(text));
}

inline std::string Hs256(std::string_view payload, std::string_view header = R"({"alg":"HS256"})") {
  return Bearer(header, payload,
                [](const std::string& text) { return Mac(EVP_sha256(), kSecret, text); });
}

}  // namespace tidegate::jwt
