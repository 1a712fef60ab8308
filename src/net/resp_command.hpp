// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate::net {

/// The limits of one command. Redis allows far more, which no command of Tidegate needs.
struct RespLimits {
  std::size_t elements = 64;
  std::size_t bulk_bytes = 64u << 10;    ///< The longest element.
  std::size_t inline_bytes = 16u << 10;  ///< The longest line of an inline command.
};

/// Reads commands as Redis clients send them: arrays of bulk strings, and inline commands, which
/// people type. No I/O, and no copies but for inline commands with quotes. A complete command costs
/// one pass over its bytes.
class RespCommandParser {
 public:
  enum class Progress : std::uint8_t {
    kCommand,  ///< arguments() are the words of one command, at least one.
    kNothing,  ///< An empty line or an empty array: skip consumed() bytes, answer nothing.
    kMore,
    kBad,  ///< Send problem() to the client, and close the connection.
  };

  /// Reads one command at the beginning of `bytes`, which may contain more. After kMore, call again
  /// with the same bytes and more after them. That call continues where the last one stopped, so
  /// that a command in many pieces costs no more than a command that arrives at once.
  [[nodiscard]] Progress Parse(std::string_view bytes, const RespLimits& limits);

  /// Returns the words of the last command: valid as long as `bytes`, and until the next Parse.
  [[nodiscard]] std::span<const std::string_view> arguments() const noexcept { return arguments_; }
  /// After kCommand and kNothing: returns the size of the command.
  [[nodiscard]] std::size_t consumed() const noexcept { return at_; }
  /// Returns the error, in the words of Redis if it has that error: `Protocol error: invalid
  /// multibulk length`.
  [[nodiscard]] const std::string& problem() const noexcept { return problem_; }

 private:
  /// The step at which the next call continues. Positions are kept as offsets, because the bytes
  /// may move between calls.
  enum class Step : std::uint8_t { kStart, kLine, kElements };

  [[nodiscard]] Progress Run(std::string_view bytes, const RespLimits& limits);
  [[nodiscard]] Progress Line(std::string_view bytes, const RespLimits& limits);
  [[nodiscard]] Progress Count(std::string_view bytes, const RespLimits& limits);
  [[nodiscard]] Progress Elements(std::string_view bytes, const RespLimits& limits);
  [[nodiscard]] Progress Bad(std::string problem) {
    problem_ = "Protocol error: " + std::move(problem);
    return Progress::kBad;
  }

  std::vector<std::string_view> arguments_;
  std::size_t at_ = 0;    ///< All bytes before this position have been read.
  std::size_t left_ = 0;  ///< Elements that have not arrived.
  Step step_ = Step::kStart;
  std::string unquoted_;  ///< The unquoted text of the quoted words of an inline command.
  std::string problem_;
};

}  // namespace tidegate::net
