// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "rules/read_context.hpp"
#include "rules/substitution.hpp"
#include "rules/yaml_document.hpp"

namespace tidegate {

/// A key that this version refuses with its own message, since it exists elsewhere.
struct AbsentKey {
  std::string_view name;
  std::string_view what;  ///< "has no gateway"
};

/// A word of a fixed list and what it stands for.
template <class T>
struct Choice {
  std::string_view word;
  T value;
};

/// One value of the configuration, seen strictly: each call returns what was asked for, or tells
/// the problem and returns nothing. Cheap to copy; must not outlive its `where`.
class ConfigValue {
 public:
  ConfigValue(ReadContext& context, const YamlNode& node, const Where& where) noexcept
      : context_(&context), node_(&node), where_(&where) {}

  [[nodiscard]] ReadContext& context() const noexcept { return *context_; }
  [[nodiscard]] const YamlNode& node() const noexcept { return *node_; }
  [[nodiscard]] const Where& where() const noexcept { return *where_; }
  [[nodiscard]] Position at() const noexcept { return node_->at; }
  void Error(std::string_view message) const;
  void Warning(std::string_view message) const;

  [[nodiscard]] bool is_map() const noexcept { return node_->kind == YamlNode::Kind::kMap; }
  [[nodiscard]] bool is_list() const noexcept { return node_->kind == YamlNode::Kind::kList; }
  [[nodiscard]] bool is_scalar() const noexcept {
    return node_->kind == YamlNode::Kind::kPlain || node_->kind == YamlNode::Kind::kQuoted;
  }

  /// Any scalar but null, with the environment put in. `example` completes "should be ...".
  [[nodiscard]] std::optional<std::string> Text(std::string_view should_be = "a text") const;
  /// A text, or the content of the file that `file:PATH` names; never shown in a message.
  /// `secrecy` says how the permissions of the file that has it are checked.
  [[nodiscard]] std::optional<std::string> Secret(std::size_t min_bytes,
                                                  std::size_t max_file = kMaxSecretFile,
                                                  Secrecy secrecy = Secrecy::kSecret) const;
  /// Notes that the file of this value has a secret, unless the value names a file or a variable.
  void NoteInlineSecret() const;
  /// Plain decimal digits only: `010`, `0x10`, `1_000`, `1e3` and `"10"` are refused.
  [[nodiscard]] std::optional<std::int64_t> Integer(std::int64_t min, std::int64_t max) const;
  [[nodiscard]] std::optional<bool> Bool() const;
  [[nodiscard]] std::optional<Micros> Duration(Micros min, Micros max) const;
  [[nodiscard]] std::optional<std::size_t> Size(std::int64_t min, std::int64_t max) const;

  template <class T, std::size_t N>
  [[nodiscard]] std::optional<T> OneOf(const std::array<Choice<T>, N>& choices) const {
    std::array<std::string_view, N> words;
    for (std::size_t i = 0; i < N; ++i) words[i] = choices[i].word;
    const auto found = WordOf(words);
    if (!found) return std::nullopt;
    return choices[*found].value;
  }

  using Visit = std::function<void(const ConfigValue&)>;
  using VisitKey = std::function<void(std::size_t, const ConfigValue&)>;
  using VisitEntry = std::function<void(const std::string& key, const ConfigValue& key_value,
                                        const ConfigValue& value)>;
  void EachItem(const Visit& visit) const;
  /// A list's items, or the one scalar that stands for a list of one. An empty list is refused:
  /// what it would mean is for `empty` to say.
  void EachItemOrOne(std::string_view empty, const Visit& visit) const;
  /// A map whose keys are all in `names`, each at most once; visits by the key's place there.
  void EachKey(std::span<const std::string_view> names, std::span<const AbsentKey> absent,
               const VisitKey& visit) const;
  /// A map with free keys; their repetition is for the caller to see, since only it knows when two
  /// are the same.
  void EachEntry(const VisitEntry& visit) const;

 private:
  /// As Text, with an out-of-line flag: whether the environment shaped it.
  struct Expanded {
    std::string text;
    bool plain = false;  ///< Without quotes, or made by the environment: may be a number.
  };
  [[nodiscard]] std::optional<Expanded> Expand(std::string_view should_be) const;
  [[nodiscard]] std::optional<std::size_t> WordOf(std::span<const std::string_view> words) const;
  void WrongType(std::string_view should_be) const;
  void UnknownKey(const YamlNode& key, std::span<const std::string_view> names,
                  std::span<const AbsentKey> absent) const;

  ReadContext* context_;
  const YamlNode* node_;
  const Where* where_;
};

/// One key of a section and how it is read.
template <class Out>
struct ConfigKey {
  std::string_view name;
  void (*read)(const ConfigValue& value, Out& out);
};

template <class Out, std::size_t N>
constexpr std::array<std::string_view, N> NamesOf(const std::array<ConfigKey<Out>, N>& keys) {
  std::array<std::string_view, N> names;
  for (std::size_t i = 0; i < N; ++i) names[i] = keys[i].name;
  return names;
}

/// Reads a section by its table: what is not in the table is refused, so that table, reader and
/// schema cannot part.
template <class Out, std::size_t N>
void ReadSection(const ConfigValue& map, const std::array<ConfigKey<Out>, N>& keys, Out& out,
                 std::span<const AbsentKey> absent = {}) {
  map.EachKey(NamesOf(keys), absent,
              [&](std::size_t i, const ConfigValue& value) { keys[i].read(value, out); });
}

/// Stores what was read, if anything was.
template <class T, class U>
void Put(T& target, const std::optional<U>& value) {
  if (value) target = *value;
}

}  // namespace tidegate
