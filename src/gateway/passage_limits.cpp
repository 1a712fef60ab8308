// SPDX-License-Identifier: Apache-2.0
// What a passage owes the store after its decision: leases held and released, costs that only the
// answer tells.
#include <algorithm>
#include <charconv>
#include <optional>

#include "gateway/fields.hpp"
#include "gateway/gateway.hpp"
#include "gateway/passage.hpp"

namespace tidegate {
namespace {

/// A whole number without a sign. One above what can be charged counts as the most that can.
std::optional<std::int64_t> CostOf(std::string_view text) noexcept {
  std::uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (text.empty() || rest != end) return std::nullopt;
  if (error == std::errc::result_out_of_range) return kMaxCost;
  if (error != std::errc{}) return std::nullopt;
  return static_cast<std::int64_t>(std::min<std::uint64_t>(value, kMaxCost));
}

}  // namespace

void Passage::Start(Ask& ask, Call::Kind kind, std::span<const Charge> charges,
                    std::span<Decision> decisions) {
  ask.kind = kind;
  ask.charges = charges;
  ask.decisions = decisions;
  ask.error.reset();
  ask.allowed = false;
  ask.done = Done::kNothing;
  ask.passage = this;
  ask.finished = [](Call& call) noexcept {
    Ask& mine = static_cast<Ask&>(call);
    mine.passage->OnAsked(mine);
  };
  ++open_asks_;
  gateway_.store().Start(ask);
}

void Passage::OnAsked(Ask& ask) {
  --open_asks_;
  if (&ask == &asks_[0]) return OnDecided();
  if (&ask == &asks_[1] && std::exchange(renewing_, false) && phase_ == Phase::kOver) {
    // The request ended while its leases were being renewed.
    return Start(asks_[1], Call::Kind::kRelease, books_->leases, books_->lease_decisions);
  }
  FreeIfDone();
}

/// The leases of the rules that count what runs at the same time are held until the request is
/// over. Their ids are this passage's own, so a release never hits another's; also of those that a
/// failure policy let pass, since the store may have granted them without being heard.
void Passage::HoldLeases() {
  Micros shortest = Micros::max();
  for (const Charge& charge : books_->charges.charges) {
    if (charge.quota->algorithm() != Algorithm::kConcurrency) continue;
    books_->leases.push_back(charge);
    shortest = std::min(shortest, charge.quota->period());
  }
  holding_ = !books_->leases.empty();
  if (!holding_) return;
  books_->lease_decisions.resize(books_->leases.size());
  renewal_ = gateway_.RenewLater(*this, shortest);
}

void Passage::Renew() {
  gateway_.ForgetRenewal(*renewal_);
  Micros shortest = Micros::max();
  for (const Charge& charge : books_->leases) shortest = std::min(shortest, charge.quota->period());
  renewal_ = gateway_.RenewLater(*this, shortest);
  if (renewing_) return;  // The last one has not been answered yet.
  renewing_ = true;
  Start(asks_[1], Call::Kind::kRenew, books_->leases, books_->lease_decisions);
}

/// Costs that rules take from the answer: from its head, or from its trailers, where those stand
/// that know them only at the end.
void Passage::NoteCosts(std::span<const net::HttpField> fields) {
  if (!books_) return;
  const auto& rules = books_->charges.rules;
  for (std::size_t i = 0; i < rules.size(); ++i) {
    if (rules[i]->cost.kind != CostSpec::Kind::kResponse) continue;
    if (books_->costs.empty()) books_->costs.assign(rules.size(), -1);
    for (const net::HttpField& field : fields) {
      if (!SameName(field.name, rules[i]->cost.header)) continue;
      if (const auto cost = CostOf(field.value)) books_->costs[i] = *cost;
      break;
    }
  }
}

bool Passage::OwesCost() const noexcept {
  if (!books_) return false;
  const auto& rules = books_->charges.rules;
  for (std::size_t i = 0; i < rules.size(); ++i) {
    if (rules[i]->cost.kind == CostSpec::Kind::kResponse &&
        (books_->costs.empty() || books_->costs[i] < 0)) {
      return true;
    }
  }
  return false;
}

/// One unit was charged when the request was let in, if anything was left; the rest is charged now,
/// whether it is there or not. An answer that cost nothing gets that unit back.
void Passage::SettleAccounts() {
  if (!books_) return;
  if (renewal_) {
    gateway_.ForgetRenewal(*renewal_);
    renewal_.reset();
  }
  // Each of these may free the passage when it is the last to be answered: count one more.
  ++open_asks_;
  for (std::size_t i = 0; i < books_->costs.size(); ++i) {
    const std::int64_t cost = books_->costs[i];
    Charge charge = books_->charges.charges[i];
    if (cost < 0 || cost == charge.cost) continue;
    auto& owed = cost > charge.cost ? books_->debits : books_->refunds;
    charge.cost = cost > charge.cost ? cost - charge.cost : charge.cost - cost;
    owed.push_back(charge);
  }
  if (!books_->debits.empty()) {
    books_->debit_decisions.resize(books_->debits.size());
    Start(asks_[2], Call::Kind::kDebit, books_->debits, books_->debit_decisions);
  }
  if (!books_->refunds.empty()) {
    books_->refund_decisions.resize(books_->refunds.size());
    asks_[3].refund = {.id = own_id_};
    Start(asks_[3], Call::Kind::kRefund, books_->refunds, books_->refund_decisions);
  }
  if (std::exchange(holding_, false) && !renewing_) {
    Start(asks_[1], Call::Kind::kRelease, books_->leases, books_->lease_decisions);
  }
  --open_asks_;
}

}  // namespace tidegate
