// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <openssl/evp.h>

#include <memory>
#include <string>
#include <string_view>

#include "tidegate/error.hpp"

namespace tidegate {

/// What tokens are signed with. A key has one family of algorithms and verifies no other: a public
/// RSA key, which everybody may have, is never taken for the secret of HS256. Thread-safe.
class JwtKey {
 public:
  /// HS256, HS384, HS512. At least 32 bytes, as RFC 7518 3.2 demands of HS256.
  [[nodiscard]] static Result<JwtKey> FromSecret(std::string secret);
  /// A public key: RSA of 2048 to 8192 bits (RS256, RS384, RS512), P-256 (ES256), P-384 (ES384).
  [[nodiscard]] static Result<JwtKey> FromPem(std::string_view pem);

  [[nodiscard]] bool Verify(std::string_view name, std::string_view message,
                            std::string_view signature) const;

 private:
  struct FreeKey {
    void operator()(EVP_PKEY* key) const noexcept { EVP_PKEY_free(key); }
  };
  JwtKey() = default;

  std::string secret_;  ///< Empty: `public_` is the key.
  std::unique_ptr<EVP_PKEY, FreeKey> public_;
  int curve_ = 0;  ///< OpenSSL's number of it; 0: RSA.
};

}  // namespace tidegate
