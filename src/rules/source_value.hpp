// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory_resource>
#include <string_view>

#include "rules/jwt.hpp"
#include "rules/request_view.hpp"
#include "rules/source.hpp"
#include "tidegate/error.hpp"

namespace tidegate {

/// What a request says where `source` looks; empty: nothing. Decoded values are allocated from
/// `memory`; `jwt` may be null.
///
/// A header that comes on several lines with different values is an Error. Applications differ in
/// which line they believe, so whichever was counted here, a client could put its real key on the
/// other and a new random one on this, and have a fresh quota with every request. (RFC 9110 5.3
/// forbids such lines in any case, but for lists.) Equal lines are one, empty ones are none.
///
/// Of cookies and query parameters the first that is not empty counts: browsers do send a name
/// twice, the more specific path first.
///
/// REQUIRES: neither `client_ip` nor `const`, which are no text of the request.
[[nodiscard]] Result<std::string_view> ValueInRequest(const Source& source,
                                                      const RequestView& request,
                                                      const JwtVerifier* jwt,
                                                      std::pmr::memory_resource& memory);

}  // namespace tidegate
