// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "tidegate/clock.hpp"

namespace tidegate {

/// Which rung of the ladder answered, from the exact store down to a failure policy.
enum class Rung : std::uint8_t { kStore, kCache, kLocal, kOpen, kClosed };
[[nodiscard]] std::string_view Name(Rung rung) noexcept;

/// The answer to one Charge. Carries durations, never absolute times.
struct Decision {
  /// Whether the charge fits its quota. With several charges, the request passes
  /// only if every enforcing one is allowed.
  bool allowed = false;
  /// Denied for good: the cost is above the quota's capacity. There is no retry_after.
  bool never = false;
  Rung rung = Rung::kStore;
  std::int64_t limit = 0;      ///< The burst of buckets, the limit of the others.
  std::int64_t remaining = 0;  ///< Whole units left after this decision.
  /// Until the same request passes, if nobody else comes: exact to one
  /// microsecond. Zero when allowed.
  Micros retry_after{0};
  Micros more_after{0};   ///< Until `remaining` is larger, if nobody else comes; zero when full.
  Micros reset_after{0};  ///< Until fully recovered, if nobody else comes.
  std::string_view rule;  ///< The charge's rule: the caller's memory.

  friend bool operator==(const Decision&, const Decision&) = default;
};

}  // namespace tidegate
