// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <unordered_map>

#include "rules/config_sections.hpp"
#include "rules/limit_text.hpp"
#include "rules/nearest.hpp"

namespace tidegate {
namespace {

constexpr std::size_t kMaxParts = 8;
/// A lease or a log entry takes some 16 bytes: 10 million of them are 160 MB for one key.
constexpr std::int64_t kMaxCeiling = 10'000'000;

/// The keys of a rule as they were read. They are checked together at the end of the rule, since
/// the quota depends on five of them. `nodes` points to the values in the file, valid or not.
struct RuleDraft {
  std::optional<std::string> id;
  MatchSpec match;
  Per per;
  std::optional<LimitText> limit;
  std::string limit_text;  ///< As written.
  std::optional<std::int64_t> burst;
  std::optional<Algorithm> algorithm = Algorithm::kTokenBucket;
  std::int64_t ceiling = QuotaSpec{}.ceiling;
  std::optional<std::int64_t> max_debt;
  CostSpec cost;
  std::optional<OnFailure> on_failure;
  Mode mode = Mode::kEnforce;
  bool announce = true;
  std::optional<DenialSpec> denial;

  struct Nodes {
    const YamlNode* id = nullptr;
    const YamlNode* match = nullptr;
    const YamlNode* per = nullptr;
    const YamlNode* limit = nullptr;
    const YamlNode* burst = nullptr;
    const YamlNode* ceiling = nullptr;
    const YamlNode* max_debt = nullptr;
    const YamlNode* cost = nullptr;
    const YamlNode* on_failure = nullptr;
    const YamlNode* overrides = nullptr;
  } nodes;
};

void ReadId(const ConfigValue& value, RuleDraft& draft) {
  draft.nodes.id = &value.node();
  auto id = value.Text("a short name");
  if (!id) return;
  if (!IsId(*id)) return value.Error(kIdGrammar);
  if (*id == "inline") {
    return value.Error("is the name that answers give to inline quotas; choose another one");
  }
  draft.id = *std::move(id);
}

void AddPart(const ConfigValue& value, Per& per) {
  const auto text = value.Text("a source, as in `client_ip` or `header:x-api-key`");
  if (!text) return;
  auto part = Per::ParsePart(*text);
  if (!part) return value.Error(part.error().message);
  if (std::find(per.parts.begin(), per.parts.end(), *part) != per.parts.end()) {
    return value.Error(Ticked(*text) + " stands here twice");
  }
  per.parts.push_back(*std::move(part));
}

void ReadPer(const ConfigValue& value, RuleDraft& draft) {
  draft.nodes.per = &value.node();
  if (value.is_list() && value.node().children.size() > kMaxParts) {
    return value.Error("a key of more than 8 parts");
  }
  value.EachItemOrOne("names nothing to count by; write `client_ip` or `const`",
                      [&](const ConfigValue& item) { AddPart(item, draft.per); });
}

void ReadLimit(const ConfigValue& value, RuleDraft& draft) {
  draft.nodes.limit = &value.node();
  const auto text = value.Text("a count and a period, as in `100/s`");
  if (!text) return;
  const auto limit = LimitText::Parse(*text);
  if (!limit) return value.Error(limit.error().message);
  draft.limit = *limit;
  draft.limit_text = *text;
}

void ReadBurst(const ConfigValue& value, RuleDraft& draft) {
  draft.nodes.burst = &value.node();
  draft.burst = value.Integer(1, std::numeric_limits<std::int64_t>::max());
}

void ReadAlgorithm(const ConfigValue& value, RuleDraft& draft) {
  std::array<std::string_view, kAlgorithms> names;
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = Name(static_cast<Algorithm>(i));
  draft.algorithm.reset();
  const auto text = value.Text("the name of an algorithm, as in `token_bucket`");
  if (!text) return;
  draft.algorithm = ParseAlgorithm(*text);
  if (draft.algorithm) return;
  std::string hint = DidYouMean(*text, names);
  if (hint.empty()) hint = ": choose one of " + OneOf(names);
  value.Error(Ticked(*text) + " is not an algorithm" + hint);
}

void ReadCost(const ConfigValue& value, RuleDraft& draft) {
  draft.nodes.cost = &value.node();
  const std::string_view raw = value.node().text;
  const auto colon = raw.find(':');
  if (!value.is_scalar() || colon == std::string_view::npos) {
    if (const auto fixed = value.Integer(1, kMaxCost)) draft.cost.fixed = *fixed;
    return;
  }
  const auto text = value.Text();
  if (!text) return;
  const std::string_view kind = std::string_view{*text}.substr(0, text->find(':'));
  const auto name =
      HeaderName(std::string_view{*text}.substr(std::min(kind.size() + 1, text->size())));
  if ((kind != "header" && kind != "response") || !name) {
    return value.Error(
        "should be a whole number, `header:NAME` (of the request) or `response:NAME` (a header of "
        "the response)");
  }
  draft.cost.kind = kind == "header" ? CostSpec::Kind::kHeader : CostSpec::Kind::kResponse;
  draft.cost.header = *name;
}

constexpr std::array<Choice<Mode>, 2> kModes = {
    {{"enforce", Mode::kEnforce}, {"shadow", Mode::kShadow}}};

constexpr std::array<ConfigKey<RuleDraft>, 14> kRuleKeys = {{
    {"id", ReadId},
    {"match",
     [](const ConfigValue& v, RuleDraft& d) {
       d.nodes.match = &v.node();
       ReadMatch(v, d.match);
     }},
    {"per", ReadPer},
    {"limit", ReadLimit},
    {"burst", ReadBurst},
    {"algorithm", ReadAlgorithm},
    {"ceiling",
     [](const ConfigValue& v, RuleDraft& d) {
       d.nodes.ceiling = &v.node();
       Put(d.ceiling, v.Integer(1, kMaxCeiling));
     }},
    {"max_debt",
     [](const ConfigValue& v, RuleDraft& d) {
       d.nodes.max_debt = &v.node();
       d.max_debt = v.Integer(0, std::numeric_limits<std::int64_t>::max());
     }},
    {"cost", ReadCost},
    {"on_failure",
     [](const ConfigValue& v, RuleDraft& d) {
       d.nodes.on_failure = &v.node();
       Put(d.on_failure, v.OneOf(kOnFailureWords));
     }},
    {"mode", [](const ConfigValue& v, RuleDraft& d) { Put(d.mode, v.OneOf(kModes)); }},
    {"announce", [](const ConfigValue& v, RuleDraft& d) { Put(d.announce, v.Bool()); }},
    {"denial", [](const ConfigValue& v, RuleDraft& d) { ReadDenial(v, d.denial); }},
    {"overrides", [](const ConfigValue& v, RuleDraft& d) { d.nodes.overrides = &v.node(); }},
}};

/// Tells a problem of one key of the rule, after all of them are read.
void ErrorAt(const ConfigValue& rule, const YamlNode* node, std::string_view key,
             std::string_view message) {
  const Where where{.parent = &rule.where(), .key = key};
  rule.context().Error(node->at, where, message);
}

void TellMissing(const ConfigValue& rule, const RuleDraft& draft) {
  if (draft.nodes.id == nullptr) rule.Error("needs an `id`, which names it in answers and metrics");
  if (draft.nodes.per == nullptr) {
    rule.Error(
        "needs `per`, which says whom it counts: `client_ip` for each address, `const` for all "
        "requests together");
  }
  if (draft.nodes.limit == nullptr) rule.Error("needs a `limit`, as in `limit: 100/s`");
}

std::optional<Quota> MakeQuota(const ConfigValue& rule, const RuleDraft& draft) {
  if (!draft.limit || !draft.algorithm || (draft.nodes.burst != nullptr && !draft.burst)) {
    return std::nullopt;
  }
  const bool list =
      *draft.algorithm == Algorithm::kSlidingLog || *draft.algorithm == Algorithm::kConcurrency;
  if (draft.nodes.ceiling != nullptr && !list) {
    ErrorAt(rule, draft.nodes.ceiling, "ceiling",
            "only `sliding_log` and `concurrency` have a ceiling; remove it");
  }
  if (draft.max_debt && *draft.algorithm == Algorithm::kConcurrency) {
    ErrorAt(rule, draft.nodes.max_debt, "max_debt",
            "`concurrency` has no debits, so nothing can be owed; remove it");
    return std::nullopt;
  }
  const auto quota = Quota::Make({.algorithm = *draft.algorithm,
                                  .limit = draft.limit->count,
                                  .period = draft.limit->period,
                                  .burst = draft.burst.value_or(0),
                                  .ceiling = draft.ceiling,
                                  .max_debt = draft.max_debt});
  if (quota) return *quota;
  // The burst is wrong exactly if the rule is valid without it.
  const bool burst = draft.burst && Quota::Make({.algorithm = *draft.algorithm,
                                                 .limit = draft.limit->count,
                                                 .period = draft.limit->period,
                                                 .burst = 0,
                                                 .ceiling = draft.ceiling});
  ErrorAt(rule, burst ? draft.nodes.burst : draft.nodes.limit, burst ? "burst" : "limit",
          quota.error().message);
  return std::nullopt;
}

void CheckCost(const ConfigValue& rule, const RuleDraft& draft, const Quota& quota) {
  if (draft.nodes.cost == nullptr) return;
  if (draft.cost.kind == CostSpec::Kind::kFixed && draft.cost.fixed > quota.capacity()) {
    ErrorAt(rule, draft.nodes.cost, "cost",
            "a cost of " + std::to_string(draft.cost.fixed) + " could never pass: the most that " +
                "fits at once is " + std::to_string(quota.capacity()));
  }
  if (draft.cost.kind == CostSpec::Kind::kResponse &&
      quota.algorithm() == Algorithm::kConcurrency) {
    ErrorAt(rule, draft.nodes.cost, "cost",
            "leases are counted while they are held, so a cost known afterwards has no meaning");
  }
}

/// Where each id was first seen.
using RuleIds = std::unordered_map<std::string, Position>;

void ReadRule(const ConfigValue& value, RuleIds& ids, ConfigDraft& config) {
  RuleDraft draft;
  ReadSection(value, kRuleKeys, draft);
  if (!value.is_map()) return;
  TellMissing(value, draft);
  if (draft.nodes.on_failure == nullptr && !config.places.undecided) {
    config.places.undecided = value.where().index;
  }
  if (draft.id) {
    const auto [first, fresh] = ids.emplace(*draft.id, draft.nodes.id->at);
    if (!fresh) {
      ErrorAt(value, draft.nodes.id, "id",
              Ticked(*draft.id) + " is the id of two rules; the first is on " +
                  LineOf(first->second, draft.nodes.id->at));
    }
  }
  const auto quota = MakeQuota(value, draft);
  if (quota) CheckCost(value, draft, *quota);
  std::vector<OverrideSpec> overrides;
  if (draft.nodes.overrides != nullptr) {
    const Where where{.parent = &value.where(), .key = "overrides"};
    overrides = ReadOverrides(ConfigValue(value.context(), *draft.nodes.overrides, where),
                              {draft.per, draft.algorithm.value_or(Algorithm::kTokenBucket),
                               draft.ceiling, draft.max_debt, draft.cost});
  }
  if (!quota || !draft.id || draft.per.parts.empty()) return;
  config.config.rules.push_back({*std::move(draft.id), std::move(draft.match), std::move(draft.per),
                                 *quota, std::move(draft.cost), draft.on_failure, draft.mode,
                                 draft.announce, std::move(draft.denial), std::move(overrides),
                                 value.at(), std::move(draft.limit_text)});
  const auto place = [](const YamlNode* node) { return node != nullptr ? node->at : Position{}; };
  config.places.rules.push_back({value.where().index, place(draft.nodes.per),
                                 place(draft.nodes.cost), place(draft.nodes.match)});
}

}  // namespace

bool IsId(std::string_view text) noexcept {
  return !text.empty() && text.size() <= kMaxId &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '.' || c == '_' || c == '-';
         });
}

void ReadRules(const ConfigValue& value, ConfigDraft& draft) {
  RuleIds ids;
  draft.places.rule_list = value.at();
  if (value.is_list()) draft.config.rules.reserve(value.node().children.size());
  value.EachItem([&](const ConfigValue& item) { ReadRule(item, ids, draft); });
}

void AppendRuleKeys(std::vector<SectionKeys>& sections) {
  sections.push_back(KeysOf("rule", kRuleKeys));
}

}  // namespace tidegate
