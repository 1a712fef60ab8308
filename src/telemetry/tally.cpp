// SPDX-License-Identifier: Apache-2.0
#include "telemetry/tally.hpp"

namespace tidegate {

Tally::Tally(net::Timers& timers, const Options& options)
    : options_(options),
      hot_keys_(options.hot_keys == 0 ? nullptr
                                      : std::make_unique<HotKeys>(timers, options.hot_keys)) {}

void Tally::CountBanned(std::uint32_t slot, const Charge& charge) noexcept {
  if (options_.decisions)
    counters_.Count(slot, DecisionCounters::Outcome::kBanned, DecidedBy::kOperator);
  if (hot_keys_ == nullptr) return;
  hot_keys_->Count(slot, charge.identity, charge.cost, HotKeys::Outcome::kDenied);
}

void Tally::CountExempted(std::uint32_t slot) noexcept {
  if (options_.decisions)
    counters_.Count(slot, DecisionCounters::Outcome::kExempted, DecidedBy::kOperator);
}

std::shared_ptr<const HotReport> Tally::hot() const {
  static const auto kNone = std::make_shared<const HotReport>();
  return hot_keys_ == nullptr ? kNone : hot_keys_->Published();
}

}  // namespace tidegate
