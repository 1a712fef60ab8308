// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "net/buffers.hpp"
#include "net/http1_parser.hpp"
#include "net/http1_syntax.hpp"

namespace tidegate::net {

/// Selects whether a reader consumes the trailers of a chunked body as they arrive, or keeps them
/// until the body is complete, so that the caller can read them.
enum class TrailerUse : std::uint8_t { kDropped, kKept };

/// Writes the line with the size of a chunk, which precedes the data.
void WriteChunkSize(OutBuffer& out, std::size_t size);

/// The grammar of a chunked body (RFC 9112, 7.1), shared by all readers, so that all of them find
/// the same end of a body. Finds the runs of data in a text, which it does not change.
class ChunkGrammar {
 public:
  enum class Found : std::uint8_t {
    kMore,
    kData,  ///< The bytes [data_begin(), pos()) are data of the body.
    kDone,
    kRefused,
  };

  explicit ChunkGrammar(TrailerUse use = TrailerUse::kDropped,
                        http1::LineEnd line_end = http1::LineEnd::kCrlf) noexcept
      : use_(use), line_end_(line_end) {}

  /// Continues to read. `text` must begin with the text of the last call, without the bytes that
  /// Dropped reported; bytes before needed() may have changed.
  Found Next(std::string_view text, std::uint64_t body_bytes, std::size_t trailer_bytes) noexcept;

  [[nodiscard]] std::size_t data_begin() const noexcept { return data_begin_; }
  [[nodiscard]] std::size_t trailer_begin() const noexcept { return trailer_begin_; }
  /// Returns the position before which all bytes have been read.
  [[nodiscard]] std::size_t pos() const noexcept { return pos_; }
  /// Returns the position of the first byte that must be kept.
  [[nodiscard]] std::size_t needed() const noexcept;
  [[nodiscard]] const HttpRefusal& refusal() const noexcept { return refusal_; }
  [[nodiscard]] http1::LineEnd line_end() const noexcept { return line_end_; }
  /// Call after removing `count` bytes before needed() from the text.
  void Dropped(std::size_t count) noexcept {
    pos_ -= count;
    trailer_begin_ -= count;  // May wrap around; only distances from it are computed.
    lines_.Dropped(count);
  }

 private:
  enum class State { kSize, kExtension, kData, kDataEnd, kTrailers, kDone, kRefused };
  enum class Extension : std::uint8_t {
    kNameBegin,
    kName,
    kNameEnd,  ///< White space after the name.
    kValueBegin,
    kToken,
    kQuoted,
    kEscape,
    kEnd  ///< After the chunk size or a value.
  };

  Parsed Size(std::string_view text, std::uint64_t body_bytes, std::size_t trailer_bytes) noexcept;
  /// Returns true if `c` can begin an end of line.
  [[nodiscard]] bool AtLineEnd(char c) const noexcept {
    return c == '\r' || (c == '\n' && line_end_ == http1::LineEnd::kCrlfOrLf);
  }
  std::size_t LineEndSize(std::string_view text) const noexcept {
    if (text[pos_] == '\n') return 1;
    return pos_ + 1 < text.size() && text[pos_ + 1] == '\n' ? 2 : 0;
  }
  Parsed SizeEnd(std::string_view text) noexcept;
  Parsed Extensions(std::string_view text, std::size_t trailer_bytes) noexcept;
  bool ExtensionChar(char c) noexcept;
  Found Data(std::string_view text) noexcept;
  Parsed DataEnd(std::string_view text) noexcept;
  Parsed Trailers(std::string_view text, std::size_t trailer_bytes) noexcept;
  Parsed Refuse(int status, std::string_view reason) noexcept {
    refusal_ = {status, reason};
    state_ = State::kRefused;
    return Parsed::kRefused;
  }

  TrailerUse use_;
  http1::LineEnd line_end_;
  State state_ = State::kSize;
  Extension extension_ = Extension::kNameBegin;
  std::uint8_t digits_ = 0;       ///< Digits of the current chunk size.
  std::uint64_t chunk_left_ = 0;  ///< The chunk size, then the bytes of the chunk that are missing.
  std::uint64_t found_ = 0;       ///< Bytes of data so far.
  std::size_t pos_ = 0;
  std::size_t data_begin_ = 0;
  std::size_t overhead_ = 0;       ///< Bytes of chunk extensions and of white space.
  std::size_t trailer_begin_ = 0;  ///< The position after the line of the last chunk.
  http1::FieldLines lines_;
  HttpRefusal refusal_;
};

/// Decodes a chunked body in place: moves the decoded bytes to the beginning of the buffer.
class ChunkedDecoder {
 public:
  /// `data` is all of the body that has arrived: the bytes [0, decoded()) are decoded, the bytes
  /// [decoded(), raw()) have been consumed, and the rest is new. On kDone the body is [0,
  /// decoded()), and the first raw() bytes of the input were the encoded body with its trailers.
  Parsed Decode(std::span<char> data, const HttpLimits& limits) noexcept;

  [[nodiscard]] std::size_t decoded() const noexcept { return decoded_; }
  [[nodiscard]] std::size_t raw() const noexcept { return raw_; }
  [[nodiscard]] const HttpRefusal& refusal() const noexcept { return grammar_.refusal(); }
  /// Call after removing the consumed bytes [decoded(), raw()), so that new input begins at
  /// decoded().
  void Compacted() noexcept {
    grammar_.Dropped(raw_ - decoded_);
    raw_ = decoded_;
  }
  void Reset() noexcept { *this = ChunkedDecoder{}; }

 private:
  ChunkGrammar grammar_;
  std::size_t decoded_ = 0;
  std::size_t raw_ = 0;
};

/// Reads a body that streams through a buffer of fixed size: removes its framing, finds its end.
///
///     switch (reader.Read(buffer.filled())) {...}
///     send(reader.data());          // All of it, before the next call.
///     buffer.Drop(reader.eaten());  // From the front.
class BodyReader {
 public:
  static constexpr std::size_t kMaxTrailers = 32;

  /// Begins a body. The caller limits its length.
  void Begin(BodyFraming kind, std::uint64_t length,
             http1::LineEnd line_end = http1::LineEnd::kCrlf) noexcept;

  /// Decodes `raw`, the input that was not eaten yet, in place. kMore: data(), which may be empty,
  /// is a part of the body. kDone: data() is the last part, and `raw` after eaten() belongs to the
  /// next message. kRefused: see refusal() (400 or 413); data() is empty.
  Parsed Read(std::span<char> raw) noexcept;
  [[nodiscard]] std::string_view data() const noexcept { return data_; }
  [[nodiscard]] std::size_t eaten() const noexcept { return eaten_; }
  [[nodiscard]] const HttpRefusal& refusal() const noexcept { return refusal_; }

  /// Returns true if the end of the connection is the proper end of the body.
  [[nodiscard]] bool EndsAtClose() const noexcept {
    return done_ || kind_ == BodyFraming::kUntilClose;
  }
  [[nodiscard]] bool done() const noexcept { return done_; }

  /// Returns the trailers of a chunked body after kDone, without forbidden ones, as views into
  /// `raw`. Trailers stay in `raw` until they are complete, so it needs room for
  /// HttpLimits{}.trailer_bytes and CRLF.
  [[nodiscard]] std::span<const HttpField> trailers() const noexcept {
    return {trailers_.get(), trailer_count_};
  }

 private:
  Parsed ReadChunked(std::span<char> raw) noexcept;
  Parsed KeepTrailers(std::string_view raw) noexcept;

  BodyFraming kind_ = BodyFraming::kNone;
  bool done_ = true;
  std::uint64_t left_ = 0;  ///< Missing bytes of a kLength body.
  ChunkGrammar grammar_{TrailerUse::kKept};
  std::string_view data_;
  std::size_t eaten_ = 0;
  HttpRefusal refusal_;
  std::size_t trailer_count_ = 0;
  /// Room for kMaxTrailers fields, allocated for the first trailer, because few bodies have any.
  std::unique_ptr<HttpField[]> trailers_;
};

}  // namespace tidegate::net
