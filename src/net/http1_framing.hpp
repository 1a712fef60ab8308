// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "net/http1_tokens.hpp"

/// The values of the fields that frame a message or decide about its connection, in requests and
/// responses alike.
namespace tidegate::net::http1 {

/// RFC 9110, 8.6 lets a list of equal numbers pass. Who passes it on must repair it, and who reads
/// only the first or the last of them may see another message: nothing.
[[nodiscard]] constexpr std::optional<std::uint64_t> ReadLength(std::string_view value) noexcept {
  constexpr std::size_t kMaxDigits = 19;  // All of them are below 2^64.
  if (value.empty() || value.size() > kMaxDigits || !All(value, kDigit)) return std::nullopt;
  std::uint64_t length = 0;
  for (const char c : value) length = length * 10 + static_cast<std::uint64_t>(c - '0');
  return length;
}

/// What the Connection fields of a message name.
struct ConnectionOptions {
  bool close = false;
  bool keep_alive = false;
  bool upgrade = false;

  /// Adds those of one more field line; false: it is no list of tokens.
  [[nodiscard]] constexpr bool Add(std::string_view value) noexcept {
    while (true) {
      const std::size_t comma = value.find(',');
      const std::string_view option = TrimBlanks(value.substr(0, comma));
      if (!All(option, kToken)) return false;  // Empty ones are let pass: RFC 9110, 5.6.1.2.
      close |= EqualsLower(option, "close");
      keep_alive |= EqualsLower(option, "keep-alive");
      upgrade |= EqualsLower(option, "upgrade");
      if (comma == std::string_view::npos) return true;
      value.remove_prefix(comma + 1);
    }
  }
};

}  // namespace tidegate::net::http1
