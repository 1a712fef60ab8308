// SPDX-License-Identifier: Apache-2.0
#include "config/value.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <expected>
#include <filesystem>
#include <system_error>
#include <tuple>

#include "base/ascii.hpp"
#include "base/message_text.hpp"
#include "base/units.hpp"

namespace tidegate {
namespace {

constexpr std::size_t kMaxMessage = 500;

/// Returns `text` with control characters escaped, since messages with values go to terminals. Some
/// of these obey C1 controls (0xc2 0x80 to 0x9f in UTF-8) too.
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

/// Returns a value as messages show it: in backticks, and cut after 64 bytes.
std::string Shown(std::string_view text) {
  return Backticked(text.size() > 64 ? std::string{text.substr(0, 64)} + "..." : text);
}

std::string OutOfRange(const std::string& min, const std::string& max, std::string_view text) {
  return "should be between " + min + " and " + max + ", but is " + Shown(text);
}

/// Returns true for `-?[1-9][0-9]*` and `0`, which all YAML readers read as the same number.
bool IsPlainDecimal(std::string_view text) noexcept {
  if (text == "0") return true;
  if (text.starts_with('-')) text.remove_prefix(1);
  return !text.empty() && text.front() != '0' && std::ranges::all_of(text, IsDigit);
}

/// A value that variables make longer than this is an error.
constexpr std::size_t kMaxExpanded = 1u << 20;

bool IsVariableName(std::string_view name) noexcept {
  return !name.empty() && !IsDigit(name.front()) &&
         std::ranges::all_of(name, [](char c) { return IsAlphanumeric(c) || c == '_'; });
}

/// Returns the value of a variable or its default; `inside` is the text between `${` and `}`.
std::expected<std::string, std::string> Lookup(std::string_view inside, Environment environment) {
  const auto colon = inside.find(":-");
  const std::string name{inside.substr(0, colon)};
  if (!IsVariableName(name)) {
    return std::unexpected(
        "the text in `${...}` is not the name of an environment variable; for a literal `${` write "
        "`$${`");
  }
  std::optional<std::string> value = environment(name);
  if (colon != std::string_view::npos && (!value || value->empty())) {
    return std::string{inside.substr(colon + 2)};
  }
  if (!value) {
    return std::unexpected("the environment variable `" + name +
                           "` is not set; set it, or give a default as in `${" + name +
                           ":-value}`");
  }
  return *std::move(value);
}

/// Returns `text` with environment variables replaced: `${NAME}`, `${NAME:-default}` with a default
/// for an unset or empty variable, and `$${` for a literal `${`. The error shows no value.
std::expected<std::string, std::string> Substitute(std::string_view text, Environment environment) {
  std::string result;
  while (true) {
    const auto open = text.find("${");
    if (open == std::string_view::npos) break;
    if (open > 0 && text[open - 1] == '$') {  // `$${`
      result += text.substr(0, open);
      result += '{';
      text.remove_prefix(open + 2);
      continue;
    }
    const auto close = text.find('}', open);
    if (close == std::string_view::npos) {
      return std::unexpected("`${` has no `}`; for a literal `${` write `$${`");
    }
    const auto value = Lookup(text.substr(open + 2, close - open - 2), environment);
    if (!value) return std::unexpected(value.error());
    result += text.substr(0, open);
    result += *value;
    if (result.size() > kMaxExpanded) {
      return std::unexpected("environment variables make this value longer than 1 MiB");
    }
    text.remove_prefix(close + 1);
  }
  result += text;
  return result;
}

/// Returns the content of a secret's file of at most `max_bytes`, without one final newline, and
/// sets `digest`. The error is a message that names the path, but shows no content.
std::expected<std::string, std::string> ReadSecretFile(const std::string& file,
                                                       std::size_t max_bytes,
                                                       ContentDigest& digest) {
  std::error_code error;
  // A pipe or a terminal would block; a folder reads as empty.
  if (!std::filesystem::is_regular_file(file, error)) {
    return std::unexpected("there is no file `" + file + "`");
  }
  auto text = ReadFileUpTo(file, max_bytes);
  if (!text) return std::unexpected("the file `" + file + "` cannot be read");
  if (text->size() > max_bytes) {
    return std::unexpected("the file `" + file + "` is larger than " +
                           std::to_string(max_bytes >> 10) + " KiB");
  }
  digest = DigestOf(*text);
  if (text->ends_with('\n')) text->resize(text->size() - (text->ends_with("\r\n") ? 2 : 1));
  return text;
}

}  // namespace

std::string ReadContext::FolderOf(const Position& at) const {
  return at.file.is_main() ? folder_ : FolderOfFile(std::string(at.file.path()));
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
  return {*context_, *node_->children[index], where_ + "[" + std::to_string(index) + "]"};
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

std::optional<std::string> ProcessEnvironment(const std::string& name) {
  const char* const value = std::getenv(name.c_str());
  if (value == nullptr) return std::nullopt;
  return std::string{value};
}

std::optional<ConfigValue::Expanded> ConfigValue::Expand(std::string_view should_be) const {
  if (!is_scalar()) {
    WrongType(should_be);
    return std::nullopt;
  }
  auto text = Substitute(node_->text, context_->environment());
  if (!text) return Invalid(text.error());
  const bool plain = node_->kind == YamlNode::Kind::kPlain || node_->text.contains("${");
  return Expanded{*std::move(text), plain};
}

std::optional<std::string> ConfigValue::Text(std::string_view should_be) const {
  return Expand(should_be).transform([](Expanded&& expanded) { return std::move(expanded.text); });
}

void ConfigValue::NoteInlineSecret() const {
  const std::string& text = node_->text;
  if (text.empty() || text.starts_with("file:") || text.contains("${")) return;
  context_->NoteInlineSecret(at().file);
}

std::optional<std::string> ConfigValue::Secret(std::size_t min_bytes, std::size_t max_file,
                                               Secrecy secrecy) const {
  // Only a `file:` in the configuration itself counts; one in a variable's value names no file.
  const bool from_file = is_scalar() && node_->text.starts_with("file:");
  auto text = Text();
  if (!text) return std::nullopt;
  if (from_file) {
    const std::string path = text->substr(5);
    if (path.empty() || path.contains('\0')) {
      return Invalid("`file:` needs a path, as in `file:secrets/key`");
    }
    WatchedFile file{.path = (std::filesystem::path{context_->FolderOf(at())} / path).string()};
    auto content = ReadSecretFile(file.path, max_file, file.content);
    context_->NoteValueFile({file.path, secrecy, at(), where_});
    context_->NoteFile(std::move(file));
    if (!content) return Invalid(content.error());
    text = *std::move(content);
  } else if (secrecy == Secrecy::kSecret) {
    NoteInlineSecret();
  }
  if (text->size() < min_bytes)
    return Invalid("is too short to be safe: it has " + std::to_string(text->size()) +
                   " bytes, and at least " + std::to_string(min_bytes) +
                   " are needed; `openssl rand -hex 32` makes a good one");
  return text;
}

std::optional<std::int64_t> ConfigValue::Integer(std::int64_t min, std::int64_t max) const {
  const auto expanded = Expand("a whole number");
  if (!expanded) return std::nullopt;
  const std::string& text = expanded->text;
  if (!expanded->plain)
    return Invalid("should be a whole number, but is a text in quotes; remove the quotes");
  if (!IsPlainDecimal(text))
    return Invalid("should be a whole number in plain decimal digits, but is " + Shown(text));
  const auto value = ParseNumber(text, min, max);
  if (!value) return Invalid(OutOfRange(std::to_string(min), std::to_string(max), text));
  return value;
}

std::optional<bool> ConfigValue::Bool() const {
  const auto expanded = Expand("`true` or `false`");
  if (!expanded) return std::nullopt;
  if (expanded->plain && expanded->text == "true") return true;
  if (expanded->plain && expanded->text == "false") return false;
  return Invalid("should be `true` or `false`, without quotes, but is " + Shown(expanded->text));
}

std::optional<Micros> ConfigValue::Duration(Micros min, Micros max) const {
  const auto text = Text("a duration such as `10s`");
  if (!text) return std::nullopt;
  const auto parsed = ParseDuration(*text);
  if (!parsed) return Invalid(parsed.error().message);
  if (*parsed < min || *parsed > max)
    return Invalid(OutOfRange(FormatDuration(min), FormatDuration(max), *text));
  return *parsed;
}

std::optional<std::size_t> ConfigValue::Size(std::int64_t min, std::int64_t max) const {
  const auto text = Text("a size such as `256MiB`");
  if (!text) return std::nullopt;
  const auto parsed = ParseSize(*text);
  if (!parsed) return Invalid(parsed.error().message);
  if (*parsed < min || *parsed > max)
    return Invalid(OutOfRange(SizeText(min), SizeText(max), *text));
  return static_cast<std::size_t>(*parsed);
}

bool ConfigValue::IsOff() const {
  return is_scalar() && Substitute(node_->text, context_->environment()) == "off";
}

std::optional<int> ConfigValue::OneOf(std::span<const Word> words) const {
  const auto text = Text("a word");
  if (!text) return std::nullopt;
  std::vector<std::string_view> names;
  for (const Word& word : words) {
    if (word.word == *text) return word.value;
    names.push_back(word.word);
  }
  return Invalid("should be " + tidegate::OneOf(names) + ", but is " + Shown(*text) +
                 DidYouMean(*text, names));
}

}  // namespace tidegate
