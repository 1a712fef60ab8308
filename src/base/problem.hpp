// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tidegate {

/// Identifies a file of a configuration: the main file, or an included file by its path. Trivial to
/// copy, since paths (at most 1,000 of a configuration) are never freed. Thread-safe.
class SourceFile {
 public:
  SourceFile() = default;
  /// `order` numbers the included files from 1, in the order of inclusion.
  SourceFile(const std::string& path, int order);

  [[nodiscard]] bool is_main() const noexcept { return name_ == nullptr; }
  [[nodiscard]] int order() const noexcept { return is_main() ? 0 : name_->second; }
  /// Returns the path of an included file; empty for the main file.
  [[nodiscard]] std::string_view path() const noexcept {
    return is_main() ? std::string_view{} : name_->first;
  }

  friend bool operator==(const SourceFile& a, const SourceFile& b) noexcept {
    return a.path() == b.path();
  }

 private:
  const std::pair<std::string, int>* name_ = nullptr;
};

/// A place in a configuration file. Lines and columns count from 1; line 0 is the file as a whole.
struct Position {
  int line = 0;
  int column = 0;
  SourceFile file = {};

  friend bool operator==(const Position&, const Position&) = default;
};

/// An error or a warning about a configuration.
struct Problem {
  enum class Severity : std::uint8_t { kError, kWarning };

  Severity severity = Severity::kError;
  Position at;
  std::string where;    ///< The value with the problem, as in `rules[2].limit`.
  std::string message;  ///< One sentence that says what is wrong and how to correct it.

  /// Returns `tidegate.yaml:12:5: error: rules[2].limit: ...`; `main_file` names the main file.
  [[nodiscard]] std::string Text(std::string_view main_file) const;
  /// The name of the file that the problem is in.
  [[nodiscard]] std::string_view FileOr(std::string_view main_file) const noexcept {
    return at.file.is_main() ? main_file : at.file.path();
  }
};

/// Returns `line 12`, or `line 12 of rules/a.yaml` if `at` is in another file than `here`.
[[nodiscard]] std::string LineOf(const Position& at, const Position& here);

using Problems = std::vector<Problem>;

}  // namespace tidegate
