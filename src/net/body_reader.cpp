// SPDX-License-Identifier: Apache-2.0
#include "net/body_reader.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>

namespace tidegate::net {

namespace {

constexpr ResponseBody KindOf(HttpBody body) noexcept {
  return body == HttpBody::kChunked  ? ResponseBody::kChunked
         : body == HttpBody::kLength ? ResponseBody::kLength
                                     : ResponseBody::kNone;
}

}  // namespace

void BodyReader::Begin(HttpBody kind, std::uint64_t length, std::uint64_t limit) noexcept {
  Begin(KindOf(kind), length);
  if (limit != 0) limit_ = limit;
}

void BodyReader::Begin(ResponseBody kind, std::uint64_t length, http1::LineEnd line_end) noexcept {
  kind_ = kind;
  left_ = kind == ResponseBody::kLength ? length : 0;
  done_ = kind == ResponseBody::kNone || (kind == ResponseBody::kLength && length == 0);
  limit_ = std::numeric_limits<std::uint64_t>::max();
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
  if (kind_ == ResponseBody::kChunked) return ReadChunked(raw);
  const std::uint64_t most = kind_ == ResponseBody::kLength ? left_ : raw.size();
  eaten_ = std::min<std::uint64_t>(most, raw.size());
  data_ = {raw.data(), eaten_};
  if (kind_ == ResponseBody::kUntilClose) return Parsed::kMore;
  left_ -= eaten_;
  done_ = left_ == 0;
  return done_ ? Parsed::kDone : Parsed::kMore;
}

/// Data of the first chunk stays where it is, that of further ones is moved up behind it: where one
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
  while ((found = grammar_.Next(text, limit_, HttpLimits{}.trailer_bytes)) == Found::kData) {
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
    if (found == Found::kName) continue;
    if (found != Found::kField) return Parsed::kDone;
    if (IsForbiddenTrailer(lines.name(raw))) continue;
    if (trailers_ == nullptr) trailers_.reset(new (std::nothrow) HttpField[kMaxTrailers]);
    if (trailer_count_ == kMaxTrailers || trailers_ == nullptr) {
      trailer_count_ = 0;
      refusal_ = {400, "too many trailers"};
      return Parsed::kRefused;
    }
    trailers_[trailer_count_++] = {lines.name(raw), lines.value(raw)};
  }
}

bool BodyReader::EndsAtClose() const noexcept {
  return done_ || kind_ == ResponseBody::kUntilClose;
}

}  // namespace tidegate::net
