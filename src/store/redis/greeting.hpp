// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "store/redis/redis_error.hpp"
#include "store/redis/resp_reader.hpp"

namespace tidegate::redis {

/// Appends `*2`, the beginning of a command of two words, for example, in Redis's protocol.
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

/// What is said on a new connection before the first batch, and what must come back: who we are,
/// that it is the master, the database, the channel, the script. No I/O.
class Greeting {
 public:
  struct Options {
    std::string user;
    std::string password;  ///< Both empty: no AUTH.
    std::string name;      ///< As CLIENT LIST shows it.
    int database = 0;
    std::string channel;           ///< To subscribe to.
    std::string also = {};         ///< Another channel; empty: none.
    std::string_view script = {};  ///< Empty: none, as for a sentinel.
    bool master_only = false;      ///< A replica is of no use.
    std::string_view what = "Redis";
    std::string_view where_password = "store.url";  ///< Of the configuration.
  };
  explicit Greeting(Options options) : options_(std::move(options)) {}

  /// Appends all commands; OnReply gets the replies one by one.
  void Begin(std::string& out);

  enum class Progress : std::uint8_t { kMore, kReady, kFailed };
  [[nodiscard]] Progress OnReply(const Reply& reply);

  [[nodiscard]] const std::string& sha() const noexcept { return sha_; }
  /// False: this user may not read the channel, so nothing may be cached.
  [[nodiscard]] bool subscribed() const noexcept { return subscribed_; }
  /// After kFailed: what a person should do about it.
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
