// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tidegate/error.hpp"

namespace tidegate::redis {

/// Where a Redis is and as whom to ask it.
struct RedisUrl {
  enum class Transport : std::uint8_t { kTcp, kUnix };

  Transport transport = Transport::kTcp;
  std::string host;  ///< kTcp: an address, IPv6 without brackets, or a name for DNS.
  std::uint16_t port = 6379;
  std::string path;      ///< kUnix: the socket, absolute.
  std::string user;      ///< Empty: Redis's default user.
  std::string password;  ///< Empty with a user: one that needs none.
  int database = 0;

  /// For logs: `***` stands for the password; and for a user alone, which is where people
  /// who know redis-cli put their password.
  [[nodiscard]] std::string Shown() const;

  friend bool operator==(const RedisUrl&, const RedisUrl&) = default;
};

/// Reads
///
///     redis://[user[:password]@]host[:port][/database]
///     unix://[user[:password]@]/path[?db=database]
///
/// User, password and path are percent-decoded. The Error says what would be right and shows
/// nothing of the text: wherever a mistake cuts it, the piece may be of the password.
[[nodiscard]] Result<RedisUrl> ParseRedisUrl(std::string_view text);

}  // namespace tidegate::redis
