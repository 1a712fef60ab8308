// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tidegate/error.hpp"

namespace tidegate {

/// A source of identities: a part of the request.
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
  std::string name;  ///< Name of a header (lower case), cookie, parameter or claim; else empty.

  /// Parses `client_ip`, `header:x-api-key`, `jwt:sub`, ...; the error suggests the nearest.
  [[nodiscard]] static Result<Source> Parse(std::string_view text);
  /// Returns the text that Parse() reads. It is the tag of every value from this source.
  [[nodiscard]] std::string Text() const;
  /// Returns true if values are secrets: only their HMAC may be stored, logged or shown.
  [[nodiscard]] bool IsSecret() const noexcept;

  friend bool operator==(const Source&, const Source&) = default;
};

/// Returns the word that Source::Text begins with: `client_ip`, `header`, ...
[[nodiscard]] std::string_view Name(Source::Kind kind) noexcept;

/// The key of a rule, made of all parts; of each, the first alternative that the request has.
struct Per {
  using Part = std::vector<Source>;  ///< A list of alternatives, never empty.
  std::vector<Part> parts;           ///< Never empty.

  /// Parses one part: alternatives divided by `|`, as in `header:x-api-key | client_ip`.
  [[nodiscard]] static Result<Part> ParsePart(std::string_view text);
  /// Returns the parts joined by `, `, with alternatives joined by ` | `.
  [[nodiscard]] std::string Text() const;
  /// Returns the first source for which `fits` is true; nullptr if there is none.
  template <class Fits>
  [[nodiscard]] const Source* Find(const Fits& fits) const {
    for (const Part& part : parts) {
      const auto found = std::ranges::find_if(part, fits);
      if (found != part.end()) return &*found;
    }
    return nullptr;
  }
};

}  // namespace tidegate
