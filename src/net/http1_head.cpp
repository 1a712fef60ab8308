// SPDX-License-Identifier: Apache-2.0
// The bytes of a request head, from left to right. Each step judges a byte only by the bytes before
// it, so that the result is the same however the input is cut into pieces. The meaning of a field
// line is judged when its CRLF has arrived (http1_head_fields.cpp).
#include <algorithm>

#include "net/http1_parser.hpp"
#include "net/http1_target.hpp"
#include "net/http1_tokens.hpp"

namespace tidegate::net {

using http1::Is;

namespace {
/// The longest registered method has 17 characters (UPDATEREDIRECTREF).
constexpr std::size_t kMaxMethod = 32;
constexpr std::string_view kVersion11 = "HTTP/1.1\r\n";
constexpr std::string_view kTargetTooLong = "request target is longer than the limit";
}  // namespace

Parsed HeadParser::Parse(std::string_view input, const HttpLimits& limits,
                         HttpHead& head) noexcept {
  if (step_ == Step::kRefused) return Parsed::kRefused;
  if (step_ == Step::kDone) Reset();
  const bool resumed = pos_ != 0;
  const Parsed parsed = Run(input, limits, head);
  if (parsed != Parsed::kDone || !resumed) return parsed;
  // Earlier calls left views into buffers that may be gone: parse the complete head again. A head
  // is read at most twice, however many pieces it arrived in.
  Reset();
  return Run(input, limits, head);
}

Parsed HeadParser::Run(std::string_view input, const HttpLimits& limits, HttpHead& head) noexcept {
  const std::string_view window = input.substr(0, limits.header_bytes);
  Parsed parsed = Parsed::kMore;
  do {
    parsed = Advance(window, limits, head);
  } while (parsed == Parsed::kDone && step_ != Step::kDone);
  if (parsed == Parsed::kMore && window.size() == limits.header_bytes) {
    if (step_ == Step::kTarget) return Refuse(414, kTargetTooLong);
    return Refuse(431, "request head is longer than the limit");
  }
  return parsed;
}

/// One step; kDone: continue with the next one.
Parsed HeadParser::Advance(std::string_view window, const HttpLimits& limits,
                           HttpHead& head) noexcept {
  switch (step_) {
    case Step::kStart:
      return Start(window);
    case Step::kMethod:
      return Method(window);
    case Step::kTarget:
      return Target(window, limits.target_bytes);
    case Step::kVersion:
      return Version(window, head);
    case Step::kLine:
      return Line(window, limits, head);
    case Step::kName:
      return Name(window);
    case Step::kValue:
      return Value(window, head);
    case Step::kDone:
      return Parsed::kDone;
    case Step::kRefused:
      break;
  }
  return Parsed::kRefused;
}

/// RFC 9112, 2.2: old clients send CRLF after a body, which is no part of it. Empty lines before a
/// request are skipped; they count towards the limit of the head.
Parsed HeadParser::Start(std::string_view window) noexcept {
  while (true) {
    if (pos_ == window.size()) return Parsed::kMore;
    if (window[pos_] != '\r') break;
    if (pos_ + 1 == window.size()) return Parsed::kMore;
    if (window[pos_ + 1] != '\n') return Refuse(400, http1::kBareCr);
    pos_ += 2;
  }
  begin_ = pos_;
  step_ = Step::kMethod;
  return Parsed::kDone;
}

Parsed HeadParser::Method(std::string_view window) noexcept {
  pos_ = http1::Skip(window.substr(0, begin_ + kMaxMethod + 1), pos_, http1::kToken);
  // RFC 9112, 3: 501 for a method that is longer than any known one.
  if (pos_ - begin_ > kMaxMethod) return Refuse(501, "method is longer than 32 characters");
  if (pos_ == window.size()) return Parsed::kMore;
  if (window[pos_] != ' ' || pos_ == begin_) {
    // The first byte of the TLS record of a ClientHello.
    if (pos_ == begin_ && window[pos_] == 0x16) {
      return Refuse(400, "TLS handshake on a port without TLS");
    }
    if (pos_ == begin_ && window[pos_] == '\n') return Refuse(400, http1::kBareLf);
    return Refuse(400, "request line does not begin with a method and a space");
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
  if (pos_ - begin > limit) return Refuse(414, kTargetTooLong);
  if (pos_ == window.size()) return Parsed::kMore;
  if (window[pos_] == '#') return Refuse(400, "request target contains a fragment (#)");
  if (window[pos_] == ' ' && pos_ == begin) {
    return Refuse(400, "more than one space after the method");
  }
  if (window[pos_] != ' ') return Refuse(400, "control character in the request target");
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
        return Refuse(400, "request line does not end with one space, HTTP/1.1 and CRLF");
      }
    }
    if (rest.size() < kVersion11.size()) return Parsed::kMore;
    if (rest.substr(5, 3) != "1.0") return Refuse(505, "HTTP version is neither 1.1 nor 1.0");
    minor_ = 0;
  }
  head.method = window.substr(begin_, method_end_ - begin_);
  head.target = window.substr(method_end_ + 1, target_end_ - method_end_ - 1);
  // After the version, so that the HTTP/2 preface, PRI * HTTP/2.0, is answered with 505.
  const auto target = http1::SplitTarget(head.method, head.target);
  if (!target) return Refuse(400, "request target has a form that its method does not allow");
  host_in_target_ = target->authority.has_value();
  head.host = target->authority.value_or(std::string_view{});
  head.path = target->path;
  head.query = target->query;
  pos_ += kVersion11.size();
  step_ = Step::kLine;
  return Parsed::kDone;
}

Parsed HeadParser::Line(std::string_view window, const HttpLimits& limits,
                        HttpHead& head) noexcept {
  if (pos_ == window.size()) return Parsed::kMore;
  if (window[pos_] == '\r') {
    if (pos_ + 1 == window.size()) return Parsed::kMore;
    if (window[pos_ + 1] != '\n') return Refuse(400, http1::kBareCr);
    consumed_ = pos_ + 2;
    return Finish(limits, head);
  }
  if (field_count_ == std::min(limits.header_count, HttpHead::kMaxFields)) {
    return Refuse(431, "more header fields than the limit");
  }
  if (http1::IsBlank(window[pos_])) return Refuse(400, "field line begins with white space");
  begin_ = pos_;
  step_ = Step::kName;
  return Parsed::kDone;
}

Parsed HeadParser::Name(std::string_view window) noexcept {
  pos_ = http1::Skip(window, pos_, http1::kToken);
  if (pos_ == window.size()) return Parsed::kMore;
  if (window[pos_] != ':' || pos_ == begin_) return Refuse(400, http1::BadNameReason(window[pos_]));
  name_end_ = pos_++;
  step_ = Step::kValue;
  return Parsed::kDone;
}

Parsed HeadParser::Value(std::string_view window, HttpHead& head) noexcept {
  pos_ = http1::SkipText(window, pos_);
  if (pos_ == window.size()) return Parsed::kMore;
  if (window[pos_] != '\r') return Refuse(400, http1::BadTextReason(window[pos_]));
  if (pos_ + 1 == window.size()) return Parsed::kMore;
  if (window[pos_ + 1] != '\n') return Refuse(400, http1::kBareCr);
  const std::string_view name = window.substr(begin_, name_end_ - begin_);
  const std::string_view value =
      http1::TrimBlanks(window.substr(name_end_ + 1, pos_ - name_end_ - 1));
  head.fields[field_count_++] = {name, value};
  pos_ += 2;
  step_ = Step::kLine;
  return Note(name, value, head);
}

Parsed HeadParser::Refuse(int status, std::string_view reason) noexcept {
  refusal_ = {status, reason};
  step_ = Step::kRefused;
  return Parsed::kRefused;
}

}  // namespace tidegate::net
