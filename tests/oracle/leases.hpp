// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <vector>

#include "oracle/model.hpp"

namespace tidegate::oracle {

/// The leases of one key: who holds how many units until when, in no order.
class Leases {
 public:
  explicit Leases(const Quota& quota) : law_(Law::Of(quota)) {}

  const Law& law() const { return law_; }
  void ChangeQuota(const Quota& quota) { law_ = Law::Of(quota); }

  bool Repair(Tick now) {
    Tick latest = now;
    for (const Held& held : held_) latest = std::max(latest, held.expiry);
    if (latest - now <= 2 * law_.period) return false;
    const Tick last = now + static_cast<Tick>(law_.period);
    for (Held& held : held_) held.expiry = std::min(held.expiry, last);
    return true;
  }
  /// Sets the caller of the next operations: its own lease does not count against it.
  void SetCaller(std::uint64_t id) { asking_ = id; }
  bool Passes(std::int64_t cost, Tick at) const {
    Wide sum = cost;
    for (const Held& held : held_) {
      if (held.id != asking_ && at < held.expiry) sum += held.units;
    }
    return sum <= law_.limit;
  }
  bool IsFresh(Tick at) const {
    return std::none_of(held_.begin(), held_.end(), [&](const Held& h) { return at < h.expiry; });
  }
  void Take(std::int64_t units, Tick at) {
    Tick expiry = at + static_cast<Tick>(law_.period);
    for (const Held& held : held_) {
      if (held.id == asking_ && at < held.expiry) expiry = std::max(expiry, held.expiry);
    }
    Forget(at);
    std::erase_if(held_, [&](const Held& held) { return held.id == asking_; });
    held_.push_back({asking_, expiry, units});
  }
  /// Returns the units that `id` holds at `at`; 0 if its lease has expired.
  std::int64_t UnitsOf(std::uint64_t id, Tick at) const {
    for (const Held& held : held_) {
      if (held.id == id && at < held.expiry) return held.units;
    }
    return 0;
  }
  void Release(std::uint64_t id, Tick at) {
    Forget(at);
    std::erase_if(held_, [&](const Held& held) { return held.id == id; });
  }
  /// Drops expired leases, as each write does: a clock that steps back does not revive them.
  void Forget(Tick at) {
    std::erase_if(held_, [&](const Held& held) { return held.expiry <= at; });
  }

  struct Held {
    std::uint64_t id;
    Tick expiry;
    std::int64_t units;
  };
  const std::vector<Held>& held() const { return held_; }

 private:
  Law law_;
  std::uint64_t asking_ = 0;
  std::vector<Held> held_;
};

/// Id of a caller without a lease. For it, `remaining` is what it could acquire.
inline constexpr std::uint64_t kNoLease = UINT64_MAX;

/// Writes the state into `out` and drops what a write would drop.
inline void Settle(Leases& leases, bool repaired, Tick now, Outcome& out) {
  if (out.admitted > 0) out.effect = Effect::kCharged;
  if (repaired) out.effect = Effect::kRepaired;
  if (out.effect != Effect::kNone) leases.Forget(now);
  leases.SetCaller(kNoLease);
  Describe(leases, now, out);
}

inline Outcome Acquire(Leases& leases, std::uint64_t id, std::int64_t cost, std::int64_t count,
                       Tick now) {
  Outcome out;
  const bool repaired = leases.Repair(now);
  leases.SetCaller(id);
  for (; out.admitted < count && leases.Passes(cost, now); ++out.admitted) leases.Take(cost, now);
  out.never = cost > leases.law().limit;
  if ((out.admitted < count || count == 0) && !out.never) {
    out.retry_after = Micros{Least([&](Tick d) { return leases.Passes(cost, now + d); })};
  }
  Settle(leases, repaired, now, out);
  return out;
}

inline Outcome Renew(Leases& leases, std::uint64_t id, Tick now) {
  Outcome out;
  const bool repaired = leases.Repair(now);
  const std::int64_t units = leases.UnitsOf(id, now);
  leases.SetCaller(id);
  if (units > 0) leases.Take(units, now);
  out.admitted = units > 0 ? 1 : 0;
  Settle(leases, repaired, now, out);
  return out;
}

inline Outcome Release(Leases& leases, std::uint64_t id, Tick now) {
  Outcome out;
  const bool repaired = leases.Repair(now);
  out.admitted = leases.UnitsOf(id, now) > 0 ? 1 : 0;
  leases.Release(id, now);
  Settle(leases, repaired, now, out);
  return out;
}

}  // namespace tidegate::oracle
