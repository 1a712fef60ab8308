// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "net/endpoint.hpp"

namespace tidegate::openapi_test {

struct Reply {
  int status = 0;                             ///< 0: no answer.
  std::map<std::string, std::string> fields;  ///< Names as they were sent.
  std::string body;
};

/// Sends `request` on a connection of its own and reads until the server closes it: `request` must
/// ask for that.
[[nodiscard]] Reply Exchange(const net::Endpoint& server, std::string_view request);

/// A request with a body, such as it may be.
[[nodiscard]] std::string RequestText(std::string_view method, std::string_view path,
                                      std::string_view body,
                                      std::string_view content_type = "application/json",
                                      std::string_view field_lines = {},
                                      std::string_view host = "localhost");

}  // namespace tidegate::openapi_test
