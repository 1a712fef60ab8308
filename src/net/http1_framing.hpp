// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "net/http1_tokens.hpp"

/// The values of the fields that frame a message or control its connection, in requests and
/// responses alike.
namespace tidegate::net::http1 {

// Why such a field is refused. Static text.
inline constexpr std::string_view kBadLength = "Content-Length is not a decimal number";
inline constexpr std::string_view kTwoCodings = "more than one Transfer-Encoding header";
inline constexpr std::string_view kBadCoding = "Transfer-Encoding is not `chunked`";
inline constexpr std::string_view kFramedTwice = "both Transfer-Encoding and Content-Length";
inline constexpr std::string_view kChunkedIn10 = "Transfer-Encoding in HTTP/1.0";
inline constexpr std::string_view kBadConnection = "Connection header is not a list of tokens";

/// Returns the value of a Content-Length field, or nothing if it is not one number. RFC 9110, 8.6
/// allows a list of equal numbers, which only responses may have: ReadLengths.
[[nodiscard]] constexpr std::optional<std::uint64_t> ReadLength(std::string_view value) noexcept {
  constexpr std::size_t kMaxDigits = 19;  // All such numbers are below 2^64.
  if (value.empty() || value.size() > kMaxDigits || !All(value, kDigit)) return std::nullopt;
  std::uint64_t length = 0;
  for (const char c : value) length = length * 10 + static_cast<std::uint64_t>(c - '0');
  return length;
}

/// As ReadLength, of a response: `5, 5` is 5, since the gateway writes it once. Nothing if the
/// numbers differ.
[[nodiscard]] constexpr std::optional<std::uint64_t> ReadLengths(std::string_view value) noexcept {
  const auto first = ReadLength(TrimBlanks(value.substr(0, value.find(','))));
  for (std::size_t comma = 0; first && (comma = value.find(',')) != std::string_view::npos;) {
    value.remove_prefix(comma + 1);
    if (ReadLength(TrimBlanks(value.substr(0, value.find(',')))) != first) return std::nullopt;
  }
  return first;
}

/// What the Connection fields of a message name.
struct ConnectionOptions {
  bool close = false;
  bool keep_alive = false;
  bool upgrade = false;

  /// Adds the options of one more field line. Returns false if it is not a list of tokens.
  [[nodiscard]] constexpr bool Add(std::string_view value) noexcept {
    while (true) {
      const std::size_t comma = value.find(',');
      const std::string_view option = TrimBlanks(value.substr(0, comma));
      if (!All(option, kToken)) return false;  // Empty elements are valid: RFC 9110, 5.6.1.2.
      close |= EqualsLower(option, "close");
      keep_alive |= EqualsLower(option, "keep-alive");
      upgrade |= EqualsLower(option, "upgrade");
      if (comma == std::string_view::npos) return true;
      value.remove_prefix(comma + 1);
    }
  }
};

}  // namespace tidegate::net::http1
