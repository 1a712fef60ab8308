// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
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
  /// Expect has another value than 100-continue. The caller must reject or ignore it.
  bool unknown_expect = false;
  bool upgrade = false;  ///< `Connection: upgrade` and an Upgrade field; not in HTTP/1.0.
  HttpBody body = HttpBody::kNone;
  std::uint64_t content_length = 0;
  std::size_t field_count = 0;
  HttpField fields[kMaxFields];

  [[nodiscard]] std::span<const HttpField> all() const noexcept { return {fields, field_count}; }
};

/// Why a request is refused: the status of the response, and the reason. The connection must be
/// closed after that response.
struct HttpRefusal {
  int status = 400;
  std::string_view reason;  ///< Static text.
};
/// For HttpHead::unknown_expect.
inline constexpr HttpRefusal kUnknownExpect{
    417, "unknown expectation in Expect: only 100-continue is supported"};

/// The reason of a 503 that BufferBudget causes.
inline constexpr std::string_view kNoBuffer =
    "too many incomplete requests: no room left in limits.buffer_bytes; try again soon";

/// What a parse step came to.
enum class Parsed : std::uint8_t {
  kMore,  ///< Incomplete: call again with more bytes after the same beginning.
  kDone,
  kRefused,
};

}  // namespace tidegate::net
