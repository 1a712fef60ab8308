// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "net/resp_command.hpp"

namespace tidegate::net {

/// Result of a RespCommandParser, copied so that nothing in it points into a buffer.
struct CommandAnswer {
  RespCommandParser::Progress progress = RespCommandParser::Progress::kMore;
  std::size_t consumed = 0;  ///< Bytes of the input, for kCommand and kNothing only.
  std::vector<std::string> arguments;
  std::string problem;

  bool operator==(const CommandAnswer&) const = default;
};

inline CommandAnswer Describe(RespCommandParser::Progress progress,
                              const RespCommandParser& parser) {
  using Progress = RespCommandParser::Progress;
  CommandAnswer answer{.progress = progress, .consumed = 0, .arguments = {}, .problem = {}};
  if (progress == Progress::kBad) answer.problem = parser.problem();
  if (progress == Progress::kCommand || progress == Progress::kNothing) {
    answer.consumed = parser.consumed();
  }
  if (progress == Progress::kCommand) {
    answer.arguments.assign(parser.arguments().begin(), parser.arguments().end());
  }
  return answer;
}

/// Parses all commands of `input` in pieces that end at `cuts` and at its end. The last result is
/// kMore or kBad. Each call gets a new buffer with exactly the bytes that have arrived and are not
/// consumed, so that the address sanitizer finds stale views and reads beyond the end.
inline std::vector<CommandAnswer> ReadCommands(std::string_view input,
                                               const RespLimits& limits = {},
                                               const std::vector<std::size_t>& cuts = {}) {
  RespCommandParser parser;
  std::vector<CommandAnswer> answers;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= cuts.size();) {
    const std::size_t end = i < cuts.size() ? cuts[i] : input.size();
    const auto buffer = std::make_unique<char[]>(end - begin);
    input.substr(begin, end - begin).copy(buffer.get(), end - begin);
    const auto progress = parser.Parse({buffer.get(), end - begin}, limits);
    if (progress == RespCommandParser::Progress::kMore) {
      ++i;
      continue;
    }
    answers.push_back(Describe(progress, parser));
    if (progress == RespCommandParser::Progress::kBad) return answers;
    begin += answers.back().consumed;
  }
  answers.emplace_back();
  return answers;
}

/// Returns a command as clients encode it.
inline std::string Encoded(const std::vector<std::string>& arguments) {
  std::string bytes = "*" + std::to_string(arguments.size()) + "\r\n";
  for (const std::string& argument : arguments) {
    bytes += "$" + std::to_string(argument.size()) + "\r\n" + argument + "\r\n";
  }
  return bytes;
}

}  // namespace tidegate::net
