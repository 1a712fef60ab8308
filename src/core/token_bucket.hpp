// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/outcome.hpp"
#include "tidegate/quota.hpp"

/// A bucket of whole tokens. What is not yet a whole token is kept as time: the
/// moment up to which the refill has been counted. So the state means the same
/// under another rate, and no fraction is ever rounded.
namespace tidegate::token_bucket {

struct State {
  std::int64_t tokens;  ///< Negative after a debit beyond what was there.
  Time last_refill;     ///< The refill is counted up to here, less `rest` grains.
  std::int64_t rest;    ///< 0 <= rest < grains_per_tick: below one microsecond.

  friend bool operator==(const State&, const State&) = default;
};

[[nodiscard]] State Fresh(const Quota& quota, Time now) noexcept;

/// Admits as many of `count` requests of `cost` each as the tokens pay for.
[[nodiscard]] Stepped<State> Step(const State& state, const Quota& quota, std::int64_t cost,
                                  std::int64_t count, Time now) noexcept;
/// Takes `units` even if fewer are left, but no more than `max_debt` below empty.
[[nodiscard]] Stepped<State> Debit(const State& state, const Quota& quota, std::int64_t units,
                                   Time now) noexcept;
/// Gives `units` back, up to capacity.
[[nodiscard]] Stepped<State> Refund(const State& state, const Quota& quota, std::int64_t units,
                                    Time now) noexcept;

}  // namespace tidegate::token_bucket
