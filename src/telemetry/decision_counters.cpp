// SPDX-License-Identifier: Apache-2.0
#include "telemetry/decision_counters.hpp"

namespace tidegate {

std::string_view DecisionCounters::Name(Outcome outcome) noexcept {
  static constexpr std::string_view kNames[kOutcomes] = {
      "allowed", "denied", "shadow_allowed", "shadow_denied", "banned", "exempted"};
  return kNames[static_cast<std::size_t>(outcome)];
}

}  // namespace tidegate
