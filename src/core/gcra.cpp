// SPDX-License-Identifier: Apache-2.0
#include "core/gcra.hpp"

#include <algorithm>

#include "core/quota_scale.hpp"

namespace tidegate::gcra {
namespace {

/// The grains that are still owed at time `at`.
struct Debt {
  std::int64_t grains;
  Time at;  ///< The clock's time or, if later, the first time at which the stored tat is possible.
  bool repaired = false;
};

std::int64_t FullBurst(const Quota& quota) noexcept {
  return quota.capacity() * GrainsPerUnit(quota);
}

Debt Read(const State& state, const Quota& quota, Time now) noexcept {
  if (state.tat < now) return {0, now};
  const std::int64_t per_tick = GrainsPerTick(quota);
  const Int128 grains = static_cast<Int128>((state.tat - now).count()) * per_tick +
                        std::min(state.rest, per_tick - 1);
  const bool by_rule = quota.origin() == QuotaOrigin::kRule;
  std::int64_t most = FullBurst(quota);
  if (by_rule) most += std::min(state.owed, Saturation(quota) * GrainsPerUnit(quota));
  if (grains <= most) return {static_cast<std::int64_t>(grains), now};
  // Under this quota alone, a key cannot owe more than `most`. Either the clock that wrote tat was
  // ahead of this one, or the quota is a caller's and a slower quota wrote tat; `owed` says how far
  // ahead the slower quota may put tat. If tat is at most one recovery further ahead than that, it
  // is kept, and the key is held until the clock comes near. Otherwise tat is repaired.
  const std::int64_t rest = std::min(state.rest, per_tick - 1);
  const std::int64_t recovery = quota.recovery().count();
  const std::int64_t ahead = (state.tat - now).count() + (rest > 0 ? 1 : 0);
  const bool repaired =
      by_rule ? grains - most > static_cast<Int128>(recovery) * per_tick
              : ahead - recovery > std::max({state.owed, recovery, kShortReach.count()});
  if (repaired) return {most, now, true};
  // Hold at the first tick at which at most `most` is owed. For a caller's quota, hold at the last
  // tick at which at least `most` is owed: its burst may be shorter than one tick, and must not
  // pass before the hold ends. (`grains` may not fit in 64 bits here.)
  std::int64_t ticks = rest > most ? -1 : (most - rest) / per_tick;
  if (!by_rule && ticks * per_tick + rest < most) ++ticks;
  return {std::max<std::int64_t>(ticks * per_tick + rest, 0), state.tat - Micros{ticks}};
}

/// Returns the time from `now` until at most `grains` are owed.
Micros Until(std::int64_t grains, const Debt& debt, const Quota& quota, Time now) noexcept {
  const std::int64_t per_tick = GrainsPerTick(quota);
  const std::int64_t excess = debt.grains - grains;
  return (debt.at - now) + Micros{per_tick == 1 ? excess : CeilDiv(excess, per_tick)};
}

/// Returns State::owed of a caller's quota after a step from `before` to `debt`.
std::int64_t OwedByCaller(const State& before, const Debt& debt, const Quota& quota,
                          Time now) noexcept {
  const std::int64_t recovery = quota.recovery().count();
  const std::int64_t known = before.tat <= now || debt.repaired ? 0 : before.owed;
  // Without a debit and a hold, tat is at most one recovery ahead.
  std::int64_t owed = std::max(known, recovery);
  if (debt.grains > FullBurst(quota) || debt.at != now) {
    owed = std::max(owed, Until(0, debt, quota, now).count());
  }
  return owed > kShortReach.count() ? owed : 0;
}

// Inlined into Step, where it saves a call for each request that passes.
[[gnu::always_inline]] inline State Store(const State& before, const Debt& debt, const Quota& quota,
                                          Time now) noexcept {
  const std::int64_t per_tick = GrainsPerTick(quota);
  const std::int64_t owed = quota.origin() == QuotaOrigin::kRule
                                ? std::max<std::int64_t>(debt.grains - FullBurst(quota), 0)
                                : OwedByCaller(before, debt, quota, now);
  if (per_tick == 1) return {debt.at + Micros{debt.grains}, 0, owed};
  return {debt.at + Micros{debt.grains / per_tick}, debt.grains % per_tick, owed};
}

void Describe(Outcome& outcome, const Debt& debt, const Quota& quota, Time now) noexcept {
  const std::int64_t left = FullBurst(quota) - debt.grains;
  outcome.remaining = left > 0 ? left / GrainsPerUnit(quota) : 0;
  if (debt.grains > 0) {
    const std::int64_t next = (outcome.remaining + 1) * GrainsPerUnit(quota);
    outcome.more_after = Until(FullBurst(quota) - next, debt, quota, now);
    outcome.reset_after = Until(0, debt, quota, now);
  }
  if (debt.repaired) outcome.effect = Effect::kRepaired;
}

}  // namespace

State Fresh(const Quota&, Time now) noexcept { return {now, 0, 0}; }

Stepped<State> Step(const State& state, const Quota& quota, std::int64_t cost, std::int64_t count,
                    Time now) noexcept {
  Debt debt = Read(state, quota, now);
  Outcome outcome;
  const std::int64_t left = FullBurst(quota) - debt.grains;
  // cost may be far above the capacity; then its price does not fit 64 bits.
  const bool fits = cost <= quota.capacity();
  const std::int64_t price = fits ? cost * GrainsPerUnit(quota) : 0;
  if (fits && left >= price) outcome.admitted = count == 1 ? 1 : std::min(left / price, count);
  debt.grains += outcome.admitted * price;
  Describe(outcome, debt, quota, now);
  if (outcome.admitted > 0 && !debt.repaired) outcome.effect = Effect::kCharged;
  if (outcome.admitted < count || count == 0) {
    const std::int64_t most = FullBurst(quota) - price;
    outcome.never = !fits;
    if (fits && debt.grains > most) outcome.retry_after = Until(most, debt, quota, now);
  }
  if (outcome.effect == Effect::kNone) return {state, outcome};
  return {Store(state, debt, quota, now), outcome};
}

Stepped<State> Debit(const State& state, const Quota& quota, std::int64_t units,
                     Time now) noexcept {
  Debt debt = Read(state, quota, now);
  const std::int64_t most = quota.capacity() + quota.max_debt();
  Int128 grains = debt.grains;
  // The time until debt.at counts as debt too: repeated debits must not extend it without limit.
  if (quota.origin() == QuotaOrigin::kCaller) {
    grains += static_cast<Int128>((debt.at - now).count()) * GrainsPerTick(quota);
  }
  const bool has_room = grains <= static_cast<Int128>(most) * GrainsPerUnit(quota);
  const std::int64_t room =
      has_room ? most - CeilDiv(static_cast<std::int64_t>(grains), GrainsPerUnit(quota)) : 0;
  debt.grains += std::min(units, room) * GrainsPerUnit(quota);
  Outcome outcome{.admitted = 1, .effect = Effect::kCharged};
  Describe(outcome, debt, quota, now);
  return {Store(state, debt, quota, now), outcome};
}

Stepped<State> Refund(const State& state, const Quota& quota, std::int64_t units,
                      Time /*charged_at*/, Time now) noexcept {
  Debt debt = Read(state, quota, now);
  const std::int64_t covered = std::min(units, CeilDiv(debt.grains, GrainsPerUnit(quota)));
  debt.grains = std::max<std::int64_t>(debt.grains - covered * GrainsPerUnit(quota), 0);
  Outcome outcome{.admitted = 1, .effect = Effect::kCharged};
  Describe(outcome, debt, quota, now);
  return {Store(state, debt, quota, now), outcome};
}

}  // namespace tidegate::gcra
