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

/// Whom a command asks, as people write it. The name is not looked up yet.
struct ServerAddress {
  std::string host = {};  ///< A name or an address, IPv6 without brackets.
  std::uint16_t port = 0;
  bool tls = false;

  /// `127.0.0.1:9180`, `localhost:9180`, `[::1]:9180`, `::1`, `host`, `:9180` (this machine), and
  /// any of them behind `http://` or `https://` and before a slash. The message says what would be
  /// right.
  [[nodiscard]] static Result<ServerAddress> Parse(std::string_view text,
                                                   std::uint16_t default_port);
  /// As a URL and a Host field have it.
  [[nodiscard]] std::string Text() const;
  /// As messages have it: with `https://`, if it is asked so.
  [[nodiscard]] std::string Told() const { return (tls ? "https://" : "") + Text(); }
  /// What its certificate must be for: the host without what is this machine's own affair, the
  /// zone of an address and the dot behind a name.
  [[nodiscard]] std::string CertifiedName() const;

  friend bool operator==(const ServerAddress&, const ServerAddress&) = default;
};

}  // namespace tidegate::cli
