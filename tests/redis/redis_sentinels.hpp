// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "redis/redis_server.hpp"
#include "support/child_process.hpp"
#include "support/files.hpp"

namespace tidegate::redis_test {

/// One redis-sentinel process.
class Sentinel {
 public:
  /// `lines` is added to the configuration, which already has the port and the folder.
  Sentinel(std::string lines, RedisServer::Wire wire);
  ~Sentinel() { Kill(); }
  Sentinel(const Sentinel&) = delete;
  Sentinel& operator=(const Sentinel&) = delete;

  void Start();
  void Kill();
  [[nodiscard]] bool running() const noexcept { return process_.started(); }
  [[nodiscard]] int port() const noexcept { return port_; }
  [[nodiscard]] std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  std::string Text(const std::vector<std::string>& arguments);
  [[nodiscard]] std::string Output() const;

 private:
  [[nodiscard]] std::string unix_socket() const { return (folder_.path() / "s.sock").string(); }

  test::TemporaryFolder folder_;
  std::string lines_;
  int port_;
  RedisServer::Wire wire_;
  test::ChildProcess process_;
  std::unique_ptr<RedisClient> client_;
  bool written_ = false;
};

/// One master, two replicas and three sentinels that monitor them as `mymaster` with quorum 2.
/// Servers and sentinels are numbered from 0; server 0 starts as the master.
class RedisSentinels {
 public:
  struct Options {
    int down_after_ms = 500;
    bool start_sentinels = true;
    std::vector<std::string> arguments = {};  ///< Added to each server's command line.
    std::string lines = {};                   ///< Added to each sentinel's configuration.
    std::string password = {};                ///< Password of the sentinels; empty: none.
    RedisServer::Wire wire = RedisServer::Wire::kPlain;
  };
  RedisSentinels() : RedisSentinels(Options{}) {}
  /// Waits until every sentinel knows both replicas and the other sentinels.
  explicit RedisSentinels(Options options);

  [[nodiscard]] std::size_t size() const noexcept { return servers_.size(); }
  RedisServer& operator[](std::size_t server) { return *servers_[server]; }
  Sentinel& sentinel(std::size_t number) { return *sentinels_[number]; }
  /// Starts the sentinels that are not running and waits until they agree.
  void StartSentinels();

  /// Returns `redis+sentinel://`, the addresses of the sentinels and `/mymaster`; `user` is written
  /// as `tidegate:pw@`.
  [[nodiscard]] std::string url(std::string_view user = {}) const;
  /// Returns the number of the master that all running sentinels name; size() if they do not agree.
  [[nodiscard]] std::size_t Master();
  /// Returns whether the sentinels name another master than `before` and that server reports itself
  /// as master.
  [[nodiscard]] bool Switched(std::size_t before);
  /// Returns whether the server replicates `master` and its link is up.
  [[nodiscard]] bool Follows(std::size_t server, std::size_t master);
  /// Waits until all sentinels agree on the master, know each other and both replicas, and the
  /// running replicas follow the master.
  void AwaitWhole();

 private:
  [[nodiscard]] bool Whole();

  Options options_;
  std::vector<std::unique_ptr<RedisServer>> servers_;
  std::vector<std::unique_ptr<Sentinel>> sentinels_;
};

}  // namespace tidegate::redis_test
