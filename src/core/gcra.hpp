// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/outcome.hpp"
#include "tidegate/quota.hpp"

/// The generic cell rate algorithm. Its state is one theoretical arrival time (tat), the moment at
/// which all units admitted so far have been refilled. GCRA decides as the token bucket does, but
/// stores a time; docs/adr/0001 says when to use which of the two.
namespace tidegate::gcra {

struct State {
  Time tat;           ///< Whole microseconds of the theoretical arrival time.
  std::int64_t rest;  ///< The grains beyond `tat`: 0 <= rest < grains_per_tick.
  /// Distinguishes a tat that a quota wrote from one that a wrong clock wrote. For a quota of a
  /// rule, it is the grains by which a debit pushed tat beyond a full burst, otherwise 0. For a
  /// quota of a caller, it is the furthest that tat was ahead of the clock since the key was last
  /// full, or the longest recovery of the quotas used since then if that is more, in microseconds;
  /// 0 if the result is at most kShortReach.
  std::int64_t owed;

  friend bool operator==(const State&, const State&) = default;
};

/// A tat of a caller's quota that is ahead of the clock by at most this much is never repaired.
/// Quotas that recover within this time need no `owed`, which saves a field in Redis.
inline constexpr Micros kShortReach = std::chrono::seconds{60};

[[nodiscard]] State Fresh(const Quota& quota, Time now) noexcept;

/// Admits as many of `count` requests of `cost` each as keep tat within the burst.
[[nodiscard]] Stepped<State> Step(const State& state, const Quota& quota, std::int64_t cost,
                                  std::int64_t count, Time now) noexcept;
/// Takes `units` even if fewer are left; the debt below empty is at most `max_debt`.
[[nodiscard]] Stepped<State> Debit(const State& state, const Quota& quota, std::int64_t units,
                                   Time now) noexcept;
/// Gives `units` back, up to the capacity, no matter when they were charged.
[[nodiscard]] Stepped<State> Refund(const State& state, const Quota& quota, std::int64_t units,
                                    Time charged_at, Time now) noexcept;

}  // namespace tidegate::gcra
