// SPDX-License-Identifier: Apache-2.0
// Costs that rules take from the response, settled with the store when the request is over.
#include <algorithm>
#include <charconv>
#include <optional>

#include "gateway/fields.hpp"
#include "gateway/gateway.hpp"
#include "gateway/passage.hpp"

namespace tidegate {
namespace {

/// Parses a whole number without a sign. A number above kMaxCost counts as kMaxCost.
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

/// Reads the costs that rules take from the response: from its head, or from its trailers.
void Passage::NoteCosts(std::span<const net::HttpField> fields) {
  const auto& rules = decision_->matched.rules;
  for (std::size_t i = 0; i < rules.size(); ++i) {
    if (rules[i]->cost.kind != CostSpec::Kind::kResponse) continue;
    if (costs_.empty()) {
      std::pmr::polymorphic_allocator<> allocator(&memory_);
      costs_ = {allocator.allocate_object<std::int64_t>(rules.size()), rules.size()};
      std::ranges::fill(costs_, -1);
    }
    for (const net::HttpField& field : fields) {
      if (!SameName(field.name, rules[i]->cost.header)) continue;
      if (const auto cost = CostOf(field.value)) costs_[i] = *cost;
      break;
    }
  }
}

bool Passage::OwesCost() const noexcept {
  const auto& rules = decision_->matched.rules;
  for (std::size_t i = 0; i < rules.size(); ++i) {
    if (rules[i]->cost.kind == CostSpec::Kind::kResponse && (costs_.empty() || costs_[i] < 0)) {
      return true;
    }
  }
  return false;
}

/// One unit was charged when the request was admitted. The rest is debited now, even if the quota
/// is used up. If the response cost nothing, the unit is refunded.
void Passage::SettleCosts() {
  for (std::size_t i = 0; i < costs_.size(); ++i) {
    const std::int64_t charged = decision_->matched.charges[i].cost;
    if (costs_[i] > charged) Settle(i, Call::Kind::kDebit, costs_[i] - charged);
    if (costs_[i] >= 0 && costs_[i] < charged) {
      Settle(i, Call::Kind::kRefund, charged - costs_[i]);
    }
  }
}

void Passage::Settle(std::size_t charge, Call::Kind kind, std::int64_t cost) {
  DecisionCall& call = gateway_.pipeline().BeginAfter(*decision_, kind);
  call.AddCopy(*decision_, charge, cost);
  if (kind == Call::Kind::kRefund) call.refund.id = call.Keep(own_id_);
  call.Start(nullptr);
}

}  // namespace tidegate
