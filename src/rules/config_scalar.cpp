// SPDX-License-Identifier: Apache-2.0
// The single values of a configuration; config_value.cpp has the maps and lists.
#include <algorithm>
#include <charconv>

#include "rules/config_value.hpp"
#include "rules/duration.hpp"
#include "rules/nearest.hpp"
#include "rules/size_text.hpp"

namespace tidegate {
namespace {

std::string TickedShort(std::string_view text) {
  if (text.size() > 64) return "`" + std::string{text.substr(0, 64)} + "...`";
  return "`" + std::string{text} + "`";
}

bool IsDecimalDigit(char c) noexcept { return c >= '0' && c <= '9'; }

/// `-?[1-9][0-9]*` or `0`: what every reader of YAML, old or new, takes for the same number.
bool IsPlainDecimal(std::string_view text) noexcept {
  if (text == "0") return true;
  if (text.starts_with('-')) text.remove_prefix(1);
  return !text.empty() && text.front() != '0' &&
         std::all_of(text.begin(), text.end(), IsDecimalDigit);
}

std::string SizeText(std::int64_t bytes) {
  if (bytes > 0 && bytes % (1 << 30) == 0) return std::to_string(bytes >> 30) + "GiB";
  if (bytes > 0 && bytes % (1 << 20) == 0) return std::to_string(bytes >> 20) + "MiB";
  if (bytes > 0 && bytes % (1 << 10) == 0) return std::to_string(bytes >> 10) + "KiB";
  return std::to_string(bytes);
}

}  // namespace

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
  if (!substituted) {
    Error(substituted.error());
    return std::nullopt;
  }
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
  // Only what the file itself says decides where to read: a variable's value is never a path.
  const bool from_file = is_scalar() && node_->text.starts_with("file:");
  auto text = Text();
  if (!text) return std::nullopt;
  if (from_file) {
    SecretFile file = ReadSecretFile(text->substr(5), context_->FolderOf(at()), max_file);
    if (!file.seen.path.empty()) {
      context_->NoteValueFile({file.seen.path, secrecy, at(), where_->Text()});
      context_->NoteFile(std::move(file.seen));
    }
    if (!file.content) {
      Error(file.content.error());
      return std::nullopt;
    }
    text = *std::move(file.content);
  } else if (secrecy == Secrecy::kSecret) {
    NoteInlineSecret();
  }
  if (text->size() < min_bytes) {
    Error("is too short to be safe: it has " + std::to_string(text->size()) +
          " bytes, and at least " + std::to_string(min_bytes) +
          " are needed; `openssl rand -hex 32` makes a good one");
    return std::nullopt;
  }
  return text;
}

std::optional<std::int64_t> ConfigValue::Integer(std::int64_t min, std::int64_t max) const {
  const auto expanded = Expand("a whole number");
  if (!expanded) return std::nullopt;
  const std::string& text = expanded->text;
  if (!expanded->plain) {
    Error("should be a whole number, but is a text in quotes; remove the quotes");
    return std::nullopt;
  }
  if (!IsPlainDecimal(text)) {
    Error("should be a whole number in plain decimal digits, but is " + TickedShort(text));
    return std::nullopt;
  }
  std::int64_t value = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || value < min || value > max) {
    Error("should be between " + std::to_string(min) + " and " + std::to_string(max) + ", but is " +
          TickedShort(text));
    return std::nullopt;
  }
  return value;
}

std::optional<bool> ConfigValue::Bool() const {
  const auto expanded = Expand("`true` or `false`");
  if (!expanded) return std::nullopt;
  if (expanded->plain && expanded->text == "true") return true;
  if (expanded->plain && expanded->text == "false") return false;
  Error("should be `true` or `false`, without quotes, but is " + TickedShort(expanded->text));
  return std::nullopt;
}

std::optional<Micros> ConfigValue::Duration(Micros min, Micros max) const {
  const auto text = Text("a duration such as `10s`");
  if (!text) return std::nullopt;
  const auto parsed = ParseDuration(*text);
  if (!parsed) {
    Error(parsed.error().message);
    return std::nullopt;
  }
  if (*parsed < min || *parsed > max) {
    Error("should be between " + FormatDuration(min) + " and " + FormatDuration(max) + ", but is " +
          TickedShort(*text));
    return std::nullopt;
  }
  return *parsed;
}

std::optional<std::size_t> ConfigValue::Size(std::int64_t min, std::int64_t max) const {
  const auto text = Text("a size such as `256MiB`");
  if (!text) return std::nullopt;
  const auto parsed = ParseSize(*text);
  if (!parsed) {
    Error(parsed.error().message);
    return std::nullopt;
  }
  if (*parsed < min || *parsed > max) {
    Error("should be between " + SizeText(min) + " and " + SizeText(max) + ", but is " +
          TickedShort(*text));
    return std::nullopt;
  }
  return static_cast<std::size_t>(*parsed);
}

std::optional<std::size_t> ConfigValue::WordOf(std::span<const std::string_view> words) const {
  const auto text = Text("a word");
  if (!text) return std::nullopt;
  const auto found = std::find(words.begin(), words.end(), *text);
  if (found == words.end()) {
    Error("should be " + tidegate::OneOf(words) + ", but is " + TickedShort(*text) +
          DidYouMean(*text, words));
    return std::nullopt;
  }
  return static_cast<std::size_t>(found - words.begin());
}

}  // namespace tidegate
