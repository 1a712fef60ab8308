// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/json.hpp>
#include <string>
#include <vector>

#include "cli/admin_client.hpp"
#include "tidegate/error.hpp"

namespace tidegate::cli {

/// The key that a command is about: a rule, and who is counted by it.
struct Whom {
  std::string rule = {};
  std::string identity = {};            ///< The value of the rule's first source.
  std::string key = {};                 ///< Instead: as `hot` and `inspect` show it.
  std::vector<std::string> parts = {};  ///< Instead: `source=value`, for rules that count pairs.

  /// Whether the rule stands alone. That is a key of rules that count by `const`; which those are
  /// the server knows.
  [[nodiscard]] bool OnlyRule() const noexcept {
    return identity.empty() && key.empty() && parts.empty();
  }
  /// The members `rule` and `identity` or `key`. The Error says what is missing or too much.
  [[nodiscard]] Result<boost::json::object> Question() const;
  /// What to do where the server does not know whom this is about.
  [[nodiscard]] std::vector<Hint> Hints() const;
  /// For people: the identity, the key or the parts.
  [[nodiscard]] std::string Text() const;
};

}  // namespace tidegate::cli
