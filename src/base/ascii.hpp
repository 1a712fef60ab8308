// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace tidegate {

// Functions for ASCII characters, independent of the locale.

[[nodiscard]] constexpr bool IsUpper(char c) noexcept { return c >= 'A' && c <= 'Z'; }
[[nodiscard]] constexpr bool IsLower(char c) noexcept { return c >= 'a' && c <= 'z'; }
[[nodiscard]] constexpr bool IsDigit(char c) noexcept { return c >= '0' && c <= '9'; }
[[nodiscard]] constexpr bool IsAlphanumeric(char c) noexcept {
  return IsUpper(c) || IsLower(c) || IsDigit(c);
}

[[nodiscard]] constexpr char Lower(char c) noexcept {
  return IsUpper(c) ? static_cast<char>(c + ('a' - 'A')) : c;
}
[[nodiscard]] inline std::string Lowered(std::string_view text) {
  std::string lowered{text};
  for (char& c : lowered) c = Lower(c);
  return lowered;
}
[[nodiscard]] inline std::string Uppered(std::string_view text) {
  std::string uppered{text};
  for (char& c : uppered) c = IsLower(c) ? static_cast<char>(c - ('a' - 'A')) : c;
  return uppered;
}

namespace internal {
/// Returns true if two groups of eight bytes differ at most in the case of letters. The bit 0x20 is
/// the case of a letter: no other bit may differ, and this bit may differ only in letters.
[[nodiscard]] inline bool EightEqualIgnoringCase(const char* a, const char* b) noexcept {
  constexpr std::uint64_t kOnes = 0x0101010101010101;
  std::uint64_t left = 0;
  std::uint64_t right = 0;
  std::memcpy(&left, a, 8);
  std::memcpy(&right, b, 8);
  const std::uint64_t differs = left ^ right;
  if ((differs & ~(kOnes * 0x20)) != 0) return false;
  const std::uint64_t lower = left | kOnes * 0x20;
  const std::uint64_t seven = lower & kOnes * 0x7f;
  // The high bit of each byte from `a` to `z`.
  const std::uint64_t letter = (seven + kOnes * (0x80 - 'a')) & ~(seven + kOnes * (0x7f - 'z'));
  return ((differs << 2) & ~(letter & ~lower)) == 0;
}
}  // namespace internal

/// Returns true if `a` and `b` differ at most in the case of ASCII letters.
[[nodiscard]] inline bool EqualsIgnoreCase(std::string_view a, std::string_view b) noexcept {
  if (a.size() != b.size()) return false;
  std::size_t i = 0;
  for (; a.size() - i >= 8; i += 8) {
    if (!internal::EightEqualIgnoringCase(a.data() + i, b.data() + i)) return false;
  }
  for (; i < a.size(); ++i) {
    if (Lower(a[i]) != Lower(b[i])) return false;
  }
  return true;
}

/// Returns true for control characters, including tabs. In a configuration, they are a mistake.
[[nodiscard]] constexpr bool IsControl(char c) noexcept {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}

/// Returns the value of a hexadecimal digit; -1 if `c` is not a hexadecimal digit.
[[nodiscard]] constexpr int HexDigit(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/// Appends `prefix` and the two hexadecimal digits of a byte.
inline void AppendHex(std::string& out, std::string_view prefix, char c) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(c);
  out.append(prefix).append(1, kDigits[byte >> 4]).append(1, kDigits[byte & 15]);
}
/// Writes a byte percent-encoded, as `%2F`. Returns the end of the written text.
[[nodiscard]] constexpr char* WritePercentEncoded(char* out, char c) noexcept {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  const auto byte = static_cast<unsigned char>(c);
  *out++ = '%';
  *out++ = kDigits[byte >> 4];
  *out++ = kDigits[byte & 15];
  return out;
}

/// One character of a percent-encoded text.
struct Decoded {
  char c;
  bool encoded;
};
/// Removes one character from the front of `text` and returns it decoded. The `%` of a malformed
/// percent-encoding is returned as it is. REQUIRES: `text` is not empty.
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

/// Removes and returns the text before the first `divider`; removes the divider too.
[[nodiscard]] constexpr std::string_view TakeUntil(std::string_view& text, char divider) noexcept {
  const std::string_view piece = text.substr(0, text.find(divider));
  text.remove_prefix(piece.size() < text.size() ? piece.size() + 1 : piece.size());
  return piece;
}

/// Removes the spaces and tabs at both ends: what HTTP calls optional white space.
[[nodiscard]] constexpr std::string_view Trim(std::string_view text) noexcept {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

}  // namespace tidegate
