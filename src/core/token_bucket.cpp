// SPDX-License-Identifier: Apache-2.0
#include "core/token_bucket.hpp"

#include <algorithm>

#include "core/quota_scale.hpp"

namespace tidegate::token_bucket {
namespace {

/// The content of the bucket at time `at`: whole tokens and `part` grains of the next token.
struct Level {
  std::int64_t tokens;
  std::int64_t part;
  Time at;  ///< The clock's time, or the stored time if that is later.
  bool repaired = false;
};

Level Refill(const State& state, const Quota& quota, Time now) noexcept {
  // A state that another quota wrote may be outside the range of this quota.
  const std::int64_t tokens = std::clamp(state.tokens, -Saturation(quota), quota.capacity());
  if (now < state.last_refill) {
    // If the clock is at most one recovery behind the stored time, the bucket does not refill until
    // the clock has caught up. If it is further behind, the clock was stepped: start from its time.
    if (state.last_refill - now > quota.recovery()) return {tokens, 0, now, true};
    now = state.last_refill;
  }
  const std::int64_t per_unit = GrainsPerUnit(quota);
  const std::int64_t rest = std::min(state.rest, GrainsPerTick(quota) - 1);
  const Int128 grains =
      static_cast<Int128>((now - state.last_refill).count()) * GrainsPerTick(quota) + rest;
  const std::int64_t to_full = (quota.capacity() - tokens) * per_unit;
  if (grains >= to_full) return {quota.capacity(), 0, now};
  // `grains` is below to_full and therefore below 2^53.
  const auto part = static_cast<std::int64_t>(grains);
  if (part < per_unit) return {tokens, part, now};
  return {tokens + part / per_unit, part % per_unit, now};
}

State Store(const Level& level, const Quota& quota) noexcept {
  const std::int64_t per_tick = GrainsPerTick(quota);
  if (per_tick == 1) return {level.tokens, level.at - Micros{level.part}, 0};
  return {level.tokens, level.at - Micros{level.part / per_tick}, level.part % per_tick};
}

/// Returns the time from `now` until the bucket holds `tokens`. REQUIRES: it holds fewer.
Micros Until(std::int64_t tokens, const Level& level, const Quota& quota, Time now) noexcept {
  const std::int64_t grains = (tokens - level.tokens) * GrainsPerUnit(quota) - level.part;
  const std::int64_t per_tick = GrainsPerTick(quota);
  return (level.at - now) + Micros{per_tick == 1 ? grains : CeilDiv(grains, per_tick)};
}

void Describe(Outcome& outcome, const Level& level, const Quota& quota, Time now) noexcept {
  outcome.remaining = std::max<std::int64_t>(level.tokens, 0);
  if (level.tokens < quota.capacity()) {
    outcome.more_after = Until(outcome.remaining + 1, level, quota, now);
    outcome.reset_after = Until(quota.capacity(), level, quota, now);
  }
  if (level.repaired) outcome.effect = Effect::kRepaired;
}

}  // namespace

State Fresh(const Quota& quota, Time now) noexcept { return {quota.capacity(), now, 0}; }

Stepped<State> Step(const State& state, const Quota& quota, std::int64_t cost, std::int64_t count,
                    Time now) noexcept {
  Level level = Refill(state, quota, now);
  Outcome outcome;
  if (count == 1) {
    outcome.admitted = level.tokens >= cost ? 1 : 0;
  } else if (level.tokens > 0) {
    outcome.admitted = std::min(level.tokens / cost, count);
  }
  level.tokens -= outcome.admitted * cost;
  Describe(outcome, level, quota, now);
  if (outcome.admitted > 0) {
    outcome.effect = level.repaired ? Effect::kRepaired : Effect::kCharged;
  }
  if (outcome.admitted < count || count == 0) {
    if (cost > quota.capacity()) {
      outcome.never = true;
    } else if (level.tokens < cost) {
      outcome.retry_after = Until(cost, level, quota, now);
    }
  }
  if (outcome.effect == Effect::kNone) return {state, outcome};
  return {Store(level, quota), outcome};
}

Stepped<State> Debit(const State& state, const Quota& quota, std::int64_t units,
                     Time now) noexcept {
  Level level = Refill(state, quota, now);
  // A level that another quota wrote may already be below the bound; do not change such a level.
  const std::int64_t room = std::max<std::int64_t>(level.tokens + quota.max_debt(), 0);
  level.tokens -= std::min(units, room);
  Outcome outcome{.admitted = 1, .effect = Effect::kCharged};
  Describe(outcome, level, quota, now);
  return {Store(level, quota), outcome};
}

Stepped<State> Refund(const State& state, const Quota& quota, std::int64_t units,
                      Time /*charged_at*/, Time now) noexcept {
  Level level = Refill(state, quota, now);
  level.tokens += units;
  if (level.tokens >= quota.capacity()) {
    level.tokens = quota.capacity();
    level.part = 0;
  }
  Outcome outcome{.admitted = 1, .effect = Effect::kCharged};
  Describe(outcome, level, quota, now);
  return {Store(level, quota), outcome};
}

}  // namespace tidegate::token_bucket
