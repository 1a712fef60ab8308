// SPDX-License-Identifier: Apache-2.0
#include "telemetry/decision_counters.hpp"

namespace tidegate {

std::uint32_t RuleSlots::SlotOf(std::string_view rule) {
  const std::lock_guard lock(mutex_);
  const auto found = slots_.find(std::string(rule));
  if (found != slots_.end()) return found->second;
  if (names_.size() == kMost) return kOther;
  const auto slot = static_cast<std::uint32_t>(names_.size());
  names_.emplace_back(rule);
  slots_.emplace(rule, slot);
  return slot;
}

std::vector<std::string> RuleSlots::Names() const {
  const std::lock_guard lock(mutex_);
  return names_;
}

std::string_view DecisionCounters::OutcomeName(std::size_t outcome) noexcept {
  static constexpr std::string_view kNames[kOutcomes] = {
      "allowed", "denied", "shadow_allowed", "shadow_denied", "banned", "exempted"};
  return kNames[outcome];
}

DecisionCounters::~DecisionCounters() {
  for (auto& chunk : chunks_) delete chunk.load(std::memory_order_relaxed);
}

DecisionCounters::Row& DecisionCounters::AddRow(std::uint32_t slot) {
  auto* const chunk = new Chunk{};
  chunks_[slot / kChunk].store(chunk, std::memory_order_release);
  return (*chunk)[slot % kChunk];
}

}  // namespace tidegate
