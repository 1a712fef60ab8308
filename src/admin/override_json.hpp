// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/json.hpp>

#include "rules/override_table.hpp"
#include "rules/rule_set.hpp"
#include "store/fleet_register.hpp"

namespace tidegate {

/// What an operator or else the configuration says about a key; null: neither does.
[[nodiscard]] boost::json::value OverrideOfKey(const OverrideTable& table, const Rule& rule,
                                               std::string_view key);

/// What was decided about a key; its rule and key are left out.
[[nodiscard]] boost::json::object OverrideJson(const OverrideTable& table,
                                               const OverrideTable::Entry& entry);

/// Since when they are known to be the fleet's, or that they are not known at all; nothing where
/// this node keeps them itself.
[[nodiscard]] boost::json::object AgeJson(const FleetRegister& of);

/// All of them, and whether they are in force under these rules.
[[nodiscard]] boost::json::object OverridesJson(const OverrideTable& table, const RuleSet& rules);

}  // namespace tidegate
