// SPDX-License-Identifier: Apache-2.0
#include "frontends/question.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/message_text.hpp"
#include "rules/limit_text.hpp"

namespace tidegate {
namespace {

Objection ObjectionOf(const Error& error, std::string pointer) {
  return {StatusOf(error.code), error.message, std::move(pointer)};
}

std::optional<Objection> ByRule(const Question& question, const OverrideView& overrides,
                                DecisionCall& call) {
  const auto access = call.snapshot().rules->Resolve({.rule = question.rule,
                                                      .identity = question.identity,
                                                      .cost = question.cost_if_given(),
                                                      .lease = call.Keep(question.lease)},
                                                     overrides, call.matched, call.memory());
  if (!access) {
    return ObjectionOf(access.error(),
                       access.error().code == ErrorCode::kUnknownRule ? "/rule" : "/identity");
  }
  call.access = *access;
  return std::nullopt;
}

/// Reads an IP address into `address`. `pointer` is the JSON pointer to `text`, for an objection.
std::optional<Objection> ReadAddress(std::string_view text, const char* pointer, Address& address) {
  const auto read = Address::Parse(text);
  if (!read) return Objection{400, "\"" + Printable(text) + "\" is not an IP address", pointer};
  address = *read;
  return std::nullopt;
}

/// Fills `view` with the normal form of the request's attributes.
std::optional<Objection> Normalise(const Question& question, const RuleSet& rules,
                                   RequestView& view, std::pmr::memory_resource& memory) {
  view.method = question.method.empty() ? std::string_view{"GET"} : question.method;
  if (!IsUpperCaseMethod(view.method)) {
    return Objection{400, LowerCaseMethod(view.method), "/request/method"};
  }
  view.query = question.query;
  view.headers = question.headers;
  view.trusted = !question.gateway.through;
  std::string_view path = question.path.empty() ? std::string_view{"/"} : question.path;
  if (const std::size_t mark = path.find('?'); mark != std::string_view::npos) {
    if (view.query.empty()) view.query = path.substr(mark + 1);
    path = path.substr(0, mark);
  }
  // At the gateway, the route decides about encoded slashes, and the caller checks them.
  const EncodedSlashes slashes =
      question.gateway.through ? EncodedSlashes::kMatch : rules.paths().encoded_slashes;
  const PathOptions options{
      .forwarding = question.gateway.through ? Forwarding::kNormalized : Forwarding::kAsSent,
      .forwarded_slashes = question.gateway.keep_slashes ? Slashes::kKeep : Slashes::kMerge,
      .ignore_case = rules.paths().ignore_case,
      .encoded_slashes = slashes};
  const auto read = ReadRequestPath(path, options, memory);
  if (!read) return Objection{400, InvalidPath(path, read.error()), "/request/path"};
  view.SetPath(*read);
  view.route = question.gateway.route;
  if (!question.host.empty()) {
    const auto host = NormalizeHost(question.host, memory);
    if (!host)
      return Objection{400, "`" + Printable(question.host) + "` is not a host name",
                       "/request/host"};
    view.host = *host;
  }
  if (!question.peer.empty() && !question.client_ip.empty()) {
    return Objection{400, "`client_ip` and `peer` exclude each other: send one of them",
                     "/request/peer"};
  }
  if (!question.client_ip.empty()) {
    if (auto bad = ReadAddress(question.client_ip, "/request/client_ip", view.client)) return bad;
    view.has_client = true;
  }
  return std::nullopt;
}

/// Finds the client's address from `peer`, the address that connected, and the headers.
std::optional<Objection> FindClient(const Question& question, const ClientAddressPolicy& policy,
                                    RequestView& view) {
  if (question.peer.empty()) return std::nullopt;
  Address peer;
  if (auto bad = ReadAddress(question.peer, "/request/peer", peer)) return bad;
  view.client = ClientAddress(policy, peer, view.headers);
  view.has_client = true;
  view.trusted = policy.Trusts(peer);
  return std::nullopt;
}

std::optional<Objection> ByRequest(const Question& question, const OverrideView& overrides,
                                   DecisionCall& call, std::pmr::memory_resource& scratch) {
  const RuleSet& rules = *call.snapshot().rules;
  RequestView view;
  if (auto bad = ViewOf(question, rules, view, scratch)) return bad;
  const auto access = rules.Match(view, question.cost_if_given(), call.Keep(question.lease),
                                  overrides, call.matched, call.memory());
  if (!access) return ObjectionOf(access.error(), "/request");
  call.access = *access;
  return std::nullopt;
}

std::optional<Objection> ByKey(const Question& question, DecisionCall& call) {
  if (question.key.empty()) return Objection{400, "the key is empty", "/key"};
  if (!question.Has(Question::kLimit)) {
    return Objection{400, "an inline quota needs a `limit`, such as \"100/s\"", "/limit"};
  }
  QuotaSpec spec{.origin = QuotaOrigin::kCaller};
  if (question.Has(Question::kAlgorithm)) {
    const auto algorithm = ParseAlgorithm(question.algorithm);
    if (!algorithm) {
      return Objection{400, "\"" + Printable(question.algorithm) + "\" is not an algorithm",
                       "/algorithm"};
    }
    spec.algorithm = *algorithm;
  }
  const auto limit = LimitText::Parse(question.limit);
  if (!limit) return ObjectionOf(limit.error(), "/limit");
  spec.limit = limit->count;
  spec.period = limit->period;
  if (question.Has(Question::kBurst)) {
    if (question.burst < 1) return Objection{400, "`burst` must be at least 1", "/burst"};
    spec.burst = question.burst;
  }
  auto quota = Quota::Make(spec);
  if (!quota) return ObjectionOf(quota.error(), "/limit");
  const auto error = AddInlineCharge(
      call, question.key, *quota, question.cost_if_given().value_or(1), call.Keep(question.lease));
  return error ? std::optional(ObjectionOf(*error, "/key")) : std::nullopt;
}

bool Leases(const Charge& charge) noexcept {
  return charge.quota->algorithm() == Algorithm::kConcurrency;
}

/// Returns an objection if a rule that may deny the request needs a lease and the question has
/// none; otherwise drops the charges of shadow rules that need a lease. The objection names the
/// rule only to callers that may know it.
std::optional<Objection> NeedsLease(const Question& question, Charges& charges) {
  const bool named = question.Has(Question::kRule);
  bool drops = false;
  for (std::size_t i = 0; i < charges.charges.size(); ++i) {
    const Charge& charge = charges.charges[i];
    if (!Leases(charge)) continue;
    if (charge.mode == Mode::kShadow && !named) {
      drops = true;
      continue;
    }
    const bool hidden = charges.rules[i] != nullptr && charges.rules[i]->hidden() && !named;
    const std::string rule = hidden ? "a rule" : "rule '" + std::string(charge.rule) + "'";
    return Objection{400, rule +
                              " counts requests that run at the same time: acquire a lease "
                              "(/v1/acquire, TG.ACQUIRE), with a `lease` of your choice"};
  }
  if (drops) charges.Filter([](const Charge& charge) { return !Leases(charge); });
  return std::nullopt;
}

/// Drops the charges to which `kind` does not apply: a request may match rules of several
/// algorithms, but only `concurrency` has leases, and only the others have debits and refunds.
std::optional<Objection> Concern(const Question& question, Call::Kind kind, Charges& charges) {
  if (charges.charges.empty()) return std::nullopt;  // No rule is counted.
  const bool on_leases = kind == Call::Kind::kRenew || kind == Call::Kind::kRelease;
  const bool on_units = kind == Call::Kind::kRefund || kind == Call::Kind::kDebit;
  if (kind == Call::Kind::kApply && question.lease.empty()) {
    if (auto bad = NeedsLease(question, charges)) return bad;
    if (charges.charges.empty()) return std::nullopt;
  }
  const bool any_lease = std::ranges::any_of(charges.charges, Leases);
  if (!question.lease.empty() && !any_lease) {
    return Objection{
        400, "only rules of algorithm concurrency have leases, and none applies to this request",
        "/lease"};
  }
  if (!on_leases && !on_units) return std::nullopt;
  charges.Filter([on_leases](const Charge& charge) { return Leases(charge) == on_leases; });
  if (charges.charges.empty()) {
    return Objection{
        400, "rules of algorithm concurrency have no debits or refunds: release the lease instead"};
  }
  return std::nullopt;
}

/// The maximum length of an id, in bytes. A longer id is a mistake or an attack on the memory.
constexpr std::size_t kMaxId = 256;

std::optional<Objection> CheckId(bool given, const char* name, std::string_view id) {
  if (!given || (!id.empty() && id.size() <= kMaxId)) return std::nullopt;
  const std::string quoted = "`" + std::string(name) + "`";
  return Objection{400, quoted + (id.empty() ? " is empty" : " is longer than 256 bytes"),
                   "/" + std::string(name)};
}

std::optional<Objection> CheckIds(const Question& question) {
  if (auto bad = CheckId(question.Has(Question::kLease), "lease", question.lease)) return bad;
  if (auto bad = CheckId(question.Has(Question::kId), "id", question.id)) return bad;
  constexpr std::int64_t kMaxAge = std::int64_t{1000} * 86'400 * 366;
  if (question.age_ms < 0 || question.age_ms > kMaxAge) {
    return Objection{400, "`age_ms` must be between 0 and one year", "/age_ms"};
  }
  return std::nullopt;
}

/// Checks the cost here, before any charge, so that the objection can point at the member `cost`.
std::optional<Objection> CheckCost(const Question& question) {
  if (!question.Has(Question::kCost) || (question.cost >= 1 && question.cost <= kMaxCost)) {
    return std::nullopt;
  }
  return Objection{400,
                   "the cost is " + std::to_string(question.cost) +
                       ", and a cost must be between 1 and 2147483647",
                   "/cost"};
}

}  // namespace

std::optional<Error> AddInlineCharge(DecisionCall& call, std::string_view key, const Quota& quota,
                                     std::int64_t cost, std::string_view lease) {
  const RuleSet& rules = *call.snapshot().rules;
  const auto identity = rules.identifier().FromKey(key, call.memory());
  if (!identity) return identity.error();
  call.matched.Add({.rule = kInlineRule,
                    .identity = *identity,
                    .quota = &call.inline_quota.emplace(quota),
                    .cost = cost,
                    .lease = lease,
                    .on_failure = rules.on_failure()},
                   nullptr);
  return std::nullopt;
}

std::optional<Objection> CheckMembers(const Question& question, unsigned members, unsigned required,
                                      std::string_view path) {
  if (const unsigned foreign = question.members & ~members) {
    const std::string name(Question::NameOf(foreign & (~foreign + 1)));
    return Objection{400, "`" + name + "` has no meaning for " + std::string(path), "/" + name};
  }
  if (const unsigned missing = required & ~question.members) {
    const std::string name(Question::NameOf(missing & (~missing + 1)));
    return Objection{400, std::string(path) + " needs `" + name + "`", "/" + name};
  }
  return std::nullopt;
}

std::optional<Objection> ViewOf(const Question& question, const RuleSet& rules, RequestView& view,
                                std::pmr::memory_resource& memory) {
  if (auto bad = Normalise(question, rules, view, memory)) return bad;
  return FindClient(question, rules.client_policy(), view);
}

std::optional<Objection> Resolve(const Question& question, Call::Kind kind,
                                 InlineQuotas inline_quotas, DecisionCall& call,
                                 std::pmr::memory_resource& scratch) {
  call.kind = kind;
  // Bans and allowances apply to decisions, peeks and renewals, but not to other operations.
  const bool asks =
      kind == Call::Kind::kApply || kind == Call::Kind::kPeek || kind == Call::Kind::kRenew;
  const OverrideView overrides{call.pipeline().overrides().get(), !asks};
  const int ways = question.Has(Question::kRule) + question.Has(Question::kRequest) +
                   question.Has(Question::kKey);
  if (ways != 1) {
    return Objection{400,
                     "send exactly one of: `rule` and `identity`; `request`, an object with the "
                     "request's attributes; `key` and `limit`, an inline quota"};
  }
  constexpr unsigned kOwn = Question::kLimit | Question::kBurst | Question::kAlgorithm;
  if (!question.Has(Question::kKey) && question.Has(kOwn)) {
    return Objection{400, "`limit`, `burst` and `algorithm` need `key` (an inline quota)"};
  }
  if (!question.Has(Question::kRule) && question.Has(Question::kIdentity)) {
    return Objection{400, "`identity` needs `rule`", "/identity"};
  }
  if (auto bad = CheckIds(question)) return bad;
  if (auto bad = CheckCost(question)) return bad;
  std::optional<Objection> bad;
  if (question.Has(Question::kRule)) {
    bad = ByRule(question, overrides, call);
  } else if (question.Has(Question::kRequest)) {
    bad = ByRequest(question, overrides, call, scratch);
  } else if (inline_quotas == InlineQuotas::kAllowed) {
    bad = ByKey(question, call);
  } else {
    bad = Objection{403,
                    "inline quotas are disabled: the configuration enables them with `api: "
                    "{inline_quotas: true}`",
                    "/key"};
  }
  if (bad) return bad;
  if (question.Has(Question::kId)) {
    call.refund.id = call.Keep(question.id);
    if (question.Has(Question::kAge)) call.refund.age = std::chrono::milliseconds{question.age_ms};
  }
  return Concern(question, kind, call.matched);
}

}  // namespace tidegate
