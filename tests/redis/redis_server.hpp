// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hiredis/hiredis.h>
#include <sys/types.h>

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "support/child_process.hpp"
#include "support/files.hpp"
#include "support/ports.hpp"

namespace tidegate::redis_test {

struct ReplyDeleter {
  void operator()(redisReply* reply) const noexcept { freeReplyObject(reply); }
};
using Reply = std::unique_ptr<redisReply, ReplyDeleter>;

/// A blocking connection of hiredis's, which shares no code with Tidegate's own.
class RedisClient {
 public:
  /// By TCP, or by the Unix socket if one is named.
  explicit RedisClient(int port, const std::string& unix_socket = {});

  /// nullptr: the connection is gone, or the server did not answer for five seconds.
  Reply Command(const std::vector<std::string>& arguments);
  /// The reply as text: `OK`, `3`, `(nil)`, or `(error) ...`; elements joined by spaces.
  std::string Text(const std::vector<std::string>& arguments);
  [[nodiscard]] bool connected() const noexcept { return context_ && context_->err == 0; }
  /// The other side has ended it, as a sentinel makes a server do with all of its clients.
  [[nodiscard]] bool ended() const noexcept { return context_ && context_->err == REDIS_ERR_EOF; }

 private:
  struct ContextDeleter {
    void operator()(redisContext* context) const noexcept { redisFree(context); }
  };
  std::unique_ptr<redisContext, ContextDeleter> context_;
};

/// A redis-server of the test's own: on loopback, without persistence, killed at the end.
class RedisServer {
 public:
  /// kTls: on its port it speaks nothing else; the test itself comes by the Unix socket. What it
  /// needs, certificates and all, is in the arguments.
  enum class Wire : bool { kPlain, kTls };
  struct Options {
    std::vector<std::string> arguments = {};    ///< Added to the command line.
    std::vector<std::string> environment = {};  ///< `NAME=value`, as for a preloaded library.
    int core = -1;                              ///< Runs there only, if not negative.
    int port = 0;                               ///< 0: a free one.
    Wire wire = Wire::kPlain;
  };
  RedisServer() : RedisServer(Options{}) {}
  explicit RedisServer(Options options);
  ~RedisServer();
  RedisServer(const RedisServer&) = delete;
  RedisServer& operator=(const RedisServer&) = delete;

  [[nodiscard]] int port() const noexcept { return port_; }
  [[nodiscard]] std::string unix_socket() const { return (folder_.path() / "redis.sock").string(); }
  [[nodiscard]] std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  [[nodiscard]] std::string url() const {
    return (options_.wire == Wire::kTls ? "rediss://" : "redis://") + address();
  }
  [[nodiscard]] pid_t pid() const noexcept { return process_.pid(); }

  void Signal(int signal) const { process_.Signal(signal); }
  /// SIGKILL, and waits until it is gone.
  void Kill();
  /// Starts it again on the same port, empty, and waits until it answers.
  void Start();

  /// How it is started from the next time on; its port stays.
  void Become(Wire wire, std::vector<std::string> arguments) {
    options_.wire = wire;
    options_.arguments = std::move(arguments);
  }
  [[nodiscard]] bool running() const noexcept { return process_.started(); }
  /// What it has logged.
  [[nodiscard]] std::string Said() const { return test::ReadFile(folder_ / "redis.log"); }

  /// A new connection.
  [[nodiscard]] RedisClient Connect() const {
    return options_.wire == Wire::kTls ? RedisClient(0, unix_socket()) : RedisClient(port_);
  }
  /// On a connection kept for this, or another if the server has ended it.
  std::string Text(const std::vector<std::string>& arguments);
  /// User and system time so far, in seconds.
  [[nodiscard]] double CpuSeconds() const { return process_.CpuSeconds(); }

 private:
  Options options_;
  test::TemporaryFolder folder_;
  int port_ = 0;
  test::ChildProcess process_;
  std::unique_ptr<RedisClient> client_;
};

}  // namespace tidegate::redis_test
