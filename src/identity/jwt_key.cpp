// SPDX-License-Identifier: Apache-2.0
#include "identity/jwt_key.hpp"

#include <openssl/ecdsa.h>
#include <openssl/hmac.h>
#include <openssl/objects.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

#include "base/failure.hpp"

namespace tidegate {
namespace {

constexpr std::size_t kMinSecret = 32;

enum class Family : std::uint8_t { kHmac, kRsa, kEc };

struct JwtAlgorithm {
  std::string_view name;
  Family family;
  const EVP_MD* (*digest)();
  int curve;
};
constexpr std::array<JwtAlgorithm, 8> kAlgorithms = {{
    {"HS256", Family::kHmac, EVP_sha256, 0},
    {"HS384", Family::kHmac, EVP_sha384, 0},
    {"HS512", Family::kHmac, EVP_sha512, 0},
    {"RS256", Family::kRsa, EVP_sha256, 0},
    {"RS384", Family::kRsa, EVP_sha384, 0},
    {"RS512", Family::kRsa, EVP_sha512, 0},
    {"ES256", Family::kEc, EVP_sha256, NID_X9_62_prime256v1},
    {"ES384", Family::kEc, EVP_sha384, NID_secp384r1},
}};

const unsigned char* Bytes(std::string_view text) noexcept {
  return reinterpret_cast<const unsigned char*>(text.data());
}

const JwtAlgorithm* FindAlgorithm(std::string_view name) noexcept {
  const auto* const found = std::ranges::find(kAlgorithms, name, &JwtAlgorithm::name);
  return found == kAlgorithms.end() ? nullptr : found;
}

bool VerifyHmac(const EVP_MD* digest, std::string_view secret, std::string_view message,
                std::string_view signature) noexcept {
  std::array<unsigned char, EVP_MAX_MD_SIZE> mac;
  unsigned size = 0;
  if (HMAC(digest, secret.data(), static_cast<int>(secret.size()), Bytes(message), message.size(),
           mac.data(), &size) == nullptr) {
    return false;
  }
  return signature.size() == size && CRYPTO_memcmp(mac.data(), signature.data(), size) == 0;
}

bool VerifyPublic(const EVP_MD* digest, EVP_PKEY* key, std::string_view message,
                  std::span<const unsigned char> signature) noexcept {
  const std::unique_ptr<EVP_MD_CTX, FreedBy<EVP_MD_CTX_free>> context(EVP_MD_CTX_new());
  return context != nullptr &&
         EVP_DigestVerifyInit(context.get(), nullptr, digest, nullptr, key) == 1 &&
         EVP_DigestVerify(context.get(), signature.data(), signature.size(), Bytes(message),
                          message.size()) == 1;
}

/// Converts a signature from JWS, which has r and s side by side, each as long as the curve, to the
/// DER that OpenSSL requires. The DER of two 48-byte numbers has at most 104 bytes.
using Der = std::array<unsigned char, 112>;
std::size_t EcdsaToDer(std::string_view raw, std::size_t half, Der& der) noexcept {
  if (raw.size() != 2 * half) return 0;
  const std::unique_ptr<ECDSA_SIG, FreedBy<ECDSA_SIG_free>> signature(ECDSA_SIG_new());
  BIGNUM* const r = BN_bin2bn(Bytes(raw), static_cast<int>(half), nullptr);
  BIGNUM* const s = BN_bin2bn(Bytes(raw) + half, static_cast<int>(half), nullptr);
  if (signature == nullptr || r == nullptr || s == nullptr ||
      ECDSA_SIG_set0(signature.get(), r, s) != 1) {
    BN_free(r);
    BN_free(s);
    return 0;
  }
  unsigned char* out = der.data();
  const int size = i2d_ECDSA_SIG(signature.get(), nullptr);
  if (size <= 0 || static_cast<std::size_t>(size) > der.size()) return 0;
  i2d_ECDSA_SIG(signature.get(), &out);
  return static_cast<std::size_t>(size);
}

/// Returns the curve of a key on P-256 or P-384; 0 for any other key.
int CurveOf(EVP_PKEY* key) noexcept {
  std::array<char, 64> name{};
  std::size_t size = 0;
  if (EVP_PKEY_get_group_name(key, name.data(), name.size(), &size) != 1) return 0;
  const int curve = OBJ_txt2nid(name.data());
  return curve == NID_X9_62_prime256v1 || curve == NID_secp384r1 ? curve : 0;
}

}  // namespace

Result<JwtKey> JwtKey::FromSecret(std::string secret) {
  if (secret.size() < kMinSecret) {
    return Failure(ErrorCode::kBadConfig,
                   "the JWT secret has " + std::to_string(secret.size()) +
                       " bytes: it needs at least 32, as `openssl rand -hex 32` makes them");
  }
  if (secret.size() > std::size_t{64} * 1024)
    return Failure(ErrorCode::kBadConfig, "the JWT secret has " + std::to_string(secret.size()) +
                                              " bytes: the most is 65536");
  if (secret.contains("-----BEGIN ")) {
    return Failure(ErrorCode::kBadConfig,
                   "the JWT secret is a PEM file: a public key belongs in `public_key`");
  }
  JwtKey key;
  key.secret_ = std::move(secret);
  return key;
}

Result<JwtKey> JwtKey::FromPem(std::string_view pem) {
  const ErrorMark mark;
  if (pem.size() > std::size_t{64} * 1024)
    return Failure(ErrorCode::kBadConfig, "the JWT public key has " + std::to_string(pem.size()) +
                                              " bytes: the most is 65536");
  const openssl::Bio bio = openssl::Memory(pem);
  JwtKey key;
  key.public_.reset(PEM_read_bio_PUBKEY(bio.get(), nullptr, NoPassphrase, nullptr));
  if (key.public_ == nullptr) {
    return Failure(
        ErrorCode::kBadConfig,
        "the JWT public key cannot be read: it must be PEM that begins with \"-----BEGIN "
        "PUBLIC KEY-----\"");
  }
  if (EVP_PKEY_is_a(key.public_.get(), "RSA") == 1) {
    const int bits = EVP_PKEY_get_bits(key.public_.get());
    if (bits < 2048 || bits > 8192) {
      return Failure(ErrorCode::kBadConfig, "the JWT public key has " + std::to_string(bits) +
                                                " bits: RSA keys need 2048 to 8192");
    }
    return key;
  }
  if (EVP_PKEY_is_a(key.public_.get(), "EC") == 1) key.curve_ = CurveOf(key.public_.get());
  if (key.curve_ == 0) {
    return Failure(ErrorCode::kBadConfig,
                   "the JWT public key has an unsupported type: use RSA, P-256 or P-384");
  }
  return key;
}

bool JwtKey::Verify(std::string_view name, std::string_view message,
                    std::string_view signature) const {
  const JwtAlgorithm* const algorithm = FindAlgorithm(name);
  if (algorithm == nullptr) return false;
  const Family family = !secret_.empty() ? Family::kHmac : curve_ == 0 ? Family::kRsa : Family::kEc;
  if (algorithm->family != family || algorithm->curve != curve_) return false;
  const ErrorMark mark;
  if (family == Family::kHmac) return VerifyHmac(algorithm->digest(), secret_, message, signature);
  if (family == Family::kRsa) {
    return VerifyPublic(algorithm->digest(), public_.get(), message,
                        {Bytes(signature), signature.size()});
  }
  Der der;
  const std::size_t half = curve_ == NID_secp384r1 ? 48 : 32;
  const std::size_t size = EcdsaToDer(signature, half, der);
  return size != 0 &&
         VerifyPublic(algorithm->digest(), public_.get(), message, std::span(der).first(size));
}

}  // namespace tidegate
