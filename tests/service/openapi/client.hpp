// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "net/endpoint.hpp"

namespace tidegate::openapi_test {

struct Reply {
  int status = 0;                             ///< HTTP status; 0: no response arrived.
  std::map<std::string, std::string> fields;  ///< Header fields, with the names as they were sent.
  std::string body;
};

/// Sends `request` on a new connection and reads until the server closes it. REQUIRES: `request`
/// contains `Connection: close`.
[[nodiscard]] Reply Exchange(const net::Endpoint& server, std::string_view request);

/// Returns the bytes of a request with a body, which need not be valid.
[[nodiscard]] std::string RequestText(std::string_view method, std::string_view path,
                                      std::string_view body,
                                      std::string_view content_type = "application/json",
                                      std::string_view field_lines = {},
                                      std::string_view host = "localhost");

}  // namespace tidegate::openapi_test
