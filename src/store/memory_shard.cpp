// SPDX-License-Identifier: Apache-2.0
#include "store/memory_shard.hpp"

#include <algorithm>
#include <array>

namespace tidegate {
namespace {

/// The largest share of the places that keys may take, in percent. With two homes of four places,
/// keys find a place up to 97 %; at 85 %, chains of moves are short. Small tables fill less evenly
/// and get kSpare more places.
constexpr std::size_t kFullPercent = 85;
constexpr std::size_t kSpare = 32;
/// The number of places that one search for a chain of moves checks before it gives up.
constexpr std::size_t kSearch = 256;
/// The number of searches for a place after which an addition gives up.
constexpr int kAttempts = 64;
/// The most groups that one addition to a full table sweeps, which takes about 10 us. The sweep
/// stops at the first group that has an entry to free.
constexpr std::size_t kSweepGroups = 256;

}  // namespace

/// One place on the way from a new key's home to a free place.
struct MemoryShard::Step {
  EntryRef from;
  Fingerprint key;
  Group* to;  // The other home of `key`.
  std::int32_t before;
};

std::size_t MemoryShard::GroupsFor(std::size_t keys) noexcept {
  const std::size_t entries = keys * 100 / kFullPercent + kSpare;
  return std::max<std::size_t>(2, (entries + Group::kEntries - 1) / Group::kEntries);
}

void MemoryShard::Init(Group* groups, std::size_t group_count, std::size_t max_keys,
                       const Clock& clock, Dispose dispose, void* context) noexcept {
  groups_ = groups;
  group_count_ = group_count;
  max_keys_ = max_keys;
  clock_ = &clock;
  dispose_ = dispose;
  context_ = context;
}

LockedEntry MemoryShard::LockKnown(Fingerprint f) noexcept {
  LockedEntry locked = Lock(f);
  if (locked) return locked;
  LockShard();  // No entry moves while this lock is held.
  locked = Lock(f);
  UnlockShard();
  return locked;
}

LockedEntry MemoryShard::LockOrAddSlowly(Fingerprint f) noexcept {
  LockShard();
  // Another thread may have added the key meanwhile, or the key was being moved.
  LockedEntry locked = Lock(f);
  if (!locked) locked = Add(f, clock_->Now());
  UnlockShard();
  return locked;
}

LockedEntry MemoryShard::Add(Fingerprint f, Time now) noexcept {
  LockedEntry place;
  // A search skips places that another thread has locked, so it may find nothing although there is
  // room: search again.
  for (int attempt = 0; !place && attempt < kAttempts; ++attempt) {
    if (attempt > 0) SpinPause(attempt);
    if (full()) SweepLocked(now);
    place = FindPlace(f, now);
    if (full()) break;
  }
  if (!place) return {};
  place.ref.SetFingerprint(f);
  used_.fetch_add(1, std::memory_order_relaxed);
  Wake();  // The new entry may recover before all others.
  return place;
}

LockedEntry MemoryShard::FindPlace(Fingerprint f, Time now) noexcept {
  Group* first = FirstHome(f);
  Group* second = SecondHome(f, first);
  // Take empty places first, because a recovered entry may still be used again.
  if (const LockedEntry place = TakeEmpty(first)) return place;
  if (const LockedEntry place = TakeEmpty(second)) return place;
  if (const LockedEntry place = TakeRecovered(first, now)) return place;
  if (const LockedEntry place = TakeRecovered(second, now)) return place;
  if (full()) return {};
  return MakeRoom(first, second, now);
}

LockedEntry MemoryShard::TakeEmpty(Group* group) noexcept {
  for (unsigned slot = 0; slot < Group::kEntries && !full(); ++slot) {
    const EntryRef ref{group, slot};
    Meta meta;
    if (ref.fingerprint().low == 0 && ref.entry().TryLock(meta)) return {ref, Meta{}};
  }
  return {};
}

LockedEntry MemoryShard::TakeRecovered(Group* group, Time now) noexcept {
  for (unsigned slot = 0; slot < Group::kEntries; ++slot) {
    const EntryRef ref{group, slot};
    Meta meta;
    if (ref.fingerprint().low == 0 || !ref.entry().SeemsRecovered(now) ||
        !ref.entry().TryLock(meta)) {
      continue;
    }
    if (meta.recovered() <= now) {
      Reclaim({ref, meta});
      return {ref, Meta{}};
    }
    ref.entry().Unlock(meta);
  }
  return {};
}

void MemoryShard::Reclaim(const LockedEntry& locked) noexcept {
  dispose_(context_, locked.ref.entry(), locked.meta);
  locked.ref.SetFingerprint({});
  used_.fetch_sub(1, std::memory_order_relaxed);
  reclaimed_.fetch_add(1, std::memory_order_relaxed);
}

LockedEntry MemoryShard::MakeRoom(Group* first, Group* second, Time now) noexcept {
  // Search breadth first for the shortest chain of moves that ends at a free place. Fingerprints do
  // not change meanwhile: only the holder of the shard's lock moves entries.
  std::array<Step, kSearch> steps;
  std::size_t end = 0;
  const auto visit = [&](Group* group, std::int32_t before) {
    for (unsigned slot = 0; slot < Group::kEntries && end < kSearch; ++slot) {
      const EntryRef ref{group, slot};
      const Fingerprint f = ref.fingerprint();
      if (f.low != 0) steps[end++] = {ref, f, OtherHome(f, group), before};
    }
  };
  visit(first, -1);
  visit(second, -1);
  for (std::size_t i = 0; i < end; ++i) {
    if (!Move(steps[i].from, steps[i].key, steps[i].to, now)) {
      visit(steps[i].to, static_cast<std::int32_t>(i));
      continue;
    }
    // The place of step i is free now: move the entries of its chain, one by one.
    std::int32_t at = static_cast<std::int32_t>(i);
    while (steps[static_cast<std::size_t>(at)].before >= 0) {
      at = steps[static_cast<std::size_t>(at)].before;
      const Step& step = steps[static_cast<std::size_t>(at)];
      if (!Move(step.from, step.key, step.to, now)) return {};
    }
    // Take whatever place is empty now, which need not be the one that was freed last.
    if (const LockedEntry place = TakeEmpty(first)) return place;
    return TakeEmpty(second);
  }
  return {};
}

bool MemoryShard::Move(const EntryRef& from, Fingerprint f, Group* to, Time now) noexcept {
  // Never wait with a lock held: other code locks several entries in the order of their addresses,
  // but a move can go in either direction.
  LockedEntry place = TakeEmpty(to);
  if (!place) place = TakeRecovered(to, now);
  if (!place) return false;
  Meta meta;
  if (!from.entry().TryLock(meta)) {
    place.ref.entry().Unlock(Meta{});
    return false;
  }
  // A chain may contain a place twice. Its first move has put another key there, and `to` is not a
  // home of that key.
  if (from.fingerprint() != f) {
    from.entry().Unlock(meta);
    place.ref.entry().Unlock(Meta{});
    return false;
  }
  place.ref.entry().CopyState(from.entry());
  place.ref.SetFingerprint(f);
  from.SetFingerprint({});
  place.ref.entry().Unlock(meta);
  from.entry().Unlock(Meta{});
  return true;
}

void MemoryShard::Sweep() noexcept {
  LockShard();
  SweepLocked(clock_->Now());
  UnlockShard();
}

void MemoryShard::SweepLocked(Time now) noexcept {
  if (now.time_since_epoch().count() < quiet_until_.load(std::memory_order_seq_cst)) return;
  const auto begin_round = [this] {
    round_wakes_ = wakes_.load(std::memory_order_seq_cst);
    barren_groups_ = 0;
    earliest_ = Time::max();
  };
  for (std::size_t i = 0; i < kSweepGroups; ++i) {
    // An entry recovers sooner than this round may have seen: check all groups again.
    if (wakes_.load(std::memory_order_seq_cst) != round_wakes_) begin_round();
    Group* group = groups_ + hand_;
    hand_ = hand_ + 1 == group_count_ ? 0 : hand_ + 1;
    if (SweepGroup(group, now) > 0) return begin_round();
    if (++barren_groups_ < group_count_) continue;
    quiet_until_.store(earliest_.time_since_epoch().count(), std::memory_order_seq_cst);
    // A Wake between the check and the store above must not be lost: all threads store first, then
    // read.
    if (wakes_.load(std::memory_order_seq_cst) != round_wakes_) {
      quiet_until_.store(0, std::memory_order_seq_cst);
    }
    return begin_round();
  }
}

std::size_t MemoryShard::SweepGroup(Group* group, Time now) noexcept {
  std::size_t freed = 0;
  while (const LockedEntry place = TakeRecovered(group, now)) {
    place.ref.entry().Unlock(place.meta);
    ++freed;
  }
  for (unsigned slot = 0; slot < Group::kEntries && freed == 0; ++slot) {
    const EntryRef ref{group, slot};
    if (ref.fingerprint().low != 0) earliest_ = std::min(earliest_, ref.entry().SeemsToRecover());
  }
  return freed;
}

void MemoryShard::ForEach(const std::function<void(const EntryRef&, Meta)>& visit) {
  for (std::size_t i = 0; i < group_count_; ++i) {
    for (unsigned slot = 0; slot < Group::kEntries; ++slot) {
      const EntryRef ref{groups_ + i, slot};
      if (ref.fingerprint().low == 0) continue;
      const Meta meta = ref.entry().Lock();
      if (ref.fingerprint().low != 0) visit(ref, meta);
      ref.entry().Unlock(meta);
    }
  }
}

void MemoryShard::LockShard() noexcept {
  for (int round = 0; adding_.exchange(true, std::memory_order_acquire);) {
    while (adding_.load(std::memory_order_relaxed)) SpinPause(round++);
  }
}

}  // namespace tidegate
