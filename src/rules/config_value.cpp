// SPDX-License-Identifier: Apache-2.0
#include "rules/config_value.hpp"

#include <algorithm>
#include <vector>

#include "rules/nearest.hpp"

namespace tidegate {
namespace {

std::string_view KindName(YamlNode::Kind kind) noexcept {
  switch (kind) {
    case YamlNode::Kind::kNull:
      return "is empty";
    case YamlNode::Kind::kPlain:
    case YamlNode::Kind::kQuoted:
      return "is a single value";
    case YamlNode::Kind::kList:
      return "is a list";
    case YamlNode::Kind::kMap:
      return "is a map";
  }
  return "is unreadable";
}

bool IsScalar(const YamlNode& node) noexcept {
  return node.kind == YamlNode::Kind::kPlain || node.kind == YamlNode::Kind::kQuoted;
}

/// A key as messages have it. Where a colon or a blank was forgotten, a secret may stand in one:
/// what does not look like a word is `*`.
std::string_view ShownKey(std::string_view key) noexcept {
  constexpr std::size_t kLongest = 24;
  constexpr int kMostDigits = 3;
  if (key == "<<") return key;
  int digits = 0;
  const bool word = std::ranges::all_of(key, [&](char c) {
    if (c >= '0' && c <= '9') return ++digits <= kMostDigits;
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '-' || c == '.' ||
           c == ':';
  });
  return word && key.size() <= kLongest ? key : "*";
}

}  // namespace

void ConfigValue::Error(std::string_view message) const {
  context_->Error(node_->at, *where_, message);
}

void ConfigValue::Warning(std::string_view message) const {
  context_->Add(Problem::Severity::kWarning, node_->at, where_->Text(), message);
}

void ConfigValue::WrongType(std::string_view should_be) const {
  Error("should be " + std::string{should_be} + ", but " + std::string{KindName(node_->kind)});
}

void ConfigValue::EachItem(const Visit& visit) const {
  if (!is_list()) return WrongType("a list");
  for (std::size_t i = 0; i < node_->children.size() && !context_->full(); ++i) {
    const Where where{.parent = where_, .key = {}, .index = i};
    visit(ConfigValue(*context_, *node_->children[i], where));
  }
}

void ConfigValue::EachItemOrOne(std::string_view empty, const Visit& visit) const {
  if (is_scalar()) return visit(*this);
  if (!is_list()) return WrongType("a text or a list of texts");
  if (node_->children.empty()) return Error(empty);
  EachItem(visit);
}

void ConfigValue::UnknownKey(const YamlNode& key, std::span<const std::string_view> names,
                             std::span<const AbsentKey> absent) const {
  const std::string shown(ShownKey(key.text));
  const auto* const known = std::find_if(absent.data(), absent.data() + absent.size(),
                                         [&](const AbsentKey& a) { return a.name == key.text; });
  std::string message = shown == "*" ? "unknown key, not shown since it may hold a secret"
                                     : "unknown key `" + shown + "`";
  if (known != absent.data() + absent.size()) {
    message = "this version of tidegate " + std::string{known->what} + ": remove `" + shown + "`";
  } else if (key.text == "<<") {
    message += ": merge keys are not read here; repeat the keys, or use an alias as a whole value";
  } else if (std::string hint = DidYouMean(key.text, names); !hint.empty()) {
    message = "unknown key `" + key.text.substr(0, 64) + "`" + hint;
  } else {
    message += ": the keys here are " + tidegate::OneOf(names);
  }
  context_->Error(key.at, *where_, message);
}

void ConfigValue::EachKey(std::span<const std::string_view> names,
                          std::span<const AbsentKey> absent, const VisitKey& visit) const {
  if (!is_map()) return WrongType("a map with keys such as `" + std::string{names[0]} + "`");
  std::vector<const YamlNode*> seen(names.size(), nullptr);
  for (std::size_t i = 0; i + 1 < node_->children.size() && !context_->full(); i += 2) {
    const YamlNode& key = *node_->children[i];
    if (!IsScalar(key)) {
      context_->Error(key.at, *where_, "a key here should be a word");
      continue;
    }
    const auto place =
        static_cast<std::size_t>(std::find(names.begin(), names.end(), key.text) - names.begin());
    if (place == names.size()) {
      UnknownKey(key, names, absent);
    } else if (seen[place] != nullptr) {
      const Position& first = seen[place]->at;
      context_->Error(key.at, *where_,
                      "the key `" + key.text + "` stands " +
                          (first.file == key.at.file ? "here twice" : "in two files") +
                          ", first on " + LineOf(first, key.at));
    } else {
      seen[place] = &key;
      const Where where{.parent = where_, .key = names[place]};
      visit(place, ConfigValue(*context_, *node_->children[i + 1], where));
    }
  }
}

void ConfigValue::EachEntry(const VisitEntry& visit) const {
  if (!is_map()) return WrongType("a map");
  for (std::size_t i = 0; i + 1 < node_->children.size() && !context_->full(); i += 2) {
    const YamlNode& key = *node_->children[i];
    if (!IsScalar(key)) {
      context_->Error(key.at, *where_, "a key here should be a word");
      continue;
    }
    const Where where{.parent = where_, .key = ShownKey(key.text)};
    visit(key.text, ConfigValue(*context_, key, where),
          ConfigValue(*context_, *node_->children[i + 1], where));
  }
}

}  // namespace tidegate
