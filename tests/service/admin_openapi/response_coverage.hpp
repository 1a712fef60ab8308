// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/json/value.hpp>
#include <set>
#include <string>
#include <string_view>

#include "service/openapi/client.hpp"

namespace tidegate::openapi_test {

/// Records which parts of an OpenAPI document the responses of a server have covered: responses,
/// headers, and in bodies the members, the alternatives of `oneOf` and the values of enumerations.
/// An optional member that the server never sends is thus found, like a missing required member.
class ResponseCoverage {
 public:
  explicit ResponseCoverage(const boost::json::value& document);

  /// Checks that `reply` is documented, and records it. `path` may have a query.
  void Check(std::string_view path, std::string_view method, const Reply& reply);

  /// Returns the documented parts that no response has covered, one line each: `POST /v1/ban 409`,
  /// `POST /v1/ban 503 Retry-After`, `Status.fleet`, `Rule.mode="shadow"`,
  /// `Status.store|RedisStore`.
  [[nodiscard]] std::set<std::string> Unseen() const;

 private:
  using Lines = std::set<std::string>;
  /// Adds the lines of `schema` that `value` covers; nullptr: all lines of the schema.
  void Note(const boost::json::value& schema, const std::string& at,
            const boost::json::value* value, Lines& to) const;
  void NoteMembers(const boost::json::object& members, const std::string& at,
                   const boost::json::value* value, Lines& to) const;
  void NoteForms(const boost::json::array& forms, const std::string& at,
                 const boost::json::value* value, Lines& to) const;

  const boost::json::value& document_;
  Lines documented_;
  /// Schemas whose lines are already in `documented_`, because schemas may refer to themselves.
  mutable Lines noted_;
  Lines seen_;
};

}  // namespace tidegate::openapi_test
