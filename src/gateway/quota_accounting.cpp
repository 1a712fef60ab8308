// SPDX-License-Identifier: Apache-2.0
#include "gateway/quota_accounting.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "base/units.hpp"

namespace tidegate {

LeaseKeeper::~LeaseKeeper() {
  for (const auto& [due, held] : renewals_) held->Drop();
}

DecisionCall* LeaseKeeper::Hold(const DecisionCall& decided) {
  DecisionCall* held = nullptr;
  const auto& charges = decided.matched.charges;
  for (std::size_t i = 0; i < charges.size(); ++i) {
    if (charges[i].quota->algorithm() != Algorithm::kConcurrency) continue;
    if (held == nullptr) held = &pipeline_.BeginAfter(decided, Call::Kind::kRenew);
    held->AddCopy(decided, i, charges[i].cost);
  }
  if (held == nullptr) return nullptr;
  held->Attach<Held>(Schedule(*held));
  ArmNext();
  return held;
}

LeaseKeeper::Renewals::iterator LeaseKeeper::Schedule(DecisionCall& held) {
  Micros shortest = Micros::max();
  for (const Charge& charge : held.matched.charges) {
    shortest = std::min(shortest, charge.quota->period());
  }
  // Three renewals per period, so that one lost renewal does not end the lease.
  const auto wait = std::max<Micros>(shortest / 3, std::chrono::milliseconds{1});
  // The real time, not reactor.now(), which may be so old that the renewal would be due already.
  return renewals_.emplace(net::Timer::Clock::now() + wait, &held);
}

void LeaseKeeper::OnTimer(net::Timer::Clock::time_point now) {
  // The calls are collected first, so that each is renewed once, however long the renewals take.
  std::vector<DecisionCall*> due;
  for (const auto& [at, held] : renewals_) {
    if (at > now) break;
    due.push_back(held);
  }
  for (DecisionCall* const held : due) Renew(*held);
  ArmNext();
}

void LeaseKeeper::Renew(DecisionCall& held) {
  Held& state = held.Attached<Held>();
  renewals_.erase(state.due);
  state.due = Schedule(held);
  if (state.renewing) return;  // The last renewal has not been answered yet.
  state.renewing = true;
  held.Start(this);
}

namespace {

/// Parses a whole number without a sign. A number above kMaxCost counts as kMaxCost.
std::optional<std::int64_t> CostOf(std::string_view text) noexcept {
  if (text.empty() || !net::http1::All(text, net::http1::kDigit)) return std::nullopt;
  return std::min(ParseNumber<std::int64_t>(text).value_or(kMaxCost), kMaxCost);
}

bool CostsByResponse(const Rule& rule) noexcept {
  return rule.cost.kind == CostSpec::Kind::kResponse;
}

}  // namespace

QuotaAccounting::~QuotaAccounting() {
  if (call_ != nullptr) call_->Drop();
}

void QuotaAccounting::Begin(std::string_view id) {
  call_ = &pipeline_.Begin();
  state_ = State::kUndecided;
  id_ = call_->Keep(id);
}

Result<void> QuotaAccounting::Match(const RequestView& request) {
  const OverrideView overrides{pipeline_.overrides().get()};
  const auto access = snapshot().rules->Match(request, std::nullopt, id_, overrides, call_->matched,
                                              call_->memory());
  if (!access) return std::unexpected(access.error());
  call_->access = *access;
  return {};
}

Answer QuotaAccounting::ShownTo(bool trusted) {
  if (state_ != State::kDecided || call_->error) return {};
  using Show = Config::Responses::ShowDecidedBy;
  const Show show = snapshot().responses.decided_by;
  return call_->AnswerFor({.hidden_rules = false,
                           .source = show == Show::kAlways || (show == Show::kTrusted && trusted)});
}

int QuotaAccounting::OnDecided() {
  state_ = State::kDecided;
  if (call_->error) return 0;
  const int status = call_->answer().status();
  if (status == 200) held_ = leases_.Hold(*call_);
  return status;
}

void QuotaAccounting::NoteCosts(std::span<const net::HttpField> fields) {
  if (fields.empty()) return;
  const auto& rules = call_->matched.rules;
  for (std::size_t i = 0; i < rules.size(); ++i) {
    if (!CostsByResponse(*rules[i])) continue;
    if (costs_.empty()) {
      std::pmr::polymorphic_allocator<> allocator(&call_->memory());
      costs_ = {allocator.allocate_object<std::int64_t>(rules.size()), rules.size()};
      std::ranges::fill(costs_, -1);
    }
    const net::HttpField* const field = net::FindField(fields, rules[i]->cost.header);
    const auto cost = field == nullptr ? std::nullopt : CostOf(field->value);
    if (cost) costs_[i] = *cost;
  }
}

bool QuotaAccounting::OwesCost() const noexcept {
  const auto& rules = call_->matched.rules;
  for (std::size_t i = 0; i < rules.size(); ++i) {
    if (CostsByResponse(*rules[i]) && (costs_.empty() || costs_[i] < 0)) return true;
  }
  return false;
}

/// One unit was charged on admission. The rest is debited now, or the unit is refunded.
void QuotaAccounting::Settle() {
  for (std::size_t i = 0; i < costs_.size(); ++i) {
    const std::int64_t charged = call_->matched.charges[i].cost;
    if (costs_[i] > charged) Adjust(i, Call::Kind::kDebit, costs_[i] - charged);
    if (costs_[i] >= 0 && costs_[i] < charged) {
      Adjust(i, Call::Kind::kRefund, charged - costs_[i]);
    }
  }
  costs_ = {};
  if (held_ != nullptr) leases_.Release(*std::exchange(held_, nullptr));
  state_ = State::kIdle;
  std::exchange(call_, nullptr)->Drop();
}

void QuotaAccounting::Adjust(std::size_t charge, Call::Kind kind, std::int64_t cost) {
  DecisionCall& call = pipeline_.BeginAfter(*call_, kind);
  call.AddCopy(*call_, charge, cost);
  if (kind == Call::Kind::kRefund) call.refund.id = call.Keep(id_);
  call.Start(nullptr);
}

}  // namespace tidegate
