// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hiredis/hiredis.h>
#include <sys/types.h>

#include <filesystem>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate::redis_test {

/// A folder of its own under the system's temporary one, gone at the end.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path path_;
};

/// A port on 127.0.0.1 that was free a moment ago.
[[nodiscard]] int FreePort();
/// The same, below those that the kernel hands out by itself: nobody takes it while its server is
/// dead for a moment. The port 10,000 above it, of a cluster's bus, is free too.
[[nodiscard]] int LowPort();

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
  [[nodiscard]] pid_t pid() const noexcept { return pid_; }

  void Signal(int signal) const;
  /// SIGKILL, and waits until it is gone.
  void Kill();
  /// Starts it again on the same port, empty, and waits until it answers.
  void Start();

  /// How it is started from the next time on; its port stays.
  void Become(Wire wire, std::vector<std::string> arguments) {
    options_.wire = wire;
    options_.arguments = std::move(arguments);
  }
  [[nodiscard]] bool running() const noexcept { return pid_ > 0; }
  /// What it has logged.
  [[nodiscard]] std::string Said() const;

  /// A new connection.
  [[nodiscard]] RedisClient Connect() const {
    return options_.wire == Wire::kTls ? RedisClient(0, unix_socket()) : RedisClient(port_);
  }
  /// On a connection kept for this, or another if the server has ended it.
  std::string Text(const std::vector<std::string>& arguments);
  /// User and system time so far, in seconds.
  [[nodiscard]] double CpuSeconds() const;

 private:
  Options options_;
  TemporaryFolder folder_;
  int port_ = 0;
  pid_t pid_ = -1;
  std::unique_ptr<RedisClient> client_;
};

}  // namespace tidegate::redis_test
