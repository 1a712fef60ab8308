// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <ranges>
#include <span>

#include "admin/admin_call.hpp"
#include "gateway/fields.hpp"
#include "gateway/routing.hpp"
#include "net/http1_syntax.hpp"
#include "rules/match_spec.hpp"
#include "tidegate/limiter.hpp"

namespace tidegate {
namespace {

namespace json = boost::json;
using net::HttpExchange;

/// The largest number of rules listed that do not match.
constexpr std::size_t kMostUnmatched = 200;

/// Returns the names of an identity's sources.
std::string CountedBy(std::string_view identity) {
  std::string tags;
  for (const auto part : std::views::split(identity, '&')) {
    const std::string_view text(part.begin(), part.end());
    tags.append(tags.empty() ? "" : ", ").append(text.substr(0, text.find('=')));
  }
  return tags;
}

/// One explanation in progress. It peeks at all keys that the request would charge.
class Explanation final : public AdminCall {
 public:
  Explanation(AdminContext& context, HttpExchange& exchange)
      : AdminCall(context, exchange), all_(exchange.memory()) {}

  std::optional<Objection> Prepare(Question& question);
  void Begin() {
    call_.kind = Call::Kind::kPeek;
    call_.Start(this);
  }

 private:
  /// If the request goes to the gateway, adds the route and the gateway's settings.
  std::optional<Objection> PrepareGateway(Question& question);
  /// Removes header fields that the gateway would not forward, because its rules do not see them.
  std::optional<Objection> KeepForwardedFields(Question& question);
  std::optional<Objection> PrepareRequest(const Question& question);
  /// Adds the first entry of `specs` (the entries of `deny` or `exempt`) that matches.
  void SetEntry(std::span<const MatchSpec> specs, const RequestView& view);
  std::optional<Objection> PrepareRule(const Question& question);
  /// Prepares a question that names a key by `key`, as `hot` and `inspect` show it.
  std::optional<Objection> PrepareKey(const Question& question);
  void OnDecided(DecisionCall& call) noexcept override;
  /// Returns the answer that the request would get now.
  [[nodiscard]] tidegate::Answer Foresee();
  [[nodiscard]] json::object RuleJson(std::size_t i) const;
  [[nodiscard]] std::string_view OutcomeName() const;

  const Routing* routing_ = nullptr;  ///< nullptr: the request does not go to the gateway.
  const Route* route_ = nullptr;
  Charges all_;  ///< The charges as if there were no ban or allowance.
  json::object out_;
  json::array unmatched_;
  std::size_t considered_ = 0;
  std::size_t left_out_ = 0;
  std::vector<Decision> before_;
};

void Explanation::SetEntry(std::span<const MatchSpec> specs, const RequestView& view) {
  const auto entry = std::ranges::find_if(
      specs, [&](const MatchSpec& spec) { return WhyNot(spec, view).empty(); });
  out_["entry"] = entry - specs.begin();
  out_["entry_match"] = MatchJson(*entry);
}

std::optional<Objection> Explanation::PrepareRequest(const Question& question) {
  const RuleSet& rules = *snapshot().rules;
  std::pmr::memory_resource& memory = exchange_.memory();
  RequestView view;
  if (auto bad = ViewOf(question, rules, view, memory)) return bad;
  json::object shown{{"method", JsonText(view.method)}, {"path", JsonText(view.path)}};
  if (!view.host.empty()) shown["host"] = JsonText(view.host);
  if (view.has_client) shown["client_ip"] = view.client.Text();
  out_["request"] = std::move(shown);
  const auto seen = rules.Match(view, question.cost_if_given(), question.lease,
                                {overrides_.get(), true}, all_, memory);
  if (!seen) return Objection{StatusOf(seen.error().code), seen.error().message, "/request"};
  if (*seen == Access::kDenied) {
    SetEntry(rules.denied(), view);
  } else if (rules.IsExemptPreflight(view)) {
    out_["preflight"] = true;
  } else if (*seen == Access::kExempt && all_.exempted.empty()) {
    SetEntry(rules.exempt(), view);
  }
  if (out_.contains("entry") || out_.contains("preflight")) return std::nullopt;
  considered_ = rules.rules().size();
  for (const Rule& rule : rules.rules()) {
    std::string why = WhyNot(rules.matches()[rule.number], view);
    if (why.empty()) continue;
    if (unmatched_.size() == kMostUnmatched) {
      ++left_out_;
      continue;
    }
    unmatched_.push_back(json::object{{"rule", rule.id}, {"matched", false}, {"why", why}});
  }
  return std::nullopt;
}

std::optional<Objection> Explanation::PrepareKey(const Question& question) {
  considered_ = 1;
  if (question.Has(Question::kLease)) {
    return Objection{400, "`lease` cannot be used with `key`", "/lease"};
  }
  if (auto bad = ResolveKey(question, all_)) return bad;
  const auto access = snapshot().rules->ResolveKey(question.rule, question.key,
                                                   {overrides_.get(), false}, call_.matched);
  call_.access = *access;  // Cannot fail: ResolveKey succeeded for the same key.
  if (!question.Has(Question::kCost)) return std::nullopt;
  if (question.cost < 1 || question.cost > kMaxCost) {
    return Objection{400, "`cost` must be between 1 and 2147483647", "/cost"};
  }
  for (Charges* const charges : {&all_, &call_.matched}) {
    for (Charge& charge : charges->charges) charge.cost = question.cost;
  }
  return std::nullopt;
}

std::optional<Objection> Explanation::PrepareRule(const Question& question) {
  considered_ = 1;
  const auto seen = snapshot().rules->Resolve(
      {question.rule, question.identity, question.cost_if_given(), question.lease},
      {overrides_.get(), true}, all_, exchange_.memory());
  if (!seen) return Objection{StatusOf(seen.error().code), seen.error().message, "/rule"};
  return std::nullopt;
}

std::optional<Objection> Explanation::KeepForwardedFields(Question& question) {
  auto head = std::make_unique<net::HttpHead>();
  if (question.headers.size() > net::HttpHead::kMaxFields) {
    return Objection{400, "`headers` has more than 128 lines: send fewer", "/request/headers"};
  }
  head->host = question.host;
  net::http1::ConnectionOptions options;
  for (const HeaderField& field : question.headers) {
    head->fields[head->field_count++] = {field.name, field.value};
    if (EqualsIgnoreCase(field.name, "connection")) (void)options.Add(field.value);
  }
  head->upgrade = options.upgrade;
  const RuleSet& rules = *snapshot().rules;
  const auto peer = Address::Parse(question.peer);
  RequestFields fields;
  if (!fields.Classify(*head, {.trusted = peer && rules.client_policy().Trusts(*peer),
                               .underscores = routing_->gateway().underscores,
                               .rules = rules})) {
    return Objection{400, "the Connection header names too many header fields: send fewer",
                     "/request/headers"};
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < head->field_count; ++i) {
    if (fields.VisibleToRules(i, *head)) question.headers[kept++] = question.headers[i];
  }
  question.headers.resize(kept);
  return std::nullopt;
}

std::optional<Objection> Explanation::PrepareGateway(Question& question) {
  if (!question.Has(Question::kListener) || question.listener == "api") return std::nullopt;
  if (question.listener != "gateway") {
    return Objection{400,
                     "`listener` must be `api` or `gateway`: others have no request attributes",
                     "/listener"};
  }
  if (!question.Has(Question::kRequest)) {
    return Objection{400, "`request` is required to explain a gateway request", "/listener"};
  }
  routing_ = snapshot().routes.get();
  if (routing_ == nullptr) return Objection{400, "this node has no gateway", "/listener"};
  if (question.Has(Question::kCost)) {
    return Objection{400, "`cost` is not allowed for a gateway request", "/cost"};
  }
  if (question.Has(Question::kLease)) {
    return Objection{400, "`lease` is not allowed for a gateway request", "/lease"};
  }
  const std::string_view method = question.method;
  if (method == "CONNECT" || method == "TRACE" || !net::http1::All(method, net::http1::kToken)) {
    return Objection{400, "the gateway does not allow this method", "/request/method"};
  }
  if (question.client_ip.empty() && question.peer.empty()) {
    return Objection{400,
                     "`client_ip` or `peer` (the address that connects) is required to explain a "
                     "gateway request",
                     "/request"};
  }
  const auto is_host = [](const HeaderField& field) {
    return EqualsIgnoreCase(field.name, "host");
  };
  if (!question.host.empty() && std::ranges::none_of(question.headers, is_host)) {
    question.headers.push_back({"host", question.host});
  }
  question.gateway.through = true;
  question.gateway.keep_slashes = !routing_->gateway().merge_slashes;
  if (auto bad = KeepForwardedFields(question)) return bad;
  RequestView view;
  if (auto bad = ViewOf(question, *snapshot().rules, view, exchange_.memory())) return bad;
  route_ = routing_->Find(view);
  if (!routing_->AllowsPathOf(view, route_)) {
    return Objection{400, InvalidPath(question.path, PathError::kEncodedSeparator),
                     "/request/path"};
  }
  if (route_ != nullptr) question.gateway.route = route_->spec.id;
  return std::nullopt;
}

std::optional<Objection> Explanation::Prepare(Question& question) {
  if (question.Has(Question::kRequest) == question.Has(Question::kRule)) {
    return Objection{400, "send a `request`, or a `rule` and an `identity` or `key`", {}};
  }
  if (auto bad = PrepareGateway(question)) return bad;
  if (question.Has(Question::kKey)) return PrepareKey(question);
  // The frontends call Resolve too, so errors and charges are the same.
  if (auto bad =
          Resolve(question, Call::Kind::kPeek, InlineQuotas::kRefused, call_, exchange_.memory())) {
    return bad;
  }
  return question.Has(Question::kRequest) ? PrepareRequest(question) : PrepareRule(question);
}

tidegate::Answer Explanation::Foresee() {
  before_.assign(call_.decisions.begin(), call_.decisions.end());
  for (std::size_t i = 0; i < call_.charges.size(); ++i) {
    const Charge& charge = call_.charges[i];
    Decision& after = call_.decisions[i];
    if (call_.allowed && after.allowed && charge.lease.empty()) {
      after.remaining = std::max<std::int64_t>(0, after.remaining - charge.cost);
    }
  }
  return call_.answer();
}

json::object Explanation::RuleJson(std::size_t i) const {
  const Charge& charge = all_.charges[i];
  const Rule& rule = *all_.rules[i];
  json::object one{{"rule", rule.id},
                   {"matched", true},
                   {"match", MatchJson(snapshot().rules->matches()[rule.number])},
                   {"per", rule.per.Text()},
                   {"counted_by", CountedBy(charge.identity)},
                   {"key", JsonText(charge.identity)}};
  if (std::string stored = context_.StoredAs(charge); !stored.empty()) one["stored_as"] = stored;
  AddQuota(one, rule, *charge.quota);
  one["cost"] = charge.cost;
  one["mode"] = JsonText(Name(charge.mode));
  one["on_failure"] = JsonText(Name(charge.on_failure));
  if (json::value override = OverrideOfKey(*overrides_, rule, charge.identity);
      !override.is_null()) {
    one["override"] = std::move(override);
  }
  // Several cookie values make several charges of one rule, each with its own identity.
  const auto& charges = call_.matched.charges;
  std::size_t at = 0;
  while (at < charges.size() &&
         (call_.matched.rules[at] != &rule || charges[at].identity != charge.identity)) {
    ++at;
  }
  if (at == charges.size()) return one;
  const Decision& was = before_[at];
  one["allowed"] = was.allowed;
  one["decided_by"] = JsonText(Name(was.decided_by));
  one["reason"] = JsonText(Name(was.reason));
  if (IsCounted(was)) {
    // `of` is this node's share of the quota if it decides alone.
    one["before"] = json::object{{"remaining", was.remaining},
                                 {"of", was.limit},
                                 {"reset_after_ms", JsonMillis(was.reset_after)}};
    if (charge.lease.empty())
      one["after"] = json::object{{"remaining", call_.decisions[at].remaining}};
  }
  AddRetry(one, was);
  return one;
}

std::string_view Explanation::OutcomeName() const {
  if (call_.access == Access::kDenied) return "deny";
  if (call_.access == Access::kBanned) return "banned";
  if (call_.access == Access::kExempt && call_.matched.exempted.empty()) return "exempt";
  const bool counted = call_.access == Access::kRules && !call_.matched.charges.empty();
  return counted ? "rules" : "uncounted";
}

void Explanation::OnDecided(DecisionCall& call) noexcept {
  if (call.error) return Fail(StatusOf(call.error->code), call.error->message);
  const tidegate::Answer answer = Foresee();
  // The gateway decides before it routes.
  const bool lost = routing_ != nullptr && route_ == nullptr && answer.status() == 200;
  json::object head{{"allowed", answer.allowed},
                    {"status", lost ? 404 : answer.status()},
                    {"outcome", JsonText(OutcomeName())}};
  if (routing_ != nullptr) {
    head["route"] = route_ == nullptr ? json::value(nullptr) : json::value(route_->spec.id);
  }
  if (answer.governing != nullptr) {
    const Decision& governing = *answer.governing;
    head["rule"] = JsonText(governing.rule);
    // A ban without an end may still be lifted.
    if (!answer.allowed && governing.never && !answer.banned()) head["never"] = true;
    if (!answer.allowed && !governing.never) {
      head["retry_after_ms"] = JsonMillis(governing.retry_after);
    }
  }
  AddAll(head, std::move(out_));
  json::array rules;
  for (std::size_t i = 0; i < all_.charges.size(); ++i) rules.push_back(RuleJson(i));
  for (auto& each : unmatched_) rules.push_back(std::move(each));
  head["rules"] = std::move(rules);
  head["considered"] = considered_;
  head["left_out"] = left_out_;
  Answer(head);
}

}  // namespace

void Explain(AdminContext& context, HttpExchange& exchange, Question& question) {
  BeginAdminCall<Explanation>(context, exchange, question);
}

}  // namespace tidegate
