// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory_resource>
#include <string_view>

#include "rules/jwt.hpp"
#include "rules/request_view.hpp"
#include "rules/source.hpp"
#include "tidegate/error.hpp"

namespace tidegate {

/// A cookie with more different values than this is an Error.
inline constexpr std::size_t kMaxCookieValues = 4;

/// Which of several values of a cookie to take.
struct CookieChoice {
  std::size_t number = 0;  ///< From 0.
  std::size_t count = 1;   ///< Set to the number of values, if a cookie is used.
};

/// Returns the value that `source` has in a request, in the form by which it is counted; empty if
/// the request has none. Values that differ from the request's bytes are allocated from `memory`.
/// `jwt` may be null.
///
/// Different spellings that an upstream reads as one value are counted as one: white space around
/// it, also that of Latin-1 and Unicode, the case of an authorization scheme, and percent-encoding
/// in queries and cookies.
///
/// A header or query parameter with several different values is an Error: servers differ in which
/// of them they use, so a client could put its real key into one and a made-up key into the other,
/// and get a fresh quota with every request. Equal values count as one, empty values as none.
///
/// Browsers rightly send a cookie several times, for different paths and domains, and servers
/// differ here too. So all values are counted: `cookie` says which one to return, and is told how
/// many there are. Two cookies with several values each are an Error.
///
/// REQUIRES: the source is neither `client_ip` nor `const`.
[[nodiscard]] Result<std::string_view> ValueInRequest(const Source& source,
                                                      const RequestView& request,
                                                      const JwtVerifier* jwt, CookieChoice& cookie,
                                                      std::pmr::memory_resource& memory);

/// Returns a value in the form by which it is counted: that of a header or cookie as sent, that of
/// a query parameter decoded. Values of other sources are returned as they are.
[[nodiscard]] std::string_view CountedValue(const Source& source, std::string_view value,
                                            std::pmr::memory_resource& memory);

}  // namespace tidegate
