// SPDX-License-Identifier: Apache-2.0
#include "core/fixed_window.hpp"

#include <algorithm>

#include "core/quota_scale.hpp"

namespace tidegate::fixed_window {
namespace {

struct Window {
  State state;
  bool repaired = false;
};

Window Read(const State& state, const Quota& quota, Time now) noexcept {
  const Time start = WindowStart(now, quota.period());
  const std::int64_t count = std::min(state.count, Saturation(quota));
  if (state.start == start) return {{start, count}};
  if (state.start < start) return {{start, 0}};
  // If the state is one window ahead, the clock is a little behind: keep the later window. If it is
  // further ahead, the clock was stepped: the count belongs to the present window.
  if (state.start - start > quota.period()) return {{start, count}, true};
  // Align the start again: the state may have been written under another period.
  return {{WindowStart(state.start, quota.period()), count}};
}

void Describe(Outcome& outcome, const Window& window, const Quota& quota, Time now) noexcept {
  outcome.remaining = std::max<std::int64_t>(quota.limit() - window.state.count, 0);
  if (window.state.count > 0) {
    outcome.more_after = outcome.reset_after = window.state.start + quota.period() - now;
  }
  if (window.repaired) outcome.effect = Effect::kRepaired;
}

}  // namespace

State Fresh(const Quota& quota, Time now) noexcept { return {WindowStart(now, quota.period()), 0}; }

Stepped<State> Step(const State& state, const Quota& quota, std::int64_t cost, std::int64_t count,
                    Time now) noexcept {
  Window window = Read(state, quota, now);
  Outcome outcome;
  const std::int64_t left = quota.limit() - window.state.count;
  if (left >= cost) outcome.admitted = count == 1 ? 1 : std::min(left / cost, count);
  window.state.count += outcome.admitted * cost;
  Describe(outcome, window, quota, now);
  if (outcome.admitted > 0 && !window.repaired) outcome.effect = Effect::kCharged;
  if (outcome.admitted < count || count == 0) {
    if (cost > quota.limit()) {
      outcome.never = true;
    } else if (window.state.count + cost > quota.limit()) {
      outcome.retry_after = window.state.start + quota.period() - now;
    }
  }
  if (outcome.effect == Effect::kNone) return {state, outcome};
  return {window.state, outcome};
}

Stepped<State> Debit(const State& state, const Quota& quota, std::int64_t units,
                     Time now) noexcept {
  Window window = Read(state, quota, now);
  const std::int64_t room = quota.limit() + quota.max_debt() - window.state.count;
  window.state.count += std::min(units, std::max<std::int64_t>(room, 0));
  Outcome outcome{.admitted = 1, .effect = Effect::kCharged};
  Describe(outcome, window, quota, now);
  return {window.state, outcome};
}

Stepped<State> Refund(const State& state, const Quota& quota, std::int64_t units, Time charged_at,
                      Time now) noexcept {
  Window window = Read(state, quota, now);
  Outcome outcome;
  // Compare with the clock's window, not the stored one: charges that were made while a later
  // window was kept are counted in that window.
  if (charged_at >= WindowStart(now, quota.period())) {
    window.state.count = std::max<std::int64_t>(window.state.count - units, 0);
    outcome = {.admitted = 1, .effect = Effect::kCharged};
  }
  Describe(outcome, window, quota, now);
  if (outcome.effect == Effect::kNone) return {state, outcome};
  return {window.state, outcome};
}

}  // namespace tidegate::fixed_window
