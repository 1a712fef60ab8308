// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/openssl.hpp"
#include "tidegate/error.hpp"

namespace tidegate {

/// A key that verifies signatures of tokens, with one family of algorithms only: a public RSA key
/// can never be used as the secret of HS256. Thread-safe.
class JwtKey {
 public:
  /// Makes a key for HS256, HS384 and HS512 from at least 32 bytes (RFC 7518 3.2, for HS256).
  [[nodiscard]] static Result<JwtKey> FromSecret(std::string secret);
  /// Makes a key from a public key: RSA of 2048 to 8192 bits (RS256, RS384, RS512), P-256 (ES256),
  /// P-384 (ES384).
  [[nodiscard]] static Result<JwtKey> FromPem(std::string_view pem);

  [[nodiscard]] bool Verify(std::string_view name, std::string_view message,
                            std::string_view signature) const;

 private:
  JwtKey() = default;

  std::string secret_;  ///< Empty: `public_` is the key.
  openssl::Key public_;
  int curve_ = 0;  ///< OpenSSL's number of the curve; 0: an RSA key.
};

}  // namespace tidegate
