// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/config.hpp"
#include "config/files.hpp"
#include "config/yaml.hpp"

namespace tidegate {

/// The largest files of secrets and of certificates. A bundle of authorities has some 200 KiB.
inline constexpr std::size_t kMaxSecretFile = 64u << 10;
inline constexpr std::size_t kMaxBundleFile = 1u << 20;

/// The state that the readers of one configuration share: the sources of values, and the problems.
class ReadContext {
 public:
  /// The most problems that are kept, so that no input can fill the memory with messages.
  static constexpr std::size_t kMaxProblems = 1'000;

  ReadContext(Environment lookup, std::string base)
      : environment_(lookup), folder_(std::move(base)) {}

  /// Returns the whole file, for values that depend on other sections. Call set_root first.
  [[nodiscard]] const YamlNode& root() const noexcept { return *root_; }
  void set_root(const YamlNode& root) noexcept { root_ = &root; }
  [[nodiscard]] Environment environment() const noexcept { return environment_; }
  /// The folder of the main file.
  [[nodiscard]] const std::string& folder() const noexcept { return folder_; }
  /// The folder of the file that a value is in, where its relative paths begin.
  [[nodiscard]] std::string FolderOf(const Position& at) const;

  /// Adds a problem. Its message is cut to 500 bytes, with control characters as escapes.
  void Add(Problem::Severity severity, Position at, std::string where, std::string_view message);

  /// Notes a file that was read, or should have been. Only the first note of a path counts, so that
  /// a change between two reads is noticed later.
  void NoteFile(WatchedFile file);
  [[nodiscard]] std::vector<WatchedFile> TakeFiles() noexcept { return std::exchange(files_, {}); }

  /// Notes a file that a value names with `file:`, to check its permissions.
  void NoteValueFile(CheckedFile file) { value_files_.push_back(std::move(file)); }
  [[nodiscard]] const std::vector<CheckedFile>& value_files() const noexcept {
    return value_files_;
  }
  /// Notes that a configuration file has a secret in its text.
  void NoteInlineSecret(const SourceFile& file) { with_secrets_.push_back(file); }
  [[nodiscard]] bool HasInlineSecret(const SourceFile& file) const;

  [[nodiscard]] bool has_errors() const noexcept { return errors_; }
  /// Returns true if an error was reported for the value at `at`.
  [[nodiscard]] bool HasErrorAt(const Position& at) const noexcept;
  /// Returns true if no more problems are kept.
  [[nodiscard]] bool full() const noexcept { return problems_.size() >= kMaxProblems; }
  /// Returns the problems in the order of the files and of their lines, and removes them.
  [[nodiscard]] Problems TakeSorted();

 private:
  const YamlNode* root_ = nullptr;
  Environment environment_;
  std::string folder_;
  Problems problems_;
  std::vector<WatchedFile> files_;
  std::vector<CheckedFile> value_files_;
  std::vector<SourceFile> with_secrets_;
  bool errors_ = false;
};

/// A word of a fixed list, with the number of the enum value that it stands for.
struct Word {
  std::string_view word;
  int value;
};

/// One value of the configuration, read strictly: each function returns the value, or reports the
/// problem and returns nothing. The context and the document must outlive it and its copies.
class ConfigValue {
 public:
  ConfigValue(ReadContext& context, const YamlNode& node, std::string where = {})
      : context_(&context), node_(&node), where_(std::move(where)) {}

  [[nodiscard]] ReadContext& context() const noexcept { return *context_; }
  [[nodiscard]] const YamlNode& node() const noexcept { return *node_; }
  /// Returns the place of this value as messages name it: `rules[2].limit`.
  [[nodiscard]] const std::string& where() const noexcept { return where_; }
  [[nodiscard]] Position at() const noexcept { return node_->at; }
  void Error(std::string_view message) const;
  /// Reports an error, for functions that then return nothing.
  std::nullopt_t Invalid(std::string_view message) const {  // NOLINT(modernize-use-nodiscard)
    Error(message);
    return std::nullopt;
  }
  void Warning(std::string_view message) const;

  /// Returns the value that is the whole file.
  [[nodiscard]] ConfigValue Root() const { return {*context_, context_->root()}; }
  /// Returns the value of a key of this map. If the key or the map is absent, the result is a value
  /// for which written() is false; reading it is an error.
  [[nodiscard]] ConfigValue operator[](std::string_view key) const;
  /// Returns an item of this list. REQUIRES: the list has it.
  [[nodiscard]] ConfigValue operator[](std::size_t index) const;
  /// Returns false if the file does not have this value.
  [[nodiscard]] bool written() const noexcept { return node_->at.line > 0; }
  /// Returns true if the file has this value, and an error was reported for it.
  [[nodiscard]] bool invalid() const noexcept { return written() && context_->HasErrorAt(at()); }

  [[nodiscard]] bool is_map() const noexcept { return node_->kind == YamlNode::Kind::kMap; }
  [[nodiscard]] bool is_list() const noexcept { return node_->kind == YamlNode::Kind::kList; }
  [[nodiscard]] bool is_scalar() const noexcept {
    return node_->kind == YamlNode::Kind::kPlain || node_->kind == YamlNode::Kind::kQuoted;
  }
  [[nodiscard]] bool is_empty_map() const noexcept { return is_map() && node_->children.empty(); }
  [[nodiscard]] bool is_empty_list() const noexcept { return is_list() && node_->children.empty(); }
  /// The number of items; 0 if this is not a list.
  [[nodiscard]] std::size_t items() const noexcept {
    return is_list() ? node_->children.size() : 0;
  }

  /// Reads a scalar, with environment variables replaced. `should_be` completes "should be ...".
  [[nodiscard]] std::optional<std::string> Text(std::string_view should_be = "a text") const;
  /// Reads a text, or the content of the file that `file:PATH` names. No message shows it.
  [[nodiscard]] std::optional<std::string> Secret(std::size_t min_bytes,
                                                  std::size_t max_file = kMaxSecretFile,
                                                  Secrecy secrecy = Secrecy::kSecret) const;
  /// Notes that the file of this value has a secret, unless the value names a file or a variable.
  void NoteInlineSecret() const;
  /// Reads plain decimal digits only: `010`, `0x10`, `1_000`, `1e3` and `"10"` are errors.
  [[nodiscard]] std::optional<std::int64_t> Integer(std::int64_t min, std::int64_t max) const;
  [[nodiscard]] std::optional<bool> Bool() const;
  [[nodiscard]] std::optional<Micros> Duration(Micros min, Micros max) const;
  [[nodiscard]] std::optional<std::size_t> Size(std::int64_t min, std::int64_t max) const;
  /// Returns true if this is the word `off`. Reports no problem.
  [[nodiscard]] bool IsOff() const;
  /// Reads one of `words` and returns its value.
  [[nodiscard]] std::optional<int> OneOf(std::span<const Word> words) const;

  using Visit = std::function<void(const ConfigValue&)>;
  using VisitEntry = std::function<void(const std::string& key, const ConfigValue& key_value,
                                        const ConfigValue& value)>;
  void EachItem(const Visit& visit) const;
  /// Visits the items of a list, or the scalar itself. An empty list is the error `empty`.
  void EachItemOrOne(std::string_view empty, const Visit& visit) const;
  /// Visits the entries of a map whose keys are free. The caller checks for repeated keys.
  void EachEntry(const VisitEntry& visit) const;
  void WrongType(std::string_view should_be) const;

 private:
  struct Expanded {
    std::string text;
    bool plain = false;  ///< The value has no quotes, or a variable in it, so it may be a number.
  };
  [[nodiscard]] std::optional<Expanded> Expand(std::string_view should_be) const;

  ReadContext* context_;
  const YamlNode* node_;
  std::string where_;
};

/// Returns the key of a map as messages show it. If a colon or the blank after it is missing, the
/// key may contain a secret, so a key that does not look like a word is shown as `*`.
[[nodiscard]] std::string_view ShownKey(std::string_view key) noexcept;

/// Stores `value` in `target` if there is a value.
template <class T, class U>
void Put(T& target, const std::optional<U>& value) {
  if (value) target = static_cast<T>(*value);
}

}  // namespace tidegate
