// SPDX-License-Identifier: Apache-2.0
// Reads chunked bodies (RFC 9112, 7.1) byte by byte from left to right, as heads are read.
#include "net/http1_body.hpp"

#include <algorithm>
#include <cassert>
#include <charconv>
#include <cstring>
#include <limits>
#include <new>

namespace tidegate::net {

using http1::Is;

namespace {

constexpr unsigned kMaxSizeDigits = 16;  // These digits have 64 bits.

/// RFC 9110, 6.5.1: fields that frame or route a message, control how it is processed, or are
/// needed before its body. A server that merges trailers into the header would obey these fields.
constexpr std::string_view kNeverInTrailers =
    "content-length,transfer-encoding,host,connection,te,trailer,upgrade,keep-alive,"
    "proxy-connection,authorization,proxy-authorization,cookie,set-cookie,content-encoding,"
    "content-type,content-range,cache-control,expect,range,max-forwards,www-authenticate,"
    "proxy-authenticate,retry-after,vary,age,expires,date,location,pragma,warning,if-match,"
    "if-none-match,if-modified-since,if-unmodified-since,if-range";

}  // namespace

void WriteChunkSize(OutBuffer& out, std::size_t size) {
  char* const to = out.Reserve(16);
  out.Advance(static_cast<std::size_t>(std::to_chars(to, to + 16, size, 16).ptr - to));
  out << "\r\n";
}

ChunkGrammar::Found ChunkGrammar::Next(std::string_view text, std::uint64_t body_bytes,
                                       std::size_t trailer_bytes) noexcept {
  assert(text.size() >= pos_);
  Parsed parsed = Parsed::kDone;  // kDone: continue with the next state.
  while (parsed == Parsed::kDone) {
    switch (state_) {
      case State::kSize: parsed = Size(text, body_bytes, trailer_bytes); break;
      case State::kExtension: parsed = Extensions(text, trailer_bytes); break;
      case State::kData: return Data(text);
      case State::kDataEnd: parsed = DataEnd(text); break;
      case State::kTrailers: parsed = Trailers(text, trailer_bytes); break;
      case State::kDone: return Found::kDone;
      case State::kRefused: return Found::kRefused;
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
  for (int digit = 0; pos_ < text.size() && (digit = HexDigit(text[pos_])) >= 0; ++pos_) {
    if (++digits_ > kMaxSizeDigits) return Refuse(400, "chunk size has more than 16 digits");
    chunk_left_ = chunk_left_ << 4 | static_cast<std::uint64_t>(digit);
    if (chunk_left_ > room) return Refuse(413, "body is longer than the limit");
  }
  if (pos_ == text.size()) return Parsed::kMore;
  if (digits_ == 0) return Refuse(400, "chunk size is not a hexadecimal number");
  const char c = text[pos_];
  if (AtLineEnd(c)) return SizeEnd(text);
  if (c == '\n') return Refuse(400, http1::kBareLf);
  if (c != ';' && !http1::IsBlank(c)) return Refuse(400, "invalid character after a chunk size");
  extension_ = Extension::kEnd;
  state_ = State::kExtension;
  return Extensions(text, trailer_bytes);
}

/// Reads the end of the line of a chunk size, and selects the next state.
Parsed ChunkGrammar::SizeEnd(std::string_view text) noexcept {
  const std::size_t end = LineEndSize(text);
  if (end == 0) return pos_ + 1 == text.size() ? Parsed::kMore : Refuse(400, http1::kBareCr);
  pos_ += end;
  digits_ = 0;
  if (chunk_left_ > 0) {
    state_ = State::kData;
    return Parsed::kDone;
  }
  trailer_begin_ = pos_;
  lines_ = http1::FieldLines(pos_, line_end_);
  state_ = State::kTrailers;
  return Parsed::kDone;
}

Parsed ChunkGrammar::Extensions(std::string_view text, std::size_t trailer_bytes) noexcept {
  for (; pos_ < text.size(); ++pos_) {
    const char c = text[pos_];
    const bool complete = extension_ == Extension::kName || extension_ == Extension::kNameEnd ||
                          extension_ == Extension::kToken || extension_ == Extension::kEnd;
    if (complete && AtLineEnd(c)) return SizeEnd(text);
    if (++overhead_ > trailer_bytes) return Refuse(400, "chunk extensions are too long");
    if (!ExtensionChar(c)) {
      return Refuse(400, c == '\n' ? http1::kBareLf : "malformed chunk extension");
    }
  }
  return Parsed::kMore;
}

/// *( BWS ";" BWS token [ BWS "=" BWS ( token / quoted-string ) ] ) BWS. The last BWS is not in RFC
/// 9112, 7.1.1, but old servers pad chunk sizes, and nginx and HAProxy accept it.
bool ChunkGrammar::ExtensionChar(char c) noexcept {
  const bool blank = http1::IsBlank(c);
  switch (extension_) {
    case Extension::kNameBegin:
      if (blank) return true;
      extension_ = Extension::kName;
      return Is(c, http1::kToken);
    case Extension::kName:
    case Extension::kNameEnd:
      if (extension_ == Extension::kName && Is(c, http1::kToken)) return true;
      extension_ = c == ';'   ? Extension::kNameBegin
                   : c == '=' ? Extension::kValueBegin
                              : Extension::kNameEnd;
      return c == ';' || c == '=' || blank;
    case Extension::kValueBegin:
      if (blank) return true;
      extension_ = c == '"' ? Extension::kQuoted : Extension::kToken;
      return c == '"' || Is(c, http1::kToken);
    case Extension::kToken:
      if (Is(c, http1::kToken)) return true;
      extension_ = c == ';' ? Extension::kNameBegin : Extension::kEnd;
      return c == ';' || blank;
    case Extension::kQuoted:
      if (c == '"') extension_ = Extension::kEnd;
      if (c == '\\') extension_ = Extension::kEscape;
      return Is(c, http1::kText);
    case Extension::kEscape: extension_ = Extension::kQuoted; return Is(c, http1::kText);
    case Extension::kEnd:
      if (c == ';') extension_ = Extension::kNameBegin;
      return c == ';' || blank;
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
  if (pos_ == text.size()) return Parsed::kMore;
  if (!AtLineEnd(text[pos_])) return Refuse(400, "chunk data is not followed by CRLF");
  const std::size_t end = LineEndSize(text);
  if (end == 0) return pos_ + 1 == text.size() ? Parsed::kMore : Refuse(400, http1::kBareCr);
  pos_ += end;
  state_ = State::kSize;
  return Parsed::kDone;
}

Parsed ChunkGrammar::Trailers(std::string_view text, std::size_t trailer_bytes) noexcept {
  using Line = http1::FieldLines::Found;
  // Room for the part of the limit that the extensions have not used, and for the CRLF of the empty
  // line.
  const std::size_t room = trailer_bytes - std::min(trailer_bytes, overhead_) + 2;
  const bool full = text.size() - trailer_begin_ >= room;
  const std::string_view window = full ? text.substr(0, trailer_begin_ + room) : text;
  while (true) {
    const Line line = lines_.Next(window);
    pos_ = lines_.pos();
    switch (line) {
      case Line::kMore: return full ? Refuse(400, "trailers are too long") : Parsed::kMore;
      case Line::kField: break;
      case Line::kEnd: state_ = State::kDone; return Parsed::kDone;
      case Line::kRefused: return Refuse(400, lines_.reason());
    }
  }
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

void BodyReader::Begin(BodyFraming kind, std::uint64_t length, http1::LineEnd line_end) noexcept {
  kind_ = kind;
  left_ = kind == BodyFraming::kLength ? length : 0;
  done_ = kind == BodyFraming::kNone || (kind == BodyFraming::kLength && length == 0);
  grammar_ = ChunkGrammar(TrailerUse::kKept, line_end);
  data_ = {};
  eaten_ = 0;
  refusal_ = {};
  trailer_count_ = 0;
}

Parsed BodyReader::Read(std::span<char> raw) noexcept {
  if (done_) {
    data_ = {};
    eaten_ = 0;
    return Parsed::kDone;
  }
  if (kind_ == BodyFraming::kChunked) return ReadChunked(raw);
  const std::uint64_t most = kind_ == BodyFraming::kLength ? left_ : raw.size();
  eaten_ = std::min<std::uint64_t>(most, raw.size());
  data_ = {raw.data(), eaten_};
  if (kind_ == BodyFraming::kUntilClose) return Parsed::kMore;
  left_ -= eaten_;
  done_ = left_ == 0;
  return done_ ? Parsed::kDone : Parsed::kMore;
}

/// Leaves the data of the first chunk in place, and moves the data of later chunks up to it. If one
/// chunk fills the buffer, as with most servers, nothing is copied.
Parsed BodyReader::ReadChunked(std::span<char> raw) noexcept {
  using Found = ChunkGrammar::Found;
  grammar_.Dropped(eaten_);
  eaten_ = 0;
  data_ = {};
  const std::string_view text(raw.data(), raw.size());
  std::size_t begin = 0;
  std::size_t end = 0;
  Found found = Found::kData;
  // The caller limits the length.
  constexpr std::uint64_t kAnyLength = std::numeric_limits<std::uint64_t>::max();
  while ((found = grammar_.Next(text, kAnyLength, HttpLimits{}.trailer_bytes)) == Found::kData) {
    const std::size_t from = grammar_.data_begin();
    const std::size_t count = grammar_.pos() - from;
    if (begin == end) begin = end = from;
    if (end != from) std::memmove(raw.data() + end, raw.data() + from, count);
    end += count;
  }
  if (found == Found::kRefused) {
    refusal_ = grammar_.refusal();
    return Parsed::kRefused;
  }
  if (found == Found::kDone && KeepTrailers(text) == Parsed::kRefused) return Parsed::kRefused;
  data_ = text.substr(begin, end - begin);
  eaten_ = grammar_.needed();
  done_ = found == Found::kDone;
  return done_ ? Parsed::kDone : Parsed::kMore;
}

/// Reads the trailers, which the grammar has checked, a second time to keep the allowed ones.
Parsed BodyReader::KeepTrailers(std::string_view raw) noexcept {
  using Found = http1::FieldLines::Found;
  http1::FieldLines lines(grammar_.trailer_begin(), grammar_.line_end());
  while (true) {
    const Found found = lines.Next(raw);
    if (found != Found::kField) return Parsed::kDone;
    if (http1::HasElement(kNeverInTrailers, lines.name(raw))) continue;
    if (trailers_ == nullptr) trailers_.reset(new (std::nothrow) HttpField[kMaxTrailers]);
    if (trailer_count_ == kMaxTrailers || trailers_ == nullptr) {
      trailer_count_ = 0;
      refusal_ = {400, "too many trailers"};
      return Parsed::kRefused;
    }
    trailers_[trailer_count_++] = {lines.name(raw), lines.value(raw)};
  }
}

}  // namespace tidegate::net
