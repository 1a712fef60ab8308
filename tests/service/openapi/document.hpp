// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <string>
#include <string_view>

#include "service/openapi/client.hpp"

namespace tidegate::openapi_test {

/// Returns docs/openapi.json.
[[nodiscard]] const boost::json::value& Document();

/// Returns the documented operation for `path` and `method`.
[[nodiscard]] const boost::json::object& Operation(std::string_view path, std::string_view method,
                                                   const boost::json::value& document = Document());

/// Returns the body of a reply with a content type: parsed JSON, or a string if the type is text.
[[nodiscard]] boost::json::value BodyOf(const Reply& reply);

/// Checks that the document describes `reply` for its status: schema, content type and headers.
void CheckDocumented(const Reply& reply, const boost::json::object& operation,
                     const boost::json::value& document = Document());

}  // namespace tidegate::openapi_test
