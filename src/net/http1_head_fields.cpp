// SPDX-License-Identifier: Apache-2.0
// What the fields say that frame a request or decide about its connection. All others are only
// kept. Each function answers kDone where there is nothing to object to.
#include "net/http1_framing.hpp"
#include "net/http1_parser.hpp"
#include "net/http1_target.hpp"
#include "net/http1_tokens.hpp"

namespace tidegate::net {

using http1::EqualsLower;

/// The length tells most names apart: of the fields of a browser's request two or three get to a
/// comparison.
Parsed HeadParser::Note(std::string_view name, std::string_view value, HttpHead& head) noexcept {
  switch (name.size()) {
    case 4:
      if (EqualsLower(name, "host")) return NoteHost(value, head);
      break;
    case 6:
      if (EqualsLower(name, "expect")) {
        if (!EqualsLower(value, "100-continue")) return Refuse(417, "an unknown expectation");
        seen_.expect = true;
      }
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

/// RFC 9110, 7.2 has an empty Host for URIs without an authority; http and https have none such
/// (4.2.1), so it is refused. HTTP/1.0 knew no Host, and there it stands for none.
Parsed HeadParser::NoteHost(std::string_view value, HttpHead& head) noexcept {
  if (seen_.host) return Refuse(400, "more than one Host");
  seen_.host = true;
  if (value.empty() && minor_ == 0) return Parsed::kDone;
  if (!http1::IsHostAndPort(value, http1::Port::kOptional)) {
    return Refuse(400, "Host is not a host and a port");
  }
  if (!host_in_target_) head.host = value;
  return Parsed::kDone;
}

Parsed HeadParser::NoteContentLength(std::string_view value) noexcept {
  if (seen_.content_length) return Refuse(400, "more than one Content-Length");
  const auto length = http1::ReadLength(value);
  if (!length) return Refuse(400, "Content-Length is not one number");
  seen_.content_length = true;
  content_length_ = *length;
  return Parsed::kDone;
}

/// 400 for other codings as well, where RFC 9112, 6.1 has 501: what cannot be framed for certain is
/// an attack more often than a client with a coding that nobody ever used in a request.
Parsed HeadParser::NoteTransferEncoding(std::string_view value) noexcept {
  if (seen_.chunked) return Refuse(400, "more than one Transfer-Encoding");
  if (!EqualsLower(value, "chunked")) {
    return Refuse(400, "Transfer-Encoding is something other than chunked");
  }
  seen_.chunked = true;
  return Parsed::kDone;
}

Parsed HeadParser::NoteConnection(std::string_view value) noexcept {
  if (!seen_.connection.Add(value)) return Refuse(400, "Connection is not a list of tokens");
  return Parsed::kDone;
}

Parsed HeadParser::Finish(const HttpLimits& limits, HttpHead& head) noexcept {
  if (minor_ == 1 && !seen_.host) return Refuse(400, "no Host");
  if (seen_.chunked && seen_.content_length) {
    return Refuse(400, "both Transfer-Encoding and Content-Length");
  }
  if (seen_.chunked && minor_ == 0) return Refuse(400, "Transfer-Encoding in HTTP/1.0");
  if (content_length_ > limits.body_bytes) return Refuse(413, "the body is too long");
  head.minor = minor_;
  head.keep_alive = !seen_.connection.close && (minor_ == 1 || seen_.connection.keep_alive);
  // RFC 9110, 7.8 and 10.1.1: HTTP/1.0 has neither upgrades nor expectations.
  head.upgrade = minor_ == 1 && seen_.connection.upgrade && seen_.upgrade_field;
  head.expects_continue = minor_ == 1 && seen_.expect && (seen_.chunked || content_length_ > 0);
  head.body = seen_.chunked          ? HttpBody::kChunked
              : seen_.content_length ? HttpBody::kLength
                                     : HttpBody::kNone;
  head.content_length = content_length_;
  head.field_count = field_count_;
  step_ = Step::kDone;
  return Parsed::kDone;
}

}  // namespace tidegate::net
