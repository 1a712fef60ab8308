// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "net/http1_chunked.hpp"
#include "net/http1_message.hpp"
#include "net/http1_response.hpp"

namespace tidegate::net {

/// The body of a message as it streams through a buffer of fixed size: finds its end and takes its
/// framing off. Sans-I/O.
///
///     switch (reader.Read(buffer.filled())) {...}
///     send(reader.data());          // All of it, before the next call.
///     buffer.Drop(reader.eaten());  // From the front.
class BodyReader {
 public:
  static constexpr std::size_t kMaxTrailers = 32;

  /// `limit`: of decoded bytes; 0: none. A body with a length is judged by its head, not here.
  void Begin(HttpBody kind, std::uint64_t length, std::uint64_t limit = 0) noexcept;
  void Begin(ResponseBody kind, std::uint64_t length,
             http1::LineEnd line_end = http1::LineEnd::kCrlf) noexcept;

  /// `raw`: what has come and was not eaten, at any address. Decodes in place. kMore: data() is
  /// there (maybe empty) and more must come; kDone: with data() the body has ended, and what of
  /// `raw` lies behind eaten() belongs to the next message; kRefused: see refusal() (400 or 413),
  /// and data() is empty.
  Parsed Read(std::span<char> raw) noexcept;
  [[nodiscard]] std::string_view data() const noexcept { return data_; }
  [[nodiscard]] std::size_t eaten() const noexcept { return eaten_; }
  [[nodiscard]] const HttpRefusal& refusal() const noexcept { return refusal_; }

  /// The other side has closed. Whether the body ends with that in good order.
  [[nodiscard]] bool EndsAtClose() const noexcept;
  [[nodiscard]] bool done() const noexcept { return done_; }

  /// The trailers of a chunked body after kDone, without those that are forbidden
  /// (IsForbiddenTrailer). Views into `raw` of the last call. Trailers are not eaten before they
  /// are complete: `raw` must have room for HttpLimits{}.trailer_bytes and the end of a line.
  [[nodiscard]] std::span<const HttpField> trailers() const noexcept {
    return {trailers_.get(), trailer_count_};
  }

 private:
  Parsed ReadChunked(std::span<char> raw) noexcept;
  Parsed KeepTrailers(std::string_view raw) noexcept;

  ResponseBody kind_ = ResponseBody::kNone;
  bool done_ = true;
  std::uint64_t left_ = 0;   ///< Of kLength: what is still to come.
  std::uint64_t limit_ = 0;  ///< Of kChunked.
  ChunkGrammar grammar_{TrailerUse::kKept};
  std::string_view data_;
  std::size_t eaten_ = 0;
  HttpRefusal refusal_;
  std::size_t trailer_count_ = 0;
  /// Of kMaxTrailers; made for the first that come: few bodies have any, and a kilobyte for each
  /// connection would be three quarters of it.
  std::unique_ptr<HttpField[]> trailers_;
};

}  // namespace tidegate::net
