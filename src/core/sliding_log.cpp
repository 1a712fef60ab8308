// SPDX-License-Identifier: Apache-2.0
#include "core/sliding_log.hpp"

#include <algorithm>

namespace tidegate::sliding_log {
namespace {

/// The entries in the window, from index `change.expired` on; they hold `used` units in all.
struct Window {
  Change change;
  std::int64_t used;
};

Window Read(const Log& log, const Quota& quota, Time now) noexcept {
  Change change{.at = now};
  if (log.size() > 0 && log.Newest().at > now) {
    // If the clock is at most one period behind the newest entry, the step runs at that entry's
    // time. If it is further behind, the clock was stepped: the later entries count from now on.
    if (log.Newest().at - now > quota.period()) {
      change.repaired = true;
    } else {
      change.at = log.Newest().at;
    }
  }
  std::int64_t used = log.units();
  while (change.expired < log.size() && log[change.expired].at + quota.period() <= change.at) {
    used -= log[change.expired].units;
    ++change.expired;
  }
  return {change, used};
}

/// Returns the time at which entry `i` leaves the window.
Time Leaves(const Log& log, std::uint32_t i, const Change& change, const Quota& quota) noexcept {
  const Time at = change.repaired ? std::min(log[i].at, change.at) : log[i].at;
  return at + quota.period();
}

/// Returns when `units` units have left the window, including those that this step adds.
Time WhenGone(const Log& log, std::int64_t units, const Change& change,
              const Quota& quota) noexcept {
  for (std::uint32_t i = change.expired; i < log.size(); ++i) {
    units -= log[i].units;
    if (units <= 0) return Leaves(log, i, change, quota);
  }
  return change.at + quota.period();
}

void Describe(Outcome& outcome, const Log& log, const Window& window, const Quota& quota,
              Time now) noexcept {
  const Change& change = window.change;
  outcome.remaining = std::max<std::int64_t>(quota.limit() - window.used, 0);
  if (change.units > 0) {
    outcome.reset_after = change.at + quota.period() - now;
    outcome.effect = Effect::kCharged;
  } else if (window.used > 0) {
    outcome.reset_after = Leaves(log, log.size() - 1, change, quota) - now;
  }
  if (window.used > 0) {
    const std::int64_t excess = window.used + outcome.remaining + 1 - quota.limit();
    // In a full log, Commit adds the new units to the newest entry, which gets their time.
    const bool merges = change.units > 0 && log.size() - change.expired >= quota.limit();
    const Time gone = WhenGone(log, excess, change, quota);
    const bool newest = merges && gone == Leaves(log, log.size() - 1, change, quota);
    outcome.more_after = (newest ? change.at + quota.period() : gone) - now;
  }
  if (change.repaired) outcome.effect = Effect::kRepaired;
}

}  // namespace

void Log::PopFront(std::uint32_t n) noexcept {
  assert(n <= size_);
  for (std::uint32_t i = 0; i < n; ++i) units_ -= (*this)[i].units;
  head_ = Place(n);
  size_ -= n;
}

void Log::PushBack(const Entry& entry) noexcept {
  assert(size_ < capacity_);
  memory_[Place(size_)] = entry;
  ++size_;
  units_ += entry.units;
}

void Log::DropEmpty() noexcept {
  std::uint32_t kept = 0;
  for (std::uint32_t i = 0; i < size_; ++i) {
    const Entry entry = (*this)[i];
    if (entry.units > 0) memory_[Place(kept++)] = entry;
  }
  size_ = kept;
}

Plan Step(const Log& log, const Quota& quota, std::int64_t cost, std::int64_t count,
          Time now) noexcept {
  Window window = Read(log, quota, now);
  Outcome outcome;
  const std::int64_t left = quota.limit() - window.used;
  if (left >= cost) outcome.admitted = count == 1 ? 1 : std::min(left / cost, count);
  window.change.units = outcome.admitted * cost;
  window.used += window.change.units;
  Describe(outcome, log, window, quota, now);
  if (outcome.admitted < count || count == 0) {
    const std::int64_t excess = window.used + cost - quota.limit();
    if (cost > quota.limit()) {
      outcome.never = true;
    } else if (excess > 0) {
      outcome.retry_after = WhenGone(log, excess, window.change, quota) - now;
    }
  }
  return {outcome, window.change};
}

Plan Debit(const Log& log, const Quota& quota, std::int64_t units, Time now) noexcept {
  Window window = Read(log, quota, now);
  const std::int64_t room = quota.limit() + quota.max_debt() - window.used;
  window.change.units = std::min(units, std::max<std::int64_t>(room, 0));
  window.used += window.change.units;
  Outcome outcome{.admitted = 1, .effect = Effect::kCharged};
  Describe(outcome, log, window, quota, now);
  return {outcome, window.change};
}

void Commit(Log& log, const Quota& quota, const Change& change) noexcept {
  if (change.repaired) {
    std::int64_t ahead = 0;
    while (log.size() > 0 && log.Newest().at >= change.at) {
      ahead += log.Newest().units;
      log.PopBack();
    }
    log.PushBack({change.at, ahead});
  }
  log.PopFront(change.expired);
  if (change.units == 0) return;
  const bool full = log.size() == log.capacity() || log.size() >= quota.limit();
  if (log.size() > 0 && (full || log.Newest().at == change.at)) {
    log.Replace(log.size() - 1, {change.at, log.Newest().units + change.units});
  } else {
    log.PushBack({change.at, change.units});
  }
}

Outcome Refund(Log& log, const Quota& quota, std::int64_t units, Time charged_at,
               Time now) noexcept {
  const Window before = Read(log, quota, now);
  Commit(log, quota, before.change);
  Outcome outcome;
  // While the clock lags behind the newest entry, charges are logged with that entry's later time.
  const bool moved =
      before.change.repaired || (before.change.at > now && charged_at + quota.period() > now);
  for (std::uint32_t i = log.size(); i-- > 0 && units > 0;) {
    const Entry entry = log[i];
    if (entry.at > charged_at && !moved) continue;
    const std::int64_t back = std::min(units, entry.units);
    outcome.admitted = 1;
    log.Replace(i, {entry.at, entry.units - back});
    units -= back;
  }
  log.DropEmpty();
  Describe(outcome, log, Read(log, quota, now), quota, now);
  if (outcome.admitted > 0) outcome.effect = Effect::kCharged;
  if (before.change.repaired) outcome.effect = Effect::kRepaired;
  return outcome;
}

}  // namespace tidegate::sliding_log
