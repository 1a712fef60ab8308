// SPDX-License-Identifier: Apache-2.0
#include "core/sliding_window.hpp"

#include <algorithm>

#include "core/quota_scale.hpp"

namespace tidegate::sliding_window {
namespace {

/// The two counters, `elapsed` slices after the current window's start.
struct Windows {
  State state;
  std::int64_t elapsed;
  bool repaired = false;
};

Windows Read(const State& state, const Quota& quota, Time now) noexcept {
  const Time start = WindowStart(now, quota.period());
  const std::int64_t elapsed = (now - start) / Slice(quota);
  const std::int64_t current = std::min(state.current, Saturation(quota));
  const std::int64_t previous = std::min(state.previous, Saturation(quota));
  if (state.start == start) return {{start, current, previous}, elapsed};
  if (state.start > start) {
    // If the state is one window ahead, keep the later window, as if it had just begun. If it is
    // further ahead, the clock was stepped: the counts belong to the present windows.
    if (state.start - start > quota.period()) return {{start, current, previous}, elapsed, true};
    // Align the start again: the state may have been written under another period.
    const Time later = WindowStart(state.start, quota.period());
    return {{later, current, previous}, later > start ? 0 : elapsed};
  }
  if (start - state.start <= quota.period()) return {{start, 0, current}, elapsed};
  return {{start, 0, 0}, elapsed};
}

/// Returns the units used, multiplied by Slices: the estimate before its division.
std::int64_t Used(const Windows& w, const Quota& quota) noexcept {
  return w.state.previous * (Slices(quota) - w.elapsed) + w.state.current * Slices(quota);
}

/// Returns the least number of slices after a window's start at which the `before` units of the
/// window before it count as at most `after` units. REQUIRES: 0 <= after < before.
std::int64_t SlicesUntil(std::int64_t before, std::int64_t after, const Quota& quota) noexcept {
  return Slices(quota) - after * Slices(quota) / before;
}

Micros RetryAfter(const Windows& w, const Quota& quota, std::int64_t cost, Time now) noexcept {
  const std::int64_t beside_current = quota.limit() - cost - w.state.current;
  if (beside_current >= 0) {
    const std::int64_t slices = SlicesUntil(w.state.previous, beside_current, quota);
    return w.state.start + slices * Slice(quota) - now;
  }
  // The request passes in the next window, whose previous window is the current one.
  const std::int64_t slices = SlicesUntil(w.state.current, quota.limit() - cost, quota);
  return w.state.start + quota.period() + slices * Slice(quota) - now;
}

void Describe(Outcome& outcome, const Windows& w, const Quota& quota, Time now) noexcept {
  const std::int64_t left = quota.limit() * Slices(quota) - Used(w, quota);
  outcome.remaining = left > 0 ? left / Slices(quota) : 0;
  if (w.state.current > 0) {
    outcome.reset_after = w.state.start + 2 * quota.period() - now;
  } else if (w.state.previous > 0) {
    outcome.reset_after = w.state.start + quota.period() - now;
  }
  if (outcome.remaining < quota.limit()) {
    outcome.more_after = RetryAfter(w, quota, outcome.remaining + 1, now);
  }
  if (w.repaired) outcome.effect = Effect::kRepaired;
}

}  // namespace

State Fresh(const Quota& quota, Time now) noexcept {
  return {WindowStart(now, quota.period()), 0, 0};
}

Stepped<State> Step(const State& state, const Quota& quota, std::int64_t cost, std::int64_t count,
                    Time now) noexcept {
  Windows w = Read(state, quota, now);
  Outcome outcome;
  const bool fits = cost <= quota.limit();
  const std::int64_t price = fits ? cost * Slices(quota) : 0;
  const std::int64_t left = quota.limit() * Slices(quota) - Used(w, quota);
  if (fits && left >= price) outcome.admitted = count == 1 ? 1 : std::min(left / price, count);
  w.state.current += outcome.admitted * cost;
  Describe(outcome, w, quota, now);
  if (outcome.admitted > 0 && !w.repaired) outcome.effect = Effect::kCharged;
  if (outcome.admitted < count || count == 0) {
    outcome.never = !fits;
    if (fits && left - outcome.admitted * price < price) {
      outcome.retry_after = RetryAfter(w, quota, cost, now);
    }
  }
  if (outcome.effect == Effect::kNone) return {state, outcome};
  return {w.state, outcome};
}

Stepped<State> Debit(const State& state, const Quota& quota, std::int64_t units,
                     Time now) noexcept {
  Windows w = Read(state, quota, now);
  const std::int64_t left = (quota.limit() + quota.max_debt()) * Slices(quota) - Used(w, quota);
  w.state.current += std::min(units, std::max<std::int64_t>(left, 0) / Slices(quota));
  Outcome outcome{.admitted = 1, .effect = Effect::kCharged};
  Describe(outcome, w, quota, now);
  return {w.state, outcome};
}

Stepped<State> Refund(const State& state, const Quota& quota, std::int64_t units, Time charged_at,
                      Time now) noexcept {
  Windows w = Read(state, quota, now);
  Outcome outcome;
  std::int64_t* counter = nullptr;
  if (charged_at >= WindowStart(now, quota.period())) {
    counter = &w.state.current;  // Also for charges made while a later window was kept.
  } else if (charged_at >= w.state.start - quota.period()) {
    counter = &w.state.previous;
  }
  if (counter != nullptr) {
    *counter = std::max<std::int64_t>(*counter - units, 0);
    outcome = {.admitted = 1, .effect = Effect::kCharged};
  }
  Describe(outcome, w, quota, now);
  if (outcome.effect == Effect::kNone) return {state, outcome};
  return {w.state, outcome};
}

}  // namespace tidegate::sliding_window
