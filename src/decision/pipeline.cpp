// SPDX-License-Identifier: Apache-2.0
#include "decision/pipeline.hpp"

#include <cassert>

namespace tidegate {

void DecisionCall::AddCopy(const DecisionCall& other, std::size_t charge, std::int64_t cost) {
  Charge copy = other.matched.charges[charge];
  copy.identity = Keep(copy.identity);
  copy.lease = Keep(copy.lease);
  copy.slot_tag = Keep(copy.slot_tag);
  copy.cost = cost;
  matched.Add(copy, other.matched.rules[charge]);
}

void DecisionCall::Start(DecisionListener* listener) {
  listener_ = listener;
  if (matched.charges.empty()) {
    DecideWithoutStore();
    return Complete();
  }
  store_decisions_.resize(matched.charges.size());
  charges = matched.charges.all();
  decisions = store_decisions_.all();
  error.reset();
  applied = Applied::kNo;
  in_store_ = true;
  finished = [](Call& answered) noexcept { static_cast<DecisionCall&>(answered).Complete(); };
  // Time only kApply, because operations and peeks are not decisions.
  if (kind != Kind::kApply) return pipeline_.store_.Start(*this);
  pipeline_.metrics_.Time(latency_, [this] { pipeline_.store_.Start(*this); });
}

void DecisionCall::Complete() noexcept {
  in_store_ = false;
  pipeline_.metrics_.Answered(latency_);
  if (kind == Kind::kApply && !error) Count();
  if (listener_ == nullptr) return pipeline_.Free(*this);
  listener_->OnDecided(*this);
}

void DecisionCall::Count() const noexcept {
  pipeline_.metrics_.CountRequest(allowed);
  const auto count = [this](const Rule* rule, const Charge& charge, const Decision& decision) {
    pipeline_.metrics_.Count(snapshot_->SlotOf(rule), charge, decision);
  };
  for (std::size_t i = 0; i < charges.size(); ++i)
    count(matched.rules[i], charges[i], decisions[i]);
  const Charge of_operator{.rule = {}, .identity = matched.ban.identity};
  if (matched.ban.rule != nullptr) [[unlikely]]
    count(matched.ban.rule, of_operator, operator_decision_);
  for (const Rule* const rule : matched.exempted) {
    const Decision exempt{.allowed = true, .decided_by = DecidedBy::kOperator, .rule = {}};
    count(rule, of_operator, exempt);
  }
}

void DecisionCall::Drop() noexcept {
  if (!in_store_) return pipeline_.Free(*this);
  listener_ = nullptr;
}

void DecisionCall::DecideWithoutStore() noexcept {
  const bool banned = access == Access::kBanned;
  allowed = !banned && access != Access::kDenied;
  // An exempt key needs no lease, so its renewals succeed.
  applied = allowed ? Applied::kYes : Applied::kNo;
  charges = {};
  decisions = {};
  const Rule* const rule = OperatorRule();
  if (rule == nullptr) return;
  operator_decision_ = {.allowed = !banned,
                        .never = banned && !matched.ban.left,
                        .decided_by = DecidedBy::kOperator,
                        .reason = banned ? Reason::kBanned : Reason::kExempt,
                        .retry_after = matched.ban.left.value_or(Micros{0}),
                        .rule = rule->id};
}

Answer DecisionCall::answer() const noexcept {
  if (!charges.empty()) {
    Answer answer = AnswerOf(*this);
    answer.rule = matched.rules[static_cast<std::size_t>(answer.governing - decisions.data())];
    return answer;
  }
  const bool exempt = access == Access::kExempt;
  Answer answer{.kind = kind,
                .allowed = allowed,
                .exempt = exempt,
                .denied = access == Access::kDenied || access == Access::kBanned,
                .applied = {},
                .charges = {},
                .decisions = {}};
  if (exempt && kind == Kind::kRenew) answer.applied = Applied::kYes;
  if (!operator_decision_.rule.empty()) {
    answer.governing = answer.shown = &operator_decision_;
    answer.rule = OperatorRule();
  }
  return answer;
}

Answer DecisionCall::AnswerFor(const Disclosure& disclosure) {
  Answer answer = this->answer();
  answer.shows_source = disclosure.source;
  if (snapshot_->responses.partition_key) answer.partitions = &snapshot_->rules->identifier();
  if (disclosure.hidden_rules || !HasHiddenRule()) return answer;
  answer.hides_rules = true;
  answer.shown = nullptr;
  if (charges.empty()) return answer;
  std::pmr::polymorphic_allocator<> allocator(&memory_);
  auto* const shown_charges = allocator.allocate_object<Charge>(charges.size());
  auto* const shown_decisions = allocator.allocate_object<Decision>(charges.size());
  std::size_t count = 0;
  for (std::size_t i = 0; i < charges.size(); ++i) {
    if (matched.rules[i] != nullptr && matched.rules[i]->hidden()) continue;
    std::construct_at(shown_charges + count, charges[i]);
    std::construct_at(shown_decisions + count, decisions[i]);
    if (answer.governing == &decisions[i]) answer.shown = shown_decisions + count;
    ++count;
  }
  answer.charges = {shown_charges, count};
  answer.decisions = {shown_decisions, count};
  if (answer.shown != nullptr) {
    answer.governing = answer.shown;
  } else if (count != 0) {
    answer.shown = &Governing(answer.charges, answer.decisions);
  }
  return answer;
}

void DecisionCall::Clear() noexcept {
  kind = Kind::kApply;
  refund = {};
  error.reset();
  record = {};
  matched.Clear();
  access = Access::kRules;
  inline_quota.reset();
  store_decisions_.Clear();
  operator_decision_.rule = {};
  snapshot_.reset();
  memory_.release();
}

DecisionPipeline::DecisionPipeline(AsyncStore& store, DecisionMetrics& metrics,
                                   std::shared_ptr<const Snapshot> snapshot,
                                   std::shared_ptr<const OverrideTable> overrides)
    : store_(store),
      metrics_(metrics),
      snapshot_(MakeSnapshotRef(std::move(snapshot))),
      overrides_(std::move(overrides)) {
  free_.reserve(kMaxFree);  // Reserve now, because Free() must not allocate.
}

DecisionPipeline::~DecisionPipeline() { assert(in_use_ == 0); }

DecisionCall& DecisionPipeline::Begin() {
  std::unique_ptr<DecisionCall> call;
  if (free_.empty()) {
    call = std::make_unique<DecisionCall>(*this);
  } else {
    call = std::move(free_.back());
    free_.pop_back();
  }
  ++in_use_;
  call->snapshot_ = snapshot_;
  return *call.release();
}

}  // namespace tidegate
