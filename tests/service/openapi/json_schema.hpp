// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/json/value.hpp>
#include <string>
#include <vector>

namespace tidegate::openapi_test {

/// Returns how `value` violates `schema`, one line per violation with a JSON pointer; empty: the
/// value is valid. References are resolved in `document`.
///
/// Supports the part of JSON Schema (2020-12) that docs/openapi.json uses: type, enum, const,
/// required, dependentRequired, properties, additionalProperties, items, minItems, maxItems,
/// minLength, maxLength (in bytes), minimum, maximum, allOf, oneOf, $ref. Any other keyword is
/// reported as a violation, because otherwise it would silently go unchecked.
[[nodiscard]] std::vector<std::string> Mistakes(const boost::json::value& value,
                                                const boost::json::value& schema,
                                                const boost::json::value& document);

/// Returns the value that `reference` (`#/components/...`) points to; throws if there is none.
[[nodiscard]] const boost::json::value& Follow(const boost::json::value& document,
                                               std::string_view reference);

/// Returns `value`, or the value that its `$ref` points to.
[[nodiscard]] const boost::json::value& Resolved(const boost::json::value& document,
                                                 const boost::json::value& value);

}  // namespace tidegate::openapi_test
