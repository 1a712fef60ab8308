// SPDX-License-Identifier: Apache-2.0
// The single values of a configuration; value.cpp has the maps and lists.
#include <algorithm>
#include <cstdlib>
#include <expected>
#include <filesystem>
#include <system_error>

#include "base/ascii.hpp"
#include "base/message_text.hpp"
#include "base/units.hpp"
#include "config/value.hpp"

namespace tidegate {
namespace {

/// Returns a value as messages show it: in backticks, and cut after 64 bytes.
std::string Shown(std::string_view text) {
  return Backticked(text.size() > 64 ? std::string{text.substr(0, 64)} + "..." : text);
}

/// Returns true for `-?[1-9][0-9]*` and `0`, which all readers of YAML, old or new, read as the
/// same number.
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
/// for an unset or empty variable, and `$${` for a literal `${`. The error is a message that names
/// the variable, never a value.
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
  Expanded expanded{.text = {}, .plain = node_->kind == YamlNode::Kind::kPlain};
  if (node_->text.find("${") == std::string::npos) {
    expanded.text = node_->text;
    return expanded;
  }
  auto substituted = Substitute(node_->text, context_->environment());
  if (!substituted) return Invalid(substituted.error());
  expanded.text = *std::move(substituted);
  expanded.plain = true;
  return expanded;
}

std::optional<std::string> ConfigValue::Text(std::string_view should_be) const {
  auto expanded = Expand(should_be);
  if (!expanded) return std::nullopt;
  return std::move(expanded->text);
}

void ConfigValue::NoteInlineSecret() const {
  const std::string& text = node_->text;
  if (text.empty() || text.starts_with("file:") || text.find("${") != std::string::npos) return;
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
    if (path.empty() || path.find('\0') != std::string::npos) {
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
  if (!value)
    return Invalid("should be between " + std::to_string(min) + " and " + std::to_string(max) +
                   ", but is " + Shown(text));
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
    return Invalid("should be between " + FormatDuration(min) + " and " + FormatDuration(max) +
                   ", but is " + Shown(*text));
  return *parsed;
}

std::optional<std::size_t> ConfigValue::Size(std::int64_t min, std::int64_t max) const {
  const auto text = Text("a size such as `256MiB`");
  if (!text) return std::nullopt;
  const auto parsed = ParseSize(*text);
  if (!parsed) return Invalid(parsed.error().message);
  if (*parsed < min || *parsed > max)
    return Invalid("should be between " + SizeText(min) + " and " + SizeText(max) + ", but is " +
                   Shown(*text));
  return static_cast<std::size_t>(*parsed);
}

bool ConfigValue::IsOff() const {
  if (!is_scalar()) return false;
  if (node_->text.find("${") == std::string::npos) return node_->text == "off";
  const auto text = Substitute(node_->text, context_->environment());
  return text && *text == "off";
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
