// SPDX-License-Identifier: Apache-2.0
#pragma once

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/ascii.hpp"

/// The HTTP/1.1 syntax that all readers of requests, responses and trailers share, so they agree.
namespace tidegate::net::http1 {

// --- Characters ---------------------------------------------------------------

enum CharClass : std::uint8_t {
  kToken = 1,  ///< tchar of RFC 9110, 5.6.2: methods, field names, Connection options.
  /// Characters of a request target: visible ASCII but '#', and 0x80 to 0xFF. RFC 3986 allows
  /// fewer, but browsers send | ^ { } " and UTF-8 as they are.
  kTarget = 2,
  kName = 4,  ///< Characters of a host name: letters, digits and -._~
  kDigit = 8,
  kText = 16,  ///< Characters of a field value: visible ASCII, SP, HTAB, 0x80 to 0xFF.
};

namespace internal {
consteval std::array<std::uint8_t, 256> MakeClasses() {
  std::array<std::uint8_t, 256> table{};
  const auto mark = [&table](std::string_view chars, unsigned classes) {
    for (const char c : chars) {
      auto& entry = table[static_cast<unsigned char>(c)];
      entry = static_cast<std::uint8_t>(entry | classes);
    }
  };
  mark("0123456789", kDigit | kToken | kName);
  mark("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", kToken | kName);
  mark("-._~", kToken | kName);
  mark("!#$%&'*+^`|", kToken);
  for (unsigned c = 0; c < 256; ++c) {
    const bool text = c == '\t' || (c >= 0x20 && c != 0x7F);
    const bool target = c > 0x20 && c != 0x7F && c != '#';
    table[c] = static_cast<std::uint8_t>(table[c] | (text ? kText : CharClass{}) |
                                         (target ? kTarget : CharClass{}));
  }
  return table;
}
inline constexpr std::array<std::uint8_t, 256> kClasses = MakeClasses();
}  // namespace internal

[[nodiscard]] constexpr bool Is(char c, CharClass wanted) noexcept {
  return (internal::kClasses[static_cast<unsigned char>(c)] & wanted) != 0;
}

[[nodiscard]] constexpr bool IsBlank(char c) noexcept { return c == ' ' || c == '\t'; }

[[nodiscard]] constexpr bool All(std::string_view text, CharClass wanted) noexcept {
  return std::ranges::all_of(text, [wanted](char c) { return Is(c, wanted); });
}

/// Returns the first position from `at` on whose character is not of the class, or the end.
[[nodiscard]] constexpr std::size_t Skip(std::string_view text, std::size_t at,
                                         CharClass wanted) noexcept {
  const auto classes = [text](std::size_t i) {
    return internal::kClasses[static_cast<unsigned char>(text[i])];
  };
  // Four at a time: one branch instead of four.
  while (text.size() - at >= 4 &&
         (classes(at) & classes(at + 1) & classes(at + 2) & classes(at + 3) & wanted) != 0) {
    at += 4;
  }
  while (at < text.size() && Is(text[at], wanted)) ++at;
  return at;
}

#ifdef __SSE2__
namespace internal {
/// Returns 255 in each byte that is from `low` to `high` in `text`.
[[nodiscard]] inline __m128i Between(__m128i text, char low, char high) noexcept {
  const __m128i from_low = _mm_sub_epi8(text, _mm_set1_epi8(low));
  return _mm_cmpeq_epi8(_mm_min_epu8(from_low, _mm_set1_epi8(static_cast<char>(high - low))),
                        from_low);
}
[[nodiscard]] inline __m128i Load(std::string_view text, std::size_t at) noexcept {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(text.data() + at));
}
}  // namespace internal
#endif

/// Returns Skip(text, at, kText). Checks 16 bytes at a time if the CPU can, because most bytes of a
/// head are values.
[[nodiscard]] inline std::size_t SkipText(std::string_view text, std::size_t at) noexcept {
#ifdef __SSE2__
  for (; text.size() - at >= 16; at += 16) {
    const __m128i chars = internal::Load(text, at);
    const __m128i control = internal::Between(chars, 0, 0x1f);
    const __m128i tab = _mm_cmpeq_epi8(chars, _mm_set1_epi8('\t'));
    const __m128i rubout = _mm_cmpeq_epi8(chars, _mm_set1_epi8(0x7f));
    const int hits = _mm_movemask_epi8(_mm_or_si128(_mm_andnot_si128(tab, control), rubout));
    if (hits != 0)
      return at + static_cast<std::size_t>(std::countr_zero(static_cast<unsigned>(hits)));
  }
#endif
  return Skip(text, at, kText);
}

/// Returns Skip(text, at, kToken). Checks 16 bytes at a time if the CPU can.
[[nodiscard]] inline std::size_t SkipToken(std::string_view text, std::size_t at) noexcept {
#ifdef __SSE2__
  for (; text.size() - at >= 16; at += 16) {
    const __m128i chars = internal::Load(text, at);
    const __m128i lower = _mm_or_si128(chars, _mm_set1_epi8(0x20));
    const __m128i usual = _mm_or_si128(
        _mm_or_si128(internal::Between(lower, 'a', 'z'), internal::Between(chars, '0', '9')),
        _mm_cmpeq_epi8(chars, _mm_set1_epi8('-')));
    const int others = ~_mm_movemask_epi8(usual) & 0xffff;
    if (others == 0) continue;
    at += static_cast<std::size_t>(std::countr_zero(static_cast<unsigned>(others)));
    if (text[at] == ':') return at;
    break;
  }
#endif
  return Skip(text, at, kToken);
}

// Error texts that several parsers share. Static storage.
inline constexpr std::string_view kBareCr = "CR is not followed by LF";
inline constexpr std::string_view kBareLf = "line ends with LF instead of CRLF";

/// These two return what is wrong with a field line whose name, or value, ends at `found`.
[[nodiscard]] constexpr std::string_view BadNameReason(char found) noexcept {
  if (IsBlank(found)) return "white space in a field name or before its colon";
  if (found == ':') return "field name is empty";
  if (found == '\r' || found == '\n') return "field line has no colon";
  return "invalid character in a field name";
}
[[nodiscard]] constexpr std::string_view BadTextReason(char found) noexcept {
  if (found == '\n') return kBareLf;
  if (found == '\r') return kBareCr;
  return "control character in a field value";
}

// --- Field lines --------------------------------------------------------------

/// The accepted line ends: CRLF or, for upstreams that are known to send it, also LF alone (RFC
/// 9112, 2.2). A CR without LF is never accepted.
enum class LineEnd : std::uint8_t { kCrlf, kCrlfOrLf };

/// Reads field lines up to and including the empty line that ends them. Looks at each byte once and
/// judges it by the bytes before it: the result does not depend on how the input is cut.
class FieldLines {
 public:
  enum class Found : std::uint8_t {
    kMore,   ///< Incomplete.
    kField,  ///< name() and value() are valid.
    kEnd,    ///< The empty line has been read.
    kRefused,
  };

  FieldLines() = default;
  explicit FieldLines(std::size_t begin, LineEnd line_end = LineEnd::kCrlf) noexcept
      : line_end_(line_end), pos_(begin), begin_(begin) {}

  /// Continues to read. `text` must begin with the text of the last call, without the bytes that
  /// Dropped reported.
  Found Next(std::string_view text) noexcept;
  /// Returns true if another field line begins with the next byte, which is in `text`.
  [[nodiscard]] bool AtField(std::string_view text) const noexcept {
    return step_ == Step::kLine && pos_ < text.size() && text[pos_] != '\r' &&
           (text[pos_] != '\n' || line_end_ == LineEnd::kCrlf);
  }
  /// REQUIRES: the last call of Next returned kField, and `text` is the text of that call.
  [[nodiscard]] std::string_view name(std::string_view text) const noexcept {
    return text.substr(begin_, name_end_ - begin_);
  }
  [[nodiscard]] std::string_view value(std::string_view text) const noexcept {
    return Trim(text.substr(name_end_ + 1, value_end_ - name_end_ - 1));
  }
  [[nodiscard]] std::string_view reason() const noexcept { return reason_; }  ///< Static text.

  /// Returns the position before which all bytes have been read.
  [[nodiscard]] std::size_t pos() const noexcept { return pos_; }
  /// Returns the first byte that must be kept: the beginning of an unfinished name, else pos().
  [[nodiscard]] std::size_t needed() const noexcept { return step_ == Step::kName ? begin_ : pos_; }
  /// Call after removing `count` bytes before needed() from the text.
  void Dropped(std::size_t count) noexcept {
    pos_ -= count;
    begin_ -= count;  // This and name_end_ may wrap around; both are set before use.
    name_end_ -= count;
  }

 private:
  enum class Step : std::uint8_t { kLine, kName, kValue };

  /// Returns the length of the line end at pos_; 0: it is incomplete or refused, see `found`.
  std::size_t EndOfLine(std::string_view text, Found& found) noexcept;
  Found Refuse(std::string_view reason) noexcept {
    reason_ = reason;
    return Found::kRefused;
  }

  Step step_ = Step::kLine;
  LineEnd line_end_ = LineEnd::kCrlf;
  std::size_t pos_ = 0;
  std::size_t begin_ = 0;  ///< The beginning of the current line.
  std::size_t name_end_ = 0;
  std::size_t value_end_ = 0;
  std::string_view reason_;
};

// --- Values of the fields that frame a message or control its connection --------

/// Calls `visit` with each element of a comma-separated list, trimmed, until it returns false.
/// Empty elements are skipped (RFC 9110, 5.6.1.2).
template <class Visit>
constexpr void EachElement(std::string_view list, Visit visit) {
  while (true) {
    const std::size_t comma = list.find(',');
    const std::string_view element = Trim(list.substr(0, comma));
    if (!element.empty() && !visit(element)) return;
    if (comma == std::string_view::npos) return;
    list.remove_prefix(comma + 1);
  }
}

/// Returns true if a comma-separated list has this element, ignoring case.
[[nodiscard]] constexpr bool HasElement(std::string_view list, std::string_view wanted) {
  bool found = false;
  EachElement(
      list, [&](std::string_view element) { return !(found = EqualsIgnoreCase(element, wanted)); });
  return found;
}

/// Returns the value of a Content-Length field, or nothing if it is not one number.
[[nodiscard]] constexpr std::optional<std::uint64_t> ReadLength(std::string_view value) noexcept {
  constexpr std::size_t kMaxDigits = 19;  // All numbers of 19 digits are below 2^64.
  if (value.empty() || value.size() > kMaxDigits || !All(value, kDigit)) return std::nullopt;
  std::uint64_t length = 0;
  for (const char c : value) length = length * 10 + static_cast<std::uint64_t>(c - '0');
  return length;
}

/// Returns the value of a Content-Length field of a response. `5, 5` counts as 5 (RFC 9110, 8.6),
/// because the gateway writes the number only once. Returns nothing for different or invalid
/// numbers.
[[nodiscard]] constexpr std::optional<std::uint64_t> ReadLengths(std::string_view value) noexcept {
  const auto first = ReadLength(Trim(value.substr(0, value.find(','))));
  for (std::size_t comma = 0; first && (comma = value.find(',')) != std::string_view::npos;) {
    value.remove_prefix(comma + 1);
    if (ReadLength(Trim(value.substr(0, value.find(',')))) != first) return std::nullopt;
  }
  return first;
}

/// The options in the Connection fields of a message.
struct ConnectionOptions {
  bool close = false;
  bool keep_alive = false;
  bool upgrade = false;
  bool others = false;  ///< There are other options, which are names of fields.

  /// Adds the options of one more field line. Returns false if it is not a list of tokens.
  [[nodiscard]] constexpr bool Add(std::string_view value) noexcept {
    bool tokens = true;
    EachElement(value, [&](std::string_view option) {
      if (EqualsIgnoreCase(option, "close")) {
        close = true;
      } else if (EqualsIgnoreCase(option, "keep-alive")) {
        keep_alive = true;
      } else if (EqualsIgnoreCase(option, "upgrade")) {
        upgrade = true;
      } else {
        others = true;
        tokens = All(option, kToken);
      }
      return tokens;
    });
    return tokens;
  }
};

// --- Request targets ----------------------------------------------------------

/// The parts of a request target (RFC 9112, 3.2), as views into it. A missing path is static text.
struct Target {
  std::optional<std::string_view> authority;  ///< Set for absolute-form and authority-form.
  std::string_view path;
  std::string_view query;
};

/// Returns the parts of `target`, or nothing if `method` does not allow its form. REQUIRES: all
/// characters of `target` are of kTarget.
[[nodiscard]] std::optional<Target> SplitTarget(std::string_view method,
                                                std::string_view target) noexcept;

enum class Port : std::uint8_t { kOptional, kRequired };

/// Returns true if `authority` is a host with a port: no user information, no empty host. Refuses
/// percent-encodings and !$&'()*+,;= in names, which RFC 3986 allows: no DNS name has them, and a
/// reader that splits lists at commas would see two hosts.
[[nodiscard]] bool IsHostAndPort(std::string_view authority, Port port) noexcept;

}  // namespace tidegate::net::http1
