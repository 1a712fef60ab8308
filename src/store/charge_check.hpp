// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>

#include "core/charge.hpp"
#include "core/outcome.hpp"
#include "store/call.hpp"
#include "tidegate/decision.hpp"
#include "tidegate/error.hpp"

namespace tidegate {

/// Returns an Error, with one sentence for the caller, if the operation cannot be carried out on
/// the charge. Not every algorithm has every operation.
[[nodiscard]] std::optional<Error> CheckCharge(const Charge& charge,
                                               Call::Kind operation = Call::Kind::kApply);
[[nodiscard]] std::optional<Error> CheckRequest(std::span<const Charge> charges, std::int64_t count,
                                                std::span<const Decision> decisions);

/// Returns the error of a request in which `charge` names the same key as another charge.
[[nodiscard]] Error RepeatedKey(const Charge& charge);

/// Returns the decision that `outcome` means for the caller.
[[nodiscard]] inline Decision DecisionOf(const Charge& charge, const Outcome& outcome,
                                         bool allowed) noexcept {
  return {.allowed = allowed,
          .never = outcome.never,
          .decided_by = DecidedBy::kStore,
          .limit = charge.quota->capacity(),
          .remaining = outcome.remaining,
          .retry_after = allowed ? Micros{0} : outcome.retry_after,
          .more_after = outcome.more_after,
          .reset_after = outcome.reset_after,
          .rule = charge.rule};
}

/// Returns the decision that a dry run means: allowed if the request would pass at once.
[[nodiscard]] inline Decision DecisionOfLook(const Charge& charge, const Outcome& look) noexcept {
  return DecisionOf(charge, look, !look.never && look.retry_after == Micros{0});
}

}  // namespace tidegate
