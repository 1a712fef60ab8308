// SPDX-License-Identifier: Apache-2.0
// Reads heads from left to right. A byte is judged only by the bytes before it, so that the result
// does not depend on how the input is cut, and another protocol is refused at once. The meaning of
// a field line is judged when its CRLF has arrived.
#include "net/http1_parser.hpp"

#include <algorithm>
#include <utility>

namespace tidegate::net {

using http1::Is;

namespace {

/// The longest registered method has 17 characters (UPDATEREDIRECTREF).
constexpr std::size_t kMaxMethod = 32;
constexpr std::string_view kVersion11 = "HTTP/1.1\r\n";
constexpr std::string_view kOtherCoding = "Transfer-Encoding is not `chunked`";
constexpr std::string_view kTargetTooLong = "request target is longer than the limit";

/// The beginning of a status line. CRLF follows, or a space and a reason that may be empty.
constexpr std::string_view kPattern = "HTTP/1.x 000";
constexpr std::size_t kMinorAt = 7;
constexpr std::size_t kStatusAt = 9;

constexpr std::string_view kBadVersion = "HTTP version of the response is neither 1.1 nor 1.0";
constexpr std::string_view kBadStatus = "status is not a number from 100 to 999";

/// Returns what is wrong with the byte `c` at position `at` of a status line; empty if nothing is.
constexpr std::string_view BadStatusLine(std::size_t at, char c) noexcept {
  if (at == kMinorAt) return c == '0' || c == '1' ? "" : kBadVersion;
  // RFC 9110, 15: recipients treat 600 to 999, which no registry has, as valid.
  if (at == kStatusAt) return c >= '1' && c <= '9' ? "" : kBadStatus;
  if (at > kStatusAt) return Is(c, http1::kDigit) ? "" : kBadStatus;
  if (c == kPattern[at]) return "";
  return at == 5 ? kBadVersion : "response does not begin with HTTP/1.1, a space and a status";
}

/// Returns true for responses without a body, whatever their fields say (RFC 9112, 6.3).
constexpr bool NeverHasBody(int status) noexcept {
  return status < 200 || status == 204 || status == 304;
}

}  // namespace

// --- What requests and responses share ---

Parsed HeadReader::Refuse(std::string_view reason, int status) noexcept {
  refusal_ = {status, reason};
  step_ = Step::kRefused;
  return Parsed::kRefused;
}

/// Transfer-Encoding with a coding other than `chunked` is refused with 400, although RFC 9112, 6.1
/// has 501: such a message is more often an attack than a message with an unusual coding.
Parsed HeadReader::NoteField(const HttpField& field) noexcept {
  switch (field.name.size()) {
    case 7: seen_.upgrade_field |= EqualsIgnoreCase(field.name, "upgrade"); break;
    case 10:
      if (EqualsIgnoreCase(field.name, "connection") && !seen_.connection.Add(field.value)) {
        return Refuse("Connection header is not a list of tokens");
      }
      break;
    case 14:
      if (EqualsIgnoreCase(field.name, "content-length")) return NoteContentLength(field.value);
      break;
    case 17:
      if (!EqualsIgnoreCase(field.name, "transfer-encoding")) break;
      if (seen_.chunked) return Refuse("more than one Transfer-Encoding header");
      if (!EqualsIgnoreCase(field.value, "chunked")) return Refuse(kOtherCoding);
      seen_.chunked = true;
      break;
    default: break;
  }
  return Parsed::kDone;
}

/// RFC 9110, 8.6: equal lengths in a response count as one, because the gateway forwards only one.
Parsed HeadReader::NoteContentLength(std::string_view value) noexcept {
  const bool repeated = std::exchange(seen_.content_length, true);
  if (repeated && lengths_ == Lengths::kOne) return Refuse("more than one Content-Length header");
  const bool list = lengths_ == Lengths::kEqual && value.find(',') != std::string_view::npos;
  const auto length = list ? http1::ReadLengths(value) : http1::ReadLength(value);
  if (!length) {
    return Refuse(list ? "Content-Length is a list of different or invalid numbers"
                       : "Content-Length is not a decimal number");
  }
  if (repeated && content_length_ != *length) {
    return Refuse("two Content-Length headers with different values");
  }
  content_length_ = *length;
  return Parsed::kDone;
}

/// Always inlined: with calls, a head takes ten instructions more.
[[gnu::always_inline]] inline Parsed HeadReader::Complete(MessageHead& head) noexcept {
  if (seen_.chunked && seen_.content_length) {
    return Refuse("message has both Transfer-Encoding and Content-Length");
  }
  if (seen_.chunked && minor_ == 0) return Refuse("Transfer-Encoding is not allowed in HTTP/1.0");
  const http1::ConnectionOptions& connection = seen_.connection;
  head.minor = minor_;
  head.keep_alive = !connection.close && (minor_ == 1 || connection.keep_alive);
  // RFC 9110, 7.8: HTTP/1.0 has no upgrades.
  head.upgrade = minor_ == 1 && connection.upgrade && seen_.upgrade_field;
  head.connection_names_fields = connection.others;
  head.body = seen_.chunked          ? BodyFraming::kChunked
              : seen_.content_length ? BodyFraming::kLength
                                     : BodyFraming::kNone;
  head.content_length = content_length_;
  head.field_count = field_count_;
  step_ = Step::kDone;
  return Parsed::kDone;
}

// --- Requests ---

Parsed HeadParser::Run(std::string_view input, const HttpLimits& limits, HttpHead& head) noexcept {
  const std::string_view window = input.substr(0, limits.header_bytes);
  Parsed parsed = Parsed::kDone;
  if (step_ == Step::kStart) parsed = Start(window);
  if (step_ == Step::kMethod) parsed = Method(window);
  if (step_ == Step::kTarget) parsed = Target(window, limits.target_bytes);
  if (step_ == Step::kVersion) parsed = Version(window, head);
  if (step_ == Step::kFields) {
    parsed = ReadFields(window, head.fields, std::min(limits.header_count, HttpHead::kMaxFields),
                        {431, "more header fields than the limit"},
                        [&](const HttpField& field) { return Note(field, head); });
    if (parsed == Parsed::kDone) return Finish(limits, head);
  }
  if (parsed == Parsed::kMore && window.size() == limits.header_bytes) {
    if (step_ == Step::kTarget) return Refuse(kTargetTooLong, 414);
    return Refuse("request head is longer than the limit", 431);
  }
  return parsed;
}

/// RFC 9112, 2.2: skips empty lines before a request. They count towards the limit of the head.
Parsed HeadParser::Start(std::string_view window) noexcept {
  while (true) {
    if (pos_ == window.size()) return Parsed::kMore;
    if (window[pos_] != '\r') break;
    if (pos_ + 1 == window.size()) return Parsed::kMore;
    if (window[pos_ + 1] != '\n') return Refuse(http1::kBareCr);
    pos_ += 2;
  }
  begin_ = pos_;
  step_ = Step::kMethod;
  return Parsed::kDone;
}

Parsed HeadParser::Method(std::string_view window) noexcept {
  pos_ = http1::Skip(window.substr(0, begin_ + kMaxMethod + 1), pos_, http1::kToken);
  // RFC 9112, 3: 501 for a method that is longer than any known one.
  if (pos_ - begin_ > kMaxMethod) return Refuse("method is longer than 32 characters", 501);
  if (pos_ == window.size()) return Parsed::kMore;
  if (window[pos_] != ' ' || pos_ == begin_) {
    const char first = pos_ == begin_ ? window[pos_] : ' ';
    // 0x16 is the first byte of the TLS record of a ClientHello.
    if (first == 0x16) return Refuse("TLS handshake on a port without TLS");
    if (first == '\n') return Refuse(http1::kBareLf);
    return Refuse("request line does not begin with a method and a space");
  }
  method_end_ = pos_++;
  step_ = Step::kTarget;
  return Parsed::kDone;
}

Parsed HeadParser::Target(std::string_view window, std::size_t limit) noexcept {
  const std::size_t begin = method_end_ + 1;
  const std::size_t room = window.size() - begin;
  pos_ = http1::Skip(window.substr(0, room > limit ? begin + limit + 1 : window.size()), pos_,
                     http1::kTarget);
  if (pos_ - begin > limit) return Refuse(kTargetTooLong, 414);
  if (pos_ == window.size()) return Parsed::kMore;
  if (window[pos_] == '#') return Refuse("request target contains a fragment (#)");
  if (window[pos_] == ' ' && pos_ == begin) return Refuse("more than one space after the method");
  if (window[pos_] != ' ') return Refuse("control character in the request target");
  target_end_ = pos_++;
  step_ = Step::kVersion;
  return Parsed::kDone;
}

Parsed HeadParser::Version(std::string_view window, HttpHead& head) noexcept {
  const std::string_view rest = window.substr(pos_, kVersion11.size());
  if (rest != kVersion11) {
    for (std::size_t i = 0; i < rest.size(); ++i) {
      const bool digit = i == 5 || i == 7;
      if (digit ? !Is(rest[i], http1::kDigit) : rest[i] != kVersion11[i]) {
        return Refuse("request line does not end with one space, HTTP/1.1 and CRLF");
      }
    }
    if (rest.size() < kVersion11.size()) return Parsed::kMore;
    if (rest.substr(5, 3) != "1.0") return Refuse("HTTP version is neither 1.1 nor 1.0", 505);
    minor_ = 0;
  }
  head.method = window.substr(begin_, method_end_ - begin_);
  head.target = window.substr(method_end_ + 1, target_end_ - method_end_ - 1);
  // The target is checked after the version, so that the HTTP/2 preface, PRI * HTTP/2.0, is
  // answered with 505.
  const auto target = http1::SplitTarget(head.method, head.target);
  if (!target) return Refuse("request target has a form that its method does not allow");
  host_in_target_ = target->authority.has_value();
  head.host = target->authority.value_or(std::string_view{});
  head.path = target->path;
  head.query = target->query;
  lines_ = http1::FieldLines(pos_ + kVersion11.size());
  step_ = Step::kFields;
  return Parsed::kDone;
}

/// Evaluates a field that only requests have. Compares the length of the name first: then only two
/// or three names of a browser's request must be compared as texts.
Parsed HeadParser::Note(const HttpField& field, HttpHead& head) noexcept {
  switch (field.name.size()) {
    case 4:
      return EqualsIgnoreCase(field.name, "host") ? NoteHost(field.value, head) : Parsed::kDone;
    case 6:
      if (EqualsIgnoreCase(field.name, "expect")) NoteExpect(field.value);
      return Parsed::kDone;
    default: return NoteField(field);
  }
}

/// RFC 9110, 10.1.1 defines one expectation, 100-continue. The caller decides about all others.
void HeadParser::NoteExpect(std::string_view value) noexcept {
  bool any = false;
  http1::EachElement(value, [&](std::string_view element) {
    const bool known = EqualsIgnoreCase(element, "100-continue");
    seen_.expect |= known;
    seen_.unknown_expect |= !known;
    return any = true;
  });
  seen_.unknown_expect |= !any;
}

/// RFC 9110, 7.2 allows an empty Host for URIs without an authority, but http URIs have an
/// authority (4.2.1). So an empty Host is refused, except in HTTP/1.0, which does not require Host.
Parsed HeadParser::NoteHost(std::string_view value, HttpHead& head) noexcept {
  if (seen_.host) return Refuse("more than one Host header");
  seen_.host = true;
  if (value.empty() && minor_ == 0) return Parsed::kDone;
  if (!http1::IsHostAndPort(value, http1::Port::kOptional)) {
    return Refuse("Host header is not a host name or address with an optional port");
  }
  if (!host_in_target_) head.host = value;
  return Parsed::kDone;
}

Parsed HeadParser::Finish(const HttpLimits& limits, HttpHead& head) noexcept {
  if (minor_ == 1 && !seen_.host) return Refuse("Host header is missing");
  if (Complete(head) == Parsed::kRefused) return Parsed::kRefused;
  if (content_length_ > limits.body_bytes) return Refuse("body is longer than the limit", 413);
  // RFC 9110, 10.1.1: HTTP/1.0 has no expectations.
  head.expects_continue = minor_ == 1 && seen_.expect && (seen_.chunked || content_length_ > 0);
  head.unknown_expect = seen_.unknown_expect;
  return Parsed::kDone;
}

// --- Responses ---

Parsed ResponseParser::Run(std::string_view input, const HttpLimits& limits, AnswerTo to,
                           ResponseHead& head) noexcept {
  const std::string_view window = input.substr(0, limits.header_bytes);
  Parsed parsed = Parsed::kDone;
  if (step_ == Step::kVersion) parsed = Version(window);
  if (step_ == Step::kReason) parsed = Reason(window, head);
  if (step_ == Step::kFields) {
    parsed = ReadFields(window, head.fields.get(), std::min(limits.header_count, head.capacity()),
                        {.reason = "response has more header fields than the limit"},
                        [this](const HttpField& field) { return NoteField(field); });
  }
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

Parsed ResponseParser::Finish(AnswerTo to, ResponseHead& head) noexcept {
  if (Complete(head) == Parsed::kRefused) return Parsed::kRefused;
  // RFC 9110, 8.6 and RFC 9112, 6.1 forbid Content-Length and Transfer-Encoding with 1xx and 204.
  // After a 1xx another response follows, so a body cannot be skipped. After a 204 that announces a
  // body, the connection is closed.
  const bool announces_body = seen_.chunked || content_length_ > 0;
  if (status_ < 200 && announces_body) return Refuse("interim response (1xx) announces a body");
  head.status = status_;
  if (NeverHasBody(status_) || to == AnswerTo::kHead) {
    head.body = BodyFraming::kNone;
  } else if (head.body == BodyFraming::kNone) {
    head.body = BodyFraming::kUntilClose;
  }
  head.keep_alive &= head.body != BodyFraming::kUntilClose && !(status_ == 204 && announces_body);
  head.upgrade &= status_ == 101;
  return Parsed::kDone;
}

}  // namespace tidegate::net
