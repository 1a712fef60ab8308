// SPDX-License-Identifier: Apache-2.0
#include "core/concurrency.hpp"

#include <algorithm>

namespace tidegate::concurrency {
namespace {

/// The active leases, from index `change.expired` on; they hold `used` units in all.
struct Held {
  Change change;
  std::int64_t used = 0;
};

/// Returns when a lease ends: at most one period from now if expiries are corrected.
Time Ends(const Lease& lease, const Change& change, const Quota& quota, Time now) noexcept {
  return change.repaired ? std::min(lease.expiry, now + quota.period()) : lease.expiry;
}

Held Read(const Leases& leases, const Quota& quota, LeaseId id, Time now) noexcept {
  Held held;
  const auto all = leases.all();
  while (held.change.expired < all.size() && all[held.change.expired].expiry <= now) {
    ++held.change.expired;
  }
  for (std::uint32_t i = held.change.expired; i < all.size(); ++i) {
    held.used += all[i].units;
    if (all[i].id == id) held.change.own = i;
  }
  // A lease lasts one period: one that ends in more than two was written by a clock far ahead.
  held.change.repaired = !all.empty() && all.back().expiry - now > 2 * quota.period();
  return held;
}

/// Returns the lease that `id` gets at `now`. It does not end before the id's present lease: a
/// clock a little behind the one that wrote that lease must not shorten it.
Lease Prolonged(const Leases& leases, const Held& held, const Quota& quota, LeaseId id,
                std::int64_t units, Time now) noexcept {
  Time expiry = now + quota.period();
  if (held.change.own != kNoLease) {
    expiry = std::max(expiry, Ends(leases.all()[held.change.own], held.change, quota, now));
  }
  return {id, expiry, units};
}

/// Returns the time until `units` units of leases other than `own` have expired.
Micros WhenGone(const Leases& leases, const Quota& quota, const Change& change, std::int64_t units,
                Time now) noexcept {
  for (std::uint32_t i = change.expired; i < leases.size(); ++i) {
    if (i == change.own) continue;
    units -= leases.all()[i].units;
    if (units <= 0) return Ends(leases.all()[i], change, quota, now) - now;
  }
  return quota.period();
}

/// Returns the time until more than `remaining` places are free: until the first lease ends or, if
/// a lowered limit has left too many leases, until the first end that brings them below the limit.
Micros WhenMore(const Leases& leases, const Held& held, const Quota& quota, std::int64_t remaining,
                Time now) noexcept {
  const Change& change = held.change;
  std::int64_t excess = held.used + remaining + 1 - quota.limit();
  bool held_counted = !change.hold;
  for (std::uint32_t i = change.expired; i < leases.size(); ++i) {
    if (change.hold && i == change.own) continue;  // `change.lease` replaces it.
    const Time ends = Ends(leases.all()[i], change, quota, now);
    if (!held_counted && change.lease.expiry <= ends) {
      held_counted = true;
      excess -= change.lease.units;
      if (excess <= 0) return change.lease.expiry - now;
    }
    excess -= leases.all()[i].units;
    if (excess <= 0) return ends - now;
  }
  return change.hold ? change.lease.expiry - now : quota.period();
}

void Describe(Outcome& outcome, const Leases& leases, const Held& held, const Quota& quota,
              Time now) noexcept {
  outcome.remaining = std::max<std::int64_t>(quota.limit() - held.used, 0);
  if (held.change.hold) outcome.reset_after = held.change.lease.expiry - now;
  if (held.change.expired < leases.size()) {
    const Micros last = Ends(leases.all().back(), held.change, quota, now) - now;
    outcome.reset_after = std::max(outcome.reset_after, last);
  }
  if (held.used > 0) outcome.more_after = WhenMore(leases, held, quota, outcome.remaining, now);
  if (held.change.hold) outcome.effect = Effect::kCharged;
  if (held.change.repaired) outcome.effect = Effect::kRepaired;
}

}  // namespace

void Leases::Insert(const Lease& lease) noexcept {
  assert(size_ < capacity_);
  std::uint32_t i = size_++;
  for (; i > 0 && memory_[i - 1].expiry > lease.expiry; --i) memory_[i] = memory_[i - 1];
  memory_[i] = lease;
}

void Leases::Erase(std::uint32_t i) noexcept {
  assert(i < size_);
  std::copy(memory_ + i + 1, memory_ + size_, memory_ + i);
  --size_;
}

void Leases::DropFirst(std::uint32_t n) noexcept {
  assert(n <= size_);
  std::copy(memory_ + n, memory_ + size_, memory_);
  size_ -= n;
}

void Leases::CopyFrom(const Leases& other) noexcept {
  assert(size_ == 0 && other.size() <= capacity_);
  std::copy(other.all().begin(), other.all().end(), memory_);
  size_ = other.size();
}

Plan Acquire(const Leases& leases, const Quota& quota, LeaseId id, std::int64_t cost,
             std::int64_t count, Time now) noexcept {
  Held held = Read(leases, quota, id, now);
  const std::int64_t own = held.change.own == kNoLease ? 0 : leases.all()[held.change.own].units;
  Outcome outcome;
  const std::int64_t excess = held.used - own + cost - quota.limit();
  if (excess <= 0 && count > 0) {
    outcome.admitted = count;
    held.used += cost - own;
    held.change.hold = true;
    held.change.lease = Prolonged(leases, held, quota, id, cost, now);
  } else if (cost > quota.limit()) {
    outcome.never = true;
  } else if (excess > 0) {
    outcome.retry_after = WhenGone(leases, quota, held.change, excess, now);
  }
  Describe(outcome, leases, held, quota, now);
  return {outcome, held.change};
}

Plan Renew(const Leases& leases, const Quota& quota, LeaseId id, Time now) noexcept {
  Held held = Read(leases, quota, id, now);
  Outcome outcome;
  if (held.change.own != kNoLease) {
    outcome.admitted = 1;
    held.change.hold = true;
    const std::int64_t units = leases.all()[held.change.own].units;
    held.change.lease = Prolonged(leases, held, quota, id, units, now);
  }
  Describe(outcome, leases, held, quota, now);
  return {outcome, held.change};
}

void Commit(Leases& leases, const Quota& quota, const Change& change, Time now) noexcept {
  if (change.hold && change.own != kNoLease) leases.Erase(change.own);
  leases.DropFirst(change.expired);
  if (change.repaired) leases.Clamp(now + quota.period());
  if (change.hold) leases.Insert(change.lease);
}

Outcome Release(Leases& leases, const Quota& quota, LeaseId id, Time now) noexcept {
  Held held = Read(leases, quota, id, now);
  Outcome outcome;
  if (held.change.own != kNoLease) {
    outcome.admitted = 1;
    held.used -= leases.all()[held.change.own].units;
    leases.Erase(held.change.own);
  }
  Commit(leases, quota, {.expired = held.change.expired, .repaired = held.change.repaired}, now);
  held.change.expired = 0;
  Describe(outcome, leases, held, quota, now);
  if (outcome.admitted > 0 && !held.change.repaired) outcome.effect = Effect::kCharged;
  return outcome;
}

}  // namespace tidegate::concurrency
