// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "store/memory_entry.hpp"

namespace tidegate {

/// A table of entries that never grows, never moves memory and never loses a key
/// that has not recovered.
///
/// Each key has two home groups, told by its fingerprint (a bucketed cuckoo
/// table): a look-up reads at most two cache lines however full or old the table
/// is. A new key takes an empty or a recovered place there; if there is none,
/// one of the others moves to its own other home.
///
/// Thread-safe. A known key needs only its entry's lock; adding one takes the
/// shard's lock first. Who holds an entry's lock never waits for the shard's.
class MemoryShard {
 public:
  /// Gives back what a reclaimed entry owned; called with the entry locked.
  using Dispose = void (*)(void* context, Entry& entry, Meta meta);

  MemoryShard() = default;
  MemoryShard(const MemoryShard&) = delete;
  MemoryShard& operator=(const MemoryShard&) = delete;

  /// How many groups hold `keys` keys with room to move.
  static std::size_t GroupsFor(std::size_t keys) noexcept;

  /// REQUIRES: called once, before anything else; zeroed memory.
  void Init(Group* groups, std::size_t group_count, std::size_t max_keys, const Clock& clock,
            Dispose dispose, void* context) noexcept;

  void Prefetch(Fingerprint f) const noexcept {
    // All six lines that the key can be in: the misses pass side by side.
    for (const Group* home : {FirstHome(f), At(f.high)}) {
      __builtin_prefetch(&home->places);
      PrefetchToWrite(&home->entries[0]);
      PrefetchToWrite(&home->entries[2]);
    }
  }

  /// The key's entry, locked; null if there is none, or if it is on the move just
  /// now: only where that may be taken for "not there" in passing.
  [[nodiscard]] LockedEntry Lock(Fingerprint f) noexcept {
    while (const EntryRef ref = Find(f)) {
      const Meta meta = ref.entry().Lock();
      if (ref.fingerprint() == f) return {ref, meta};
      ref.entry().Unlock(meta);  // It moved or was reclaimed before we had the lock.
    }
    return {};
  }
  /// The key's entry, locked; null if there is none for certain.
  [[nodiscard]] LockedEntry LockKnown(Fingerprint f) noexcept;
  /// The same, added if there is none: then its Meta is blank. Null when nothing
  /// can be reclaimed.
  [[nodiscard]] LockedEntry LockOrAdd(Fingerprint f) noexcept {
    if (const LockedEntry known = Lock(f)) return known;
    return LockOrAddSlowly(f);
  }

  /// Looks at some entries more, further on each time, and frees the recovered.
  void Sweep() noexcept;
  /// Says that an entry recovers sooner than it would have by itself.
  void Wake() noexcept {
    wakes_.fetch_add(1, std::memory_order_seq_cst);
    quiet_until_.store(0, std::memory_order_seq_cst);
  }

  /// Every entry, locked one by one. For the store's end and for tests.
  void ForEach(const std::function<void(const EntryRef&, Meta)>& visit);

  [[nodiscard]] std::uint64_t used() const noexcept {
    return used_.load(std::memory_order_relaxed);
  }
  /// Whether a new key has to take the place of a recovered one.
  [[nodiscard]] bool full() const noexcept { return used() >= max_keys_; }
  [[nodiscard]] std::uint64_t reclaimed() const noexcept {
    return reclaimed_.load(std::memory_order_relaxed);
  }

 private:
  struct Step;  // Of a search for a chain of moves.

  /// Maps 64 random bits to one of the groups without a division.
  [[nodiscard]] Group* At(std::uint64_t bits) const noexcept {
    __extension__ typedef unsigned __int128 Wide;
    return groups_ + static_cast<std::size_t>((static_cast<Wide>(bits) * group_count_) >> 64);
  }
  [[nodiscard]] Group* FirstHome(Fingerprint f) const noexcept { return At(f.low); }
  [[nodiscard]] Group* SecondHome(Fingerprint f, const Group* first) const noexcept {
    Group* second = At(f.high);
    if (second != first) return second;
    return second + 1 == groups_ + group_count_ ? groups_ : second + 1;
  }
  [[nodiscard]] Group* OtherHome(Fingerprint f, const Group* home) const noexcept {
    Group* first = FirstHome(f);
    return first == home ? SecondHome(f, first) : first;
  }
  [[nodiscard]] EntryRef Find(Fingerprint f) const noexcept {
    Group* first = FirstHome(f);
    if (const EntryRef ref = FindIn(first, f)) return ref;
    return FindIn(SecondHome(f, first), f);
  }
  [[nodiscard]] static EntryRef FindIn(Group* group, Fingerprint f) noexcept {
    // All four are compared, without a branch: which of them it is cannot be foretold.
    unsigned slot = Group::kEntries;
    for (unsigned i = 0; i < Group::kEntries; ++i) {
      const Group::Place& place = group->places[i];
      const std::uint64_t differs = (place.low.load(std::memory_order_relaxed) ^ f.low) |
                                    (place.high.load(std::memory_order_relaxed) ^ f.high);
      slot = differs == 0 ? i : slot;
    }
    return slot == Group::kEntries ? EntryRef{} : EntryRef{group, slot};
  }

  /// Asks for the line as its owner: another core's copy is fetched and dropped in
  /// one go, where reading first and writing then would ask twice.
  static void PrefetchToWrite(const void* line) noexcept {
#if defined(__x86_64__)
    asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(line)));
#else
    __builtin_prefetch(line, 1);
#endif
  }

  [[nodiscard]] LockedEntry LockOrAddSlowly(Fingerprint f) noexcept;
  [[nodiscard]] LockedEntry Add(Fingerprint f, Time now) noexcept;
  /// A place in one of the key's homes, locked and empty; null if there is none.
  [[nodiscard]] LockedEntry FindPlace(Fingerprint f, Time now) noexcept;
  /// An empty place in `group`, locked; null if there is none or the shard is full.
  [[nodiscard]] LockedEntry TakeEmpty(Group* group) noexcept;
  /// A recovered entry's place in `group`, locked and freed.
  [[nodiscard]] LockedEntry TakeRecovered(Group* group, Time now) noexcept;
  /// Frees what has recovered in `group`; how many.
  std::size_t SweepGroup(Group* group, Time now) noexcept;
  [[nodiscard]] LockedEntry MakeRoom(Group* first, Group* second, Time now) noexcept;
  /// Moves `f` from where it was seen to its other home; false if it is not there
  /// any more, or if there is no place.
  [[nodiscard]] bool Move(const EntryRef& from, Fingerprint f, Group* to, Time now) noexcept;
  /// Frees a recovered entry whose lock is held.
  void Reclaim(const LockedEntry& locked) noexcept;
  void SweepLocked(Time now) noexcept;
  void LockShard() noexcept;
  void UnlockShard() noexcept { adding_.store(false, std::memory_order_release); }

  Group* groups_ = nullptr;
  std::size_t group_count_ = 0;
  std::size_t max_keys_ = 0;
  /// What has recovered is asked of the clock anew: the caller's time may be old.
  const Clock* clock_ = nullptr;
  Dispose dispose_ = nullptr;
  void* context_ = nullptr;

  // Below: written under the shard's lock, so apart from what look-ups read.
  alignas(64) std::atomic<bool> adding_{false};
  std::size_t hand_ = 0;           // The group that the next sweep begins with.
  std::size_t barren_groups_ = 0;  // Swept since one had something to free...
  Time earliest_ = Time::max();    // ... and when the first of theirs recovers.
  /// Until then nothing recovers, a full round has shown: a flood of new keys into
  /// a full table costs no sweep. In microseconds.
  std::atomic<std::int64_t> quiet_until_{0};
  std::atomic<std::uint64_t> wakes_{0};
  std::uint64_t round_wakes_ = 0;  // What wakes_ was when the barren round began.
  std::atomic<std::uint64_t> used_{0};
  std::atomic<std::uint64_t> reclaimed_{0};
};

}  // namespace tidegate
