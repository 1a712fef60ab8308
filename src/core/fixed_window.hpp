// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/outcome.hpp"
#include "tidegate/quota.hpp"

/// One counter per epoch-aligned window. Up to twice the limit may pass within one period around a
/// window boundary; in return, the state is the smallest of all algorithms.
namespace tidegate::fixed_window {

struct State {
  Time start;          ///< The start of the window that `count` belongs to.
  std::int64_t count;  ///< Units charged in the window; a debit can exceed the limit.

  friend bool operator==(const State&, const State&) = default;
};

[[nodiscard]] State Fresh(const Quota& quota, Time now) noexcept;

[[nodiscard]] Stepped<State> Step(const State& state, const Quota& quota, std::int64_t cost,
                                  std::int64_t count, Time now) noexcept;
/// Adds `units` even if they exceed the limit, but by at most `max_debt`.
[[nodiscard]] Stepped<State> Debit(const State& state, const Quota& quota, std::int64_t units,
                                   Time now) noexcept;
/// Gives back `units` that were charged at `charged_at`, unless that window has passed.
[[nodiscard]] Stepped<State> Refund(const State& state, const Quota& quota, std::int64_t units,
                                    Time charged_at, Time now) noexcept;

}  // namespace tidegate::fixed_window
