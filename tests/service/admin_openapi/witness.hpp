// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/json/value.hpp>
#include <set>
#include <string>
#include <string_view>

#include "service/openapi/client.hpp"

namespace tidegate::openapi_test {

/// Remembers what of an OpenAPI document has been answered: which responses with which headers and,
/// of their bodies, which members, which forms of several, and which values of those that are
/// listed. So a member that may be absent and is lost is found missing, as one that must be there
/// is.
class Witness {
 public:
  explicit Witness(const boost::json::value& document);

  /// Checks that `reply` is documented, and records it. `path` may have a query.
  void Check(std::string_view path, std::string_view method, const Reply& reply);

  /// What is documented and was not seen, a line each: `POST /v1/ban 409`, `POST /v1/ban 503
  /// Retry-After`, `Status.fleet`, `Rule.mode="shadow"`, `Status.store|RedisStore`.
  [[nodiscard]] std::set<std::string> Unseen() const;

 private:
  using Lines = std::set<std::string>;
  /// Adds what `schema` says of `value`; nullptr: all that it says of any.
  void Note(const boost::json::value& schema, const std::string& at,
            const boost::json::value* value, Lines& to) const;
  void NoteMembers(const boost::json::object& members, const std::string& at,
                   const boost::json::value* value, Lines& to) const;
  void NoteForms(const boost::json::array& forms, const std::string& at,
                 const boost::json::value* value, Lines& to) const;

  const boost::json::value& document_;
  Lines documented_;
  mutable Lines noted_;  ///< Schemas whose lines are in `documented_`: some refer to themselves.
  Lines seen_;
};

}  // namespace tidegate::openapi_test
