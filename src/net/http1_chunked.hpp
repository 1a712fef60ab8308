// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "net/http1_field_lines.hpp"
#include "net/http1_message.hpp"

namespace tidegate::net {

/// What becomes of the trailers of a chunked body.
enum class TrailerUse : std::uint8_t {
  kDropped,  ///< Eaten as they come; Content-Length and Transfer-Encoding are refused even so.
  kKept,     ///< Whole when the body is done; none that frames, routes or guards a message.
};

/// The grammar of a chunked body (RFC 9112, 7.1), for all who read one: what one of them takes for
/// the end of a body is the end for the others, too. Finds runs of data and touches no byte.
class ChunkGrammar {
 public:
  enum class Found : std::uint8_t {
    kMore,
    kData,  ///< [data_begin(), pos()) is data.
    kDone,
    kRefused,
  };

  explicit ChunkGrammar(TrailerUse use = TrailerUse::kDropped) noexcept : use_(use) {}

  /// The next find. `text` must begin with all that was given before, or with what is left of it
  /// after Dropped(); what lies before needed() may have changed.
  Found Next(std::string_view text, std::uint64_t body_bytes, std::size_t trailer_bytes) noexcept;

  [[nodiscard]] std::size_t data_begin() const noexcept { return data_begin_; }
  [[nodiscard]] std::size_t trailer_begin() const noexcept { return trailer_begin_; }
  [[nodiscard]] std::size_t pos() const noexcept { return pos_; }  ///< All before it was judged.
  /// The first byte that must be seen again.
  [[nodiscard]] std::size_t needed() const noexcept;
  [[nodiscard]] const HttpRefusal& refusal() const noexcept { return refusal_; }
  /// So many bytes before needed() are gone.
  void Dropped(std::size_t count) noexcept {
    pos_ -= count;
    trailer_begin_ -= count;  // May wrap around; only what lies behind it is ever computed.
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
    kValueBegin,
    kToken,
    kQuoted,
    kEscape,
    kEnd
  };

  Parsed Size(std::string_view text, std::uint64_t body_bytes, std::size_t trailer_bytes) noexcept;
  Parsed SizeEnd(std::string_view text) noexcept;
  Parsed Extensions(std::string_view text, std::size_t trailer_bytes) noexcept;
  bool ExtensionChar(char c) noexcept;
  Found Data(std::string_view text) noexcept;
  Parsed DataEnd(std::string_view text) noexcept;
  Parsed Trailers(std::string_view text, std::size_t trailer_bytes) noexcept;
  Parsed TrailerName(std::string_view name) noexcept;
  Parsed Refuse(int status, std::string_view reason) noexcept;

  TrailerUse use_;
  State state_ = State::kSize;
  Extension extension_ = Extension::kNameBegin;
  std::uint8_t digits_ = 0;       ///< Of the current chunk's size.
  std::uint64_t chunk_left_ = 0;  ///< Its size, then what is still to come of it.
  std::uint64_t found_ = 0;       ///< Bytes of data so far.
  std::size_t pos_ = 0;
  std::size_t data_begin_ = 0;
  std::size_t overhead_ = 0;       ///< Bytes of chunk extensions.
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
