// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <string>
#include <string_view>

#include "service/openapi/client.hpp"

namespace tidegate::openapi_test {

/// docs/openapi.json
[[nodiscard]] const boost::json::value& Document();

/// Whatever the document says of `path` and `method`.
[[nodiscard]] const boost::json::object& Operation(std::string_view path, std::string_view method,
                                                   const boost::json::value& document = Document());

/// The body of a reply with a content type: JSON, or a string where it is text.
[[nodiscard]] boost::json::value BodyOf(const Reply& reply);

/// That `reply` is what the operation documents for its status: schema, content type and headers.
void CheckDocumented(const Reply& reply, const boost::json::object& operation,
                     const boost::json::value& document = Document());

}  // namespace tidegate::openapi_test
