// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "rules/address.hpp"
#include "rules/request_path.hpp"

namespace tidegate {

/// In how many readings of a request's path a condition must hold.
enum class Readings : std::uint8_t {
  kAny,    ///< For conditions that limit: some server may read it so.
  kEvery,  ///< For conditions that take limits away.
};
/// Returns the readings in which a condition below `not` must hold.
[[nodiscard]] constexpr Readings Opposite(Readings readings) noexcept {
  return readings == Readings::kAny ? Readings::kEvery : Readings::kAny;
}

struct HeaderField {
  std::string_view name;  ///< As sent; compare with EqualsIgnoreCase.
  std::string_view value;
};

/// The attributes of a request that rules match and count. Views point into memory of the frontend.
struct RequestView {
  std::string_view method;  ///< As sent. Frontends refuse methods with lower-case letters.
  std::string_view host;    ///< Lower case, without port and final dot.
  std::string_view path;    ///< RequestPath::canonical, without the query.
  /// RequestPath::lenient if it differs from `path`; otherwise empty.
  std::string_view lenient_path = {};
  std::string_view query;  ///< Without the question mark, as sent.
  std::string_view route;  ///< The gateway's route, where there is one.
  std::span<const HeaderField> headers;
  bool has_encoded_separator = false;  ///< Of RequestPath; and the next.
  bool differs_from_upstream = false;
  bool has_body = false;    ///< The request has a body that is not empty.
  bool trusted = false;     ///< The peer may state costs: a trusted proxy, or a caller of the API.
  bool has_client = false;  ///< `client` is known.
  Address client;           ///< From rules/client_address.hpp; not masked.

  void SetPath(const RequestPath& read) noexcept {
    path = read.canonical;
    lenient_path = read.lenient == read.canonical ? std::string_view{} : read.lenient;
    has_encoded_separator = read.has_encoded_separator;
    differs_from_upstream = read.differs_from_upstream;
  }
  /// Returns true if `matches(path)` holds in any, or every, reading of the path.
  template <class Matches>
  [[nodiscard]] bool PathHolds(Readings readings, const Matches& matches) const {
    const bool as_sent = matches(path);
    if (lenient_path.empty() || as_sent == (readings == Readings::kAny)) return as_sent;
    return matches(lenient_path);
  }
  /// The path by which requests are counted: the same for all spellings of one path.
  [[nodiscard]] std::string_view counted_path() const noexcept {
    return lenient_path.empty() ? path : lenient_path;
  }
};

/// Returns true if `method` has no lower-case letter. Methods are case-sensitive, but some servers
/// (Django, Werkzeug) take `post` for POST: a rule for POST would not see it.
[[nodiscard]] bool IsUpperCaseMethod(std::string_view method) noexcept;
/// Returns the message to a client whose method is not in upper case.
[[nodiscard]] std::string LowerCaseMethod(std::string_view method);

/// Returns true if a proxy's X-Request-Id may be taken over: at most 128 letters, digits and
/// `-_.:/+=`.
[[nodiscard]] bool IsRequestId(std::string_view text) noexcept;

/// ASCII only.
[[nodiscard]] bool EqualsIgnoreCase(std::string_view a, std::string_view b) noexcept;

/// The first field of that name, or an empty view with a null pointer.
[[nodiscard]] std::string_view FindHeader(std::span<const HeaderField> headers,
                                          std::string_view name) noexcept;

}  // namespace tidegate
