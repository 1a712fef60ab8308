// SPDX-License-Identifier: Apache-2.0
// The operations on one key: inspections and changes.
#include <algorithm>

#include "admin/admin_call.hpp"
#include "admin/audit.hpp"
#include "base/random.hpp"
#include "base/units.hpp"
#include "telemetry/log.hpp"

namespace tidegate {
namespace {

namespace json = boost::json;
using net::HttpExchange;
using std::chrono::milliseconds;

constexpr std::size_t kMaxReason = 200;
constexpr std::size_t kMaxKey = 1024;
constexpr std::size_t kMaxId = 256;
constexpr Micros kMaxTtl = std::chrono::days{3660};

std::optional<Override::Kind> KindOf(AdminAction action) noexcept {
  if (action == AdminAction::kBan) return Override::Kind::kBan;
  if (action == AdminAction::kAllow) return Override::Kind::kAllow;
  if (action == AdminAction::kOverride) return Override::Kind::kQuota;
  return std::nullopt;
}

/// Returns readable text that says why the store did not carry out a change.
std::string ProblemOf(Reason reason) {
  const bool malformed = reason == Reason::kBadResponse || reason == Reason::kBadTypes;
  const std::string text = reason == Reason::kQueueFull ? "too many calls are waiting for Redis"
                           : reason == Reason::kStoreError
                               ? "Redis returned an error or closed the connection"
                           : malformed                  ? "Redis sent a malformed reply"
                           : reason == Reason::kTimeout ? "Redis did not answer in time"
                                                        : "Redis is not answering";
  return text + " (" + std::string(Name(reason)) + ")";
}

/// Peeks at a key, then reads the fields that the store holds for it.
class KeyInspection final : public AdminCall {
 public:
  using AdminCall::AdminCall;

  std::optional<Objection> Prepare(const Question& question) {
    return ResolveKey(question, call_.matched);
  }

  void Begin() {
    call_.kind = Call::Kind::kPeek;
    call_.matched.charges.front().on_failure = OnFailure::kClosed;  // Only the store has its state.
    call_.Start(this);
  }

 private:
  void OnDecided(DecisionCall& call) noexcept override {
    if (call.error) return Fail(StatusOf(call.error->code), call.error->message);
    if (!IsCounted(call.decisions.front())) {
      return Fail(503, "the store does not answer: the state of this key is unknown");
    }
    context_.ReadStored(call.charges.front(), [this](Result<StoredState> state) {
      if (!state) return Fail(StatusOf(state.error().code), state.error().message);
      Finish(*state);
    });
  }

  void Finish(const StoredState& state) {
    const Charge& charge = call_.charges.front();
    const Decision& decision = call_.decisions.front();
    json::object out{{"rule", JsonText(charge.rule)},
                     {"key", JsonText(charge.identity)},
                     {"shown_as", snapshot().rules->identifier().Veiled(charge.identity)}};
    if (std::string stored = context_.StoredAs(charge); !stored.empty()) out["stored_as"] = stored;
    const Rule& rule = *call_.matched.rules.front();
    AddQuota(out, rule, *charge.quota);
    out["tracked"] = state.tracked;
    const auto* const override = overrides_->Find(charge.rule, charge.identity);
    const bool banned = override != nullptr && override->what.kind == Override::Kind::kBan;
    const bool exempt = override != nullptr && override->what.kind == Override::Kind::kAllow;
    out["cost"] = charge.cost;
    out["allowed"] = !banned && (exempt || decision.allowed);
    out["remaining"] = decision.remaining;
    AddRetry(out, decision);
    out["reset_after_ms"] = JsonMillis(decision.reset_after);
    json::array fields;
    for (const Inspection::Field& field : state.fields) {
      fields.push_back(json::object{{"name", field.name}, {"value", field.value}});
    }
    out["state"] = std::move(fields);
    out["override"] = OverrideOfKey(*overrides_, rule, charge.identity);
    Answer(out);
  }
};

/// One change in progress.
class Change final : public AdminCall {
 public:
  Change(AdminContext& context, HttpExchange& exchange, AdminAction action, const std::string& by)
      : AdminCall(context, exchange),
        action_(action),
        record_(AuditEntry::Of(context.node, by, exchange, Name(action))) {}

  std::optional<Objection> Prepare(const Question& question);
  void Begin();

 private:
  std::optional<Objection> PrepareCall(const Question& question);
  std::optional<Objection> PrepareOverride(const Question& question, Override::Kind what);
  std::optional<Objection> ReadTtl(const Question& question);
  std::optional<Objection> ReadQuota(const Question& question);
  /// Returns the override that the change replaces or lifts, as this node knows it; nullptr: none.
  [[nodiscard]] const OverrideTable::Entry* Before() const {
    return overrides_->Find(record_.rule, record_.key);
  }
  void OnDecided(DecisionCall& call) noexcept override;
  void OnRegistered(const Result<SharedOverrides::Change>& change);
  /// Fails because the store did not carry out the change, or did not answer. `why` is the reason.
  void FailInStore(ChangeOutcome outcome, const std::string& why);
  void FailChange(int status, const std::string& why, ChangeOutcome outcome);
  void Finish(bool applied, std::optional<std::int64_t> expires_ms);

  const AdminAction action_;
  Override override_;
  std::optional<milliseconds> ttl_;
  AuditEntry record_;
  bool recorded_ = true;  ///< The fleet's register has the record; the node's log always has it.
};

std::optional<Objection> Change::Prepare(const Question& question) {
  if (action_ == AdminAction::kLift && question.Has(Question::kRule) &&
      question.Has(Question::kKey) && overrides_->Find(question.rule, question.key) != nullptr) {
    // The override can be lifted even if its rule no longer exists.
    record_.rule = question.rule;
    record_.key = question.key;
    return std::nullopt;
  }
  if (auto bad = ResolveKey(question, call_.matched)) return bad;
  record_.rule = call_.matched.charges.front().rule;
  record_.key = call_.matched.charges.front().identity;
  const auto override_kind = KindOf(action_);
  return override_kind ? PrepareOverride(question, *override_kind) : PrepareCall(question);
}

std::optional<Objection> Change::PrepareCall(const Question& question) {
  Charge& charge = call_.matched.charges.front();
  charge.on_failure = OnFailure::kClosed;  // A failure policy must not stand in for the store.
  if (action_ == AdminAction::kReset || action_ == AdminAction::kLift) {
    charge.cost = 1;
    return std::nullopt;
  }
  if (charge.quota->algorithm() == Algorithm::kConcurrency) {
    return Objection{
        400, "this rule counts concurrent requests: release the leases, or reset the key", "/rule"};
  }
  const bool grants = action_ == AdminAction::kGrant;
  // A refund without a cost returns the cost of one request of the rule.
  const std::int64_t amount = grants                          ? question.amount
                              : question.Has(Question::kCost) ? question.cost
                                                              : charge.cost;
  if (amount < 1 || amount > kMaxCost) {
    return Objection{400, "the amount must be between 1 and 2147483647",
                     grants ? "/amount" : "/cost"};
  }
  charge.cost = amount;
  if (!grants && (question.id.empty() || question.id.size() > kMaxId)) {
    return Objection{400, "`id` must have 1 to 256 bytes", "/id"};
  }
  if (question.age_ms < 0 || question.age_ms > milliseconds{std::chrono::days{366}}.count()) {
    return Objection{400, "`age_ms` must be between 0 and one year", "/age_ms"};
  }
  // A grant has a new id each time, so that every grant is applied.
  call_.refund.id = call_.Keep(grants ? "grant-" + RandomHex(32) : std::string(question.id));
  if (question.Has(Question::kAge)) call_.refund.age = milliseconds{question.age_ms};
  record_.detail = std::to_string(amount) + (amount == 1 ? " unit" : " units");
  if (!grants) record_.detail += ", id " + std::string(question.id);
  return std::nullopt;
}

std::optional<Objection> Change::ReadTtl(const Question& question) {
  if (!question.Has(Question::kTtl)) return std::nullopt;
  const auto ttl = ParseDuration(question.ttl);
  if (!ttl) return Objection{400, ttl.error().message, "/ttl"};
  if (*ttl < milliseconds{1} || *ttl > kMaxTtl) {
    return Objection{400, "`ttl` must be from 1ms to 3660d; without `ttl` the change has no end",
                     "/ttl"};
  }
  ttl_ = std::chrono::ceil<milliseconds>(*ttl);
  return std::nullopt;
}

std::optional<Objection> Change::ReadQuota(const Question& question) {
  const auto limit = LimitText::Parse(question.limit);
  if (!limit) return Objection{400, limit.error().message, "/limit"};
  override_.limit = *limit;
  override_.algorithm = snapshot().rules->Find(override_.rule)->quota.algorithm();
  if (question.Has(Question::kBurst)) {
    if (question.burst < 1) return Objection{400, "`burst` must be at least 1", "/burst"};
    override_.burst = question.burst;
  }
  const auto quota = override_.MakeQuota();
  if (quota) return std::nullopt;
  Override without = override_;
  without.burst = 0;
  return Objection{400, quota.error().message, without.MakeQuota() ? "/burst" : "/limit"};
}

std::optional<Objection> Change::PrepareOverride(const Question& question, Override::Kind what) {
  override_.kind = what;
  override_.rule = record_.rule;
  override_.identity = record_.key;
  override_.by = record_.by;
  if (question.reason.size() > kMaxReason ||
      std::ranges::any_of(question.reason, [](unsigned char c) { return c < ' ' || c == 0x7f; })) {
    return Objection{400, "`reason` must be one line of at most 200 bytes", "/reason"};
  }
  if (record_.key.size() > kMaxKey) {
    return Objection{400, "the key is longer than 1024 bytes: use `deny` in the configuration",
                     question.Has(Question::kKey) ? "/key" : "/identity"};
  }
  override_.reason = std::string(question.reason);
  if (auto bad = ReadTtl(question)) return bad;
  if (what == Override::Kind::kQuota) {
    if (auto bad = ReadQuota(question)) return bad;
    record_.detail = QuotaText(*override_.MakeQuota()) + ", ";  // ReadQuota has checked it.
  }
  record_.detail += ttl_ ? "for " + FormatDuration(*ttl_) : std::string("until it is lifted");
  if (const auto* const before = Before()) {
    record_.detail += ", instead of " + std::string(Name(before->what.kind));
    if (before->what.kind == Override::Kind::kQuota) {
      record_.detail += " " + QuotaText(*before->quota);
    }
  }
  if (!override_.reason.empty()) record_.detail += ": " + override_.reason;
  return std::nullopt;
}

void Change::Begin() {
  const std::string field = Override::Field(record_.rule, record_.key);
  const auto registered = [this](const auto& change) { OnRegistered(change); };
  if (KindOf(action_)) {
    return context_.shared_overrides.Put(field, override_.Text(), ttl_, record_.Text(), registered);
  }
  if (action_ == AdminAction::kLift) {
    return context_.shared_overrides.Remove(field, record_.Text(), registered);
  }
  call_.kind = action_ == AdminAction::kReset ? Call::Kind::kReset : Call::Kind::kRefund;
  call_.Start(this);
}

void Change::OnDecided(DecisionCall& call) noexcept {
  if (call.error) {
    return FailChange(StatusOf(call.error->code), call.error->message, ChangeOutcome::kNotApplied);
  }
  if (const Decision& decision = call.decisions.front(); !IsCounted(decision)) {
    return FailInStore(call.not_executed ? ChangeOutcome::kNotApplied : ChangeOutcome::kUnknown,
                       ProblemOf(decision.reason));
  }
  const bool applied = call.applied == Applied::kYes;
  context_.shared_overrides.Note(record_.Text(), applied,
                                 [this, applied](const Result<SharedOverrides::Change>& noted) {
                                   recorded_ = noted.has_value();
                                   Finish(applied, std::nullopt);
                                 });
}

void Change::OnRegistered(const Result<SharedOverrides::Change>& change) {
  if (change) return Finish(change->applied, change->expires_ms);
  if (change.error().code == ErrorCode::kExhausted) {
    return FailChange(409,
                      "there are " + std::to_string(SharedOverrides::kMost) +
                          " overrides already: lift some, or move them into the configuration",
                      ChangeOutcome::kNotApplied);
  }
  FailInStore(change.error().code == ErrorCode::kUnavailable ? ChangeOutcome::kNotApplied
                                                             : ChangeOutcome::kUnknown,
              change.error().message);
}

void Change::FailInStore(ChangeOutcome outcome, const std::string& why) {
  if (outcome == ChangeOutcome::kNotApplied) {
    const std::string problem = context_.StoreProblem();
    return FailChange(
        503, "not applied: " + why + (problem.empty() ? "" : ": " + problem) + "; try again",
        outcome);
  }
  // Only a grant has a new id each time it is made.
  const std::string next = action_ == AdminAction::kGrant
                               ? "inspect the key before you make it again, because every grant "
                                 "adds units"
                               : "make it again, which does no harm";
  FailChange(503, why + ": the change may or may not have been made; " + next, outcome);
}

void Change::FailChange(int status, const std::string& why, ChangeOutcome outcome) {
  record_.LogFailed(why, Name(outcome));
  // A mistake of the caller is never applied, so 400 needs no outcome.
  Fail(status, why, status == 400 ? std::nullopt : std::optional(outcome));
}

void Change::Finish(bool applied, std::optional<std::int64_t> expires_ms) {
  context_.Count(action_);
  record_.LogDone(applied);
  if (!recorded_)
    Log::Warning("cannot write a change to the fleet's audit log: only this log has it");
  json::object out{{"applied", applied}, {"rule", record_.rule}, {"key", record_.key}};
  if (expires_ms) out["expires_ms"] = *expires_ms;
  if (const auto* const before = Before(); before != nullptr && applied) {
    if (KindOf(action_)) out["replaced"] = OverrideJson(*overrides_, *before);
    if (action_ == AdminAction::kLift) out["lifted"] = OverrideJson(*overrides_, *before);
  }
  if (!recorded_) out["recorded"] = false;
  Answer(out);
}

}  // namespace

std::string_view Name(AdminAction action) noexcept {
  static constexpr std::array<std::string_view, kAdminActions> kNames = {
      "reset", "grant", "refund", "ban", "allow", "override", "lift", "reload"};
  return kNames[static_cast<std::size_t>(action)];
}

void InspectKey(AdminContext& context, net::HttpExchange& exchange, const Question& question) {
  BeginAdminCall<KeyInspection>(context, exchange, question);
}

void ChangeKey(AdminContext& context, HttpExchange& exchange, const Question& question,
               AdminAction action, const std::string& by) {
  BeginAdminCall<Change>(context, exchange, question, action, by);
}

}  // namespace tidegate
