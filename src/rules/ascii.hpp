// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace tidegate {

// Bytes of protocols, whatever the locale says.

[[nodiscard]] constexpr bool IsUpper(char c) noexcept { return c >= 'A' && c <= 'Z'; }

[[nodiscard]] constexpr char Lower(char c) noexcept {
  return IsUpper(c) ? static_cast<char>(c + ('a' - 'A')) : c;
}

/// What no field of HTTP may hold, tabs included: they are allowed there, but nobody means them.
[[nodiscard]] constexpr bool IsControl(char c) noexcept {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}

/// Its value, or -1.
[[nodiscard]] constexpr int HexDigit(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/// One character of a percent-encoded text.
struct Decoded {
  char c;
  bool encoded;
};
/// Takes one character off the front of `text` and returns it decoded. A malformed percent-encoding
/// is a plain `%`. REQUIRES: not empty.
[[nodiscard]] constexpr Decoded TakeDecoded(std::string_view& text) noexcept {
  if (text[0] == '%' && text.size() >= 3) {
    const int high = HexDigit(text[1]);
    const int low = HexDigit(text[2]);
    if (high >= 0 && low >= 0) {
      text.remove_prefix(3);
      return {static_cast<char>(high * 16 + low), true};
    }
  }
  const char c = text[0];
  text.remove_prefix(1);
  return {c, false};
}

/// Without the spaces and tabs at both ends: what HTTP calls optional white space.
[[nodiscard]] constexpr std::string_view Trim(std::string_view text) noexcept {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

}  // namespace tidegate
