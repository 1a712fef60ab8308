// SPDX-License-Identifier: Apache-2.0
#include "net/resp_command.hpp"

#include <cstring>

#include "base/ascii.hpp"
#include "base/message_text.hpp"

namespace tidegate::net {
namespace {

/// Returns true for a space, \t, \n, \v, \f and \r.
bool IsSpace(char c) noexcept { return c == ' ' || (c >= '\t' && c <= '\r'); }

/// Returns the character that a backslash and the bytes at `at` stand for; moves `at` past them.
char Escaped(std::string_view line, std::size_t& at) noexcept {
  constexpr std::string_view kLetters = "nrtba";
  constexpr std::string_view kControls = "\n\r\t\b\a";
  const char c = line[at++];
  if (c == 'x' && line.size() - at >= 2 && HexDigit(line[at]) >= 0 && HexDigit(line[at + 1]) >= 0) {
    at += 2;
    return static_cast<char>(HexDigit(line[at - 2]) * 16 + HexDigit(line[at - 1]));
  }
  const std::size_t letter = kLetters.find(c);
  return letter == std::string_view::npos ? c : kControls[letter];
}

/// Appends the text up to the closing quote, and moves `at` past it. Returns false if there is
/// none, or if text follows it.
bool Unquote(std::string_view line, std::size_t& at, char quote, std::string& unquoted) {
  while (at < line.size()) {
    const char c = line[at++];
    if (c == quote) return at == line.size() || IsSpace(line[at]);
    const bool escape = c == '\\' && at < line.size() && (quote == '"' || line[at] == '\'');
    unquoted.push_back(escape ? Escaped(line, at) : c);
  }
  return false;
}

/// Splits a line that a person typed into words, as Redis and redis-cli do: blanks between them;
/// "..." with \n \r \t \b \a \xHH \\ \"; '...' with \'. Returns false if a quote is not closed, or
/// is not followed by a blank or the end. Words without quotes are views into `line`, others into
/// `unquoted`, which is overwritten.
bool SplitWords(std::string_view line, std::string& unquoted,
                std::vector<std::string_view>& words) {
  words.clear();
  unquoted.clear();
  for (std::size_t at = 0; at < line.size();) {
    if (IsSpace(line[at])) {
      ++at;
      continue;
    }
    const std::size_t begin = at;
    while (at < line.size() && !IsSpace(line[at]) && line[at] != '"' && line[at] != '\'') ++at;
    const std::string_view plain = line.substr(begin, at - begin);
    if (at == line.size() || IsSpace(line[at])) {
      words.push_back(plain);
      continue;
    }
    // The quote ends the word. The text is never longer than the line, so `unquoted` never moves.
    unquoted.reserve(line.size());
    const std::size_t from = unquoted.size();
    unquoted.append(plain);
    const char quote = line[at++];
    if (!Unquote(line, at, quote, unquoted)) return false;
    words.push_back(std::string_view(unquoted).substr(from));
  }
  return true;
}

enum class Number : std::uint8_t { kRead, kMore, kNone, kTooLong };

/// The most digits of a length, with its sign.
constexpr std::size_t kMostDigits = 32;
/// A number beyond every limit; no more digits are added to a number that has reached it.
constexpr std::int64_t kHuge = 100'000'000'000'000'000;

/// Reads a decimal number and CRLF: no plus, no leading zeros, no minus before zero. Moves `at`.
Number ReadNumber(std::string_view bytes, std::size_t& at, std::int64_t& number) noexcept {
  const char* const begin = bytes.data() + at;
  const char* const end = bytes.data() + bytes.size();
  if (end - begin >= 4) {
    // Reads one or two digits fast, as nearly every length has: a command of six elements takes 52
    // ns, not 70.
    const auto first = static_cast<unsigned char>(begin[0] - '0');
    const auto second = static_cast<unsigned char>(begin[1] - '0');
    if (first <= 9 && begin[1] == '\r' && begin[2] == '\n') {
      number = first;
      at += 3;
      return Number::kRead;
    }
    if (first >= 1 && first <= 9 && second <= 9 && begin[2] == '\r' && begin[3] == '\n') {
      number = first * 10 + second;
      at += 4;
      return Number::kRead;
    }
  }
  const char* p = begin;
  const bool minus = p != end && *p == '-';
  if (minus) ++p;
  const char* const digits = p;
  std::int64_t value = 0;
  for (; p != end; ++p) {
    const auto digit = static_cast<unsigned char>(*p - '0');
    if (digit > 9) break;
    if (p != digits && *digits == '0') return Number::kNone;
    if (p - begin == kMostDigits) return Number::kTooLong;
    if (value < kHuge) value = value * 10 + digit;
  }
  if (p == end) return Number::kMore;
  if (*p != '\r' || p == digits || (minus && value == 0)) return Number::kNone;
  if (++p == end) return Number::kMore;
  if (*p != '\n') return Number::kNone;
  at = static_cast<std::size_t>(p + 1 - bytes.data());
  number = minus ? -value : value;
  return Number::kRead;
}

std::string UpTo(std::string_view problem, std::size_t limit, std::string_view of) {
  return std::string(problem) + ": at most " + std::to_string(limit) + " " + std::string(of);
}

std::string Unexpected(char c) { return "expected '$', got '" + Printable({&c, 1}) + "'"; }

}  // namespace

RespCommandParser::Progress RespCommandParser::Parse(std::string_view bytes,
                                                     const RespLimits& limits) {
  const bool resumed = step_ == Step::kElements;
  Progress progress = Run(bytes, limits);
  if (progress == Progress::kMore) return progress;
  step_ = Step::kStart;
  if (progress == Progress::kCommand && resumed) {
    // The elements of earlier calls are views into a buffer that may be gone, so read the whole
    // command again. The parser skips from length to length, so this costs little for any length.
    progress = Run(bytes, limits);
    step_ = Step::kStart;
  }
  return progress;
}

RespCommandParser::Progress RespCommandParser::Run(std::string_view bytes,
                                                   const RespLimits& limits) {
  if (step_ == Step::kElements) return Elements(bytes, limits);
  if (step_ == Step::kLine) return Line(bytes, limits);
  at_ = 0;
  arguments_.clear();
  if (bytes.empty()) return Progress::kMore;
  return bytes[0] == '*' ? Count(bytes, limits) : Line(bytes, limits);
}

/// Reads an inline command.
RespCommandParser::Progress RespCommandParser::Line(std::string_view bytes,
                                                    const RespLimits& limits) {
  step_ = Step::kLine;
  const std::string_view window = bytes.substr(0, limits.inline_bytes + 1);
  const std::size_t end = window.find('\n', at_);
  if (end == std::string_view::npos) {
    if (window.size() > limits.inline_bytes) {
      return Bad(UpTo("too big inline request", limits.inline_bytes, "bytes"));
    }
    at_ = window.size();
    return Progress::kMore;
  }
  at_ = end + 1;
  if (!SplitWords(bytes.substr(0, end), unquoted_, arguments_)) {
    return Bad("unbalanced quotes in request");
  }
  if (arguments_.size() > limits.elements) {
    return Bad(UpTo("too big inline request", limits.elements, "words"));
  }
  for (const std::string_view word : arguments_) {
    if (word.size() > limits.bulk_bytes) {
      return Bad(UpTo("too big inline request", limits.bulk_bytes, "bytes in a word"));
    }
  }
  return arguments_.empty() ? Progress::kNothing : Progress::kCommand;
}

/// Reads the number of elements, such as `*6`, and then the elements.
RespCommandParser::Progress RespCommandParser::Count(std::string_view bytes,
                                                     const RespLimits& limits) {
  std::int64_t count = 0;
  at_ = 1;
  const Number read = ReadNumber(bytes, at_, count);
  if (read == Number::kMore) return Progress::kMore;
  if (read == Number::kNone) return Bad("invalid multibulk length");
  if (read == Number::kTooLong) return Bad("too big mbulk count string");
  if (count <= 0) return Progress::kNothing;
  left_ = static_cast<std::size_t>(count);
  if (left_ > limits.elements) {
    return Bad(UpTo("invalid multibulk length", limits.elements, "elements"));
  }
  step_ = Step::kElements;
  return Elements(bytes, limits);
}

/// Reads the elements: a length such as `$11`, that many bytes, CRLF. An element is consumed when
/// it is complete: until then `at_` stays before the element, and each call reads the length again,
/// 34 bytes at most.
RespCommandParser::Progress RespCommandParser::Elements(std::string_view bytes,
                                                        const RespLimits& limits) {
  for (; left_ > 0; --left_) {
    std::size_t at = at_;
    if (at == bytes.size()) return Progress::kMore;
    if (bytes[at] != '$') return Bad(Unexpected(bytes[at]));
    std::int64_t length = 0;
    const Number read = ReadNumber(bytes, ++at, length);
    if (read == Number::kMore) return Progress::kMore;
    if (read == Number::kTooLong) return Bad("too big bulk count string");
    if (read == Number::kNone || length < 0) return Bad("invalid bulk length");
    const auto size = static_cast<std::size_t>(length);
    if (size > limits.bulk_bytes) {
      return Bad(UpTo("invalid bulk length", limits.bulk_bytes, "bytes"));
    }
    if (bytes.size() - at < size + 2) return Progress::kMore;
    if (std::memcmp(bytes.data() + at + size, "\r\n", 2) != 0) {
      return Bad("expected CRLF after a bulk string");
    }
    arguments_.push_back(bytes.substr(at, size));
    at_ = at + size + 2;
  }
  return Progress::kCommand;
}

}  // namespace tidegate::net
