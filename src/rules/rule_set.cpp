// SPDX-License-Identifier: Apache-2.0
#include "rules/rule_set.hpp"

#include <algorithm>
#include <array>
#include <expected>
#include <utility>

#include "base/ascii.hpp"
#include "base/failure.hpp"
#include "base/message_text.hpp"
#include "base/units.hpp"
#include "identity/source_value.hpp"
#include "rules/limit_text.hpp"

namespace tidegate {
namespace {

/// Returns the specs in the form in which they are compared with requests.
std::vector<MatchSpec> Comparable(std::span<const MatchSpec> given, const PathPolicy& paths) {
  std::vector<MatchSpec> specs(given.begin(), given.end());
  if (paths.ignore_case) std::ranges::for_each(specs, IgnorePathCase);
  return specs;
}

std::vector<MatchSpec> MatchesOf(std::span<const RuleSpec> rules) {
  std::vector<MatchSpec> matches;
  for (const RuleSpec& rule : rules) matches.push_back(rule.match);
  return matches;
}

bool IsCookie(const Source& source) noexcept { return source.kind == Source::Kind::kCookie; }

/// Returns the cost of a request under `rule`. A cost header counts only if the request is trusted.
Result<std::int64_t> CostOf(const Rule& rule, const RequestView& request) {
  if (rule.cost.kind != CostSpec::Kind::kHeader || !request.trusted) return rule.cost.fixed;
  const std::string_view text = FindHeader(request.headers, rule.cost.header);
  if (text.empty()) return rule.cost.fixed;
  if (const auto cost = ParseNumber<std::int64_t>(text, 1, kMaxCost)) return *cost;
  return Failure(ErrorCode::kBadCharge, "invalid cost in header " + rule.cost.header + ": `" +
                                            Printable(text) + "` is not a whole number from 1 to " +
                                            std::to_string(kMaxCost));
}

/// Returns true for a CORS preflight request, which a browser sends before a request to another
/// origin (Fetch, 3.2.2): it has no body, and each of the two fields once.
bool IsPreflight(const RequestView& request) noexcept {
  if (request.method != "OPTIONS" || request.has_body) return false;
  const auto once = [&](std::string_view name) {
    return !FindHeader(request.headers, name).empty() &&
           std::ranges::count_if(request.headers, [name](const HeaderField& field) {
             return EqualsIgnoreCase(field.name, name);
           }) == 1;
  };
  return once("origin") && once("access-control-request-method");
}

void AddCharge(const Rule& rule, std::string_view identity, std::int64_t cost,
               std::string_view lease, const OverrideView& overrides, Charges& charges) {
  const bool leases = rule.quota.algorithm() == Algorithm::kConcurrency;
  const Quota* quota = &rule.QuotaOf(identity);
  if (const auto* const said = overrides.Find(rule.id, identity)) {
    const Override::Kind kind = said->what.kind;
    if (kind == Override::Kind::kQuota && said->quota->algorithm() == quota->algorithm()) {
      quota = &*said->quota;
      if (charges.kept == nullptr) charges.kept = overrides.table->shared_from_this();
    } else if (kind == Override::Kind::kBan && !overrides.quotas_only) {
      // A ban applies whatever the rule's mode is, because an operator made it for this one key.
      if (charges.ban.rule == nullptr) {
        charges.ban = {&rule, identity, overrides.table->Left(*said)};
      }
    } else if (kind == Override::Kind::kAllow && !overrides.quotas_only) {
      charges.exempted.push_back(&rule);
      return;
    }
  }
  charges.Add({.rule = rule.id,
               .identity = identity,
               .quota = quota,
               .cost = cost,
               .mode = rule.mode,
               .lease = leases ? lease : std::string_view{},
               .on_failure = rule.on_failure},
              &rule);
}

/// Returns the access that results after all charges were added.
Access AccessOf(Charges& charges) {
  if (charges.ban.rule != nullptr) {
    charges.charges.Clear();
    charges.rules.Clear();
    return Access::kBanned;
  }
  return charges.charges.empty() && !charges.exempted.empty() ? Access::kExempt : Access::kRules;
}

/// Returns false if a match is too large: each of its hosts is indexed with each of its paths.
bool CheckSizes(std::span<const RuleSpec> rules, Problems& problems) {
  constexpr std::size_t kMost = 10'000;
  bool good = true;
  for (std::size_t i = 0; i < rules.size(); ++i) {
    const MatchSpec& match = rules[i].match;
    if (match.hosts.size() * match.paths.size() <= kMost) continue;
    good = false;
    problems.push_back(
        {Problem::Severity::kError, rules[i].at, "rules[" + std::to_string(i) + "].match",
         std::to_string(match.hosts.size()) + " hosts times " + std::to_string(match.paths.size()) +
             " paths are more than 10000 combinations: split the rule"});
  }
  return good;
}

}  // namespace

std::string Rule::LimitOf(const Quota& of) const {
  return &of == &quota && !limit.empty() ? limit : LimitText{of.limit(), of.period()}.Text();
}

std::string Rule::TextOf(const Quota& of) const {
  return QuotaText(of, &of == &quota ? std::string_view(limit) : std::string_view{});
}

RuleSet::RuleSet(const RuleSetSpec& spec, std::shared_ptr<const Identifier> identifier)
    : identifier_(std::move(identifier)),
      client_policy_(spec.client_policy),
      paths_(spec.paths),
      on_failure_(spec.on_failure),
      matches_(Comparable(MatchesOf(spec.rules), spec.paths)),
      denied_(Comparable(spec.deny, spec.paths)),
      exempted_(Comparable(spec.exempt, spec.paths)),
      exempt_preflights_(spec.exempt_preflights),
      deny_(denied_),
      exempt_(exempted_),
      index_(matches_) {
  rules_.reserve(spec.rules.size());
}

bool RuleSet::ReadsHeader(std::string_view name) const noexcept {
  return std::ranges::any_of(
      headers_read_, [name](const std::string& header) { return EqualsIgnoreCase(header, name); });
}

bool RuleSet::ReadsSpelling(std::string_view name) const noexcept {
  const auto fold = [](char c) { return c == '_' ? '-' : Lower(c); };
  return std::ranges::any_of(headers_read_, [&](const std::string& header) {
    return std::ranges::equal(header, name, {}, fold, fold);
  });
}

void RuleSet::NoteHeaders(const MatchSpec& spec) {
  EachHeader(spec,
             [this](const MatchSpec::Header& header) { headers_read_.push_back(header.name); });
}

void RuleSet::NoteHeaders(const RuleSpec& spec) {
  for (const Per::Part& part : spec.per.parts) {
    for (const Source& source : part) {
      if (source.kind == Source::Kind::kHeader) headers_read_.push_back(source.name);
      if (source.kind == Source::Kind::kCookie) headers_read_.emplace_back("cookie");
      if (source.kind == Source::Kind::kJwt) headers_read_.emplace_back("authorization");
    }
  }
  NoteHeaders(spec.match);
  if (spec.cost.kind == CostSpec::Kind::kHeader) headers_read_.push_back(spec.cost.header);
}

std::shared_ptr<const RuleSet> RuleSet::Compile(const RuleSetSpec& spec,
                                                std::shared_ptr<const Identifier> identifier,
                                                Problems& problems) {
  const std::size_t before = problems.size();
  if (!CheckSizes(spec.rules, problems)) return nullptr;
  std::shared_ptr<RuleSet> set(new RuleSet(spec, std::move(identifier)));
  for (const RuleSpec& rule : spec.rules) {
    set->AddRule(rule, problems);
    set->NoteHeaders(rule);
  }
  for (const auto specs : {spec.deny, spec.exempt}) {
    for (const MatchSpec& match : specs) set->NoteHeaders(match);
  }
  std::ranges::sort(set->headers_read_);
  const auto same = std::ranges::unique(set->headers_read_);
  set->headers_read_.erase(same.begin(), same.end());
  // Do this last: the map points to the strings of `rules_`, which must not move any more.
  for (const Rule& rule : set->rules_) set->by_id_.emplace(rule.id, rule.number);
  for (std::size_t i = before; i < problems.size(); ++i) {
    if (problems[i].severity == Problem::Severity::kError) return nullptr;
  }
  return set;
}

void RuleSet::AddRule(const RuleSpec& spec, Problems& problems) {
  Rule rule{.id = spec.id,
            .number = static_cast<std::uint32_t>(rules_.size()),
            .per = spec.per,
            .counts_like = by_per_.emplace(spec.per.Text(), rules_.size()).first->second,
            .counts_cookies = spec.per.Find(IsCookie) != nullptr,
            .quota = spec.quota,
            .cost = spec.cost,
            .on_failure = spec.on_failure.value_or(on_failure_),
            .mode = spec.mode,
            .announce = spec.announce,
            .overrides = {},
            .limit = spec.limit,
            .denial = spec.denial};
  for (std::size_t i = 0; i < spec.overrides.size(); ++i) {
    const OverrideSpec& other = spec.overrides[i];
    std::vector<NamedValue> values;
    for (const auto& value : other.identity) values.push_back({value.source, value.value});
    std::pmr::monotonic_buffer_resource memory;
    const auto identity = identifier_->FromValues(rule.per, values, memory);
    const std::string where =
        "rules[" + std::to_string(rule.number) + "].overrides[" + std::to_string(i) + "].identity";
    if (!identity) {
      problems.push_back({Problem::Severity::kError, other.at, where, identity.error().message});
    } else if (!rule.overrides.emplace(std::string(*identity), other.quota).second) {
      problems.push_back({Problem::Severity::kError, other.at, where,
                          "this identity has an override already; keep one of them"});
    }
  }
  rules_.push_back(std::move(rule));
}

const Rule* RuleSet::Find(std::string_view id) const noexcept {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : &rules_[found->second];
}

Error RuleSet::Unknown(std::string_view rule) const {
  // With thousands of rules, the search for a similar name would delay all callers by 1 ms.
  std::vector<std::string_view> ids;
  for (const Rule& known : rules_) {
    if (rules_.size() <= 256 && !known.hidden()) ids.push_back(known.id);
  }
  return {ErrorCode::kUnknownRule,
          "there is no rule '" + Printable(rule) + "'" + DidYouMean(rule, ids)};
}

Result<Access> RuleSet::ResolveKey(std::string_view id, std::string_view identity,
                                   const OverrideView& overrides, Charges& charges) const {
  const Rule* const rule = Find(id);
  if (rule == nullptr) return std::unexpected(Unknown(id));
  if (identity.contains("=#")) {
    return Failure(
        ErrorCode::kBadCharge,
        "a key with `#` is hashed for display and cannot be looked up: name it by its `identity`, "
        "or show keys with `metrics: {key_names: plain}`");
  }
  if (!identifier_->CouldBe(rule->per, identity)) {
    return Failure(ErrorCode::kBadCharge,
                   "this cannot be a key of rule '" + rule->id + "', which counts by " +
                       rule->per.Text() +
                       ": keys have a value of each, masked and hashed as `inspect` shows them");
  }
  AddCharge(*rule, identity, rule->cost.fixed, {}, overrides, charges);
  return AccessOf(charges);
}

Result<Access> RuleSet::Resolve(const RuleQuestion& question, const OverrideView& overrides,
                                Charges& charges, std::pmr::memory_resource& memory) const {
  const Rule* const rule = Find(question.rule);
  if (rule == nullptr) return std::unexpected(Unknown(question.rule));
  const auto identity = identifier_->FromValues(rule->per, question.identity, memory);
  if (!identity) return std::unexpected(identity.error());
  AddCharge(*rule, *identity, question.cost.value_or(rule->cost.fixed), question.lease, overrides,
            charges);
  return AccessOf(charges);
}

/// Rules often share a `per`: reusing its identity verifies a token and hashes a key only once.
Result<std::string_view> RuleSet::IdentityOf(const Rule& rule, const RequestView& request,
                                             const Charges& charges,
                                             std::pmr::memory_resource& memory) const {
  for (std::size_t i = 0; i < charges.rules.size(); ++i) {
    if (charges.rules[i] != nullptr && charges.rules[i]->counts_like == rule.counts_like) {
      return charges.charges[i].identity;
    }
  }
  return identifier_->FromRequest(rule.per, request, memory);
}

bool RuleSet::IsExemptPreflight(const RequestView& request) const {
  return exempt_preflights_ && IsPreflight(request) && !exempt_.MatchesEveryReading(request);
}

Result<Access> RuleSet::Match(const RequestView& request, std::optional<std::int64_t> cost,
                              std::string_view lease, const OverrideView& overrides,
                              Charges& charges, std::pmr::memory_resource& memory) const {
  std::array<std::uint32_t, kMaxCharges> found;
  if (deny_.Find(request, {found.data(), 1}) != 0) return Access::kDenied;
  // `exempt` removes limits, so it applies only if no server could read a path that does not match.
  if (exempt_.MatchesEveryReading(request)) return Access::kExempt;
  if (IsExemptPreflight(request)) return Access::kExempt;
  const std::size_t count = index_.Find(request, found);
  if (count > found.size()) {
    return Failure(ErrorCode::kTooManyRules,
                   "the request matches " + std::to_string(count) + " rules, and the most is " +
                       std::to_string(kMaxCharges) + ": make the rules' matches narrower");
  }
  for (std::size_t i = 0; i < count; ++i) {
    const Rule& rule = rules_[found[i]];
    const auto own_cost = cost ? Result<std::int64_t>(*cost) : CostOf(rule, request);
    if (!own_cost) return std::unexpected(own_cost.error());
    CookieChoice cookie;
    do {
      const auto identity = rule.counts_cookies
                                ? identifier_->FromRequest(rule.per, request, memory, &cookie)
                                : IdentityOf(rule, request, charges, memory);
      if (!identity) return std::unexpected(identity.error());
      AddCharge(rule, *identity, *own_cost, lease, overrides, charges);
    } while (++cookie.number < cookie.count);
  }
  if (charges.charges.size() > kMaxCharges) {
    return std::unexpected(
        Error{ErrorCode::kTooManyRules,
              "the request matches too many rules with several cookie values: the most is " +
                  std::to_string(kMaxCharges) + " charges"});
  }
  return AccessOf(charges);
}

}  // namespace tidegate
