// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/json.hpp>

#include "rules/override_table.hpp"
#include "rules/rule_set.hpp"

namespace tidegate {

/// What was decided about a key; its rule and key are left out.
[[nodiscard]] boost::json::object OverrideJson(const OverrideTable& table,
                                               const OverrideTable::Entry& entry);

/// All of them, and whether they are in force under these rules.
[[nodiscard]] boost::json::object OverridesJson(const OverrideTable& table, const RuleSet& rules);

}  // namespace tidegate
