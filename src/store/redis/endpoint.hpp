// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tidegate::redis {

/// Where one Redis, or one Sentinel, listens.
struct Endpoint {
  std::string host = {};  ///< An address, IPv6 without brackets, or a name for DNS.
  std::uint16_t port = 0;
  std::string path = {};  ///< A Unix socket, absolute; then there is no host.

  /// `redis-1:6379`, `[::1]:6379` or the path.
  [[nodiscard]] std::string Shown() const {
    if (!path.empty()) return path;
    const bool brackets = host.find(':') != std::string::npos;
    return (brackets ? "[" + host + "]" : host) + ":" + std::to_string(port);
  }
  friend auto operator<=>(const Endpoint&, const Endpoint&) = default;
};

/// Whether a text from a server may be a host: 1 to 253 visible ASCII characters. It ends up in
/// logs and in a resolver.
[[nodiscard]] bool IsHost(std::string_view text) noexcept;

/// Decimal digits and nothing else.
[[nodiscard]] std::optional<std::int64_t> ReadInteger(std::string_view digits) noexcept;
/// The same, without a sign.
[[nodiscard]] std::optional<std::int64_t> ReadWhole(std::string_view digits) noexcept;

/// 1 to 65535.
[[nodiscard]] std::optional<std::uint16_t> ToPort(std::int64_t number) noexcept;
[[nodiscard]] std::optional<std::uint16_t> ReadPort(std::string_view digits) noexcept;

}  // namespace tidegate::redis
