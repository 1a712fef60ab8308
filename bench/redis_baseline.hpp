// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "net/descriptor.hpp"
#include "redis/redis_server.hpp"
#include "redis_draws.hpp"
#include "store/redis/resp_reader.hpp"
#include "tidegate/quota.hpp"

namespace tidegate::bench {

/// Rate limiting with Redis as it is usually done: each request makes its own call, on its own
/// connection from a pool, and waits for the reply. One thread with one epoll instance.
class Baseline {
 public:
  enum class Way : std::uint8_t {
    kScript,    ///< One EVALSHA of the common token-bucket script.
    kCommands,  ///< HMGET, then HMSET, then EXPIRE. The computation is done between these commands,
                ///< so it has races.
  };
  struct Outcome {
    std::uint64_t decisions = 0;
    std::uint64_t allowed = 0;
  };

  /// REQUIRES: `identities` outlive this object, and `quota` has whole units per second.
  Baseline(redis_test::RedisServer& server, Way way, const std::vector<std::string>& identities,
           const Quota& quota, int connections);

  /// Sends requests for `seconds`, or until `most` requests were sent if that is sooner. Waits for
  /// pending replies at the end.
  Outcome Run(Draws& draws, double seconds,
              std::uint64_t most = std::numeric_limits<std::uint64_t>::max());

 private:
  enum class Step : std::uint8_t { kIdle, kScript, kRead, kWrite, kExpire };
  struct Connection {
    net::Descriptor fd;
    redis::RespReader reader;
    std::uint32_t key = 0;
    Step step = Step::kIdle;
    bool allowed = false;
  };

  void Open(Connection& connection, int port);
  void Ask(Connection& connection, std::uint32_t key);
  [[nodiscard]] std::string_view KeyOf(std::uint32_t key);
  void Send(Connection& connection, std::initializer_list<std::string_view> arguments);
  void OnReadable(Connection& connection);
  void OnReply(Connection& connection, const redis::Reply& reply);
  void OnState(Connection& connection, const redis::Reply& reply);
  void OnDecided(Connection& connection, bool allowed);

  const Way way_;
  const std::vector<std::string>& identities_;
  const std::int64_t rate_;  ///< Units per second.
  const std::int64_t capacity_;
  std::string sha_;
  std::string rate_text_;
  std::string capacity_text_;
  std::string ttl_text_;
  std::string now_text_;  ///< Current time in seconds.
  std::int64_t now_ = 0;
  net::Descriptor epoll_;
  std::vector<Connection> connections_;
  std::string key_;
  std::string command_;
  Outcome outcome_;
  std::uint64_t requests_ = 0;
  std::uint64_t most_ = 0;
  std::size_t busy_ = 0;
  bool asking_ = false;
  Draws* draws_ = nullptr;
};

}  // namespace tidegate::bench
