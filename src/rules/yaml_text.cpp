// SPDX-License-Identifier: Apache-2.0
#include "rules/yaml_text.hpp"

#include <algorithm>
#include <cstdint>
#include <string>

namespace tidegate {
namespace {

unsigned Byte(std::string_view text, std::size_t i) noexcept {
  return static_cast<unsigned char>(text[i]);
}

/// The length of the UTF-8 character at `i`, or 0 if there is none: RFC 3629, so no overlong forms,
/// no surrogates, nothing above U+10FFFF.
std::size_t CharacterLength(std::string_view text, std::size_t i) noexcept {
  const unsigned first = Byte(text, i);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() - i < length) return 0;
  const unsigned second = Byte(text, i + 1);
  const unsigned low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  const unsigned high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  if (second < low || second > high) return 0;
  for (std::size_t k = 2; k < length; ++k) {
    if ((Byte(text, i + k) & 0xc0) != 0x80) return 0;
  }
  return length;
}

/// What YAML 1.1, and so libyaml, takes for the end of a line while most editors do not: a carriage
/// return alone, U+0085, U+2028, U+2029. Lines would be counted differently from there on.
bool IsOddLineEnd(std::string_view rest) noexcept {
  if (rest.front() == '\r') return !rest.starts_with("\r\n");
  return rest.starts_with("\xc2\x85") || rest.starts_with("\xe2\x80\xa8") ||
         rest.starts_with("\xe2\x80\xa9");
}

/// Walks the text once and stops at what is wrong.
class Walk {
 public:
  explicit Walk(std::string_view text) noexcept : text_(text) {}

  /// What is wrong, or nullptr; at() is where.
  const char* Run() noexcept {
    while (i_ < text_.size()) {
      const char c = text_[i_];
      if (c == '\n') {
        ++line_;
        start_ = ++i_;
        indenting_ = true;
        continue;
      }
      if (const char* const wrong = Look(c)) return wrong;
    }
    return nullptr;
  }

  [[nodiscard]] Position at() const noexcept { return {line_, static_cast<int>(i_ - start_) + 1}; }

 private:
  const char* Look(char c) noexcept {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\t' && indenting_) return "a tab indents this line; YAML is indented with spaces";
    // libyaml compares each %TAG with all before it: 20,000 of them take it 0.6 s.
    if (c == '%' && i_ == start_) return "directives such as `%YAML` are not read here; remove it";
    if (c == '\0') return "a NUL byte; this is not a text file";
    if ((byte < 0x20 && c != '\t' && c != '\r') || byte == 0x7f) {
      return "a control character; write it in double quotes as an escape, as in \"\\x1b\"";
    }
    const std::size_t length = CharacterLength(text_, i_);
    if (length == 0) return "this is not UTF-8; save the file in that encoding";
    if (IsOddLineEnd(text_.substr(i_))) {
      return "a line ends here in an unusual way; use plain line feeds";
    }
    indenting_ = indenting_ && c == ' ';
    i_ += length;
    return nullptr;
  }

  std::string_view text_;
  std::size_t i_ = 0;
  std::size_t start_ = 0;  ///< Of the line.
  int line_ = 1;
  bool indenting_ = true;
};

}  // namespace

std::optional<Problem> CheckYamlText(std::string_view text) {
  if (text.size() > kMaxYamlBytes) {
    return Problem{.at = {}, .where = {}, .message = "the file is larger than 16 MiB"};
  }
  Walk walk(text);
  const char* const wrong = walk.Run();
  if (wrong == nullptr) return std::nullopt;
  return Problem{.at = walk.at(), .where = {}, .message = wrong};
}

}  // namespace tidegate
