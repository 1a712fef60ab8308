// SPDX-License-Identifier: Apache-2.0
// The fields that frame a request or control its connection; all others are only kept. Each
// function returns kDone if the field is acceptable.
#include "net/http1_framing.hpp"
#include "net/http1_parser.hpp"
#include "net/http1_target.hpp"
#include "net/http1_tokens.hpp"

namespace tidegate::net {

using http1::EqualsLower;

/// Most names differ in length: only two or three fields of a browser's request are compared.
Parsed HeadParser::Note(std::string_view name, std::string_view value, HttpHead& head) noexcept {
  switch (name.size()) {
    case 4:
      if (EqualsLower(name, "host")) return NoteHost(value, head);
      break;
    case 6:
      if (EqualsLower(name, "expect")) NoteExpect(value);
      break;
    case 7:
      if (EqualsLower(name, "upgrade")) seen_.upgrade_field = true;
      break;
    case 10:
      if (EqualsLower(name, "connection")) return NoteConnection(value);
      break;
    case 14:
      if (EqualsLower(name, "content-length")) return NoteContentLength(value);
      break;
    case 17:
      if (EqualsLower(name, "transfer-encoding")) return NoteTransferEncoding(value);
      break;
    default:
      break;
  }
  return Parsed::kDone;
}

/// RFC 9110, 10.1.1 defines one expectation, 100-continue. The caller decides about all others.
void HeadParser::NoteExpect(std::string_view value) noexcept {
  bool any = false;
  while (true) {
    const std::size_t comma = value.find(',');
    const std::string_view one = http1::TrimBlanks(value.substr(0, comma));
    const bool known = EqualsLower(one, "100-continue");
    any |= !one.empty();
    seen_.expect |= known;
    seen_.unknown_expect |= !one.empty() && !known;
    if (comma == std::string_view::npos) break;
    value.remove_prefix(comma + 1);
  }
  seen_.unknown_expect |= !any;
}

/// RFC 9110, 7.2 has an empty Host for URIs without an authority. http and https URIs have one
/// (4.2.1), so an empty Host is refused, except in HTTP/1.0, which does not require Host.
Parsed HeadParser::NoteHost(std::string_view value, HttpHead& head) noexcept {
  if (seen_.host) return Refuse(400, "more than one Host header");
  seen_.host = true;
  if (value.empty() && minor_ == 0) return Parsed::kDone;
  if (!http1::IsHostAndPort(value, http1::Port::kOptional)) {
    return Refuse(400, "Host header is not a host name or address with an optional port");
  }
  if (!host_in_target_) head.host = value;
  return Parsed::kDone;
}

Parsed HeadParser::NoteContentLength(std::string_view value) noexcept {
  if (seen_.content_length) return Refuse(400, "more than one Content-Length header");
  const auto length = http1::ReadLength(value);
  if (!length) return Refuse(400, http1::kBadLength);
  seen_.content_length = true;
  content_length_ = *length;
  return Parsed::kDone;
}

/// 400 for other codings as well, where RFC 9112, 6.1 has 501: a request without certain framing is
/// an attack more often than a client with a coding that is never used in requests.
Parsed HeadParser::NoteTransferEncoding(std::string_view value) noexcept {
  if (seen_.chunked) return Refuse(400, http1::kTwoCodings);
  if (!EqualsLower(value, "chunked")) return Refuse(400, http1::kBadCoding);
  seen_.chunked = true;
  return Parsed::kDone;
}

Parsed HeadParser::NoteConnection(std::string_view value) noexcept {
  if (!seen_.connection.Add(value)) return Refuse(400, http1::kBadConnection);
  return Parsed::kDone;
}

Parsed HeadParser::Finish(const HttpLimits& limits, HttpHead& head) noexcept {
  if (minor_ == 1 && !seen_.host) return Refuse(400, "Host header is missing");
  if (seen_.chunked && seen_.content_length) return Refuse(400, http1::kFramedTwice);
  if (seen_.chunked && minor_ == 0) return Refuse(400, http1::kChunkedIn10);
  if (content_length_ > limits.body_bytes) return Refuse(413, "body is longer than the limit");
  head.minor = minor_;
  head.keep_alive = !seen_.connection.close && (minor_ == 1 || seen_.connection.keep_alive);
  // RFC 9110, 7.8 and 10.1.1: HTTP/1.0 has neither upgrades nor expectations.
  head.upgrade = minor_ == 1 && seen_.connection.upgrade && seen_.upgrade_field;
  head.expects_continue = minor_ == 1 && seen_.expect && (seen_.chunked || content_length_ > 0);
  head.unknown_expect = seen_.unknown_expect;
  head.body = seen_.chunked          ? HttpBody::kChunked
              : seen_.content_length ? HttpBody::kLength
                                     : HttpBody::kNone;
  head.content_length = content_length_;
  head.field_count = field_count_;
  step_ = Step::kDone;
  return Parsed::kDone;
}

}  // namespace tidegate::net
