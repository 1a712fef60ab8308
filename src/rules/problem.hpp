// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tidegate {

/// An included file of a configuration, as messages name it. The main file has no path here: who
/// prints a problem knows it.
///
/// A pointer, so that positions stay trivial to copy. Names are kept until the process ends: a
/// configuration has at most 1,000, and a reload mostly has the same. Thread-safe.
class SourceFile {
 public:
  SourceFile() = default;
  /// `order`: from 1, in the order of inclusion.
  SourceFile(const std::string& path, int order);

  [[nodiscard]] bool is_main() const noexcept { return name_ == nullptr; }
  [[nodiscard]] int order() const noexcept { return is_main() ? 0 : name_->second; }
  /// Empty for the main file.
  [[nodiscard]] std::string_view path() const noexcept {
    return is_main() ? std::string_view{} : name_->first;
  }

  friend bool operator==(const SourceFile& a, const SourceFile& b) noexcept {
    return a.path() == b.path();
  }

 private:
  const std::pair<std::string, int>* name_ = nullptr;
};

/// A place in a configuration file, from 1; line 0: the file as a whole.
struct Position {
  int line = 0;
  int column = 0;
  SourceFile file = {};

  friend bool operator==(const Position&, const Position&) = default;
};

/// Something in a configuration that a person should change.
struct Problem {
  enum class Severity : std::uint8_t { kError, kWarning };

  Severity severity = Severity::kError;
  Position at;
  std::string where;    ///< `rules[2].limit`
  std::string message;  ///< What is wrong and what would be right, one sentence.

  /// `tidegate.yaml:12:5: error: rules[2].limit: ...`; `main_file` is the name of the main file.
  [[nodiscard]] std::string Text(std::string_view main_file) const;
  /// The name of the file that the problem is in.
  [[nodiscard]] std::string_view FileOr(std::string_view main_file) const noexcept {
    return at.file.is_main() ? main_file : at.file.path();
  }
};

/// `line 12`, or `line 12 of rules/a.yaml` if that is another file than that of `here`.
[[nodiscard]] std::string LineOf(const Position& at, const Position& here);

using Problems = std::vector<Problem>;

}  // namespace tidegate
