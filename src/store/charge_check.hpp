// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>

#include "core/outcome.hpp"
#include "tidegate/charge.hpp"
#include "tidegate/decision.hpp"
#include "tidegate/error.hpp"
#include "tidegate/store.hpp"

namespace tidegate {

/// What a charge is checked for; not every algorithm has every operation.
enum class Operation : std::uint8_t { kApply, kDebit, kRefund, kLease, kKey };

/// Why the charge cannot be carried out, if so: one sentence for its caller.
[[nodiscard]] std::optional<Error> CheckCharge(const Charge& charge,
                                               Operation operation = Operation::kApply);
[[nodiscard]] std::optional<Error> CheckRequest(std::span<const Charge> charges, std::int64_t count,
                                                std::span<const Decision> decisions);

/// A step's outcome as the caller is told.
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

/// Of a look: allowed if it would pass at once.
[[nodiscard]] inline Decision DecisionOfLook(const Charge& charge, const Outcome& look) noexcept {
  return DecisionOf(charge, look, !look.never && look.retry_after == Micros{0});
}

}  // namespace tidegate
