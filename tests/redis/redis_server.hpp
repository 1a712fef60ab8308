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

 private:
  struct ContextDeleter {
    void operator()(redisContext* context) const noexcept { redisFree(context); }
  };
  std::unique_ptr<redisContext, ContextDeleter> context_;
};

/// A redis-server of the test's own: on loopback, without persistence, killed at the end.
class RedisServer {
 public:
  struct Options {
    std::vector<std::string> arguments = {};    ///< Added to the command line.
    std::vector<std::string> environment = {};  ///< `NAME=value`, as for a preloaded library.
    int core = -1;                              ///< Runs there only, if not negative.
  };
  RedisServer() : RedisServer(Options{}) {}
  explicit RedisServer(Options options);
  ~RedisServer();
  RedisServer(const RedisServer&) = delete;
  RedisServer& operator=(const RedisServer&) = delete;

  [[nodiscard]] int port() const noexcept { return port_; }
  [[nodiscard]] std::string unix_socket() const { return (folder_.path() / "redis.sock").string(); }
  [[nodiscard]] std::string url() const { return "redis://127.0.0.1:" + std::to_string(port_); }
  [[nodiscard]] pid_t pid() const noexcept { return pid_; }

  void Signal(int signal) const;
  /// SIGKILL, and waits until it is gone.
  void Kill();
  /// Starts it again on the same port, empty, and waits until it answers.
  void Start();

  /// A new connection.
  [[nodiscard]] RedisClient Connect() const { return RedisClient(port_); }
  /// On a connection kept for this.
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
