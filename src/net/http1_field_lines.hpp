// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "net/http1_tokens.hpp"

namespace tidegate::net::http1 {

/// Which line ends are accepted. A CR without LF never is.
enum class LineEnd : std::uint8_t {
  kCrlf,
  kCrlfOrLf,  ///< LF alone as well (RFC 9112, 2.2), for upstreams that are known to send it.
};

/// Reads the field lines of a response head or of trailers, from left to right, up to and including
/// the empty line that ends them. Looks at each byte once and judges it by the bytes before it, so
/// that the result does not depend on how the input is cut, and the work stays linear.
class FieldLines {
 public:
  enum class Found : std::uint8_t {
    kMore,   ///< Incomplete.
    kName,   ///< name() is valid; the value follows.
    kField,  ///< name() and value() are valid.
    kEnd,    ///< The empty line has been read.
    kRefused,
  };

  FieldLines() = default;
  explicit FieldLines(std::size_t begin, LineEnd line_end = LineEnd::kCrlf) noexcept
      : line_end_(line_end), pos_(begin), begin_(begin) {}

  /// Reads on. `text` must begin with the text of the last call, without its dropped bytes.
  Found Next(std::string_view text) noexcept;
  /// In the text of the last call.
  [[nodiscard]] std::string_view name(std::string_view text) const noexcept {
    return text.substr(begin_, name_end_ - begin_);
  }
  [[nodiscard]] std::string_view value(std::string_view text) const noexcept {
    return TrimBlanks(text.substr(name_end_ + 1, value_end_ - name_end_ - 1));
  }
  [[nodiscard]] std::string_view reason() const noexcept { return reason_; }  ///< Static text.

  [[nodiscard]] std::size_t pos() const noexcept { return pos_; }  ///< All before it is read.
  /// The first byte that must be kept: the beginning of an unfinished name, else pos().
  [[nodiscard]] std::size_t needed() const noexcept { return step_ == Step::kName ? begin_ : pos_; }
  /// The caller has removed `count` bytes before needed() from the text.
  void Dropped(std::size_t count) noexcept {
    pos_ -= count;
    begin_ -= count;  // This and the next may wrap around; they are set before they are used.
    name_end_ -= count;
  }

 private:
  enum class Step : std::uint8_t { kLine, kName, kValue };

  Found Line(std::string_view text) noexcept;
  Found Name(std::string_view text) noexcept;
  Found Value(std::string_view text) noexcept;
  /// Returns the length of the line end at pos_; 0: it is incomplete or refused, see `found`.
  std::size_t EndOfLine(std::string_view text, Found& found) noexcept;
  Found Refuse(std::string_view reason) noexcept {
    reason_ = reason;
    return Found::kRefused;
  }

  Step step_ = Step::kLine;
  LineEnd line_end_ = LineEnd::kCrlf;
  std::size_t pos_ = 0;
  std::size_t begin_ = 0;  ///< Of the current line.
  std::size_t name_end_ = 0;
  std::size_t value_end_ = 0;
  std::string_view reason_;
};

inline FieldLines::Found FieldLines::Next(std::string_view text) noexcept {
  if (step_ == Step::kValue) return Value(text);
  if (step_ == Step::kName) return Name(text);
  return Line(text);
}

inline std::size_t FieldLines::EndOfLine(std::string_view text, Found& found) noexcept {
  if (text[pos_] == '\n' && line_end_ == LineEnd::kCrlfOrLf) return 1;
  if (text[pos_] != '\r') {
    found = Refuse(BadTextReason(text[pos_]));
  } else if (pos_ + 1 == text.size()) {
    found = Found::kMore;
  } else if (text[pos_ + 1] != '\n') {
    found = Refuse(kBareCr);
  } else {
    return 2;
  }
  return 0;
}

inline FieldLines::Found FieldLines::Line(std::string_view text) noexcept {
  if (pos_ == text.size()) return Found::kMore;
  if (text[pos_] == '\r' || text[pos_] == '\n') {
    Found found = Found::kEnd;
    pos_ += EndOfLine(text, found);
    return found;
  }
  if (IsBlank(text[pos_])) return Refuse("field line begins with white space");
  begin_ = pos_;
  step_ = Step::kName;
  return Name(text);
}

inline FieldLines::Found FieldLines::Name(std::string_view text) noexcept {
  pos_ = Skip(text, pos_, kToken);
  if (pos_ == text.size()) return Found::kMore;
  if (text[pos_] != ':' || pos_ == begin_) return Refuse(BadNameReason(text[pos_]));
  name_end_ = pos_++;
  step_ = Step::kValue;
  return Found::kName;
}

inline FieldLines::Found FieldLines::Value(std::string_view text) noexcept {
  pos_ = SkipText(text, pos_);
  if (pos_ == text.size()) return Found::kMore;
  Found found = Found::kField;
  const std::size_t end = EndOfLine(text, found);
  if (end == 0) return found;
  value_end_ = pos_;
  pos_ += end;
  step_ = Step::kLine;
  return found;
}

}  // namespace tidegate::net::http1
