// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>

#include "store/redis/client_stats.hpp"
#include "store/redis/redis_error.hpp"
#include "tidegate/decision.hpp"

namespace tidegate {

/// What one reactor's guard has done so far.
struct GuardStats {
  redis::Count cache_hits;
  std::array<std::array<redis::Count, redis::kReasons>, kDecisionSources>
      failures;             ///< By who decided, and why.
  redis::Count spans;       ///< Requests that went in parts.
  redis::Count taken_back;  ///< Charges of them that were given back: another part denied.
  redis::Count kept;        ///< Of those, refunds that failed: the charge stays until it recovers.

  void CountFailure(DecidedBy decided_by, redis::Reason reason) noexcept {
    failures[static_cast<std::size_t>(decided_by)][static_cast<std::size_t>(reason)].Add();
  }
};

}  // namespace tidegate
