// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/json.hpp>
#include <string>
#include <vector>

#include "tidegate/error.hpp"

namespace tidegate::cli {

/// The key that a command is about: a rule, and who is counted by it.
struct Whom {
  std::string rule = {};
  std::string identity = {};            ///< The value of the rule's first source.
  std::string key = {};                 ///< Instead: as `hot` and `inspect` show it.
  std::vector<std::string> parts = {};  ///< Instead: `source=value`, for rules that count pairs.

  /// The members `rule` and `identity` or `key`. The Error says what is missing or too much.
  [[nodiscard]] Result<boost::json::object> Question() const;
  /// For people: the identity, the key or the parts.
  [[nodiscard]] std::string Text() const;
};

}  // namespace tidegate::cli
