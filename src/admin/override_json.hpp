// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/json.hpp>

#include "rules/override_table.hpp"
#include "rules/rule_set.hpp"
#include "store/fleet_register.hpp"

namespace tidegate {

/// Returns the override of a key by an operator, or else by the configuration; null if there is
/// none.
[[nodiscard]] boost::json::value OverrideOfKey(const OverrideTable& table, const Rule& rule,
                                               std::string_view key);

/// Returns an override as JSON, without its rule and key.
[[nodiscard]] boost::json::object OverrideJson(const OverrideTable& table,
                                               const OverrideTable::Entry& entry);

/// Returns how old this node's knowledge of the fleet's overrides is (`age_ms`), or
/// `"known":false`; an empty object if this node has no fleet.
[[nodiscard]] boost::json::object AgeJson(const FleetRegister& of);

/// Returns all overrides, and for each whether it is in force under these rules.
[[nodiscard]] boost::json::object OverridesJson(const OverrideTable& table, const RuleSet& rules);

}  // namespace tidegate
