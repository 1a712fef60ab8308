// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/ascii.hpp"
#include "base/message_text.hpp"
#include "identity/address.hpp"
#include "identity/request_path.hpp"

namespace tidegate {

/// The number of readings of a request's path in which a condition must hold.
enum class Readings : std::uint8_t {
  kAny,    ///< For conditions that limit requests: some server may use that reading.
  kEvery,  ///< For conditions that remove limits.
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
  std::string_view route;  ///< The gateway's route, if there is one.
  std::span<const HeaderField> headers;
  bool has_encoded_separator = false;  ///< As in RequestPath, like the next member.
  bool differs_from_upstream = false;
  bool has_body = false;    ///< The request has a body that is not empty.
  bool trusted = false;     ///< The peer may state costs: a trusted proxy, or a caller of the API.
  bool has_client = false;  ///< `client` is known.
  Address client;           ///< As identity/client_address.hpp returns it; not masked.

  void SetPath(const RequestPath& read) noexcept {
    path = read.canonical;
    lenient_path = read.lenient == read.canonical ? std::string_view{} : read.lenient;
    has_encoded_separator = read.has_encoded_separator;
    differs_from_upstream = read.differs_from_upstream;
  }
  /// Returns true if `matches(path)` holds in any reading of the path, or in every reading.
  template <class Matches>
  [[nodiscard]] bool PathHolds(Readings readings, const Matches& matches) const {
    const bool as_sent = matches(path);
    if (lenient_path.empty() || as_sent == (readings == Readings::kAny)) return as_sent;
    return matches(lenient_path);
  }
  /// Returns the path by which requests are counted: it is the same for all spellings of one path.
  [[nodiscard]] std::string_view counted_path() const noexcept {
    return lenient_path.empty() ? path : lenient_path;
  }
};

/// Returns true if `method` has no lower-case letter. Methods are case-sensitive, but some servers
/// (Django, Werkzeug) treat `post` as POST: a rule for POST would not match such a request.
[[nodiscard]] inline bool IsUpperCaseMethod(std::string_view method) noexcept {
  return std::ranges::none_of(method, IsLower);
}
/// Returns the message to a client whose method is not in upper case.
[[nodiscard]] inline std::string LowerCaseMethod(std::string_view method) {
  return "method `" + Printable(method.substr(0, 32)) +
         "` is not in upper case: methods are case-sensitive, but some servers ignore the case";
}

/// Returns true if a proxy's X-Request-Id may be used: at most 128 letters, digits and `-_.:/+=`.
[[nodiscard]] inline bool IsRequestId(std::string_view text) noexcept {
  return !text.empty() && text.size() <= 128 && std::ranges::all_of(text, [](char c) {
    return IsAlphanumeric(c) || std::string_view("-_.:/+=").contains(c);
  });
}

/// Returns the value of the first field with that name, or an empty view with a null pointer.
[[nodiscard]] inline std::string_view FindHeader(std::span<const HeaderField> headers,
                                                 std::string_view name) noexcept {
  const auto found = std::ranges::find_if(
      headers, [name](const HeaderField& field) { return EqualsIgnoreCase(field.name, name); });
  if (found == headers.end()) return {};
  // A null pointer means that the field is absent, so an empty value needs another pointer.
  return found->value.data() != nullptr ? found->value : std::string_view("");
}

}  // namespace tidegate
