// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tidegate/error.hpp"

namespace tidegate::cli {

inline constexpr std::uint16_t kAdminPort = 9180;
inline constexpr std::uint16_t kApiPort = 8081;
inline constexpr std::uint16_t kRespPort = 6380;

/// The address of a server as people write it. The name is not looked up yet.
struct ServerAddress {
  std::string host = {};  ///< A name or an address, IPv6 without brackets.
  std::uint16_t port = 0;
  bool tls = false;

  /// Reads `127.0.0.1:9180`, `localhost:9180`, `[::1]:9180`, `::1`, `host`, `:9180` (this machine),
  /// and any of them with `http://` or `https://` before and slashes after it. The Error says what
  /// is expected.
  [[nodiscard]] static Result<ServerAddress> Parse(std::string_view text,
                                                   std::uint16_t default_port);
  /// Returns HOST:PORT, as in a URL and a Host field.
  [[nodiscard]] std::string Text() const;
  /// Returns the address for messages: with `https://` if it has TLS.
  [[nodiscard]] std::string Display() const { return (tls ? "https://" : "") + Text(); }
  /// Returns the name that the server's certificate must have: the host without the zone of an
  /// address or the final dot of a name, which mean something only on this machine.
  [[nodiscard]] std::string CertifiedName() const;

  friend bool operator==(const ServerAddress&, const ServerAddress&) = default;
};

}  // namespace tidegate::cli
