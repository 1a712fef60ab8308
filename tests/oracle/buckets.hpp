// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <numeric>

#include "core/gcra.hpp"
#include "core/token_bucket.hpp"
#include "oracle/model.hpp"

namespace tidegate::oracle {

/// The rules that both bucket algorithms share. A level is an exact fraction of units over
/// `period`, so that one tick refills exactly `limit`.
class BucketLaw {
 public:
  explicit BucketLaw(const Quota& quota) : law_(Law::Of(quota)) {}

  const Law& law() const { return law_; }
  Wide Full() const { return law_.capacity * law_.period; }
  /// Returns the time from empty to full, found by search.
  Tick Recovery() const {
    return Least([&](Tick d) { return d * law_.limit >= Full(); });
  }
  /// Returns how many 1/period make one grain. Stored states count in lowest terms, that is, in
  /// grains.
  Wide Grain() const {
    return std::gcd(static_cast<Tick>(law_.limit), static_cast<Tick>(law_.period));
  }
  /// Returns the level after a debit of `units`. The debit takes only as many units as leave the
  /// level at most `max_debt` below empty.
  Wide Debited(Wide level, std::int64_t units) const {
    const Wide least = -law_.max_debt * law_.period;
    const Wide taken =
        Least([&](Tick n) { return n >= units || level - (Wide{n} + 1) * law_.period < least; });
    return level - taken * law_.period;
  }

 private:
  Law law_;
};

/// A bucket that remembers its unfinished token as the time at which that token began.
class TokenBucket : public BucketLaw {
 public:
  TokenBucket(const Quota& quota, Tick now)
      : BucketLaw(quota), whole_(Full()), level_(Full()), since_(now) {}

  /// Reads a stored state under `quota`, which may differ from the quota that it was stored under.
  TokenBucket(const Quota& quota, const token_bucket::State& state)
      : BucketLaw(quota), since_(state.last_refill.time_since_epoch().count()) {
    whole_ = std::clamp(Wide{state.tokens}, -law().saturation, law().capacity) * law().period;
    level_ = whole_ + std::min(Wide{state.rest} * Grain(), law().limit - Grain());
  }

  /// If the stored time is too far in the future, keeps the whole tokens and drops the unfinished
  /// one.
  bool Repair(Tick now) {
    if (since_ - now <= Recovery()) return false;
    level_ = whole_;
    since_ = now;
    return true;
  }
  bool Passes(std::int64_t cost, Tick at) const { return Level(at) >= cost * law().period; }
  bool IsFresh(Tick at) const { return Level(at) == Full(); }
  Tick Held(Tick at) const { return std::max(at, since_); }
  void Take(std::int64_t cost, Tick at) { Set(Level(at) - cost * law().period, at); }
  void Debit(std::int64_t units, Tick at) { Set(Debited(Level(at), units), at); }
  bool Refund(std::int64_t units, Tick /*charged_at*/, Tick at, bool /*repaired*/) {
    Set(std::min(Level(at) + units * law().period, Full()), at);
    return true;
  }

 private:
  Wide Level(Tick at) const { return std::min(level_ + (Held(at) - since_) * law().limit, Full()); }
  /// Keeps the level, and moves the time back to the tick at which the unfinished token began: a
  /// clock that steps back that far takes no whole token away.
  void Set(Wide level, Tick at) {
    at = Held(at);
    whole_ = FloorDiv(level, law().period) * law().period;
    const Tick back = Least([&](Tick k) { return level - (k + 1) * law().limit < whole_; });
    level_ = level - back * law().limit;
    since_ = at - back;
  }

  Wide whole_;  ///< The whole tokens of `level_` at `since_`.
  Wide level_;
  Tick since_;
};

/// A bucket that is stored as the time at which it will be full again, as a fraction of ticks over
/// `limit`, so that one unit moves it by exactly `period`.
class Gcra : public BucketLaw {
 public:
  Gcra(const Quota& quota, Tick now) : BucketLaw(quota), tat_(now * law().limit) {}

  Gcra(const Quota& quota, const gcra::State& state)
      : BucketLaw(quota),
        tat_(state.tat.time_since_epoch().count() * law().limit +
             std::min(state.rest * Grain(), law().limit - Grain())),
        owed_(OfCaller() ? 0 : std::min(state.owed * Grain(), law().saturation * law().period)),
        reach_(OfCaller() ? state.owed : 0) {}

  bool Repair(Tick now) {
    if (OfCaller() ? Debt(now) <= Full() ||
                         TicksAhead(now) <= std::max({reach_, Recovery(), kShortReach}) + Recovery()
                   : Held(now) - now <= Recovery()) {
      return false;
    }
    tat_ = now * law().limit + Full() + owed_;
    reach_ = 0;
    return true;
  }
  bool Passes(std::int64_t cost, Tick at) const {
    return Debt(Held(at)) + cost * law().period <= Full();
  }
  bool IsFresh(Tick at) const { return Debt(Held(at)) == 0; }
  /// Returns the time at which operations at `at` take effect. With a clock that runs forward, only
  /// debits can cause a debt above capacity. A clock that stepped back stands still until the debt
  /// is in that range again.
  Tick Held(Tick at) const {
    if (OfCaller()) {
      // Not in that range yet: use the last tick at which the debt is a full burst or more.
      if (Debt(at) <= Full()) return at;
      return at + Least([&](Tick d) { return Debt(at + d + 1) < Full(); });
    }
    return at + Least([&](Tick d) { return Debt(at + d) <= Full() + owed_; });
  }
  void Take(std::int64_t cost, Tick at) {
    const Tick held = Held(at);
    Set(Debt(held) + cost * law().period, held, at);
  }
  void Debit(std::int64_t units, Tick at) {
    const Tick held = OfCaller() ? at : Held(at);
    Set(Full() - Debited(Full() - Debt(held), units), held, at);
  }
  bool Refund(std::int64_t units, Tick /*charged_at*/, Tick at, bool /*repaired*/) {
    const Tick held = Held(at);
    Set(std::max(Debt(held) - units * law().period, Wide{0}), held, at);
    return true;
  }

 private:
  static constexpr Tick kShortReach = 60'000'000;

  bool OfCaller() const { return law().origin == QuotaOrigin::kCaller; }
  Wide Debt(Tick at) const { return std::max(tat_ - at * law().limit, Wide{0}); }
  /// Returns the time until the debt is 0.
  Tick TicksAhead(Tick now) const {
    return Least([&](Tick d) { return Debt(now + d) == 0; });
  }
  void Set(Wide debt, Tick at, Tick now) {
    if (tat_ < (now + 1) * law().limit) reach_ = 0;
    tat_ = at * law().limit + debt;
    owed_ = OfCaller() ? 0 : std::max(debt - Full(), Wide{0});
    reach_ = std::max({reach_, Recovery(), TicksAhead(now)});
    if (reach_ <= kShortReach) reach_ = 0;
  }

  Wide tat_;
  Wide owed_ = 0;
  Tick reach_ = 0;  ///< The same as State::owed in src/core for quotas of callers.
};

}  // namespace tidegate::oracle
