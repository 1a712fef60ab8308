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
  /// `lines`: of its configuration, without port and folder.
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
  [[nodiscard]] std::string Said() const;

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

/// A master, two replicas and three sentinels that watch them as `mymaster`, quorum 2. Servers and
/// sentinels are numbered; server 0 is the master at first.
class RedisSentinels {
 public:
  struct Options {
    int down_after_ms = 500;
    bool start_sentinels = true;
    std::vector<std::string> arguments = {};  ///< Added to each server's command line.
    std::string lines = {};                   ///< Added to each sentinel's configuration.
    std::string password = {};                ///< What the sentinels ask everybody for.
    RedisServer::Wire wire = RedisServer::Wire::kPlain;
  };
  RedisSentinels() : RedisSentinels(Options{}) {}
  /// Waits until every sentinel knows both replicas and the other sentinels.
  explicit RedisSentinels(Options options);

  [[nodiscard]] std::size_t size() const noexcept { return servers_.size(); }
  RedisServer& operator[](std::size_t server) { return *servers_[server]; }
  Sentinel& sentinel(std::size_t number) { return *sentinels_[number]; }
  /// Those that were not started.
  void StartSentinels();

  /// `redis+sentinel://`, the sentinels, and `/mymaster`; `user` as in `tidegate:pw@`.
  [[nodiscard]] std::string url(std::string_view user = {}) const;
  /// Its number, as all living sentinels say; size() where they do not agree.
  [[nodiscard]] std::size_t Master();
  /// The sentinels name another one than `before`, and it says itself that it is the master.
  [[nodiscard]] bool Switched(std::size_t before);
  /// The server follows `master`, in sync.
  [[nodiscard]] bool Follows(std::size_t server, std::size_t master);
  /// All sentinels know the same master, that its other servers follow, and one another.
  void AwaitWhole();

 private:
  [[nodiscard]] bool Whole();

  Options options_;
  std::vector<std::unique_ptr<RedisServer>> servers_;
  std::vector<std::unique_ptr<Sentinel>> sentinels_;
};

}  // namespace tidegate::redis_test
