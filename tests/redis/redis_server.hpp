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

/// A blocking connection through hiredis, which shares no code with Tidegate's own client.
class RedisClient {
 public:
  /// Connects by TCP to `port`, or by the Unix socket if a path is given.
  explicit RedisClient(int port, const std::string& unix_socket = {});

  /// Sends a command and returns its reply; nullptr if the connection is closed or the server did
  /// not reply within five seconds.
  Reply Command(const std::vector<std::string>& arguments);
  /// Sends a command and returns the reply as text: `OK`, `3`, `(nil)` or `(error) ...`; elements
  /// are joined by spaces.
  std::string Text(const std::vector<std::string>& arguments);
  [[nodiscard]] bool connected() const noexcept { return context_ && context_->err == 0; }
  /// Returns whether the server has closed the connection, as it does with all clients when a
  /// sentinel reconfigures it.
  [[nodiscard]] bool ended() const noexcept { return context_ && context_->err == REDIS_ERR_EOF; }

 private:
  struct ContextDeleter {
    void operator()(redisContext* context) const noexcept { redisFree(context); }
  };
  std::unique_ptr<redisContext, ContextDeleter> context_;
};

/// A redis-server that belongs to one test: on loopback, without persistence, killed in the
/// destructor.
class RedisServer {
 public:
  /// kTls: the port accepts TLS only, and the test itself uses the Unix socket.
  /// `Options::arguments` must contain the certificates and other TLS settings.
  enum class Wire : bool { kPlain, kTls };
  struct Options {
    std::vector<std::string> arguments = {};  ///< Added to the command line.
    /// Entries `NAME=value`, such as LD_PRELOAD for a preloaded library.
    std::vector<std::string> environment = {};
    int core = -1;  ///< CPU core that the server is bound to; -1: any.
    int port = 0;   ///< Port to listen on; 0: a free port.
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
  /// Sends SIGKILL and waits until the process has ended.
  void Kill();
  /// Starts an empty server on the same port and waits until it replies.
  void Start();

  /// Changes how the server is started the next time; the port stays the same.
  void Become(Wire wire, std::vector<std::string> arguments) {
    options_.wire = wire;
    options_.arguments = std::move(arguments);
  }
  [[nodiscard]] bool running() const noexcept { return process_.started(); }
  /// Returns the log of the server.
  [[nodiscard]] std::string Output() const { return test::ReadFile(folder_ / "redis.log"); }

  /// Opens a new connection.
  [[nodiscard]] RedisClient Connect() const {
    return options_.wire == Wire::kTls ? RedisClient(0, unix_socket()) : RedisClient(port_);
  }
  /// Sends a command on a connection that is kept open, and reconnects if the server has closed it.
  std::string Text(const std::vector<std::string>& arguments);
  /// Returns the user and system CPU time so far, in seconds.
  [[nodiscard]] double CpuSeconds() const { return process_.CpuSeconds(); }

 private:
  Options options_;
  test::TemporaryFolder folder_;
  int port_ = 0;
  test::ChildProcess process_;
  std::unique_ptr<RedisClient> client_;
};

}  // namespace tidegate::redis_test
