// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "net/http1_syntax.hpp"

namespace tidegate::net {

/// The limits of one message. A request beyond a limit is refused with the status named here.
struct HttpLimits {
  std::size_t header_bytes = 16u << 10;  ///< Request line and header lines; status 431.
  std::size_t header_count = 100;        ///< Header lines; status 431.
  std::size_t target_bytes = 8u << 10;   ///< Request target; status 414.
  std::size_t body_bytes = 1u << 20;     ///< Decoded body; status 413.
  std::size_t trailer_bytes = 4u << 10;  ///< Chunk extensions and trailers of one body; status 400.
};

/// One header line. Views point into the parsed buffer.
struct HttpField {
  std::string_view name;   ///< The name as sent: a token.
  std::string_view value;  ///< Without surrounding white space; contains no CR, LF or NUL.
};

/// Returns the first field with this name, ignoring case; nullptr if there is none.
[[nodiscard]] inline const HttpField* FindField(std::span<const HttpField> fields,
                                                std::string_view name) noexcept {
  for (const HttpField& field : fields) {
    if (EqualsIgnoreCase(field.name, name)) return &field;
  }
  return nullptr;
}

/// The way in which the body of a message ends. Requests never have kUntilClose.
enum class BodyFraming : std::uint8_t { kNone, kLength, kChunked, kUntilClose };

/// The common part of the heads of requests and responses.
struct MessageHead {
  int minor = 1;           ///< HTTP/1.<minor>: 0 or 1.
  bool keep_alive = true;  ///< The connection may carry another request after this message.
  /// True if the message has `Connection: upgrade` and an Upgrade field; never in HTTP/1.0. A
  /// response must also have status 101.
  bool upgrade = false;
  /// False if Connection names no field, only `close`, `keep-alive` and `upgrade`.
  bool connection_names_fields = true;
  BodyFraming body = BodyFraming::kNone;
  /// The length of a kLength body. In a response to HEAD and in a 304, the value of the field.
  std::uint64_t content_length = 0;
  std::size_t field_count = 0;
};

/// The head of a request. Views point into the parsed buffer.
struct HttpHead : MessageHead {
  static constexpr std::size_t kMaxFields = 128;

  std::string_view method;
  std::string_view target;  ///< The target as sent.
  /// The host of an absolute-form target, else the value of Host; may be empty in HTTP/1.0.
  std::string_view host;
  /// The path of the target without the query; empty for CONNECT. If an absolute-form target has no
  /// path, it is `/`, or `*` for OPTIONS.
  std::string_view path;
  std::string_view query;         ///< Without the question mark.
  bool expects_continue = false;  ///< The client waits for 100 before its body; not in HTTP/1.0.
  /// True if Expect has a value other than 100-continue, which the caller must reject or ignore.
  bool unknown_expect = false;
  HttpField fields[kMaxFields];

  [[nodiscard]] std::span<const HttpField> all() const noexcept { return {fields, field_count}; }
};

/// The refusal of a request. The connection must be closed after the response.
struct HttpRefusal {
  int status = 400;
  std::string_view reason;  ///< Static text.
};
/// The refusal of a request with HttpHead::unknown_expect.
inline constexpr HttpRefusal kUnknownExpect{
    417, "unknown expectation in Expect: only 100-continue is supported"};

/// The reason of a 503 that is sent if the BufferBudget has no room.
inline constexpr std::string_view kNoBuffer =
    "too many incomplete requests: no room left in limits.buffer_bytes; try again soon";

/// The result of a parse step.
enum class Parsed : std::uint8_t {
  kMore,  ///< The input is incomplete: call again with the same bytes and more after them.
  kDone,
  kRefused,
};

/// The method of the request that a response belongs to: a response to HEAD has no body, whatever
/// its fields say.
enum class AnswerTo : std::uint8_t { kHead, kOther };

/// The head of a response, final or interim (1xx). Views point into the parsed buffer. Owns the
/// memory of its fields, so use one head for many responses.
struct ResponseHead : MessageHead {
  static constexpr std::size_t kDefaultFields = 128;

  explicit ResponseHead(std::size_t capacity = kDefaultFields)
      : fields(std::make_unique_for_overwrite<HttpField[]>(capacity)), capacity_(capacity) {}

  int status = 0;           ///< 100 to 999.
  std::string_view reason;  ///< May be empty.
  std::unique_ptr<HttpField[]> fields;

  [[nodiscard]] std::span<const HttpField> all() const noexcept {
    return {fields.get(), field_count};
  }
  /// Returns the number of fields that fit.
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
  /// Makes room for at least `capacity` fields. If this allocates, the head is reset.
  void Reserve(std::size_t capacity) {
    if (capacity > capacity_) *this = ResponseHead(capacity);
  }

 private:
  std::size_t capacity_;
};

/// The common part of the parsers of heads: reads field lines, and evaluates the fields that frame
/// a message or control its connection. The input begins with the head. After kMore, call again
/// with a buffer that begins with the same bytes; it may have moved. Old bytes are not scanned
/// again. No I/O.
class HeadReader {
 public:
  /// Returns the size of the head. REQUIRES: the parser has returned kDone.
  [[nodiscard]] std::size_t consumed() const noexcept { return lines_.pos(); }
  /// Returns the refusal. REQUIRES: the parser has returned kRefused.
  [[nodiscard]] const HttpRefusal& refusal() const noexcept { return refusal_; }

 protected:
  /// The steps of a parser. A request has all steps but kReason; a response begins with kVersion.
  enum class Step { kStart, kMethod, kTarget, kVersion, kReason, kFields, kDone, kRefused };
  /// Facts from the field lines so far.
  struct Seen {
    bool host = false;
    bool content_length = false;
    bool chunked = false;
    bool upgrade_field = false;
    bool expect = false;
    bool unknown_expect = false;
    http1::ConnectionOptions connection;
  };
  /// Selects whether Content-Length may occur several times with the same value (RFC 9110, 8.6).
  enum class Lengths : bool { kOne, kEqual };

  HeadReader(Step first, Lengths lengths, http1::LineEnd line_end) noexcept
      : step_(first), lengths_(lengths), line_end_(line_end) {}

  /// Calls `parser.Run(arguments...)`. If that completes a head that arrived in pieces, calls it
  /// once more from the beginning, because earlier calls left views into buffers that may be gone.
  template <class Parser, class... Arguments>
  static Parsed Resume(Parser& parser, Arguments&... arguments) noexcept {
    if (parser.step_ == Step::kRefused) return Parsed::kRefused;
    if (parser.step_ == Step::kDone) parser.Reset();
    const bool resumed = parser.pos_ != 0;
    const Parsed parsed = parser.Run(arguments...);
    if (parsed != Parsed::kDone || !resumed) return parsed;
    parser.Reset();
    return parser.Run(arguments...);
  }
  /// Reads at most `most` field lines into `fields`, and calls `note` for each.
  template <class Note>
  Parsed ReadFields(std::string_view window, HttpField* fields, std::size_t most,
                    const HttpRefusal& too_many, Note note) noexcept;
  /// Evaluates a field that has the same meaning in requests and responses; ignores other fields.
  Parsed NoteField(const HttpField& field) noexcept;
  /// Fills in `head` after the last field, and completes it. Refuses a head whose fields do not
  /// frame the body unambiguously.
  Parsed Complete(MessageHead& head) noexcept;
  Parsed Refuse(std::string_view reason, int status = 400) noexcept;

  // The state has offsets rather than views, because the buffer may move before the next call.
  Step step_;
  Lengths lengths_;
  http1::LineEnd line_end_;
  Seen seen_;
  int minor_ = 1;
  std::size_t pos_ = 0;  ///< In the first line: bytes before this position are checked.
  http1::FieldLines lines_;
  std::size_t field_count_ = 0;
  std::uint64_t content_length_ = 0;

 private:
  Parsed NoteContentLength(std::string_view value) noexcept;

  HttpRefusal refusal_;
};

/// Reads the head of an HTTP/1.1 request (RFC 9112), strict against smuggling (docs/adr/0008).
class HeadParser : public HeadReader {
 public:
  HeadParser() noexcept : HeadReader(Step::kStart, Lengths::kOne, http1::LineEnd::kCrlf) {}

  /// Continues to parse. On kDone `head` is filled; on kRefused see refusal().
  Parsed Parse(std::string_view input, const HttpLimits& limits, HttpHead& head) noexcept {
    return Resume(*this, input, limits, head);
  }
  /// Prepares the parser for the next request.
  void Reset() noexcept { *this = HeadParser{}; }

 private:
  friend class HeadReader;

  Parsed Run(std::string_view input, const HttpLimits& limits, HttpHead& head) noexcept;
  Parsed Start(std::string_view window) noexcept;
  Parsed Method(std::string_view window) noexcept;
  Parsed Target(std::string_view window, std::size_t limit) noexcept;
  Parsed Version(std::string_view window, HttpHead& head) noexcept;
  Parsed Finish(const HttpLimits& limits, HttpHead& head) noexcept;

  Parsed Note(const HttpField& field, HttpHead& head) noexcept;
  Parsed NoteHost(std::string_view value, HttpHead& head) noexcept;
  void NoteExpect(std::string_view value) noexcept;

  bool host_in_target_ = false;
  std::size_t begin_ = 0;  ///< The beginning of the method.
  std::size_t method_end_ = 0;
  std::size_t target_end_ = 0;
};

/// Reads the head of an HTTP/1.1 response, strictly but for two faults that the gateway repairs:
/// repeated equal Content-Length fields, and framing fields of a 204.
class ResponseParser : public HeadReader {
 public:
  explicit ResponseParser(http1::LineEnd line_end = http1::LineEnd::kCrlf) noexcept
      : HeadReader(Step::kVersion, Lengths::kEqual, line_end) {}

  /// Continues to parse. On kDone `head` is filled, with at most head.capacity() fields; on
  /// kRefused see reason().
  Parsed Parse(std::string_view input, const HttpLimits& limits, AnswerTo to,
               ResponseHead& head) noexcept {
    return Resume(*this, input, limits, to, head);
  }
  [[nodiscard]] std::string_view reason() const noexcept { return refusal().reason; }
  /// Prepares the parser for the next response.
  void Reset() noexcept { *this = ResponseParser{line_end_}; }

 private:
  friend class HeadReader;

  Parsed Run(std::string_view input, const HttpLimits& limits, AnswerTo to,
             ResponseHead& head) noexcept;
  Parsed Version(std::string_view window) noexcept;
  Parsed Reason(std::string_view window, ResponseHead& head) noexcept;
  Parsed Finish(AnswerTo to, ResponseHead& head) noexcept;

  int status_ = 0;
};

template <class Note>
Parsed HeadReader::ReadFields(std::string_view window, HttpField* fields, std::size_t most,
                              const HttpRefusal& too_many, Note note) noexcept {
  using Found = http1::FieldLines::Found;
  while (true) {
    if (field_count_ == most && lines_.AtField(window)) {
      return Refuse(too_many.reason, too_many.status);
    }
    switch (lines_.Next(window)) {
      case Found::kMore: return Parsed::kMore;
      case Found::kField: {
        HttpField& field = fields[field_count_++];
        field = {lines_.name(window), lines_.value(window)};
        if (note(field) == Parsed::kRefused) return Parsed::kRefused;
        break;
      }
      case Found::kEnd: return Parsed::kDone;
      case Found::kRefused: return Refuse(lines_.reason());
    }
  }
}

}  // namespace tidegate::net
