// SPDX-License-Identifier: Apache-2.0
// Problems, and the maps and lists of a configuration; scalar.cpp has the single values.
#include "config/value.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <tuple>

#include "base/ascii.hpp"

namespace tidegate {
namespace {

constexpr std::size_t kMaxMessage = 500;

/// Returns `text` with control characters escaped: YAML escapes can put any character into a value,
/// and messages go to terminals and logs. C1 controls (0xc2 0x80 to 0x9f in UTF-8) steer some
/// terminals too.
std::string Escaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool c1 =
        byte == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0;
    if (byte < 0x20 || byte == 0x7f || c1) {
      AppendHex(out, "\\x", text[i]);
    } else {
      out += text[i];
    }
    if (c1) AppendHex(out, "\\x", text[++i]);
  }
  return out;
}

std::string Shortened(std::string text) {
  if (text.size() <= kMaxMessage) return text;
  // The middle is cut, because the end says what would be right. A character is never split.
  const auto whole = [&](std::size_t i) {
    while (i < text.size() && (static_cast<unsigned char>(text[i]) & 0xc0) == 0x80) ++i;
    return i;
  };
  const std::size_t head = whole(kMaxMessage / 2);
  const std::size_t tail = whole(text.size() - kMaxMessage / 2);
  return text.substr(0, head) + " ... " + text.substr(tail);
}

/// The words for each kind of value, in the order of YamlNode::Kind.
constexpr std::array<std::string_view, 5> kKindNames = {
    "is empty", "is a single value", "is a single value", "is a list", "is a map"};

std::string Joined(const std::string& where, std::string_view key) {
  std::string joined = where;
  if (!joined.empty() && !key.empty()) joined += '.';
  return joined += key;
}

std::string Indexed(const std::string& where, std::size_t index) {
  return where + "[" + std::to_string(index) + "]";
}

}  // namespace

std::string ReadContext::FolderOf(const Position& at) const {
  if (at.file.is_main()) return folder_;
  const std::string folder = std::filesystem::path(at.file.path()).parent_path().string();
  return folder.empty() ? "." : folder;
}

void ReadContext::Add(Problem::Severity severity, Position at, std::string where,
                      std::string_view message) {
  if (severity == Problem::Severity::kError) errors_ = true;
  if (full()) return;
  // The message is cut before it is escaped, because a value in it may have megabytes.
  std::string text{message.substr(0, kMaxMessage)};
  if (message.size() > 2 * kMaxMessage) {
    text += message.substr(message.size() - kMaxMessage);
  } else {
    text = message;
  }
  problems_.push_back({severity, at, Shortened(std::move(where)), Shortened(Escaped(text))});
}

void ReadContext::NoteFile(WatchedFile file) {
  if (std::ranges::find(files_, file.path, &WatchedFile::path) != files_.end()) return;
  files_.push_back(std::move(file));
}

bool ReadContext::HasErrorAt(const Position& at) const noexcept {
  return std::ranges::any_of(problems_, [&](const Problem& problem) {
    return problem.severity == Problem::Severity::kError && problem.at == at;
  });
}

bool ReadContext::HasInlineSecret(const SourceFile& file) const {
  return std::ranges::find(with_secrets_, file) != with_secrets_.end();
}

Problems ReadContext::TakeSorted() {
  Problems problems = std::move(problems_);
  problems_.clear();
  std::ranges::stable_sort(problems, [](const Problem& a, const Problem& b) {
    return std::tuple(a.at.file.order(), a.at.line, a.at.column) <
           std::tuple(b.at.file.order(), b.at.line, b.at.column);
  });
  if (problems.size() >= kMaxProblems) {
    problems.push_back({.severity = Problem::Severity::kError,
                        .at = {},
                        .where = {},
                        .message = "there are more problems than the 1,000 shown here"});
    if (!errors_) problems.back().severity = Problem::Severity::kWarning;
  }
  return problems;
}

std::string_view ShownKey(std::string_view key) noexcept {
  constexpr std::size_t kLongest = 24;
  constexpr int kMostDigits = 3;
  if (key == "<<") return key;
  int digits = 0;
  const bool word = std::ranges::all_of(key, [&](char c) {
    if (IsDigit(c)) return ++digits <= kMostDigits;
    return IsAlphanumeric(c) || c == '_' || c == '-' || c == '.' || c == ':';
  });
  return word && key.size() <= kLongest ? key : "*";
}

void ConfigValue::Error(std::string_view message) const {
  context_->Add(Problem::Severity::kError, node_->at, where_, message);
}

void ConfigValue::Warning(std::string_view message) const {
  context_->Add(Problem::Severity::kWarning, node_->at, where_, message);
}

void ConfigValue::WrongType(std::string_view should_be) const {
  Error("should be " + std::string{should_be} + ", but " +
        std::string{kKindNames[static_cast<std::size_t>(node_->kind)]});
}

ConfigValue ConfigValue::operator[](std::string_view key) const {
  static const YamlNode kAbsent;
  const YamlNode* found = &kAbsent;
  for (std::size_t i = 0; is_map() && i + 1 < node_->children.size(); i += 2) {
    if (node_->children[i]->text != key) continue;
    found = node_->children[i + 1];
    break;
  }
  return {*context_, *found, Joined(where_, key)};
}

ConfigValue ConfigValue::operator[](std::size_t index) const {
  return {*context_, *node_->children[index], Indexed(where_, index)};
}

void ConfigValue::EachItem(const Visit& visit) const {
  if (!is_list()) return WrongType("a list");
  for (std::size_t i = 0; i < items() && !context_->full(); ++i) visit((*this)[i]);
}

void ConfigValue::EachItemOrOne(std::string_view empty, const Visit& visit) const {
  if (is_scalar()) return visit(*this);
  if (!is_list()) return WrongType("a text or a list of texts");
  if (is_empty_list()) return Error(empty);
  EachItem(visit);
}

void ConfigValue::EachEntry(const VisitEntry& visit) const {
  if (!is_map()) return WrongType("a map");
  for (std::size_t i = 0; i + 1 < node_->children.size() && !context_->full(); i += 2) {
    const ConfigValue key(*context_, *node_->children[i],
                          Joined(where_, ShownKey(node_->children[i]->text)));
    if (key.is_scalar()) {
      visit(key.node().text, key, {*context_, *node_->children[i + 1], key.where()});
    } else {
      context_->Add(Problem::Severity::kError, key.at(), where_, "a key here should be a word");
    }
  }
}

}  // namespace tidegate
