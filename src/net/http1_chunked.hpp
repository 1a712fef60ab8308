// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "net/http1_field_lines.hpp"
#include "net/http1_message.hpp"

namespace tidegate::net {

/// What a reader does with the trailers of a chunked body.
enum class TrailerUse : std::uint8_t {
  kDropped,  ///< Consumed as they arrive.
  kKept,     ///< Not consumed before the body is complete, so that the caller can read them then.
};

/// Returns true if a trailer of that name must not be merged into a head (RFC 9110, 6.5.1): it
/// frames or routes the message, controls how it is processed, or authenticates it. Such trailers
/// are dropped.
[[nodiscard]] bool IsForbiddenTrailer(std::string_view name) noexcept;

/// The grammar of a chunked body (RFC 9112, 7.1), shared by all readers, so that all of them find
/// the same end of a body. Finds runs of data and changes no byte.
class ChunkGrammar {
 public:
  enum class Found : std::uint8_t {
    kMore,
    kData,  ///< [data_begin(), pos()) is data.
    kDone,
    kRefused,
  };

  explicit ChunkGrammar(TrailerUse use = TrailerUse::kDropped,
                        http1::LineEnd line_end = http1::LineEnd::kCrlf) noexcept
      : use_(use), line_end_(line_end) {}

  /// Reads on. `text` must begin with the text of the last call, without its dropped bytes; bytes
  /// before needed() may have changed.
  Found Next(std::string_view text, std::uint64_t body_bytes, std::size_t trailer_bytes) noexcept;

  [[nodiscard]] std::size_t data_begin() const noexcept { return data_begin_; }
  [[nodiscard]] std::size_t trailer_begin() const noexcept { return trailer_begin_; }
  [[nodiscard]] std::size_t pos() const noexcept { return pos_; }  ///< All before it is read.
  /// The first byte that must be kept.
  [[nodiscard]] std::size_t needed() const noexcept;
  [[nodiscard]] const HttpRefusal& refusal() const noexcept { return refusal_; }
  [[nodiscard]] http1::LineEnd line_end() const noexcept { return line_end_; }
  /// The caller has removed `count` bytes before needed() from the text.
  void Dropped(std::size_t count) noexcept {
    pos_ -= count;
    trailer_begin_ -= count;  // May wrap around; only distances from it are computed.
    lines_.Dropped(count);
  }

 private:
  enum class State : std::uint8_t {
    kSize,
    kExtension,
    kData,
    kDataEnd,
    kTrailers,
    kDone,
    kRefused,
  };
  enum class Extension : std::uint8_t {
    kNameBegin,
    kName,
    kNameEnd,  ///< White space after the name.
    kValueBegin,
    kToken,
    kQuoted,
    kEscape,
    kEnd,  ///< After the chunk size or a value.
  };

  Parsed Size(std::string_view text, std::uint64_t body_bytes, std::size_t trailer_bytes) noexcept;
  [[nodiscard]] bool AtLineEnd(char c) const noexcept;
  std::size_t LineEndSize(std::string_view text) const noexcept;
  Parsed SizeEnd(std::string_view text) noexcept;
  Parsed Extensions(std::string_view text, std::size_t trailer_bytes) noexcept;
  bool ExtensionChar(char c) noexcept;
  Found Data(std::string_view text) noexcept;
  Parsed DataEnd(std::string_view text) noexcept;
  Parsed Trailers(std::string_view text, std::size_t trailer_bytes) noexcept;
  Parsed Refuse(int status, std::string_view reason) noexcept;

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
  std::size_t trailer_begin_ = 0;  ///< After the line of the last chunk.
  http1::FieldLines lines_;
  HttpRefusal refusal_;
};

/// Decodes a chunked body, in place: the decoded bytes are moved together at the beginning of the
/// buffer.
class ChunkedDecoder {
 public:
  /// `data` are all bytes received of the body so far and not yet given back: [0, decoded()) is
  /// what earlier calls decoded, [decoded(), raw()) has been eaten, the rest is new. On kDone,
  /// `raw()` bytes of the input belong to the body and its trailers, and the body is [0,
  /// decoded()).
  Parsed Decode(std::span<char> data, const HttpLimits& limits) noexcept;

  [[nodiscard]] std::size_t decoded() const noexcept { return decoded_; }
  [[nodiscard]] std::size_t raw() const noexcept { return raw_; }
  [[nodiscard]] const HttpRefusal& refusal() const noexcept { return grammar_.refusal(); }
  /// The caller has moved what was not eaten to decoded(): the eaten bytes are gone.
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

}  // namespace tidegate::net
