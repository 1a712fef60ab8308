// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <memory_resource>
#include <optional>
#include <string>
#include <string_view>

#include "tidegate/clock.hpp"
#include "tidegate/error.hpp"

namespace tidegate {

/// Reads one claim of the bearer token in `Authorization`. Thread-safe.
///
/// A token that is malformed, wrongly signed, expired, not yet valid (30 s of leeway) or without a
/// required expiry (`exp`) counts as absent: the rule's next alternative counts. `alg` must be one
/// that the key allows; `none` never is.
class JwtVerifier {
 public:
  /// The treatment of a token without `exp`. An `exp` that is present is always checked.
  enum class Expiry : std::uint8_t {
    kRequired,  ///< It counts as absent.
    kOptional,  ///< It never expires.
  };
  struct Options {
    std::string hmac_secret = {};     ///< HS256, HS384, HS512; at least 32 bytes.
    std::string public_key_pem = {};  ///< RS256, RS384, RS512, ES256, ES384.
    /// The configuration says `unverified` in that word: claims are believed without a check.
    bool unverified = false;
    std::string issuer = {};    ///< Empty: any.
    std::string audience = {};  ///< Empty: any.
    Expiry expiry = Expiry::kRequired;
    const Clock* clock = nullptr;  ///< nullptr: a RealClock.
  };
  [[nodiscard]] static Result<std::shared_ptr<const JwtVerifier>> Make(Options options);

  /// The claim as text (strings and integers only), or nothing. `authorization` is the header's
  /// value, `Bearer <token>`. Tokens above 8 KiB are not read.
  [[nodiscard]] std::optional<std::string_view> Claim(std::string_view authorization,
                                                      std::string_view claim,
                                                      std::pmr::memory_resource& memory) const;

  ~JwtVerifier();

 private:
  struct State;
  explicit JwtVerifier(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tidegate
