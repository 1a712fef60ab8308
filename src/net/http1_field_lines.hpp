// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "net/http1_tokens.hpp"

namespace tidegate::net::http1 {

/// The field lines of a response's head or of trailers, from left to right, up to and with the
/// empty line that ends them. Each byte is judged by what stands before it and once, so that cuts
/// change neither the answer nor (by more than a factor) the work.
class FieldLines {
 public:
  enum class Found : std::uint8_t {
    kMore,   ///< Incomplete.
    kName,   ///< name() is there; its value follows.
    kField,  ///< name() and value() are there.
    kEnd,    ///< The empty line, too.
    kRefused,
  };

  FieldLines() = default;
  explicit FieldLines(std::size_t begin) noexcept : pos_(begin), begin_(begin) {}

  /// The next find. `text` must begin with all that was given before, or with what is left of it
  /// after Dropped().
  Found Next(std::string_view text) noexcept;
  /// In the text of the last call.
  [[nodiscard]] std::string_view name(std::string_view text) const noexcept {
    return text.substr(begin_, name_end_ - begin_);
  }
  [[nodiscard]] std::string_view value(std::string_view text) const noexcept {
    return TrimBlanks(text.substr(name_end_ + 1, pos_ - 2 - name_end_ - 1));
  }
  [[nodiscard]] std::string_view reason() const noexcept { return reason_; }  ///< Static text.

  [[nodiscard]] std::size_t pos() const noexcept { return pos_; }  ///< All before it was judged.
  /// What name() will need: the begin of an unfinished name, else pos().
  [[nodiscard]] std::size_t needed() const noexcept { return step_ == Step::kName ? begin_ : pos_; }
  void Dropped(std::size_t count) noexcept {
    pos_ -= count;
    begin_ -= count;  // This and the next may wrap around, and are set anew before they are used.
    name_end_ -= count;
  }

 private:
  enum class Step : std::uint8_t { kLine, kName, kValue };

  Found Line(std::string_view text) noexcept;
  Found Name(std::string_view text) noexcept;
  Found Value(std::string_view text) noexcept;
  Found Refuse(std::string_view reason) noexcept {
    reason_ = reason;
    return Found::kRefused;
  }

  Step step_ = Step::kLine;
  std::size_t pos_ = 0;
  std::size_t begin_ = 0;  ///< Of the current line.
  std::size_t name_end_ = 0;
  std::string_view reason_;
};

inline FieldLines::Found FieldLines::Next(std::string_view text) noexcept {
  if (step_ == Step::kValue) return Value(text);
  if (step_ == Step::kName) return Name(text);
  return Line(text);
}

inline FieldLines::Found FieldLines::Line(std::string_view text) noexcept {
  if (pos_ == text.size()) return Found::kMore;
  if (text[pos_] == '\r') {
    if (pos_ + 1 == text.size()) return Found::kMore;
    if (text[pos_ + 1] != '\n') return Refuse(BadTextReason('\r'));
    pos_ += 2;
    return Found::kEnd;
  }
  if (IsBlank(text[pos_])) return Refuse("a field line begins with white space");
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
  if (text[pos_] != '\r') return Refuse(BadTextReason(text[pos_]));
  if (pos_ + 1 == text.size()) return Found::kMore;
  if (text[pos_ + 1] != '\n') return Refuse(BadTextReason('\r'));
  pos_ += 2;
  step_ = Step::kLine;
  return Found::kField;
}

}  // namespace tidegate::net::http1
