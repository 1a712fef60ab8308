// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <string_view>

#include "base/problem.hpp"
#include "rules/match_spec.hpp"
#include "rules/override.hpp"
#include "rules/rule_set.hpp"
#include "store/shared_overrides.hpp"
#include "tidegate/decision.hpp"

namespace tidegate {

// Functions that return or add rules, quotas and overrides as JSON of the admin API.

[[nodiscard]] boost::json::string JsonText(std::string_view text);
/// Returns `duration` in whole milliseconds, rounded up, as everywhere in the API.
[[nodiscard]] std::int64_t JsonMillis(Micros duration);
/// Moves all of `members` into `to`.
void AddAll(boost::json::object& to, boost::json::object members);

[[nodiscard]] std::string_view Name(OnFailure policy) noexcept;  ///< `open`, `closed`, `local`.
[[nodiscard]] std::string_view Name(Mode mode) noexcept;         ///< `enforce`, `shadow`.

/// Adds the members `algorithm`, `limit`, `quota` and `capacity`.
void AddQuota(boost::json::object& to, const Rule& rule, const Quota& quota);
/// After a denial, adds the time until a retry, `retry_after_ms`, or `never`.
void AddRetry(boost::json::object& to, const Decision& decision);

/// Returns a problem of a configuration. The member `place` names the value that has it.
[[nodiscard]] boost::json::object ProblemJson(const Problem& problem, std::string_view place);

/// Returns the conditions of a rule, or of an entry of `deny` or `exempt`, as the configuration
/// spells them. Patterns of headers that carry credentials are not shown.
[[nodiscard]] boost::json::object MatchJson(const MatchSpec& match);

/// Returns the override of a key: the operator's, or else the configuration's; null: none.
[[nodiscard]] boost::json::value OverrideOfKey(const OverrideTable& table, const Rule& rule,
                                               std::string_view key);

/// Returns an override as JSON, without its rule and key.
[[nodiscard]] boost::json::object OverrideJson(const OverrideTable& table,
                                               const OverrideTable::Entry& entry);

/// Returns the age of this node's copy of the fleet's overrides as `age_ms`, or `"known":false` if
/// there is no copy; an empty object if this node has no fleet.
[[nodiscard]] boost::json::object AgeJson(const SharedOverrides& of);

/// Returns all overrides as JSON; each says whether it is in force with `rules`.
[[nodiscard]] boost::json::object OverridesJson(const OverrideTable& table, const RuleSet& rules);

}  // namespace tidegate
