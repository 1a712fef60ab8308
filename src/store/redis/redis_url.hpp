// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/redis/endpoint.hpp"
#include "tidegate/error.hpp"

namespace tidegate::redis {

/// Where Redis is and the user to connect as.
struct RedisUrl {
  enum class Mode : std::uint8_t { kSingle, kSentinel, kCluster };

  Mode mode = Mode::kSingle;
  bool tls = false;
  /// kSingle: the one; kSentinel: the sentinels; kCluster: some nodes, which know the others.
  std::vector<Endpoint> hosts;
  std::string master;    ///< kSentinel: by which name they know it.
  std::string user;      ///< Empty: Redis's default user.
  std::string password;  ///< Empty with a user: one that needs none.
  int database = 0;      ///< kCluster has only this one.

  /// For logs: `***` stands for the password; and for a user alone, which is where people
  /// who know redis-cli put their password.
  [[nodiscard]] std::string Shown() const;

  friend bool operator==(const RedisUrl&, const RedisUrl&) = default;
};

/// Reads
///
///     redis://[user[:password]@]host[:port][/database]
///     redis+sentinel://[user[:password]@]host[:port][,host[:port]...]/master[/database]
///     redis+cluster://[user[:password]@]host[:port][,host[:port]...]
///     unix://[user[:password]@]/path[?db=database]
///
/// and the first three with `rediss` for TLS. Ports are 6379, of sentinels 26379. User, password,
/// master and path are percent-decoded. The Error says what would be right and shows
/// nothing of the text: wherever a mistake cuts it, the piece may be of the password.
[[nodiscard]] Result<RedisUrl> ParseRedisUrl(std::string_view text);

/// Sentinels are three or five, and a few nodes of a cluster know the others: more are a mistake.
inline constexpr std::size_t kMaxHosts = 64;

/// Reads `host[:port][,host[:port]...]`: names, IPv4 addresses and IPv6 ones in brackets, none of
/// them twice. The Error shows nothing of the text, as that of ParseRedisUrl.
[[nodiscard]] Result<std::vector<Endpoint>> ParseHostList(std::string_view text,
                                                          std::uint16_t default_port);

/// Nothing where a `%` is not followed by two hexadecimal digits, or stands for NUL, which neither
/// a path nor anybody's password holds.
[[nodiscard]] std::optional<std::string> PercentDecode(std::string_view text);

enum class Slash : std::uint8_t { kPlain, kEncoded };
/// What PercentDecode reads back, fit for a line of a log. Only in a path a `/` is plain.
[[nodiscard]] std::string PercentEncode(std::string_view text, Slash slash);

}  // namespace tidegate::redis
