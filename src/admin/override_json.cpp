// SPDX-License-Identifier: Apache-2.0
#include "admin/override_json.hpp"

#include <utility>

#include "admin/admin_call.hpp"
#include "rules/limit_text.hpp"

namespace tidegate {
namespace {

namespace json = boost::json;

/// Returns why an override has no effect; empty if it is in force.
std::string WhyIdle(const OverrideTable::Entry& entry, const RuleSet& rules) {
  const Rule* const rule = rules.Find(entry.what.rule);
  if (rule == nullptr) return "there is no rule '" + entry.what.rule + "'";
  if (!rules.identifier().CouldBe(rule->per, entry.what.identity)) {
    return "the rule counts by " + rule->per.Text() + " now and has no key with this name";
  }
  if (entry.quota && entry.quota->algorithm() != rule->quota.algorithm()) {
    return "the rule counts by " + std::string(Name(rule->quota.algorithm())) +
           " now, but the override is for " + std::string(Name(entry.quota->algorithm()));
  }
  return {};
}

}  // namespace

json::object OverrideJson(const OverrideTable& table, const OverrideTable::Entry& entry) {
  json::object out{{"kind", JsonText(Name(entry.what.kind))}};
  if (entry.what.kind == Override::Kind::kQuota) {
    out["limit"] = entry.what.limit.Text();
    out["quota"] = QuotaText(*entry.quota);
    out["burst"] = entry.quota->capacity();
  }
  out["reason"] = entry.what.reason;
  out["by"] = entry.what.by;
  out["since_ms"] = entry.since_ms;
  if (entry.expires_ms) out["expires_ms"] = *entry.expires_ms;
  if (const auto left = table.Left(entry)) out["left_ms"] = JsonMillis(*left);
  return out;
}

json::object AgeJson(const FleetRegister& of) {
  if (of.local()) return {};
  const auto age = of.age();
  return age ? json::object{{"age_ms", age->count()}} : json::object{{"known", false}};
}

json::value OverrideOfKey(const OverrideTable& table, const Rule& rule, std::string_view key) {
  if (const auto* const said = table.Find(rule.id, key)) return OverrideJson(table, *said);
  const auto found = rule.overrides.find(key);
  if (found == rule.overrides.end()) return nullptr;
  const Quota& quota = found->second;
  return json::object{{"kind", JsonText(Name(Override::Kind::kQuota))},
                      {"from", "configuration"},
                      {"limit", rule.LimitOf(quota)},
                      {"quota", rule.TextOf(quota)},
                      {"burst", quota.capacity()}};
}

json::object OverridesJson(const OverrideTable& table, const RuleSet& rules) {
  json::array all;
  for (const OverrideTable::Entry* const each : table.Sorted()) {
    const OverrideTable::Entry& entry = *each;
    // The table still contains overrides that have ended.
    if (const auto left = table.Left(entry); left && *left == Micros{0}) continue;
    json::object one{{"rule", entry.what.rule}, {"key", entry.what.identity}};
    for (auto& member : OverrideJson(table, entry)) one[member.key()] = std::move(member.value());
    const std::string idle = WhyIdle(entry, rules);
    one["in_force"] = idle.empty();
    if (!idle.empty()) one["why"] = idle;
    all.push_back(std::move(one));
  }
  return {{"overrides", std::move(all)}};
}

}  // namespace tidegate
