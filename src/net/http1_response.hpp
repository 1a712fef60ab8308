// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "net/http1_field_lines.hpp"
#include "net/http1_framing.hpp"
#include "net/http1_message.hpp"

namespace tidegate::net {

/// How the body of a response ends.
enum class ResponseBody : std::uint8_t { kNone, kLength, kChunked, kUntilClose };

/// The request of a response: after HEAD there is no body, whatever the response's fields say.
enum class AnswerTo : std::uint8_t { kHead, kOther };

/// The head of a response, final or interim (1xx). Views point into the parsed buffer. Owns the
/// storage of its fields: one head should be used for many responses.
struct ResponseHead {
  static constexpr std::size_t kDefaultFields = 128;

  explicit ResponseHead(std::size_t capacity = kDefaultFields)
      : fields(std::make_unique_for_overwrite<HttpField[]>(capacity)), capacity_(capacity) {}

  int status = 0;           ///< 100 to 999.
  int minor = 1;            ///< HTTP/1.<minor>: 0 or 1.
  std::string_view reason;  ///< May be empty.
  bool keep_alive = true;   ///< The connection may carry another request after this response.
  bool upgrade = false;     ///< 101, with `Connection: upgrade` and an Upgrade field.
  ResponseBody body = ResponseBody::kNone;
  /// The length of a kLength body. After HEAD and with 304 the value of the field, if present.
  std::uint64_t content_length = 0;
  std::size_t field_count = 0;
  std::unique_ptr<HttpField[]> fields;

  [[nodiscard]] std::span<const HttpField> all() const noexcept {
    return {fields.get(), field_count};
  }
  /// The number of fields that there is room for.
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
  /// Makes room for at least `capacity` fields. Forgets the fields if it allocates.
  void Reserve(std::size_t capacity) {
    if (capacity > capacity_) *this = ResponseHead(capacity);
  }

 private:
  std::size_t capacity_;
};

/// Reads the head of an HTTP/1.1 response, in the same way as HeadParser reads requests: sans-I/O,
/// from a contiguous buffer that begins with the response, with the same bytes and more after them
/// (at any address) after kMore, in linear time. Strict, except for what the gateway repairs:
/// repeated equal Content-Length fields, and framing fields of 204.
class ResponseParser {
 public:
  explicit ResponseParser(http1::LineEnd line_end = http1::LineEnd::kCrlf) noexcept
      : line_end_(line_end) {}

  /// On kDone `head` is filled and `consumed()` bytes belong to it; on kRefused see `reason()`: the
  /// connection must be closed. At most head.capacity() fields are accepted.
  Parsed Parse(std::string_view input, const HttpLimits& limits, AnswerTo to,
               ResponseHead& head) noexcept;

  [[nodiscard]] std::size_t consumed() const noexcept { return consumed_; }
  [[nodiscard]] std::string_view reason() const noexcept { return reason_; }  ///< Static text.
  /// Prepares for the next response.
  void Reset() noexcept { *this = ResponseParser{line_end_}; }

 private:
  enum class Step : std::uint8_t { kVersion, kReason, kFields, kDone, kRefused };
  /// Facts from the field lines so far.
  struct Seen {
    bool content_length = false;
    bool chunked = false;
    bool upgrade_field = false;
    http1::ConnectionOptions connection;
  };

  Parsed Run(std::string_view input, const HttpLimits& limits, AnswerTo to,
             ResponseHead& head) noexcept;
  Parsed Version(std::string_view window) noexcept;
  Parsed Reason(std::string_view window, ResponseHead& head) noexcept;
  Parsed Fields(std::string_view window, std::size_t most, ResponseHead& head) noexcept;
  Parsed Note(const HttpField& field) noexcept;
  Parsed NoteContentLength(std::string_view value) noexcept;
  Parsed NoteTransferEncoding(std::string_view value) noexcept;
  Parsed Finish(AnswerTo to, ResponseHead& head) noexcept;
  Parsed Refuse(std::string_view reason) noexcept;

  // Offsets rather than views: the buffer may have moved before the next call.
  Step step_ = Step::kVersion;
  http1::LineEnd line_end_;
  Seen seen_;
  int status_ = 0;
  int minor_ = 1;
  std::size_t pos_ = 0;  ///< In the status line: all bytes before it have been checked.
  http1::FieldLines lines_;
  std::size_t field_count_ = 0;
  std::uint64_t content_length_ = 0;
  std::size_t consumed_ = 0;
  std::string_view reason_;
};

}  // namespace tidegate::net
