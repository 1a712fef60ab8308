// SPDX-License-Identifier: Apache-2.0
// A chunked body (RFC 9112, 7.1), judged byte by byte from left to right as heads are.
#include "net/http1_chunked.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>

#include "net/http1_tokens.hpp"

namespace tidegate::net {

using http1::Is;

namespace {

constexpr unsigned kMaxSizeDigits = 16;  // 64 bits.

/// Of a digit for which Is(c, kHex) holds.
constexpr std::uint64_t HexValue(char c) noexcept {
  return static_cast<std::uint64_t>(Is(c, http1::kDigit) ? c - '0' : (c | 0x20) - 'a' + 10);
}

/// RFC 9110, 6.5.1: what frames or routes a message, says how it is to be processed, or is needed
/// before its body. Who merges trailers into the header, as some servers do, would obey them.
constexpr std::array<std::string_view, 28> kNeverInTrailers = {
    "content-length",
    "transfer-encoding",
    "host",
    "connection",
    "te",
    "trailer",
    "upgrade",
    "keep-alive",
    "proxy-connection",
    "authorization",
    "proxy-authorization",
    "cookie",
    "set-cookie",
    "content-encoding",
    "content-type",
    "content-range",
    "cache-control",
    "expect",
    "range",
    "max-forwards",
    "www-authenticate",
    "proxy-authenticate",
    "retry-after",
    "vary",
    "age",
    "expires",
    "date",
    "location",
};

}  // namespace

ChunkGrammar::Found ChunkGrammar::Next(std::string_view text, std::uint64_t body_bytes,
                                       std::size_t trailer_bytes) noexcept {
  assert(text.size() >= pos_);
  Parsed parsed = Parsed::kDone;  // kDone: the next state can be tried.
  while (parsed == Parsed::kDone) {
    switch (state_) {
      case State::kSize:
        parsed = Size(text, body_bytes, trailer_bytes);
        break;
      case State::kExtension:
        parsed = Extensions(text, trailer_bytes);
        break;
      case State::kData:
        return Data(text);
      case State::kDataEnd:
        parsed = DataEnd(text);
        break;
      case State::kTrailers:
        parsed = Trailers(text, trailer_bytes);
        break;
      case State::kDone:
        return Found::kDone;
      case State::kRefused:
        return Found::kRefused;
    }
  }
  return parsed == Parsed::kMore ? Found::kMore : Found::kRefused;
}

std::size_t ChunkGrammar::needed() const noexcept {
  if (state_ != State::kTrailers) return pos_;
  return use_ == TrailerUse::kKept ? trailer_begin_ : lines_.needed();
}

Parsed ChunkGrammar::Size(std::string_view text, std::uint64_t body_bytes,
                          std::size_t trailer_bytes) noexcept {
  const std::uint64_t room = body_bytes - std::min(body_bytes, found_);
  for (; pos_ < text.size() && Is(text[pos_], http1::kHex); ++pos_) {
    if (++digits_ > kMaxSizeDigits) return Refuse(400, "a chunk size of more than 16 digits");
    chunk_left_ = chunk_left_ << 4 | HexValue(text[pos_]);
    if (chunk_left_ > room) return Refuse(413, "the body is too long");
  }
  if (pos_ == text.size()) return Parsed::kMore;
  if (digits_ == 0) return Refuse(400, "a chunk size is not a hexadecimal number");
  if (text[pos_] == '\r') return SizeEnd(text);
  // RFC 9112, 7.1.1 tolerates white space before the semicolon; parsers disagree about it.
  if (text[pos_] != ';') return Refuse(400, "a chunk size ends with neither CRLF nor a semicolon");
  if (++overhead_ > trailer_bytes) return Refuse(400, "the chunk extensions are too long");
  ++pos_;
  extension_ = Extension::kNameBegin;
  state_ = State::kExtension;
  return Parsed::kDone;
}

/// At the CR of a chunk's first line.
Parsed ChunkGrammar::SizeEnd(std::string_view text) noexcept {
  if (pos_ + 1 == text.size()) return Parsed::kMore;
  if (text[pos_ + 1] != '\n') return Refuse(400, "a CR without its LF");
  pos_ += 2;
  digits_ = 0;
  if (chunk_left_ > 0) {
    state_ = State::kData;
    return Parsed::kDone;
  }
  trailer_begin_ = pos_;
  lines_ = http1::FieldLines(pos_);
  state_ = State::kTrailers;
  return Parsed::kDone;
}

Parsed ChunkGrammar::Extensions(std::string_view text, std::size_t trailer_bytes) noexcept {
  for (; pos_ < text.size(); ++pos_) {
    const char c = text[pos_];
    const bool whole = extension_ == Extension::kName || extension_ == Extension::kToken ||
                       extension_ == Extension::kEnd;
    if (c == '\r' && whole) return SizeEnd(text);
    if (++overhead_ > trailer_bytes) return Refuse(400, "the chunk extensions are too long");
    if (!ExtensionChar(c)) return Refuse(400, "a malformed chunk extension");
  }
  return Parsed::kMore;
}

/// ";" token [ "=" ( token / quoted-string ) ], without white space between them.
bool ChunkGrammar::ExtensionChar(char c) noexcept {
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

ChunkGrammar::Found ChunkGrammar::Data(std::string_view text) noexcept {
  const std::size_t count = std::min<std::uint64_t>(chunk_left_, text.size() - pos_);
  if (count == 0) return Found::kMore;
  data_begin_ = pos_;
  pos_ += count;
  found_ += count;
  chunk_left_ -= count;
  if (chunk_left_ == 0) state_ = State::kDataEnd;
  return Found::kData;
}

Parsed ChunkGrammar::DataEnd(std::string_view text) noexcept {
  const std::string_view end = text.substr(pos_, 2);
  if (!std::string_view("\r\n").starts_with(end))
    return Refuse(400, "a chunk is not ended by CRLF");
  if (end.size() < 2) return Parsed::kMore;
  pos_ += 2;
  state_ = State::kSize;
  return Parsed::kDone;
}

Parsed ChunkGrammar::Trailers(std::string_view text, std::size_t trailer_bytes) noexcept {
  using Line = http1::FieldLines::Found;
  // What the extensions left of the allowance, and the empty line.
  const std::size_t room = trailer_bytes - std::min(trailer_bytes, overhead_) + 2;
  const bool full = text.size() - trailer_begin_ >= room;
  const std::string_view window = full ? text.substr(0, trailer_begin_ + room) : text;
  while (true) {
    const Line line = lines_.Next(window);
    pos_ = lines_.pos();
    switch (line) {
      case Line::kMore:
        return full ? Refuse(400, "the trailers are too long") : Parsed::kMore;
      case Line::kName:
        if (TrailerName(lines_.name(window)) == Parsed::kRefused) return Parsed::kRefused;
        break;
      case Line::kField:
        break;
      case Line::kEnd:
        state_ = State::kDone;
        return Parsed::kDone;
      case Line::kRefused:
        return Refuse(400, lines_.reason());
    }
  }
}

/// Dropped ones could do no harm; but nobody honest sends what would frame the body.
Parsed ChunkGrammar::TrailerName(std::string_view name) noexcept {
  constexpr std::size_t kFraming = 2;  // The first of the names.
  const std::size_t count = use_ == TrailerUse::kKept ? kNeverInTrailers.size() : kFraming;
  for (std::size_t i = 0; i < count; ++i) {
    if (!http1::EqualsLower(name, kNeverInTrailers[i])) continue;
    return Refuse(400, i < kFraming ? "a trailer that would frame the body"
                                    : "a trailer that only a header may have");
  }
  return Parsed::kDone;
}

Parsed ChunkGrammar::Refuse(int status, std::string_view reason) noexcept {
  refusal_ = {status, reason};
  state_ = State::kRefused;
  return Parsed::kRefused;
}

Parsed ChunkedDecoder::Decode(std::span<char> data, const HttpLimits& limits) noexcept {
  using Found = ChunkGrammar::Found;
  Found found = Found::kData;
  while (true) {
    found = grammar_.Next({data.data(), data.size()}, limits.body_bytes, limits.trailer_bytes);
    if (found != Found::kData) break;
    const std::size_t count = grammar_.pos() - grammar_.data_begin();
    std::memmove(data.data() + decoded_, data.data() + grammar_.data_begin(), count);
    decoded_ += count;
  }
  raw_ = grammar_.needed();
  if (found == Found::kMore) return Parsed::kMore;
  return found == Found::kDone ? Parsed::kDone : Parsed::kRefused;
}

}  // namespace tidegate::net
