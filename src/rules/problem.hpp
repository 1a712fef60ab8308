// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate {

/// A place in a configuration file, from 1; line 0: the file as a whole.
struct Position {
  int line = 0;
  int column = 0;

  friend bool operator==(const Position&, const Position&) = default;
};

/// Something in a configuration that a person should change.
struct Problem {
  enum class Severity : std::uint8_t { kError, kWarning };

  Severity severity = Severity::kError;
  Position at;
  std::string where;    ///< `rules[2].limit`
  std::string message;  ///< What is wrong and what would be right, one sentence.

  /// `tidegate.yaml:12:5: error: rules[2].limit: ...`
  [[nodiscard]] std::string Text(std::string_view file) const;
};

using Problems = std::vector<Problem>;

}  // namespace tidegate
