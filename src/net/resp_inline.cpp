// SPDX-License-Identifier: Apache-2.0
#include "net/resp_inline.hpp"

#include <cstddef>

namespace tidegate::net {
namespace {

/// A space, or one of \t \n \v \f \r.
bool IsBlank(char c) noexcept { return c == ' ' || (c >= '\t' && c <= '\r'); }

/// 0 to 15, or -1.
int HexDigit(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/// What a backslash and the bytes from `at` on mean; `at` is moved behind them.
char Escaped(std::string_view line, std::size_t& at) noexcept {
  const char c = line[at++];
  switch (c) {
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    case 'b':
      return '\b';
    case 'a':
      return '\a';
    case 'x':
      if (line.size() - at >= 2 && HexDigit(line[at]) >= 0 && HexDigit(line[at + 1]) >= 0) {
        at += 2;
        return static_cast<char>(HexDigit(line[at - 2]) * 16 + HexDigit(line[at - 1]));
      }
      return c;
    default:
      return c;
  }
}

/// From behind the opening quote to behind the closing one; false where there is none.
bool Unquote(std::string_view line, std::size_t& at, char quote, std::string& unquoted) {
  while (at < line.size()) {
    const char c = line[at++];
    if (c == quote) return at == line.size() || IsBlank(line[at]);
    const bool escape = c == '\\' && at < line.size() && (quote == '"' || line[at] == '\'');
    unquoted.push_back(escape ? Escaped(line, at) : c);
  }
  return false;
}

}  // namespace

bool SplitWords(std::string_view line, std::string& unquoted,
                std::vector<std::string_view>& words) {
  words.clear();
  unquoted.clear();
  for (std::size_t at = 0; at < line.size();) {
    if (IsBlank(line[at])) {
      ++at;
      continue;
    }
    const std::size_t begin = at;
    while (at < line.size() && !IsBlank(line[at]) && line[at] != '"' && line[at] != '\'') ++at;
    const std::string_view plain = line.substr(begin, at - begin);
    if (at == line.size() || IsBlank(line[at])) {
      words.push_back(plain);
      continue;
    }
    // A quote takes the word to its end. What comes out is never longer than the line.
    unquoted.reserve(line.size());
    const std::size_t from = unquoted.size();
    unquoted.append(plain);
    const char quote = line[at++];
    if (!Unquote(line, at, quote, unquoted)) return false;
    words.push_back(std::string_view(unquoted).substr(from));
  }
  return true;
}

}  // namespace tidegate::net
