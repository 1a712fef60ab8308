// SPDX-License-Identifier: Apache-2.0
// rules: what is counted, by which quota.
#include <algorithm>
#include <limits>
#include <unordered_map>

#include "base/message_text.hpp"
#include "config/sections.hpp"
#include "rules/limit_text.hpp"

namespace tidegate {
namespace {

constexpr std::size_t kMaxParts = 8;
/// A lease or a log entry takes some 16 bytes: 10 million of them are 160 MB for one key.
constexpr std::int64_t kMaxCeiling = 10'000'000;

/// A rule as it is read. Its quota is made at the end, since it depends on six keys; `limit` and
/// `burst` are 0 as long as no valid value was read.
struct RuleDraft : QuotaSpec {
  std::string id;
  MatchSpec match;
  Per per;
  CostSpec cost;
  std::optional<OnFailure> on_failure;
  Mode mode = Mode::kEnforce;
  bool announce = true;
  std::optional<DenialSpec> denial;
};

std::optional<std::string> ReadRuleId(const ConfigValue& value) {
  auto id = ReadId(value);
  if (id != "inline") return id;
  return value.Invalid("is reserved for inline quotas in responses; choose another id");
}

void AddPart(const ConfigValue& value, Per& per) {
  const auto text = value.Text("a source, as in `client_ip` or `header:x-api-key`");
  if (!text) return;
  auto part = Per::ParsePart(*text);
  if (!part) return value.Error(part.error().message);
  if (std::ranges::find(per.parts, *part) != per.parts.end()) {
    return value.Error(Backticked(*text) + " is listed twice");
  }
  per.parts.push_back(*std::move(part));
}

void ReadPer(const ConfigValue& value, RuleDraft& draft) {
  if (value.items() > kMaxParts) return value.Error("a key of more than 8 parts");
  value.EachItemOrOne("names nothing to count by; write `client_ip` or `const`",
                      [&](const ConfigValue& item) { AddPart(item, draft.per); });
}

std::optional<Algorithm> ReadAlgorithm(const ConfigValue& value) {
  const auto text = value.Text("the name of an algorithm, as in `token_bucket`");
  if (!text) return std::nullopt;
  if (const auto algorithm = ParseAlgorithm(*text)) return *algorithm;
  std::array<std::string_view, kAlgorithms> names;
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = Name(static_cast<Algorithm>(i));
  std::string hint = DidYouMean(*text, names);
  if (hint.empty()) hint = ": choose one of " + OneOf(names);
  return value.Invalid(Backticked(*text) + " is not an algorithm" + hint);
}

std::optional<CostSpec> ReadCost(const ConfigValue& value) {
  if (!value.is_scalar() || !value.node().text.contains(':')) {
    return value.Integer(1, kMaxCost).transform([](std::int64_t fixed) {
      return CostSpec{.fixed = fixed, .header = {}};
    });
  }
  const auto text = value.Text();
  if (!text) return std::nullopt;
  const std::string_view kind = std::string_view{*text}.substr(0, text->find(':'));
  const auto name =
      HeaderName(std::string_view{*text}.substr(std::min(kind.size() + 1, text->size())));
  if ((kind != "header" && kind != "response") || !name) {
    return value.Invalid(
        "should be a whole number, `header:NAME` (of the request) or `response:NAME` (a header of "
        "the response)");
  }
  return CostSpec{.kind = kind == "header" ? CostSpec::Kind::kHeader : CostSpec::Kind::kResponse,
                  .header = *name};
}

constexpr auto kModes = Words<Mode>({{"enforce", Mode::kEnforce}, {"shadow", Mode::kShadow}});

constexpr ValueType kSourceType{
    .schema =
        R"({"description": "Where an identity comes from; alternatives are separated by `|`, and the first that is present counts.",
        "type": "string", "examples": ["client_ip", "header:x-api-key | client_ip", "jwt:sub", "const"]})",
    .shown = "a source",
    .name = "source"};

constexpr std::int64_t kMaxInteger = std::numeric_limits<std::int64_t>::max();

constexpr auto kRuleFields = Fields({
    Value<&RuleDraft::id, ReadRuleId>("id", kIdType,
                                      "Names the rule in responses and metrics, and its keys in "
                                      "the store; unique in the configuration.")
        .Required("needs an `id`, which names the rule in responses and metrics"),
    Value<&RuleDraft::match, ReadMatch>("match", kMatchSection,
                                        "Which requests the rule applies to.")
        .Otherwise("everything"),
    Custom<ReadPer>("per",
                    ValueType{R"({"anyOf": [{"$ref": "#/$defs/source"},
        {"type": "array", "items": {"$ref": "#/$defs/source"}, "minItems": 1, "maxItems": 8}]})",
                              "a source, or a list of up to 8", nullptr, &kSourceType},
                    "What the rule counts by. A list makes one key of all its parts.")
        .Required("needs `per`, which defines what the rule counts by: `client_ip` for each "
                  "address, `const` for all requests together"),
    Custom<ReadLimit, RuleDraft>("limit", kLimitType,
                                 "How many units per period. For `concurrency`: how many leases at "
                                 "a time, and how long a lease lives.")
        .Required("needs a `limit`, as in `limit: 100/s`"),
    Integer<&QuotaSpec::burst, RuleDraft>("burst", 1, kMaxInteger,
                                          "The most units at once, for `token_bucket` and `gcra`.")
        .Otherwise("the limit's count"),
    Value<&QuotaSpec::algorithm, ReadAlgorithm, RuleDraft>(
        "algorithm",
        ValueType{
            R"({"enum": ["token_bucket", "sliding_log", "sliding_window", "fixed_window", "gcra", "concurrency"]})",
            "`token_bucket`, `gcra`, `sliding_log`, `sliding_window`, `fixed_window` or "
            "`concurrency`"},
        "How the rule counts; docs/algorithms compares them. Rules with "
        "`concurrency` do not apply to `/v1/auth`.")
        .Default("token_bucket"),
    Integer<&QuotaSpec::ceiling, RuleDraft>(
        "ceiling", 1, kMaxCeiling,
        "The largest limit for `sliding_log` and `concurrency`, whose memory grows with it."),
    Integer<&QuotaSpec::max_debt, RuleDraft>(
        "max_debt", 0, kMaxInteger,
        "How many units debits (`/v1/debit`, `TG.DEBIT`, costs of "
        "responses) may take a quota below empty, all together; 0: not "
        "at all. Units beyond it are not charged. Not for `concurrency`.")
        .Otherwise("10 times the burst, or the limit where there is no burst"),
    Value<&RuleDraft::cost, ReadCost>(
        "cost",
        ValueType{R"({"anyOf": [{"type": "integer", "minimum": 1, "maximum": 2147483647},
        {"type": "string", "pattern": "^(header|response):."}, {"$ref": "#/$defs/environment"}]})",
                  "1 to 2147483647, `header:NAME` or `response:NAME`"},
        "What a request costs: a number; `header:NAME` of the request, accepted from trusted "
        "proxies only, and never at `/v1/auth`; or `response:NAME`.")
        .Default("1"),
    OneOf<&RuleDraft::on_failure>("on_failure", kOnFailureWords,
                                  "What happens to requests when the store cannot answer.")
        .Otherwise("`store.on_failure`"),
    OneOf<&RuleDraft::mode>("mode", kModes, "`shadow` counts and reports but never denies."),
    Bool<&RuleDraft::announce>(
        "announce",
        "Whether clients can see the rule. With `false` the rule is hidden, as shadow rules are: "
        "no header field names it or shows its numbers, and no body does, except API responses to "
        "callers that name the rule, and all API responses with `api.hidden_rules: true`. A denial "
        "still has `Retry-After`."),
    Sub<&RuleDraft::denial>("denial", kDenialSection,
                            "How clients see that this rule denies a request.")
        .Otherwise("the route's `denial`, then `responses.denial`"),
    Later<RuleDraft>("overrides",
                     ValueType{R"({"type": "array", "items": {"$ref": "#/$defs/override"}})",
                               "a list of maps", &kOverrideSection},
                     "Other limits for some identities.")
        .Otherwise("none"),
});
constexpr Section<RuleDraft> kRuleTable("rule", kRuleFields);

std::optional<Quota> MakeQuota(const ConfigValue& rule, const RuleDraft& draft) {
  const ConfigValue burst = rule["burst"];
  if (draft.limit == 0 || rule["algorithm"].invalid() || burst.invalid()) return std::nullopt;
  const bool list =
      draft.algorithm == Algorithm::kSlidingLog || draft.algorithm == Algorithm::kConcurrency;
  if (const ConfigValue ceiling = rule["ceiling"]; ceiling.written() && !list) {
    ceiling.Error("only `sliding_log` and `concurrency` have a ceiling; remove the key");
  }
  if (draft.max_debt && draft.algorithm == Algorithm::kConcurrency) {
    rule["max_debt"].Error("`concurrency` has no debits, so it has no debt; remove the key");
    return std::nullopt;
  }
  const auto quota = Quota::Make(draft);
  if (quota) return *quota;
  // The burst is wrong exactly if the rule is valid without it.
  QuotaSpec without = draft;
  without.burst = 0;
  without.max_debt.reset();
  const bool is_burst = draft.burst != 0 && Quota::Make(without);
  (is_burst ? burst : rule["limit"]).Error(quota.error().message);
  return std::nullopt;
}

void CheckCost(const ConfigValue& rule, const CostSpec& cost, const Quota& quota) {
  if (!rule["cost"].written()) return;
  if (cost.kind == CostSpec::Kind::kFixed && cost.fixed > quota.capacity()) {
    rule["cost"].Error("a cost of " + std::to_string(cost.fixed) +
                       " could never pass: the most that fits at once is " +
                       std::to_string(quota.capacity()));
  }
  if (cost.kind == CostSpec::Kind::kResponse && quota.algorithm() == Algorithm::kConcurrency) {
    rule["cost"].Error(
        "`concurrency` counts a lease when a request begins, so the cost cannot come from the "
        "response; write a number or `header:NAME`");
  }
}

void CheckTokens(const ConfigValue& rule, const Per& per) {
  if (rule.Root()["identity"]["jwt"].written()) return;
  for (const Per::Part& part : per.parts) {
    for (const Source& source : part) {
      if (source.kind != Source::Kind::kJwt) continue;
      rule["per"].Error("counts by " + Backticked(source.Text()) +
                        ", but tokens cannot be verified without `identity.jwt`; add it");
    }
  }
}

/// Where each id was first seen.
using RuleIds = std::unordered_map<std::string, Position>;

void ReadRule(const ConfigValue& value, RuleIds& ids, Config& config) {
  RuleDraft draft;
  ReadSection(value, kRuleTable, draft);
  if (!value.is_map()) return;
  if (!draft.id.empty()) {
    const ConfigValue id = value["id"];
    const auto [first, is_new] = ids.emplace(draft.id, id.at());
    if (!is_new) {
      id.Error(Backticked(draft.id) + " is the id of two rules; the first is on " +
               LineOf(first->second, id.at()));
    }
  }
  const auto quota = MakeQuota(value, draft);
  if (quota) CheckCost(value, draft.cost, *quota);
  std::vector<OverrideSpec> overrides;
  if (const ConfigValue list = value["overrides"]; list.written()) {
    overrides = ReadOverrides(list, {draft.per, draft, draft.cost});
  }
  CheckTokens(value, draft.per);
  if (!quota || draft.id.empty() || draft.per.parts.empty()) return;
  // The text of the limit, with variables replaced, has been read without an error before.
  config.rules.push_back({std::move(draft.id), std::move(draft.match), std::move(draft.per), *quota,
                          std::move(draft.cost), draft.on_failure, draft.mode, draft.announce,
                          std::move(draft.denial), std::move(overrides), value.at(),
                          value["limit"].Text().value_or("")});
}

}  // namespace

constinit const SectionInfo kRuleSection = kRuleTable;

bool IsId(std::string_view text) noexcept {
  return !text.empty() && text.size() <= kMaxId && std::ranges::all_of(text, [](char c) {
    return IsAlphanumeric(c) || c == '.' || c == '_' || c == '-';
  });
}

std::optional<std::string> ReadId(const ConfigValue& value, std::string_view what) {
  auto id = value.Text(what);
  if (!id || IsId(*id)) return id;
  return value.Invalid(kIdGrammar);
}

void ReadLimit(const ConfigValue& value, QuotaSpec& quota) {
  const auto text = value.Text("a count and a period, as in `100/s`");
  if (!text) return;
  const auto limit = LimitText::Parse(*text);
  if (!limit) return value.Error(limit.error().message);
  quota.limit = limit->count;
  quota.period = limit->period;
}

void ReadRules(const ConfigValue& value, Config& config) {
  RuleIds ids;
  config.rules.reserve(value.items());
  value.EachItem([&](const ConfigValue& item) { ReadRule(item, ids, config); });
}

}  // namespace tidegate
