// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "net/resp_command.hpp"

namespace tidegate::net {

/// What a parser said, with nothing in it that points into a buffer.
struct CommandAnswer {
  RespCommandParser::Progress progress = RespCommandParser::Progress::kMore;
  std::size_t consumed = 0;  ///< Of kCommand and kNothing.
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

/// All commands of `input`, which comes in pieces that end at `cuts` and at its end; the last
/// answer is kMore or kBad. Each call has a buffer of its own that is exactly as long as what has
/// arrived and was not consumed: a view that is stale or a byte read too far is seen by the address
/// sanitizer.
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

/// As clients encode it.
inline std::string Encoded(const std::vector<std::string>& arguments) {
  std::string bytes = "*" + std::to_string(arguments.size()) + "\r\n";
  for (const std::string& argument : arguments) {
    bytes += "$" + std::to_string(argument.size()) + "\r\n" + argument + "\r\n";
  }
  return bytes;
}

}  // namespace tidegate::net
