// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rules/config.hpp"
#include "rules/file_permissions.hpp"

namespace tidegate {

/// Where in a configuration a value stands: links on the stack of who reads it, so that the text is
/// only made where there is something to complain of.
struct Where {
  static constexpr std::size_t kNoIndex = static_cast<std::size_t>(-1);

  const Where* parent = nullptr;
  std::string_view key;
  std::size_t index = kNoIndex;  ///< In a list.

  /// `rules[2].limit`
  [[nodiscard]] std::string Text() const;
};

/// What the readers of one configuration share: where values come from and the problems so far.
class ReadContext {
 public:
  /// More are not told: nobody reads them, and a bomb must not fill the memory with messages.
  static constexpr std::size_t kMaxProblems = 1'000;

  ReadContext(Environment lookup, std::string base)
      : environment_(lookup), folder_(std::move(base)) {}

  [[nodiscard]] Environment environment() const noexcept { return environment_; }
  /// The folder of the main file.
  [[nodiscard]] const std::string& folder() const noexcept { return folder_; }
  /// The folder of the file that a value is in, where its relative paths begin.
  [[nodiscard]] std::string FolderOf(const Position& at) const;

  /// Makes the message fit for a terminal: control characters as escapes, at most 500 bytes.
  void Add(Problem::Severity severity, Position at, std::string where, std::string_view message);
  void Error(Position at, const Where& where, std::string_view message);

  /// A file that was read, or should have been. The first time counts: if it changed before the
  /// second, that is still to be noticed.
  void NoteFile(FileSeen file);
  [[nodiscard]] std::vector<FileSeen> TakeFiles() noexcept { return std::exchange(files_, {}); }

  /// A file that a value names with `file:`, for the check of its permissions.
  void NoteValueFile(CheckedFile file) { value_files_.push_back(std::move(file)); }
  [[nodiscard]] const std::vector<CheckedFile>& value_files() const noexcept {
    return value_files_;
  }
  /// The configuration file `file` has a secret in its text.
  void NoteInlineSecret(const SourceFile& file) { with_secrets_.push_back(file); }
  [[nodiscard]] bool HasInlineSecret(const SourceFile& file) const;

  [[nodiscard]] bool has_errors() const noexcept { return errors_; }
  /// Nothing more will be told.
  [[nodiscard]] bool full() const noexcept { return problems_.size() >= kMaxProblems; }
  /// In the order of the files and of their lines. The context is empty afterwards.
  [[nodiscard]] Problems TakeSorted();

 private:
  Environment environment_;
  std::string folder_;
  Problems problems_;
  std::vector<FileSeen> files_;
  std::vector<CheckedFile> value_files_;
  std::vector<SourceFile> with_secrets_;
  bool errors_ = false;
};

}  // namespace tidegate
