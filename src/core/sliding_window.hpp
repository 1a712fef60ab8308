// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/outcome.hpp"
#include "tidegate/quota.hpp"

/// Estimates a sliding window from two counters: the previous window counts with the share of it
/// that the sliding window still covers, as if its requests had been spread evenly. No window
/// admits more than 2 * limit - 1; docs/algorithms/sliding-window.md explains the error.
namespace tidegate::sliding_window {

struct State {
  Time start;             ///< The start of the current epoch-aligned window.
  std::int64_t current;   ///< Units admitted since `start`.
  std::int64_t previous;  ///< Units admitted in the window before.

  friend bool operator==(const State&, const State&) = default;
};

[[nodiscard]] State Fresh(const Quota& quota, Time now) noexcept;

[[nodiscard]] Stepped<State> Step(const State& state, const Quota& quota, std::int64_t cost,
                                  std::int64_t count, Time now) noexcept;
/// Adds `units` even if they exceed the limit, but by at most `max_debt`.
[[nodiscard]] Stepped<State> Debit(const State& state, const Quota& quota, std::int64_t units,
                                   Time now) noexcept;
/// Gives `units` back if `charged_at`, when they were charged, is in one of the two windows.
[[nodiscard]] Stepped<State> Refund(const State& state, const Quota& quota, std::int64_t units,
                                    Time charged_at, Time now) noexcept;

}  // namespace tidegate::sliding_window
