// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate::net {

/// What one command may be at most. Redis takes far more; nobody who asks for a decision needs it.
struct RespLimits {
  std::size_t elements = 64;
  std::size_t bulk_bytes = 64u << 10;    ///< Of one element.
  std::size_t inline_bytes = 16u << 10;  ///< Of a line.
};

/// Reads commands as Redis clients send them: arrays of bulk strings, and inline commands, which
/// people type. No I/O and no copies but for inline commands with quotes. Made for pipelines: a
/// command that is whole costs one pass over its bytes.
class RespCommandParser {
 public:
  enum class Progress : std::uint8_t {
    kCommand,  ///< arguments() are those of one command: at least one.
    kNothing,  ///< An empty line or an empty array: skip consumed() bytes, answer nothing.
    kMore,
    kBad,  ///< See problem(): to be told to the client, and the connection closed.
  };

  /// One command at the beginning of `bytes`, which may hold more. Called again with all of the
  /// same bytes and some behind them after kMore: it goes on where it stopped, so that a command
  /// that trickles in costs no more than one that comes at once.
  [[nodiscard]] Progress Parse(std::string_view bytes, const RespLimits& limits);

  /// Of the last command; valid while `bytes` are where they were, and until the next Parse.
  [[nodiscard]] std::span<const std::string_view> arguments() const noexcept { return arguments_; }
  /// After kCommand and kNothing.
  [[nodiscard]] std::size_t consumed() const noexcept { return at_; }
  /// As Redis says it where Redis has it: `Protocol error: invalid multibulk length`.
  [[nodiscard]] const std::string& problem() const noexcept { return problem_; }

 private:
  /// Where the next call goes on. What was read is kept as offsets: the bytes may move meanwhile.
  enum class Step : std::uint8_t { kStart, kLine, kElements };

  [[nodiscard]] Progress Run(std::string_view bytes, const RespLimits& limits);
  [[nodiscard]] Progress Line(std::string_view bytes, const RespLimits& limits);
  [[nodiscard]] Progress Count(std::string_view bytes, const RespLimits& limits);
  [[nodiscard]] Progress Elements(std::string_view bytes, const RespLimits& limits);
  [[nodiscard]] Progress Bad(std::string problem);

  std::vector<std::string_view> arguments_;
  std::size_t at_ = 0;    ///< Where it goes on, or what was consumed.
  std::size_t left_ = 0;  ///< Elements that have not come.
  Step step_ = Step::kStart;
  std::string unquoted_;  ///< What stood in quotes on an inline command's line.
  std::string problem_;
};

}  // namespace tidegate::net
