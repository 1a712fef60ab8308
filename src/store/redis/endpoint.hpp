// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <string>

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

}  // namespace tidegate::redis
