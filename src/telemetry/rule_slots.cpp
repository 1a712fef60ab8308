// SPDX-License-Identifier: Apache-2.0
#include "telemetry/rule_slots.hpp"

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

}  // namespace tidegate
