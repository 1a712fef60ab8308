// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/json/value.hpp>
#include <functional>
#include <string>
#include <string_view>

#include "service/openapi/client.hpp"

namespace tidegate::openapi_test {

/// docs/admin-openapi.json
[[nodiscard]] const boost::json::value& AdminDocument();

/// Calls `visit` with every path and its method, `get` or `post`.
using Visit = std::function<void(const std::string& path, const std::string& method,
                                 const boost::json::object& operation)>;
void ForEachOperation(const Visit& visit);

/// Asks the admin port, by its address.
[[nodiscard]] Reply AskAdmin(const net::Endpoint& admin, std::string_view method,
                             std::string_view path, std::string_view body = {},
                             std::string_view field_lines = {});

}  // namespace tidegate::openapi_test
