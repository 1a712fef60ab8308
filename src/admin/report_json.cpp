// SPDX-License-Identifier: Apache-2.0
#include "admin/report_json.hpp"

#include "rules/limit_text.hpp"

namespace tidegate {

namespace json = boost::json;

namespace {

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

json::string JsonText(std::string_view text) { return json::string(text.data(), text.size()); }

std::int64_t JsonMillis(Micros duration) {
  return std::chrono::ceil<std::chrono::milliseconds>(duration).count();
}

void AddAll(json::object& to, json::object members) {
  for (auto& member : members) to[member.key()] = std::move(member.value());
}

std::string_view Name(OnFailure policy) noexcept {
  return policy == OnFailure::kOpen ? "open" : policy == OnFailure::kClosed ? "closed" : "local";
}

std::string_view Name(Mode mode) noexcept { return mode == Mode::kShadow ? "shadow" : "enforce"; }

void AddQuota(json::object& to, const Rule& rule, const Quota& quota) {
  to["algorithm"] = JsonText(Name(quota.algorithm()));
  to["limit"] = rule.LimitOf(quota);
  to["quota"] = rule.TextOf(quota);
  to["capacity"] = quota.capacity();
}

void AddRetry(json::object& to, const Decision& decision) {
  if (decision.never) {
    to["never"] = true;
  } else if (!decision.allowed) {
    to["retry_after_ms"] = JsonMillis(decision.retry_after);
  }
}

json::object ProblemJson(const Problem& problem, std::string_view place) {
  const bool error = problem.severity == Problem::Severity::kError;
  json::object out{{"severity", error ? "error" : "warning"}};
  if (!problem.at.file.is_main()) out["file"] = JsonText(problem.at.file.path());
  out["line"] = problem.at.line;
  out["column"] = problem.at.column;
  out[place] = problem.where;
  out["message"] = problem.message;
  return out;
}

json::object MatchJson(const MatchSpec& match) {
  json::object out;
  const auto list = [&](const char* name, const std::vector<std::string>& items) {
    if (!items.empty()) out[name] = json::array(items.begin(), items.end());
  };
  list("host", match.hosts);
  list("path", match.ShownPaths());
  list("method", match.methods);
  if (!match.headers.empty()) {
    json::object headers;
    for (const auto& header : match.headers) headers[header.name] = ShownPattern(header);
    out["header"] = std::move(headers);
  }
  if (!match.client_ips.empty()) {
    json::array networks;
    for (const Network& network : match.client_ips) networks.emplace_back(network.Text());
    out["client_ip"] = std::move(networks);
  }
  const auto nested = [&](const char* name, const std::vector<MatchSpec>& specs) {
    if (specs.empty()) return;
    json::array matches;
    for (const MatchSpec& spec : specs) matches.push_back(MatchJson(spec));
    out[name] = std::move(matches);
  };
  nested("any", match.any);
  nested("not", match.none);
  return out;
}

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

json::object AgeJson(const SharedOverrides& of) {
  if (of.local()) return {};
  const auto age = of.age();
  return age ? json::object{{"age_ms", age->count()}} : json::object{{"known", false}};
}

json::value OverrideOfKey(const OverrideTable& table, const Rule& rule, std::string_view key) {
  if (const auto* const entry = table.Find(rule.id, key)) return OverrideJson(table, *entry);
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
  for (const OverrideTable::Entry* const entry : table.Sorted()) {
    // The table still contains overrides that have ended.
    if (table.Left(*entry) == Micros{0}) continue;
    json::object one{{"rule", entry->what.rule}, {"key", entry->what.identity}};
    AddAll(one, OverrideJson(table, *entry));
    const std::string idle = WhyIdle(*entry, rules);
    one["in_force"] = idle.empty();
    if (!idle.empty()) one["why"] = idle;
    all.push_back(std::move(one));
  }
  return {{"overrides", std::move(all)}};
}

}  // namespace tidegate
