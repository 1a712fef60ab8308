// SPDX-License-Identifier: Apache-2.0
// The bytes of a response head, from left to right, each judged by the bytes before it: an upstream
// that speaks another protocol is refused at once, not after a timeout.
#include "net/http1_response.hpp"

#include <algorithm>

#include "net/http1_tokens.hpp"

namespace tidegate::net {

using http1::EqualsLower;
using http1::Is;

namespace {

/// The beginning of a status line. CRLF follows, or a space and a reason that may be empty.
constexpr std::string_view kPattern = "HTTP/1.x 000";
constexpr std::size_t kMinorAt = 7;
constexpr std::size_t kStatusAt = 9;

constexpr std::string_view kBadVersion = "HTTP version of the response is neither 1.1 nor 1.0";
constexpr std::string_view kBadStatus = "status is not a number from 100 to 999";

/// What is wrong with the byte at `at` of a status line; empty: nothing.
constexpr std::string_view BadStatusLine(std::size_t at, char c) noexcept {
  if (at == kMinorAt) return c == '0' || c == '1' ? "" : kBadVersion;
  // RFC 9110, 15: recipients treat 600 to 999, which no registry has, as valid.
  if (at == kStatusAt) return c >= '1' && c <= '9' ? "" : kBadStatus;
  if (at > kStatusAt) return Is(c, http1::kDigit) ? "" : kBadStatus;
  if (c == kPattern[at]) return "";
  return at == 5 ? kBadVersion : "response does not begin with HTTP/1.1, a space and a status";
}

/// RFC 9112, 6.3: these have no body, whatever their fields say.
constexpr bool NeverHasBody(int status) noexcept {
  return status < 200 || status == 204 || status == 304;
}

}  // namespace

Parsed ResponseParser::Parse(std::string_view input, const HttpLimits& limits, AnswerTo to,
                             ResponseHead& head) noexcept {
  if (step_ == Step::kRefused) return Parsed::kRefused;
  if (step_ == Step::kDone) Reset();
  const bool resumed = pos_ != 0;
  const Parsed parsed = Run(input, limits, to, head);
  if (parsed != Parsed::kDone || !resumed) return parsed;
  // Earlier calls left views into buffers that may be gone: parse the complete head again.
  Reset();
  return Run(input, limits, to, head);
}

Parsed ResponseParser::Run(std::string_view input, const HttpLimits& limits, AnswerTo to,
                           ResponseHead& head) noexcept {
  const std::string_view window = input.substr(0, limits.header_bytes);
  Parsed parsed = Parsed::kDone;
  if (step_ == Step::kVersion) parsed = Version(window);
  if (step_ == Step::kReason) parsed = Reason(window, head);
  if (step_ == Step::kFields) parsed = Fields(window, limits.header_count, head);
  if (parsed == Parsed::kDone) return Finish(to, head);
  if (parsed == Parsed::kMore && window.size() == limits.header_bytes) {
    return Refuse("response head is longer than the limit");
  }
  return parsed;
}

Parsed ResponseParser::Version(std::string_view window) noexcept {
  if (pos_ == 0 && window.starts_with("HTTP/1.1 ")) pos_ = kStatusAt;
  for (; pos_ < kPattern.size(); ++pos_) {
    if (pos_ == window.size()) return Parsed::kMore;
    const std::string_view wrong = BadStatusLine(pos_, window[pos_]);
    if (!wrong.empty()) return Refuse(wrong);
  }
  if (pos_ == window.size()) return Parsed::kMore;
  minor_ = window[kMinorAt] - '0';
  status_ = 0;
  for (const char c : window.substr(kStatusAt, 3)) status_ = status_ * 10 + (c - '0');
  // RFC 9112, 4 requires the space even without a reason; some servers omit both.
  const bool bare_lf = window[pos_] == '\n' && line_end_ == http1::LineEnd::kCrlfOrLf;
  if (window[pos_] != ' ' && window[pos_] != '\r' && !bare_lf) {
    return Refuse("status is not followed by a space or CRLF");
  }
  if (window[pos_] == ' ') ++pos_;
  step_ = Step::kReason;
  return Parsed::kDone;
}

Parsed ResponseParser::Reason(std::string_view window, ResponseHead& head) noexcept {
  pos_ = http1::SkipText(window, pos_);
  if (pos_ == window.size()) return Parsed::kMore;
  std::size_t end = 2;
  if (window[pos_] == '\n' && line_end_ == http1::LineEnd::kCrlfOrLf) {
    end = 1;
  } else {
    if (window[pos_] == '\n') return Refuse(http1::kBareLf);
    if (window[pos_] != '\r') return Refuse("control character in the status line");
    if (pos_ + 1 == window.size()) return Parsed::kMore;
    if (window[pos_ + 1] != '\n') return Refuse(http1::kBareCr);
  }
  const std::size_t begin = std::min(kPattern.size() + 1, pos_);
  head.reason = window.substr(begin, pos_ - begin);
  lines_ = http1::FieldLines(pos_ + end, line_end_);
  step_ = Step::kFields;
  return Parsed::kDone;
}

Parsed ResponseParser::Fields(std::string_view window, std::size_t most,
                              ResponseHead& head) noexcept {
  using Found = http1::FieldLines::Found;
  while (true) {
    switch (lines_.Next(window)) {
      case Found::kMore:
        return Parsed::kMore;
      case Found::kName:
        if (field_count_ == std::min(most, head.capacity())) {
          return Refuse("response has more header fields than the limit");
        }
        break;
      case Found::kField: {
        const HttpField field{lines_.name(window), lines_.value(window)};
        head.fields[field_count_++] = field;
        if (Note(field) == Parsed::kRefused) return Parsed::kRefused;
        break;
      }
      case Found::kEnd:
        consumed_ = lines_.pos();
        return Parsed::kDone;
      case Found::kRefused:
        return Refuse(lines_.reason());
    }
  }
}

/// Looks at the fields that frame a response or control its connection; all others are only kept.
Parsed ResponseParser::Note(const HttpField& field) noexcept {
  switch (field.name.size()) {
    case 7:
      if (EqualsLower(field.name, "upgrade")) seen_.upgrade_field = true;
      break;
    case 10:
      if (EqualsLower(field.name, "connection") && !seen_.connection.Add(field.value)) {
        return Refuse(http1::kBadConnection);
      }
      break;
    case 14:
      if (EqualsLower(field.name, "content-length")) return NoteContentLength(field.value);
      break;
    case 17:
      if (EqualsLower(field.name, "transfer-encoding")) return NoteTransferEncoding(field.value);
      break;
    default:
      break;
  }
  return Parsed::kDone;
}

/// RFC 9110, 8.6: equal lengths are one, because the gateway forwards them as one.
Parsed ResponseParser::NoteContentLength(std::string_view value) noexcept {
  const auto length = http1::ReadLengths(value);
  if (!length) {
    return Refuse(value.find(',') == std::string_view::npos
                      ? http1::kBadLength
                      : "Content-Length is a list of different or invalid numbers");
  }
  if (seen_.content_length && content_length_ != *length) {
    return Refuse("two Content-Length headers with different values");
  }
  seen_.content_length = true;
  content_length_ = *length;
  return Parsed::kDone;
}

Parsed ResponseParser::NoteTransferEncoding(std::string_view value) noexcept {
  if (seen_.chunked) return Refuse(http1::kTwoCodings);
  if (!EqualsLower(value, "chunked")) return Refuse(http1::kBadCoding);
  seen_.chunked = true;
  return Parsed::kDone;
}

Parsed ResponseParser::Finish(AnswerTo to, ResponseHead& head) noexcept {
  if (seen_.chunked && seen_.content_length) return Refuse(http1::kFramedTwice);
  if (seen_.chunked && minor_ == 0) return Refuse(http1::kChunkedIn10);
  // RFC 9110, 8.6 and RFC 9112, 6.1 forbid both fields with 1xx and 204. After a 1xx the real
  // response follows on the connection, so a body in between cannot be skipped. A 204 is the last
  // response on a connection that is closed (keep_alive below), so bytes after it do no harm.
  const bool announces_body = seen_.chunked || content_length_ > 0;
  if (status_ < 200 && announces_body) {
    return Refuse("interim response (1xx) announces a body");
  }
  head.status = status_;
  head.minor = minor_;
  head.body = NeverHasBody(status_) || to == AnswerTo::kHead ? ResponseBody::kNone
              : seen_.chunked                                ? ResponseBody::kChunked
              : seen_.content_length                         ? ResponseBody::kLength
                                                             : ResponseBody::kUntilClose;
  head.content_length = content_length_;
  const auto& connection = seen_.connection;
  head.keep_alive = head.body != ResponseBody::kUntilClose && !connection.close &&
                    (minor_ == 1 || connection.keep_alive) && !(status_ == 204 && announces_body);
  head.upgrade = status_ == 101 && minor_ == 1 && connection.upgrade && seen_.upgrade_field;
  head.field_count = field_count_;
  step_ = Step::kDone;
  return Parsed::kDone;
}

Parsed ResponseParser::Refuse(std::string_view reason) noexcept {
  reason_ = reason;
  step_ = Step::kRefused;
  return Parsed::kRefused;
}

}  // namespace tidegate::net
