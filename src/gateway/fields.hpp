// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "net/http1_parser.hpp"
#include "net/out_buffer.hpp"

namespace tidegate {

/// What a field is to a proxy.
enum class FieldKind : std::uint8_t {
  kEndToEnd,  ///< Passed on.
  kFraming,   ///< Content-Length, Transfer-Encoding: written anew.
  kHopByHop,  ///< Concerns this connection only: dropped.
  kTe,        ///< `trailers` in it is passed on.
  kTrailer,   ///< Passed on with a body that can have trailers.
  kHost,
  kExpect,
  kForwarded,  ///< Forwarded, X-Forwarded-*, X-Real-IP: believed from trusted peers only.
  kXForwardedFor,
  kXForwardedProto,
  kXForwardedHost,
  kRequestId,
  kDate,
};

/// By its name, in any case and with `_` for `-`: servers that put fields into variables do not see
/// the difference, so neither may we.
[[nodiscard]] FieldKind KindOf(std::string_view name) noexcept;

/// Writes those trailers that are end-to-end: one that says where a request comes from would be
/// believed by whoever merges them into the head.
void WriteTrailers(net::OutBuffer& out, std::span<const net::HttpField> trailers);

/// `a` is `b` but for the case of letters.
[[nodiscard]] bool SameName(std::string_view a, std::string_view b) noexcept;

/// The fields that Connection names beside `close`, `keep-alive` and `upgrade`: they go no further.
class Nominated {
 public:
  explicit Nominated(std::span<const net::HttpField> fields) noexcept;
  [[nodiscard]] bool Has(std::string_view name) const noexcept;
  /// More than anybody honest names: nothing may be passed on.
  [[nodiscard]] bool too_many() const noexcept { return too_many_; }

 private:
  std::array<std::string_view, 16> names_;
  std::size_t count_ = 0;
  bool too_many_ = false;
};

/// Calls `visit` with each element of a comma-separated list, trimmed, until it returns false.
template <class Visit>
void EachElement(std::string_view list, Visit visit) {
  while (true) {
    const std::size_t comma = list.find(',');
    std::string_view element = list.substr(0, comma);
    while (!element.empty() && (element.front() == ' ' || element.front() == '\t')) {
      element.remove_prefix(1);
    }
    while (!element.empty() && (element.back() == ' ' || element.back() == '\t')) {
      element.remove_suffix(1);
    }
    if (!element.empty() && !visit(element)) return;
    if (comma == std::string_view::npos) return;
    list.remove_prefix(comma + 1);
  }
}

}  // namespace tidegate
