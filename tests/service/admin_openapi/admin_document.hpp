// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/json/value.hpp>
#include <functional>
#include <string>
#include <string_view>

#include "service/openapi/client.hpp"

namespace tidegate::openapi_test {

/// Returns docs/admin-openapi.json.
[[nodiscard]] const boost::json::value& AdminDocument();

/// Called with a path, its method (`get` or `post`) and the documented operation.
using Visit = std::function<void(const std::string& path, const std::string& method,
                                 const boost::json::object& operation)>;
void ForEachOperation(const Visit& visit);

/// Sends a request to the admin port, with an IP address as Host.
[[nodiscard]] Reply AskAdmin(const net::Endpoint& admin, std::string_view method,
                             std::string_view path, std::string_view body = {},
                             std::string_view field_lines = {});

}  // namespace tidegate::openapi_test
