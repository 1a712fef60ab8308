// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "net/http1_chunked.hpp"
#include "net/http1_framing.hpp"
#include "net/http1_message.hpp"

namespace tidegate::net {

/// Reads the head of an HTTP/1.1 request: RFC 9112, strict where leniency would allow request
/// smuggling (docs/adr/0008 says where and why). Sans-I/O. The input is a contiguous buffer that
/// begins with the request. A call after kMore must get the same bytes with more after them, at any
/// address, and does not scan the old ones again: the work is linear even byte by byte.
class HeadParser {
 public:
  /// On kDone `head` is filled and `consumed()` bytes belong to it; on kRefused see `refusal()`.
  Parsed Parse(std::string_view input, const HttpLimits& limits, HttpHead& head) noexcept;

  [[nodiscard]] std::size_t consumed() const noexcept { return consumed_; }
  [[nodiscard]] const HttpRefusal& refusal() const noexcept { return refusal_; }
  /// Ready for the next request.
  void Reset() noexcept { *this = HeadParser{}; }

 private:
  enum class Step : std::uint8_t {
    kStart,
    kMethod,
    kTarget,
    kVersion,
    kLine,  ///< At the beginning of a field line or of the empty line.
    kName,
    kValue,
    kDone,
    kRefused,
  };
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

  Parsed Run(std::string_view input, const HttpLimits& limits, HttpHead& head) noexcept;
  Parsed Advance(std::string_view window, const HttpLimits& limits, HttpHead& head) noexcept;
  Parsed Start(std::string_view window) noexcept;
  Parsed Method(std::string_view window) noexcept;
  Parsed Target(std::string_view window, std::size_t limit) noexcept;
  Parsed Version(std::string_view window, HttpHead& head) noexcept;
  Parsed Line(std::string_view window, const HttpLimits& limits, HttpHead& head) noexcept;
  Parsed Name(std::string_view window) noexcept;
  Parsed Value(std::string_view window, HttpHead& head) noexcept;
  Parsed Finish(const HttpLimits& limits, HttpHead& head) noexcept;

  Parsed Note(std::string_view name, std::string_view value, HttpHead& head) noexcept;
  Parsed NoteHost(std::string_view value, HttpHead& head) noexcept;
  void NoteExpect(std::string_view value) noexcept;
  Parsed NoteContentLength(std::string_view value) noexcept;
  Parsed NoteTransferEncoding(std::string_view value) noexcept;
  Parsed NoteConnection(std::string_view value) noexcept;

  Parsed Refuse(int status, std::string_view reason) noexcept;

  // Offsets rather than views: the buffer may have moved before the next call.
  Step step_ = Step::kStart;
  Seen seen_;
  bool host_in_target_ = false;
  int minor_ = 1;
  std::size_t pos_ = 0;    ///< All bytes before it have been checked.
  std::size_t begin_ = 0;  ///< Where the method, then the current line begins.
  std::size_t method_end_ = 0;
  std::size_t target_end_ = 0;
  std::size_t name_end_ = 0;
  std::size_t field_count_ = 0;
  std::uint64_t content_length_ = 0;
  std::size_t consumed_ = 0;
  HttpRefusal refusal_;
};

}  // namespace tidegate::net
