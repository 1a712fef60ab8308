// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>

#include "store/redis/client_stats.hpp"
#include "store/redis/redis_error.hpp"
#include "tidegate/call.hpp"
#include "tidegate/decision.hpp"

namespace tidegate {

/// What one reactor's guard has done so far.
struct GuardStats {
  redis::Count cache_hits;
  std::array<std::array<redis::Count, redis::kReasons>, kDecisionSources>
      failures;  ///< By who decided, and why.
  /// Decisions of failure policies on requests, by DecidedBy.
  /// `failures` also counts debits, refunds, renewals and releases.
  std::array<redis::Count, kDecisionSources> policy_decisions;
  redis::Count spans;       ///< Requests that went in parts.
  redis::Count taken_back;  ///< Charges of them that were given back: another part denied.
  redis::Count kept;        ///< Of those, refunds that failed: the charge stays until it recovers.

  /// Counts an answer of a failure policy. A peek is not counted: readiness probes would appear as
  /// refused requests.
  void CountFailure(Call::Kind kind, DecidedBy decided_by, redis::Reason reason) noexcept {
    if (kind == Call::Kind::kPeek) return;
    if (kind == Call::Kind::kApply) policy_decisions[static_cast<std::size_t>(decided_by)].Add();
    failures[static_cast<std::size_t>(decided_by)][static_cast<std::size_t>(reason)].Add();
  }
};

}  // namespace tidegate
