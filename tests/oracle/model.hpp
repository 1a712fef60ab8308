// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstdlib>

#include "core/outcome.hpp"
#include "core/quota_scale.hpp"
#include "tidegate/quota.hpp"

/// A second, independent computation of every step. A model knows one thing about its algorithm:
/// whether one request would pass at a given tick. All fields of an Outcome are found by evaluating
/// that predicate repeatedly, never by a formula, so that a mistake in the derivation of a formula
/// cannot occur here too.
namespace tidegate::oracle {

__extension__ typedef __int128 Wide;
using Tick = std::int64_t;  ///< Microseconds since the epoch.

/// A quota as exact fractions, without the integers that the steps under test use.
struct Law {
  Wide limit = 1;
  Wide period = 1;
  Wide capacity = 1;
  Wide saturation = 0;
  Wide max_debt = 0;
  QuotaOrigin origin = QuotaOrigin::kRule;

  /// Returns the law of a quota. `saturation` is a choice of the implementation, so it is copied.
  static Law Of(const Quota& quota) {
    return {quota.limit(),     quota.period().count(), quota.capacity(),
            Saturation(quota), quota.max_debt(),       quota.origin()};
  }
};

/// Returns the least x >= 0 with predicate(x). REQUIRES: the predicate is false up to some x and
/// true from there on.
template <class Predicate>
Tick Least(Predicate predicate) {
  if (predicate(Tick{0})) return 0;
  Tick low = 0;  // The predicate is false here, and true at `high`.
  Tick high = 1;
  while (!predicate(high)) {
    low = high;
    // The predicate never becomes true: the model is wrong.
    if (high > (Tick{1} << 59)) std::abort();
    high *= 2;
  }
  while (high - low > 1) {
    const Tick middle = low + (high - low) / 2;
    (predicate(middle) ? high : low) = middle;
  }
  return high;
}

inline Tick FloorDiv(Tick a, Tick b) {
  Tick q = a / b;
  while (q * b > a) --q;
  return q;
}

inline Wide FloorDiv(Wide a, Wide b) {
  Wide q = a / b;
  while (q * b > a) --q;
  return q;
}

/// Fills in the fields that describe the state. `remaining` is the greatest cost that would pass.
template <class Model>
void Describe(const Model& model, Tick now, Outcome& out) {
  out.remaining = Least([&](Tick r) { return !model.Passes(r + 1, now); });
  out.reset_after = Micros{Least([&](Tick d) { return model.IsFresh(now + d); })};
  if (out.reset_after > Micros{0}) {
    out.more_after =
        Micros{Least([&](Tick d) { return model.Passes(out.remaining + 1, now + d); })};
  }
}

/// Applies `count` requests, one after the other, at one instant.
template <class Model>
Outcome StepOneByOne(Model& model, std::int64_t cost, std::int64_t count, Tick now) {
  Outcome out;
  const bool repaired = model.Repair(now);
  while (out.admitted < count && model.Passes(cost, now)) {
    model.Take(cost, now);
    ++out.admitted;
  }
  out.never = cost > model.law().capacity;
  const bool asks_when = out.admitted < count || count == 0;
  if (asks_when && !out.never) {
    out.retry_after = Micros{Least([&](Tick d) { return model.Passes(cost, now + d); })};
  }
  Describe(model, now, out);
  if (out.admitted > 0) out.effect = Effect::kCharged;
  if (repaired) out.effect = Effect::kRepaired;
  return out;
}

/// Applies a debit. The model takes the units one by one, each only if fewer than `max_debt` are
/// missing.
template <class Model>
Outcome ApplyDebit(Model& model, std::int64_t units, Tick now) {
  Outcome out;
  const bool repaired = model.Repair(now);
  model.Debit(units, now);
  out.admitted = 1;
  Describe(model, now, out);
  out.effect = repaired ? Effect::kRepaired : Effect::kCharged;
  return out;
}

/// Applies a refund. `admitted` is 1 if it was early enough to be applied. The other fields
/// describe the state at the tick at which the refund takes effect, which is later than `now` if
/// the clock is behind.
template <class Model>
Outcome ApplyRefund(Model& model, std::int64_t units, Tick charged_at, Tick now) {
  Outcome out;
  const bool repaired = model.Repair(now);
  const Tick runs = model.Held(now);
  out.admitted = model.Refund(units, charged_at, now, repaired) ? 1 : 0;
  Describe(model, runs, out);
  if (out.reset_after > Micros{0}) {
    out.reset_after += Micros{runs - now};
    out.more_after += Micros{runs - now};
  }
  if (out.admitted > 0) out.effect = Effect::kCharged;
  if (repaired) out.effect = Effect::kRepaired;
  return out;
}

}  // namespace tidegate::oracle
