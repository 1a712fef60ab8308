// SPDX-License-Identifier: Apache-2.0
#include "core/gcra.hpp"

#include <algorithm>

#include "core/ticks.hpp"

namespace tidegate::gcra {
namespace {

/// What is still to be paid for at `at`, in grains.
struct Debt {
  std::int64_t grains;
  Time at;  ///< The clock, or the earliest time at which the stored tat is possible.
  bool repaired = false;
};

std::int64_t FullBurst(const Quota& quota) noexcept {
  return quota.capacity() * quota.grains_per_unit();
}

Debt Read(const State& state, const Quota& quota, Time now) noexcept {
  if (state.tat < now) return {0, now};
  const std::int64_t per_tick = quota.grains_per_tick();
  const Int128 grains = static_cast<Int128>((state.tat - now).count()) * per_tick +
                        std::min(state.rest, per_tick - 1);
  const std::int64_t most =
      FullBurst(quota) + std::min(state.owed, quota.saturation() * quota.grains_per_unit());
  if (grains <= most) return {static_cast<std::int64_t>(grains), now};
  // Nobody can owe more than `most`: the clock stands behind the one that wrote
  // tat. By no more than one recovery: hold until it has caught up.
  const Int128 ahead = grains - most;
  if (ahead > static_cast<Int128>(quota.recovery().count()) * per_tick) return {most, now, true};
  const std::int64_t ticks = CeilDiv(static_cast<std::int64_t>(ahead), per_tick);
  // The last of those ticks may refill more than is owed.
  const std::int64_t owed = static_cast<std::int64_t>(grains) - ticks * per_tick;
  return {std::max<std::int64_t>(owed, 0), now + Micros{ticks}};
}

State Store(const Debt& debt, const Quota& quota) noexcept {
  const std::int64_t per_tick = quota.grains_per_tick();
  const std::int64_t owed = std::max<std::int64_t>(debt.grains - FullBurst(quota), 0);
  if (per_tick == 1) return {debt.at + Micros{debt.grains}, 0, owed};
  return {debt.at + Micros{debt.grains / per_tick}, debt.grains % per_tick, owed};
}

/// Ticks from `now` until no more than `grains` are owed.
Micros Until(std::int64_t grains, const Debt& debt, const Quota& quota, Time now) noexcept {
  const std::int64_t per_tick = quota.grains_per_tick();
  const std::int64_t excess = debt.grains - grains;
  return (debt.at - now) + Micros{per_tick == 1 ? excess : CeilDiv(excess, per_tick)};
}

void Describe(Outcome& outcome, const Debt& debt, const Quota& quota, Time now) noexcept {
  const std::int64_t left = FullBurst(quota) - debt.grains;
  outcome.remaining = left > 0 ? left / quota.grains_per_unit() : 0;
  if (debt.grains > 0) {
    const std::int64_t next = (outcome.remaining + 1) * quota.grains_per_unit();
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
  const std::int64_t price = fits ? cost * quota.grains_per_unit() : 0;
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
  return {Store(debt, quota), outcome};
}

Stepped<State> Debit(const State& state, const Quota& quota, std::int64_t units,
                     Time now) noexcept {
  Debt debt = Read(state, quota, now);
  const std::int64_t room =
      quota.capacity() + quota.max_debt() - CeilDiv(debt.grains, quota.grains_per_unit());
  debt.grains += std::min(units, std::max<std::int64_t>(room, 0)) * quota.grains_per_unit();
  Outcome outcome{.admitted = 1, .effect = Effect::kCharged};
  Describe(outcome, debt, quota, now);
  return {Store(debt, quota), outcome};
}

Stepped<State> Refund(const State& state, const Quota& quota, std::int64_t units,
                      Time now) noexcept {
  Debt debt = Read(state, quota, now);
  const std::int64_t covered = std::min(units, CeilDiv(debt.grains, quota.grains_per_unit()));
  debt.grains = std::max<std::int64_t>(debt.grains - covered * quota.grains_per_unit(), 0);
  Outcome outcome{.admitted = 1, .effect = Effect::kCharged};
  Describe(outcome, debt, quota, now);
  return {Store(debt, quota), outcome};
}

}  // namespace tidegate::gcra
