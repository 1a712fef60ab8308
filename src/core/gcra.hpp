// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/outcome.hpp"
#include "tidegate/quota.hpp"

/// The generic cell rate algorithm: one theoretical arrival time (tat), the
/// moment at which all that was admitted so far has been paid for. The same law
/// as the token bucket, kept as a time; docs/adr/0001 says when to take which.
namespace tidegate::gcra {

struct State {
  Time tat;           ///< Whole microseconds of the theoretical arrival time.
  std::int64_t rest;  ///< And this many grains: 0 <= rest < grains_per_tick.
  /// Tells a tat that was written on purpose from that of a clock that ran ahead. Of a quota of a
  /// rule: the grains by which a debit pushed tat beyond a full burst, 0 without one. Of a quota of
  /// a caller: the most microseconds that tat was ahead of the clock under any quota since the key
  /// was last full, and at least the recovery of each of them; 0 up to kShortReach.
  std::int64_t owed;

  friend bool operator==(const State&, const State&) = default;
};

/// A caller's state that is no further ahead than this is never taken for that of a wrong clock. So
/// quotas that recover within it have no `owed`: in Redis that is a field less.
inline constexpr Micros kShortReach = std::chrono::seconds{60};

[[nodiscard]] State Fresh(const Quota& quota, Time now) noexcept;

/// Admits as many of `count` requests of `cost` each as keep tat within the burst.
[[nodiscard]] Stepped<State> Step(const State& state, const Quota& quota, std::int64_t cost,
                                  std::int64_t count, Time now) noexcept;
/// Takes `units` even if fewer are left, but no more than `max_debt` below empty.
[[nodiscard]] Stepped<State> Debit(const State& state, const Quota& quota, std::int64_t units,
                                   Time now) noexcept;
/// Gives `units` back, up to capacity.
[[nodiscard]] Stepped<State> Refund(const State& state, const Quota& quota, std::int64_t units,
                                    Time now) noexcept;

}  // namespace tidegate::gcra
