// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "store/redis/redis_error.hpp"
#include "store/redis/resp_reader.hpp"

namespace tidegate::redis {

/// Appends a size in Redis's protocol: `*2` begins a command of two words.
void AppendSize(std::string& out, char kind, std::size_t size);
/// Appends a word of a command.
void AppendWord(std::string& out, std::string_view word);

/// Appends a whole command.
template <class Words>
void AppendCommand(std::string& out, const Words& words) {
  AppendSize(out, '*', words.size());
  for (const std::string_view word : words) AppendWord(out, word);
}
inline void AppendCommand(std::string& out, std::initializer_list<std::string_view> words) {
  AppendCommand<std::initializer_list<std::string_view>>(out, words);
}

/// The commands on a new connection before the first batch, and the check of their replies: login,
/// role, database, channels, script. No I/O.
class Greeting {
 public:
  struct Options {
    std::string user;
    std::string password;  ///< If user and password are empty, there is no AUTH.
    std::string name;      ///< The name that CLIENT LIST shows.
    int database = 0;
    std::string channel;              ///< A channel to subscribe to.
    std::string also = {};            ///< Another channel; empty: none.
    std::string_view script = {};     ///< The script to load; empty: none, as for a sentinel.
    bool master_only = false;         ///< Fail if the server is a replica.
    std::string_view what = "Redis";  ///< The server's name in messages.
    std::string_view where_password = "store.url";  ///< The configuration key of the password.
  };
  explicit Greeting(Options options) : options_(std::move(options)) {}

  /// Appends all commands. OnReply takes the replies one by one.
  void Begin(std::string& out);

  enum class Progress : std::uint8_t { kMore, kReady, kFailed };
  [[nodiscard]] Progress OnReply(const Reply& reply);

  [[nodiscard]] const std::string& sha() const noexcept { return sha_; }
  /// Returns false if this user may not read the channel: then nothing may be cached.
  [[nodiscard]] bool subscribed() const noexcept { return subscribed_; }
  /// Returns what failed and what to do about it. REQUIRES: OnReply has returned kFailed.
  [[nodiscard]] const std::string& problem() const noexcept { return problem_; }
  [[nodiscard]] ErrorKind kind() const noexcept { return kind_; }

 private:
  enum class Step : std::uint8_t { kHello, kRole, kSelect, kSubscribe, kAlso, kLoad };
  [[nodiscard]] Progress Fail(Step step, std::string_view error);

  Options options_;
  std::vector<Step> steps_;
  std::size_t at_ = 0;
  std::string sha_;
  bool subscribed_ = false;
  std::string problem_;
  ErrorKind kind_ = ErrorKind::kOther;
};

}  // namespace tidegate::redis
