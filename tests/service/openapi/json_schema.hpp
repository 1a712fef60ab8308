// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/json/value.hpp>
#include <string>
#include <vector>

namespace tidegate::openapi_test {

/// What of `value` is not as `schema` says: one line each, with a JSON pointer; none: it is valid.
/// References lead into `document`.
///
/// The part of JSON Schema (2020-12) that docs/openapi.json uses: type, enum, const, required,
/// dependentRequired, properties, additionalProperties, items, minItems, maxItems, minLength,
/// maxLength (in bytes), minimum, maximum, allOf, oneOf, $ref. Any other keyword is a mistake too,
/// since it would otherwise be thought to be checked.
[[nodiscard]] std::vector<std::string> Mistakes(const boost::json::value& value,
                                                const boost::json::value& schema,
                                                const boost::json::value& document);

/// What `reference` (`#/components/...`) stands for; throws where there is nothing.
[[nodiscard]] const boost::json::value& Follow(const boost::json::value& document,
                                               std::string_view reference);

/// `value`, or what it refers to.
[[nodiscard]] const boost::json::value& Resolved(const boost::json::value& document,
                                                 const boost::json::value& value);

}  // namespace tidegate::openapi_test
