// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory_resource>
#include <string_view>

#include "identity/jwt.hpp"
#include "identity/request_view.hpp"
#include "identity/source.hpp"
#include "tidegate/error.hpp"

namespace tidegate {

/// A cookie with more different values than this is an Error.
inline constexpr std::size_t kMaxCookieValues = 4;

/// Selects one of several values of a cookie.
struct CookieChoice {
  std::size_t number = 0;  ///< The index of the value, from 0.
  std::size_t count = 1;   ///< Set to the number of values, if a cookie is used.
};

/// Returns the value that `source` has in a request, in the form by which it is counted; an empty
/// value if the request has none. Values that differ from the request's bytes are allocated from
/// `memory`. `jwt` may be nullptr.
///
/// Different spellings that an upstream reads as one value are counted as one. Spellings may differ
/// in white space around the value (also that of Latin-1 and Unicode), the case of an authorization
/// scheme, and percent-encoding in queries and cookies.
///
/// A header or query parameter with several different values is an Error: servers differ in which
/// of them they use, so a client could hide its real key behind a made-up one and get a fresh quota
/// with every request. Equal values count as one, empty values as none. Browsers may send a cookie
/// several times, so all its values are counted: `cookie` selects the value to return, and receives
/// the number of values. Two cookies with several values each are an Error.
///
/// REQUIRES: the source is neither `client_ip` nor `const`.
[[nodiscard]] Result<std::string_view> ValueInRequest(const Source& source,
                                                      const RequestView& request,
                                                      const JwtVerifier* jwt, CookieChoice& cookie,
                                                      std::pmr::memory_resource& memory);

/// Returns a value in the form by which it is counted: `value` is that of a header or cookie as
/// sent, or of a query parameter decoded. Values of other sources are returned unchanged.
[[nodiscard]] std::string_view CountedValue(const Source& source, std::string_view value,
                                            std::pmr::memory_resource& memory);

}  // namespace tidegate
