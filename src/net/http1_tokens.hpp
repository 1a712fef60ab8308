// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

/// The characters of HTTP/1.1, shared by heads and trailers: what one accepts the other accepts.
namespace tidegate::net::http1 {

enum CharClass : std::uint8_t {
  kToken = 1,  ///< tchar of RFC 9110, 5.6.2: methods, field names, Connection options.
  /// Of a request target: all visible ASCII but '#', and 0x80 to 0xFF. RFC 3986 has fewer, but
  /// browsers send | ^ { } " and UTF-8 as they are. No request carries a fragment.
  kTarget = 2,
  kName = 4,  ///< Of a host name: letters, digits and -._~
  kHex = 8,
  kDigit = 16,
  kText = 32,  ///< Of a field value: visible ASCII, SP, HTAB, 0x80 to 0xFF.
};

namespace internal {
consteval std::array<std::uint8_t, 256> MakeClasses() {
  std::array<std::uint8_t, 256> table{};
  const auto mark = [&table](std::string_view chars, unsigned classes) {
    for (const char c : chars) {
      auto& entry = table[static_cast<unsigned char>(c)];
      entry = static_cast<std::uint8_t>(entry | classes);
    }
  };
  mark("0123456789", kDigit | kHex | kToken | kName);
  mark("abcdefABCDEF", kHex);
  mark("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", kToken | kName);
  mark("-._~", kToken | kName);
  mark("!#$%&'*+^`|", kToken);
  for (unsigned c = 0; c < 256; ++c) {
    if (c == '\t' || (c >= 0x20 && c != 0x7F))
      table[c] = static_cast<std::uint8_t>(table[c] | kText);
    if (c > 0x20 && c != 0x7F && c != '#') {
      table[c] = static_cast<std::uint8_t>(table[c] | kTarget);
    }
  }
  return table;
}
inline constexpr std::array<std::uint8_t, 256> kClasses = MakeClasses();
}  // namespace internal

[[nodiscard]] constexpr bool Is(char c, CharClass wanted) noexcept {
  return (internal::kClasses[static_cast<unsigned char>(c)] & wanted) != 0;
}

[[nodiscard]] constexpr bool IsBlank(char c) noexcept { return c == ' ' || c == '\t'; }

[[nodiscard]] constexpr bool All(std::string_view text, CharClass wanted) noexcept {
  for (const char c : text) {
    if (!Is(c, wanted)) return false;
  }
  return true;
}

/// The first place from `at` on that is not of the class, or the end.
[[nodiscard]] constexpr std::size_t Skip(std::string_view text, std::size_t at,
                                         CharClass wanted) noexcept {
  const auto classes = [text](std::size_t i) {
    return internal::kClasses[static_cast<unsigned char>(text[i])];
  };
  // Four at a time: one branch instead of four.
  while (text.size() - at >= 4 &&
         (classes(at) & classes(at + 1) & classes(at + 2) & classes(at + 3) & wanted) != 0) {
    at += 4;
  }
  while (at < text.size() && Is(text[at], wanted)) ++at;
  return at;
}

/// As Skip(text, at, kText), eight bytes at a time: field values are most of a head.
[[nodiscard]] inline std::size_t SkipText(std::string_view text, std::size_t at) noexcept {
  if constexpr (std::endian::native == std::endian::little) {
    constexpr std::uint64_t kOnes = 0x0101010101010101;
    while (text.size() - at >= 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, text.data() + at, 8);
      // The high bit of each byte below 0x20 or equal to 0x7F. A borrow can set further bits, but
      // only above a byte that is one, so the lowest bit is right.
      const std::uint64_t control = (word - kOnes * 0x20) & ~word;
      const std::uint64_t rubout = word ^ (kOnes * 0x7F);
      const std::uint64_t hits = (control | ((rubout - kOnes) & ~rubout)) & (kOnes * 0x80);
      if (hits == 0) {
        at += 8;
        continue;
      }
      at += static_cast<std::size_t>(std::countr_zero(hits)) / 8;
      if (text[at] != '\t') return at;
      ++at;
    }
  }
  return Skip(text, at, kText);
}

/// Whether `text` is `lower` but for the case of letters. `lower` holds lower-case letters, digits
/// and '-', and `text` no controls: then setting the bit 0x20 maps nothing else onto them.
[[nodiscard]] constexpr bool EqualsLower(std::string_view text, std::string_view lower) noexcept {
  if (text.size() != lower.size()) return false;
  for (std::size_t i = 0; i < lower.size(); ++i) {
    if ((text[i] | 0x20) != lower[i]) return false;
  }
  return true;
}

[[nodiscard]] constexpr std::string_view TrimBlanks(std::string_view text) noexcept {
  while (!text.empty() && IsBlank(text.front())) text.remove_prefix(1);
  while (!text.empty() && IsBlank(text.back())) text.remove_suffix(1);
  return text;
}

// Reasons that several readers have. Static text.
inline constexpr std::string_view kBareCr = "CR is not followed by LF";
inline constexpr std::string_view kBareLf = "line ends with LF instead of CRLF";

/// What is wrong with a field line whose name or value ends with `found`.
[[nodiscard]] constexpr std::string_view BadNameReason(char found) noexcept {
  if (IsBlank(found)) return "white space in a field name or before its colon";
  if (found == ':') return "field name is empty";
  if (found == '\r' || found == '\n') return "field line has no colon";
  return "invalid character in a field name";
}
[[nodiscard]] constexpr std::string_view BadTextReason(char found) noexcept {
  if (found == '\n') return kBareLf;
  if (found == '\r') return kBareCr;
  return "control character in a field value";
}

}  // namespace tidegate::net::http1
