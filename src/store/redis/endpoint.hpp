// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/units.hpp"

namespace tidegate::redis {

/// Where one Redis or one sentinel listens.
struct Endpoint {
  std::string host = {};  ///< A name for DNS, or an address; IPv6 without brackets.
  std::uint16_t port = 0;
  std::string path = {};  ///< The absolute path of a Unix socket; then there is no host.

  /// Returns `redis-1:6379`, `[::1]:6379` or the path.
  [[nodiscard]] std::string Shown() const {
    if (!path.empty()) return path;
    return (host.contains(':') ? "[" + host + "]" : host) + ":" + std::to_string(port);
  }
  friend auto operator<=>(const Endpoint&, const Endpoint&) = default;
};

/// Returns whether `text` may be a host: 1 to 253 visible ASCII characters. Hosts that servers send
/// are printed in logs and passed to a resolver.
[[nodiscard]] bool IsHost(std::string_view text) noexcept;

/// Reads a decimal number.
[[nodiscard]] inline std::optional<std::int64_t> ReadInteger(std::string_view text) noexcept {
  return ParseNumber<std::int64_t>(text);
}
/// Reads a decimal number without a sign.
[[nodiscard]] inline std::optional<std::int64_t> ReadWhole(std::string_view text) noexcept {
  return text.starts_with('-') ? std::nullopt : ReadInteger(text);
}

}  // namespace tidegate::redis
