// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
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
  std::vector<Endpoint> hosts;  ///< The one server, the sentinels, or some nodes of the cluster.
  std::string master;           ///< kSentinel: the name of the master.
  std::string user;             ///< Empty: the default user of Redis.
  std::string password;         ///< Empty with a user: the user has no password.
  int database = 0;             ///< 0 with kCluster.

  /// Returns the URL for logs. `***` replaces the password, and also a user without a password:
  /// people who know redis-cli write their password there.
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
/// and the first three with `rediss` for TLS. The default port is 6379, and 26379 for sentinels.
/// User, password, master and path are percent-decoded. The Error says what would be right and
/// quotes nothing of the text: after a mistake, any piece of it may belong to the password.
[[nodiscard]] Result<RedisUrl> ParseRedisUrl(std::string_view text);

}  // namespace tidegate::redis
