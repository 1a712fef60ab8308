// SPDX-License-Identifier: Apache-2.0
// A chunked body (RFC 9112, 7.1), judged byte by byte from left to right as heads are.
#include <algorithm>
#include <cassert>
#include <cstring>

#include "net/http1_parser.hpp"
#include "net/http1_tokens.hpp"

namespace tidegate::net {

using http1::Is;

namespace {

constexpr unsigned kMaxSizeDigits = 16;  // 64 bits.

/// Of a digit for which Is(c, kHex) holds.
constexpr std::uint64_t HexValue(char c) noexcept {
  return static_cast<std::uint64_t>(Is(c, http1::kDigit) ? c - '0' : (c | 0x20) - 'a' + 10);
}

}  // namespace

Parsed ChunkedDecoder::Decode(std::span<char> data, const HttpLimits& limits) noexcept {
  assert(data.size() >= pos_);
  Parsed parsed = Parsed::kDone;
  while (parsed == Parsed::kDone && state_ != State::kDone) parsed = Step(data, limits);
  // A trailer's name is looked at again when it is whole, so until then it is not eaten.
  raw_ = state_ == State::kTrailerName ? line_begin_ : pos_;
  return parsed;
}

/// kDone says that the next state can be tried.
Parsed ChunkedDecoder::Step(std::span<char> data, const HttpLimits& limits) noexcept {
  const std::string_view text(data.data(), data.size());
  switch (state_) {
    case State::kSize:
      return Size(text, limits);
    case State::kExtension:
      return Extensions(text, limits);
    case State::kData:
      return Data(data);
    case State::kDataEnd:
      return DataEnd(text);
    case State::kTrailerLine:
    case State::kTrailerName:
    case State::kTrailerValue:
      return Trailers(text, limits);
    case State::kDone:
      return Parsed::kDone;
    case State::kRefused:
      break;
  }
  return Parsed::kRefused;
}

Parsed ChunkedDecoder::Size(std::string_view data, const HttpLimits& limits) noexcept {
  const std::size_t room = limits.body_bytes - std::min(limits.body_bytes, decoded_);
  for (; pos_ < data.size() && Is(data[pos_], http1::kHex); ++pos_) {
    if (++digits_ > kMaxSizeDigits) return Refuse(400, "a chunk size of more than 16 digits");
    chunk_left_ = chunk_left_ << 4 | HexValue(data[pos_]);
    if (chunk_left_ > room) return Refuse(413, "the body is too long");
  }
  if (pos_ == data.size()) return Parsed::kMore;
  if (digits_ == 0) return Refuse(400, "a chunk size is not a hexadecimal number");
  if (data[pos_] == '\r') return SizeEnd(data);
  // RFC 9112, 7.1.1 tolerates white space before the semicolon; parsers disagree about it.
  if (data[pos_] != ';') return Refuse(400, "a chunk size ends with neither CRLF nor a semicolon");
  if (++overhead_ > limits.trailer_bytes) return Refuse(400, "the chunk extensions are too long");
  ++pos_;
  extension_ = Extension::kNameBegin;
  state_ = State::kExtension;
  return Parsed::kDone;
}

/// At the CR of a chunk's first line.
Parsed ChunkedDecoder::SizeEnd(std::string_view data) noexcept {
  if (pos_ + 1 == data.size()) return Parsed::kMore;
  if (data[pos_ + 1] != '\n') return Refuse(400, "a CR without its LF");
  pos_ += 2;
  digits_ = 0;
  trailer_begin_ = pos_;
  state_ = chunk_left_ == 0 ? State::kTrailerLine : State::kData;
  return Parsed::kDone;
}

Parsed ChunkedDecoder::Extensions(std::string_view data, const HttpLimits& limits) noexcept {
  for (; pos_ < data.size(); ++pos_) {
    const char c = data[pos_];
    const bool whole = extension_ == Extension::kName || extension_ == Extension::kToken ||
                       extension_ == Extension::kEnd;
    if (c == '\r' && whole) return SizeEnd(data);
    if (++overhead_ > limits.trailer_bytes) return Refuse(400, "the chunk extensions are too long");
    if (!ExtensionChar(c)) return Refuse(400, "a malformed chunk extension");
  }
  return Parsed::kMore;
}

/// ";" token [ "=" ( token / quoted-string ) ], without white space between them.
bool ChunkedDecoder::ExtensionChar(char c) noexcept {
  switch (extension_) {
    case Extension::kNameBegin:
      extension_ = Extension::kName;
      return Is(c, http1::kToken);
    case Extension::kName:
      if (c == ';') extension_ = Extension::kNameBegin;
      if (c == '=') extension_ = Extension::kValueBegin;
      return c == ';' || c == '=' || Is(c, http1::kToken);
    case Extension::kValueBegin:
      extension_ = c == '"' ? Extension::kQuoted : Extension::kToken;
      return c == '"' || Is(c, http1::kToken);
    case Extension::kToken:
      if (c == ';') extension_ = Extension::kNameBegin;
      return c == ';' || Is(c, http1::kToken);
    case Extension::kQuoted:
      if (c == '"') extension_ = Extension::kEnd;
      if (c == '\\') extension_ = Extension::kEscape;
      return Is(c, http1::kText);
    case Extension::kEscape:
      extension_ = Extension::kQuoted;
      return Is(c, http1::kText);
    case Extension::kEnd:
      extension_ = Extension::kNameBegin;
      return c == ';';
  }
  return false;
}

Parsed ChunkedDecoder::Data(std::span<char> data) noexcept {
  const std::size_t count = std::min<std::uint64_t>(chunk_left_, data.size() - pos_);
  std::memmove(data.data() + decoded_, data.data() + pos_, count);
  decoded_ += count;
  pos_ += count;
  chunk_left_ -= count;
  if (chunk_left_ > 0) return Parsed::kMore;
  state_ = State::kDataEnd;
  return Parsed::kDone;
}

Parsed ChunkedDecoder::DataEnd(std::string_view data) noexcept {
  const std::string_view end = data.substr(pos_, 2);
  if (!std::string_view("\r\n").starts_with(end))
    return Refuse(400, "a chunk is not ended by CRLF");
  if (end.size() < 2) return Parsed::kMore;
  pos_ += 2;
  state_ = State::kSize;
  return Parsed::kDone;
}

Parsed ChunkedDecoder::Trailers(std::string_view data, const HttpLimits& limits) noexcept {
  // What the extensions left of the allowance, and the empty line.
  const std::size_t room = limits.trailer_bytes - std::min(limits.trailer_bytes, overhead_) + 2;
  const bool full = data.size() - trailer_begin_ >= room;
  const std::string_view window = full ? data.substr(0, trailer_begin_ + room) : data;
  Parsed parsed = Parsed::kDone;
  while (parsed == Parsed::kDone && state_ != State::kDone) {
    parsed = state_ == State::kTrailerLine   ? TrailerLine(window)
             : state_ == State::kTrailerName ? TrailerName(window)
                                             : TrailerValue(window);
  }
  if (parsed == Parsed::kMore && full) return Refuse(400, "the trailers are too long");
  return parsed;
}

Parsed ChunkedDecoder::TrailerLine(std::string_view window) noexcept {
  if (pos_ == window.size()) return Parsed::kMore;
  if (window[pos_] == '\r') {
    if (pos_ + 1 == window.size()) return Parsed::kMore;
    if (window[pos_ + 1] != '\n') return Refuse(400, "a CR without its LF");
    pos_ += 2;
    state_ = State::kDone;
    return Parsed::kDone;
  }
  if (http1::IsBlank(window[pos_])) return Refuse(400, "a trailer begins with white space");
  line_begin_ = pos_;
  state_ = State::kTrailerName;
  return Parsed::kDone;
}

Parsed ChunkedDecoder::TrailerName(std::string_view window) noexcept {
  pos_ = http1::Skip(window, pos_, http1::kToken);
  if (pos_ == window.size()) return Parsed::kMore;
  if (window[pos_] != ':' || pos_ == line_begin_) {
    return Refuse(400, http1::BadNameReason(window[pos_]));
  }
  // Trailers are dropped, so this could do no harm here; but nobody honest sends it.
  const std::string_view name = window.substr(line_begin_, pos_ - line_begin_);
  if (http1::EqualsLower(name, "content-length") || http1::EqualsLower(name, "transfer-encoding")) {
    return Refuse(400, "a trailer that would frame the body");
  }
  ++pos_;
  state_ = State::kTrailerValue;
  return Parsed::kDone;
}

Parsed ChunkedDecoder::TrailerValue(std::string_view window) noexcept {
  pos_ = http1::SkipText(window, pos_);
  if (pos_ == window.size()) return Parsed::kMore;
  if (window[pos_] != '\r') return Refuse(400, http1::BadTextReason(window[pos_]));
  if (pos_ + 1 == window.size()) return Parsed::kMore;
  if (window[pos_ + 1] != '\n') return Refuse(400, http1::BadTextReason('\r'));
  pos_ += 2;
  state_ = State::kTrailerLine;
  return Parsed::kDone;
}

Parsed ChunkedDecoder::Refuse(int status, std::string_view reason) noexcept {
  refusal_ = {status, reason};
  state_ = State::kRefused;
  return Parsed::kRefused;
}

}  // namespace tidegate::net
