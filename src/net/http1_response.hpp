// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "net/http1_field_lines.hpp"
#include "net/http1_framing.hpp"
#include "net/http1_message.hpp"

namespace tidegate::net {

/// How the body of a response ends.
enum class ResponseBody : std::uint8_t { kNone, kLength, kChunked, kUntilClose };

/// What a response answers: after HEAD there is no body, whatever its fields say.
enum class AnswerTo : std::uint8_t { kHead, kOther };

/// The head of a response, final or interim (1xx). Views point into the parsed buffer.
struct ResponseHead {
  static constexpr std::size_t kMaxFields = HttpHead::kMaxFields;

  int status = 0;           ///< 100 to 599.
  int minor = 1;            ///< HTTP/1.<minor>: 0 or 1.
  std::string_view reason;  ///< May be empty.
  bool keep_alive = true;   ///< The connection may carry another request after this response.
  bool upgrade = false;     ///< 101, with `Connection: upgrade` and an Upgrade field.
  ResponseBody body = ResponseBody::kNone;
  /// Of kLength. After HEAD and with 304 what the field says, if it is there.
  std::uint64_t content_length = 0;
  std::size_t field_count = 0;
  HttpField fields[kMaxFields];

  [[nodiscard]] std::span<const HttpField> all() const noexcept { return {fields, field_count}; }
};

/// Reads the head of an HTTP/1.1 response, as strictly as HeadParser reads requests and in the same
/// way: sans-I/O, a contiguous buffer that begins with the response, the same bytes again with more
/// behind them after kMore (at any address), linear work however they drip in.
class ResponseParser {
 public:
  /// On kDone `head` is filled and `consumed()` bytes belong to it; on kRefused see `reason()`: the
  /// connection is of no use any more.
  Parsed Parse(std::string_view input, const HttpLimits& limits, AnswerTo to,
               ResponseHead& head) noexcept;

  [[nodiscard]] std::size_t consumed() const noexcept { return consumed_; }
  [[nodiscard]] std::string_view reason() const noexcept { return reason_; }  ///< Static text.
  /// Ready for the next response.
  void Reset() noexcept { *this = ResponseParser{}; }

 private:
  enum class Step : std::uint8_t { kVersion, kReason, kFields, kDone, kRefused };
  /// What the field lines have said so far.
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
  Seen seen_;
  int status_ = 0;
  int minor_ = 1;
  std::size_t pos_ = 0;  ///< Of the status line, all before it has been judged.
  http1::FieldLines lines_;
  std::size_t field_count_ = 0;
  std::uint64_t content_length_ = 0;
  std::size_t consumed_ = 0;
  std::string_view reason_;
};

}  // namespace tidegate::net
