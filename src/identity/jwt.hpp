// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <memory_resource>
#include <optional>
#include <string>
#include <string_view>

#include "tidegate/clock.hpp"
#include "tidegate/error.hpp"

namespace tidegate {

/// Reads one claim of the bearer token in `Authorization`. Thread-safe. A token that is malformed,
/// wrongly signed, expired, not yet valid (30 s of leeway) or without a required expiry (`exp`) is
/// treated as absent. `alg` must be one that the key allows; `none` is never allowed.
class JwtVerifier {
 public:
  struct Options {
    std::string hmac_secret = {};     ///< For HS256, HS384, HS512; at least 32 bytes.
    std::string public_key_pem = {};  ///< For RS256, RS384, RS512, ES256, ES384.
    /// True if the configuration says `unverified`: claims are used without checking the signature.
    bool unverified = false;
    std::string issuer = {};    ///< Empty: any issuer.
    std::string audience = {};  ///< Empty: any audience.
    /// True: a token without `exp` is treated as absent. An `exp` is always checked.
    bool require_exp = true;
    const Clock* clock = nullptr;  ///< nullptr: a RealClock.
    friend bool operator==(const Options&, const Options&) = default;
  };
  [[nodiscard]] static Result<std::shared_ptr<const JwtVerifier>> Make(Options options);

  /// Returns the claim as text (strings and integers only), or nothing. `authorization` is the
  /// header's value, `Bearer <token>`. Tokens above 8 KiB are treated as absent.
  [[nodiscard]] std::optional<std::string_view> Claim(std::string_view authorization,
                                                      std::string_view claim,
                                                      std::pmr::memory_resource& memory) const;

  ~JwtVerifier();

 private:
  struct State;
  explicit JwtVerifier(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Decodes RFC 4648 base64url as RFC 7515 requires it: no padding, nothing outside the alphabet,
/// unused bits zero, so that each value has one text. Allocates from `memory`.
[[nodiscard]] std::optional<std::string_view> DecodeBase64Url(std::string_view text,
                                                              std::pmr::memory_resource& memory);

}  // namespace tidegate
