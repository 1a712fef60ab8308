// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tidegate/error.hpp"

namespace tidegate {

/// One place where an identity can come from.
struct Source {
  enum class Kind : std::uint8_t {
    kClientIp,
    kHeader,
    kCookie,
    kQuery,
    kPath,
    kRoute,
    kMethod,
    kHost,
    kJwt,
    kConst,
  };

  Kind kind = Kind::kClientIp;
  std::string name;  ///< Of a header (lower case), cookie, query parameter or claim; else empty.

  /// `client_ip`, `header:x-api-key`, `jwt:sub`, ...; the message has a hint at the nearest.
  [[nodiscard]] static Result<Source> Parse(std::string_view text);
  /// The same form again; the tag of every key that comes from this source.
  [[nodiscard]] std::string Text() const;
  /// Whether values are secrets, of which only an HMAC may be stored, logged or shown.
  [[nodiscard]] bool IsSecret() const noexcept;

  friend bool operator==(const Source&, const Source&) = default;
};

/// Whom a rule counts: parts that together make the key, each with its alternatives, of which the
/// first that is present counts.
struct Per {
  using Part = std::vector<Source>;  ///< Never empty.
  std::vector<Part> parts;           ///< Never empty.

  /// One part: alternatives divided by `|`, as in `header:x-api-key | client_ip`.
  [[nodiscard]] static Result<Part> ParsePart(std::string_view text);
  /// Parts joined by `, `, alternatives by ` | `.
  [[nodiscard]] std::string Text() const;

  friend bool operator==(const Per&, const Per&) = default;
};

}  // namespace tidegate
