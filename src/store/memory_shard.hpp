// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <new>

#include "store/memory_entry.hpp"
#include "store/store.hpp"

namespace tidegate {

/// Zeroed memory from the system. Pages that are never touched cost nothing. Huge pages of 2 MiB,
/// if the system has them, save a walk through the page tables for each look-up in a large table.
class ZeroedMemory {
 public:
  ZeroedMemory(std::size_t bytes, Pages pages)
      : bytes_(bytes),
        data_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
    if (data_ == MAP_FAILED) throw std::bad_alloc();
    if (pages == Pages::kHuge) (void)madvise(data_, bytes, MADV_HUGEPAGE);
  }
  ~ZeroedMemory() { munmap(data_, bytes_); }
  ZeroedMemory(const ZeroedMemory&) = delete;
  ZeroedMemory& operator=(const ZeroedMemory&) = delete;

  [[nodiscard]] void* data() const noexcept { return data_; }

 private:
  std::size_t bytes_;
  void* data_;
};

/// A table of entries that never grows, never moves memory and never loses a key
/// that has not recovered.
///
/// The fingerprint of a key determines its two home groups (a bucketed cuckoo table): a look-up
/// reads at most two cache lines however full or old the table is. A new key takes an empty or a
/// recovered place there; if there is none, an entry of these groups moves to its other home.
///
/// Thread-safe. An operation on a known key takes only the lock of its entry; adding a key takes
/// the shard's lock first. A thread that holds an entry's lock never waits for the shard's.
class MemoryShard {
 public:
  /// Frees the memory that a reclaimed entry owned; called with the entry locked.
  using Dispose = void (*)(void* context, Entry& entry, Meta meta);

  MemoryShard() = default;
  MemoryShard(const MemoryShard&) = delete;
  MemoryShard& operator=(const MemoryShard&) = delete;

  /// Returns how many groups hold `keys` keys, with spare places for moves.
  static std::size_t GroupsFor(std::size_t keys) noexcept;

  /// REQUIRES: called once, before all other methods, and `groups` is zeroed memory.
  void Init(Group* groups, std::size_t group_count, std::size_t max_keys, const Clock& clock,
            Dispose dispose, void* context) noexcept;

  void Prefetch(Fingerprint f) const noexcept {
    // Prefetch all six cache lines that the key can be in, so that the cache misses overlap.
    for (const Group* home : {FirstHome(f), At(f.high)}) {
      __builtin_prefetch(&home->places);
      PrefetchToWrite(&home->entries[0]);
      PrefetchToWrite(&home->entries[2]);
    }
  }

  /// Returns the key's entry, locked; null if there is none or if it is being moved right now. Use
  /// it only where a moving key may be taken for a missing one at first.
  [[nodiscard]] LockedEntry Lock(Fingerprint f) noexcept {
    while (const EntryRef ref = Find(f)) {
      const Meta meta = ref.entry().Lock();
      if (ref.fingerprint() == f) return {ref, meta};
      ref.entry().Unlock(meta);  // The key moved or was reclaimed before we had the lock.
    }
    return {};
  }
  /// Returns the key's entry, locked; null only if there is none.
  [[nodiscard]] LockedEntry LockKnown(Fingerprint f) noexcept;
  /// Returns the key's entry, locked, and adds a blank one if there is none. Null if the key has no
  /// place and nothing can be reclaimed.
  [[nodiscard]] LockedEntry LockOrAdd(Fingerprint f) noexcept {
    if (const LockedEntry known = Lock(f)) return known;
    return LockOrAddSlowly(f);
  }

  /// Checks some more groups on each call and frees entries that have recovered.
  void Sweep() noexcept;
  /// Makes sweeps check all entries again, because one recovers sooner than was known.
  void Wake() noexcept {
    wakes_.fetch_add(1, std::memory_order_seq_cst);
    quiet_until_.store(0, std::memory_order_seq_cst);
  }

  /// Calls `visit` with every entry, locked one by one. For the store's destructor and for tests.
  void ForEach(const std::function<void(const EntryRef&, Meta)>& visit);

  [[nodiscard]] std::uint64_t used() const noexcept {
    return used_.load(std::memory_order_relaxed);
  }
  /// Returns true if a new key has to take the place of a recovered one.
  [[nodiscard]] bool full() const noexcept { return used() >= max_keys_; }
  [[nodiscard]] std::uint64_t reclaimed() const noexcept {
    return reclaimed_.load(std::memory_order_relaxed);
  }

 private:
  struct Step;  // One step of the search for a chain of moves.

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
    // Compare all four without a branch: the processor cannot predict which of them matches.
    unsigned slot = Group::kEntries;
    for (unsigned i = 0; i < Group::kEntries; ++i) {
      const Group::Place& place = group->places[i];
      const std::uint64_t differs = (place.low.load(std::memory_order_relaxed) ^ f.low) |
                                    (place.high.load(std::memory_order_relaxed) ^ f.high);
      slot = differs == 0 ? i : slot;
    }
    return slot == Group::kEntries ? EntryRef{} : EntryRef{group, slot};
  }

  /// Prefetches a cache line for writing: one request fetches it and drops the copies of other
  /// cores. Reading first and writing later would take two requests.
  static void PrefetchToWrite(const void* line) noexcept {
#if defined(__x86_64__)
    asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(line)));
#else
    __builtin_prefetch(line, 1);
#endif
  }

  [[nodiscard]] LockedEntry LockOrAddSlowly(Fingerprint f) noexcept;
  [[nodiscard]] LockedEntry Add(Fingerprint f, Time now) noexcept;
  /// Returns an empty place in one of the key's homes, locked; null if there is none.
  [[nodiscard]] LockedEntry FindPlace(Fingerprint f, Time now) noexcept;
  /// Returns an empty place in `group`, locked; null if there is none or the shard is full.
  [[nodiscard]] LockedEntry TakeEmpty(Group* group) noexcept;
  /// Frees a recovered entry in `group` and returns its place, locked; null if there is none.
  [[nodiscard]] LockedEntry TakeRecovered(Group* group, Time now) noexcept;
  /// Frees the recovered entries in `group` and returns their number.
  std::size_t SweepGroup(Group* group, Time now) noexcept;
  [[nodiscard]] LockedEntry MakeRoom(Group* first, Group* second, Time now) noexcept;
  /// Moves `f` from where it was seen to `to`, its other home. Returns false if `f` is no longer
  /// there, its entry is locked, or `to` has no place.
  [[nodiscard]] bool Move(const EntryRef& from, Fingerprint f, Group* to, Time now) noexcept;
  /// Frees a recovered entry whose lock is held.
  void Reclaim(const LockedEntry& locked) noexcept;
  void SweepLocked(Time now) noexcept;
  void LockShard() noexcept;
  void UnlockShard() noexcept { adding_.store(false, std::memory_order_release); }

  Group* groups_ = nullptr;
  std::size_t group_count_ = 0;
  std::size_t max_keys_ = 0;
  /// Read again to see which entries have recovered: the caller's time may be old.
  const Clock* clock_ = nullptr;
  Dispose dispose_ = nullptr;
  void* context_ = nullptr;

  // The members below are written under the shard's lock: keep them apart from what look-ups read.
  alignas(64) std::atomic<bool> adding_{false};
  std::size_t hand_ = 0;           // The group that the next sweep begins with.
  std::size_t barren_groups_ = 0;  // Groups swept since an entry was freed.
  Time earliest_ = Time::max();    // The time at which the first entry of those groups recovers.
  /// No entry recovers before this time, in microseconds, as a full round of sweeps has shown:
  /// until then, a flood of new keys into a full table costs no sweep.
  std::atomic<std::int64_t> quiet_until_{0};
  std::atomic<std::uint64_t> wakes_{0};
  std::uint64_t round_wakes_ = 0;  // The value of wakes_ when this round of sweeps began.
  std::atomic<std::uint64_t> used_{0};
  std::atomic<std::uint64_t> reclaimed_{0};
};

}  // namespace tidegate
