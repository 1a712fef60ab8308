// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace tidegate::net {

struct HttpLimits {
  std::size_t header_bytes = 16u << 10;  ///< Request line and header lines: 431.
  std::size_t header_count = 100;        ///< 431.
  std::size_t target_bytes = 8u << 10;   ///< 414.
  std::size_t body_bytes = 1u << 20;     ///< Decoded: 413.
  std::size_t trailer_bytes = 4u << 10;  ///< Chunk extensions of one body and its trailers: 400.
};

/// One header line. Views point into the parsed buffer.
struct HttpField {
  std::string_view name;   ///< As sent: a token.
  std::string_view value;  ///< Without the white space around it; no CR, LF or NUL in it.
};

/// How the body of a request ends.
enum class HttpBody : std::uint8_t { kNone, kLength, kChunked };

/// The head of a request. Views point into the parsed buffer.
struct HttpHead {
  static constexpr std::size_t kMaxFields = 128;

  std::string_view method;
  std::string_view target;  ///< As sent.
  std::string_view host;    ///< Of an absolute-form target, else of Host; may be empty in HTTP/1.0.
  /// Of the target, with the query cut off; `*` for OPTIONS *; empty for CONNECT. Where an
  /// absolute-form target has none, `/` (or `*` for OPTIONS), which then is static text.
  std::string_view path;
  std::string_view query;  ///< Without the question mark.
  int minor = 1;           ///< HTTP/1.<minor>: 0 or 1.
  bool keep_alive = true;
  bool expects_continue = false;  ///< And has a body; never in HTTP/1.0.
  bool upgrade = false;           ///< `Connection: upgrade` and an Upgrade field; not in HTTP/1.0.
  HttpBody body = HttpBody::kNone;
  std::uint64_t content_length = 0;
  std::size_t field_count = 0;
  HttpField fields[kMaxFields];

  [[nodiscard]] std::span<const HttpField> all() const noexcept { return {fields, field_count}; }
};

/// Why a request was refused: the status to answer with, and a sentence about it. The connection
/// must be closed after that answer.
struct HttpRefusal {
  int status = 400;
  std::string_view reason;  ///< Static text.
};

/// What a parse step came to.
enum class Parsed : std::uint8_t {
  kMore,  ///< Incomplete: call again with more bytes after the same beginning.
  kDone,
  kRefused,
};

/// Reads the head of an HTTP/1.1 request: RFC 9112, strict where leniency lets requests be smuggled
/// (docs/adr/0008 says where and why). Sans-I/O. Input is a contiguous buffer that begins with the
/// request; a call after kMore must see the same bytes again with more behind them, at any address,
/// and does not scan again what it has scanned (the work on a head that drips in byte by byte stays
/// linear).
class HeadParser {
 public:
  /// On kDone `head` is filled and `consumed()` bytes belong to it; on kRefused see `refusal()`.
  Parsed Parse(std::string_view input, const HttpLimits& limits, HttpHead& head) noexcept;

  [[nodiscard]] std::size_t consumed() const noexcept { return consumed_; }
  [[nodiscard]] const HttpRefusal& refusal() const noexcept { return refusal_; }
  /// Ready for the next request.
  void Reset() noexcept { *this = HeadParser{}; }

 private:
  enum class Step : std::uint8_t {
    kStart,
    kMethod,
    kTarget,
    kVersion,
    kLine,  ///< At the beginning of a field line or of the empty line.
    kName,
    kValue,
    kDone,
    kRefused,
  };
  /// What the field lines have said so far.
  struct Seen {
    bool host = false;
    bool content_length = false;
    bool chunked = false;
    bool close = false;
    bool keep_alive = false;
    bool upgrade_option = false;
    bool upgrade_field = false;
    bool expect = false;
  };

  Parsed Run(std::string_view input, const HttpLimits& limits, HttpHead& head) noexcept;
  Parsed Advance(std::string_view window, const HttpLimits& limits, HttpHead& head) noexcept;
  Parsed Start(std::string_view window) noexcept;
  Parsed Method(std::string_view window) noexcept;
  Parsed Target(std::string_view window, std::size_t limit) noexcept;
  Parsed Version(std::string_view window, HttpHead& head) noexcept;
  Parsed Line(std::string_view window, const HttpLimits& limits, HttpHead& head) noexcept;
  Parsed Name(std::string_view window) noexcept;
  Parsed Value(std::string_view window, HttpHead& head) noexcept;
  Parsed Finish(const HttpLimits& limits, HttpHead& head) noexcept;

  Parsed Note(std::string_view name, std::string_view value, HttpHead& head) noexcept;
  Parsed NoteHost(std::string_view value, HttpHead& head) noexcept;
  Parsed NoteContentLength(std::string_view value) noexcept;
  Parsed NoteTransferEncoding(std::string_view value) noexcept;
  Parsed NoteConnection(std::string_view value) noexcept;

  Parsed Refuse(int status, std::string_view reason) noexcept;

  // Offsets rather than views: the buffer may have moved before the next call.
  Step step_ = Step::kStart;
  Seen seen_;
  bool host_in_target_ = false;
  int minor_ = 1;
  std::size_t pos_ = 0;    ///< All before it has been judged.
  std::size_t begin_ = 0;  ///< Of the method, then of the current line.
  std::size_t method_end_ = 0;
  std::size_t target_end_ = 0;
  std::size_t name_end_ = 0;
  std::size_t field_count_ = 0;
  std::uint64_t content_length_ = 0;
  std::size_t consumed_ = 0;
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
  [[nodiscard]] const HttpRefusal& refusal() const noexcept { return refusal_; }
  /// The caller has moved what was not eaten to decoded(): the eaten bytes are gone.
  void Compacted() noexcept {
    const std::size_t gone = raw_ - decoded_;
    raw_ = decoded_;
    pos_ -= gone;
    line_begin_ -= gone;
    trailer_begin_ -= gone;  // May wrap around; only what lies behind it is ever computed.
  }
  void Reset() noexcept { *this = ChunkedDecoder{}; }

 private:
  enum class State : std::uint8_t {
    kSize,
    kExtension,
    kData,
    kDataEnd,
    kTrailerLine,
    kTrailerName,
    kTrailerValue,
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

  Parsed Step(std::span<char> data, const HttpLimits& limits) noexcept;
  Parsed Size(std::string_view data, const HttpLimits& limits) noexcept;
  Parsed SizeEnd(std::string_view data) noexcept;
  Parsed Extensions(std::string_view data, const HttpLimits& limits) noexcept;
  bool ExtensionChar(char c) noexcept;
  Parsed Data(std::span<char> data) noexcept;
  Parsed DataEnd(std::string_view data) noexcept;
  Parsed Trailers(std::string_view data, const HttpLimits& limits) noexcept;
  Parsed TrailerLine(std::string_view window) noexcept;
  Parsed TrailerName(std::string_view window) noexcept;
  Parsed TrailerValue(std::string_view window) noexcept;
  Parsed Refuse(int status, std::string_view reason) noexcept;

  State state_ = State::kSize;
  Extension extension_ = Extension::kNameBegin;
  std::uint8_t digits_ = 0;       ///< Of the current chunk's size.
  std::uint64_t chunk_left_ = 0;  ///< Its size, then what is still to come of it.
  std::size_t decoded_ = 0;
  std::size_t raw_ = 0;
  std::size_t pos_ = 0;            ///< All before it has been judged.
  std::size_t overhead_ = 0;       ///< Bytes of chunk extensions.
  std::size_t trailer_begin_ = 0;  ///< After the line of the last chunk.
  std::size_t line_begin_ = 0;     ///< Of the current trailer.
  HttpRefusal refusal_;
};

}  // namespace tidegate::net
