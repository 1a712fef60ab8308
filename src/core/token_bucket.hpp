// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/outcome.hpp"
#include "tidegate/quota.hpp"

/// A bucket of whole tokens. A part of a token is kept as time: the moment up to which the refill
/// has been counted. So the state survives a change of the rate, and no fraction is ever rounded.
namespace tidegate::token_bucket {

struct State {
  std::int64_t tokens;  ///< Whole tokens; negative if the key has a debt.
  Time last_refill;     ///< `tokens` includes the refill up to this time, except `rest` grains.
  std::int64_t rest;    ///< 0 <= rest < grains_per_tick: the refill of less than 1 us.

  friend bool operator==(const State&, const State&) = default;
};

[[nodiscard]] State Fresh(const Quota& quota, Time now) noexcept;

/// Admits as many of `count` requests of `cost` each as the tokens pay for.
[[nodiscard]] Stepped<State> Step(const State& state, const Quota& quota, std::int64_t cost,
                                  std::int64_t count, Time now) noexcept;
/// Takes `units` even if fewer are left; the debt below empty is at most `max_debt`.
[[nodiscard]] Stepped<State> Debit(const State& state, const Quota& quota, std::int64_t units,
                                   Time now) noexcept;
/// Gives `units` back, up to the capacity, no matter when they were charged.
[[nodiscard]] Stepped<State> Refund(const State& state, const Quota& quota, std::int64_t units,
                                    Time charged_at, Time now) noexcept;

}  // namespace tidegate::token_bucket
