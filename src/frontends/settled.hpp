// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "frontends/policy.hpp"
#include "rules/rule_set.hpp"
#include "telemetry/tally.hpp"

namespace tidegate {

/// Counts what operators decided about a request to pass.
inline void CountSettled(Tally& tally, const Policy& policy, const Charges& charges) noexcept {
  for (const Rule* const rule : charges.exempted) tally.CountExempted(policy.slots[rule->number]);
  if (charges.ban.rule == nullptr) return;
  tally.CountBanned(policy.slots[charges.ban.rule->number],
                    {.rule = charges.ban.rule->id, .identity = charges.ban.identity, .lease = {}});
}

}  // namespace tidegate
