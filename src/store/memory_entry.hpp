// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "store/fingerprint.hpp"
#include "tidegate/clock.hpp"

namespace tidegate {

inline void SpinPause(int round) noexcept {
  // The lock's holder may have lost its core: after ~1 us of spinning, yield ours.
  if (round > 32) {
    sched_yield();
  } else {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
}

/// The word that an entry holds while its lock is free: its kind and when it will have recovered.
class Meta {
 public:
  /// kBlank: nothing is written yet; 1 + Algorithm: a state of that algorithm; kMark: a refund's
  /// id.
  using Kind = std::uint8_t;
  static constexpr Kind kBlank = 0;
  static constexpr Kind kMark = kAlgorithms + 1;
  static_assert(kMark < 8);

  constexpr Meta() noexcept = default;
  Meta(Kind kind, Time recovered) noexcept
      : word_((std::uint64_t{kind} << kShift) | Clip(recovered)) {}

  [[nodiscard]] Kind kind() const noexcept { return static_cast<Kind>((word_ >> kShift) & 7); }
  /// Returns the time from which the entry decides as a fresh one would.
  [[nodiscard]] Time recovered() const noexcept {
    return Time{Micros{static_cast<std::int64_t>(word_ & kTimeBits)}};
  }

  /// Returns a Meta that keeps the entry until `until` for a request that is about to lock it
  /// together with others. A charge writes a Meta without the pin.
  [[nodiscard]] Meta PinnedUntil(Time until) const noexcept {
    Meta pinned{kind(), until};
    pinned.word_ |= kPinBit;
    return pinned;
  }
  [[nodiscard]] bool pinned() const noexcept { return (word_ & kPinBit) != 0; }

 private:
  friend class Entry;
  static constexpr int kShift = 59;  // 2^59 us are 18,000 years.
  static constexpr std::uint64_t kTimeBits = (std::uint64_t{1} << kShift) - 1;
  static constexpr std::uint64_t kPinBit = std::uint64_t{1} << 62;

  explicit constexpr Meta(std::uint64_t word) noexcept : word_(word) {}
  static std::uint64_t Clip(Time time) noexcept {
    const std::int64_t t = time.time_since_epoch().count();
    return t <= 0 ? 0 : std::min(static_cast<std::uint64_t>(t), kTimeBits);
  }

  std::uint64_t word_ = 0;
};

/// The state of one key, 32 bytes, with its own lock. While the lock is held, a mark replaces the
/// Meta, so that locking is one exchange and unlocking one store. Zeroed memory is a blank,
/// unlocked entry.
class Entry {
 public:
  Meta Lock() noexcept {
    for (int round = 0;; ++round) {
      const std::uint64_t word = meta_.exchange(kLocked, std::memory_order_acquire);
      if (word != kLocked) return Meta{word};
      while (meta_.load(std::memory_order_relaxed) == kLocked) SpinPause(round++);
    }
  }
  [[nodiscard]] bool TryLock(Meta& meta) noexcept {
    if (meta_.load(std::memory_order_relaxed) == kLocked) return false;
    const std::uint64_t word = meta_.exchange(kLocked, std::memory_order_acquire);
    meta = Meta{word};
    return word != kLocked;
  }
  void Unlock(Meta meta) noexcept { meta_.store(meta.word_, std::memory_order_release); }

  /// Guesses without the lock: when the entry recovers (at once if it is locked or pinned), and
  /// whether it is worth trying to reclaim it at `now`.
  [[nodiscard]] Time SeemsToRecover() const noexcept {
    const std::uint64_t word = meta_.load(std::memory_order_relaxed);
    return word == kLocked || Meta{word}.pinned() ? Time{} : Meta{word}.recovered();
  }
  [[nodiscard]] bool SeemsRecovered(Time now) const noexcept {
    const std::uint64_t word = meta_.load(std::memory_order_relaxed);
    return word != kLocked && Meta{word}.recovered() <= now;
  }

  /// Load and Save copy the state. REQUIRES: the lock is held.
  template <class T>
  [[nodiscard]] T Load() const noexcept {
    static_assert(sizeof(T) <= sizeof(state_) && std::is_trivially_copyable_v<T>);
    T value;
    std::memcpy(static_cast<void*>(&value), state_.data(), sizeof(T));
    return value;
  }
  template <class T>
  void Save(const T& value) noexcept {
    static_assert(sizeof(T) <= sizeof(state_) && std::is_trivially_copyable_v<T>);
    // Copy word by word, as `value` was written: a wider copy would wait for those stores.
    const auto words = std::bit_cast<std::array<std::uint64_t, sizeof(T) / 8>>(value);
    for (std::size_t i = 0; i < words.size(); ++i) state_[i] = words[i];
  }
  void CopyState(const Entry& other) noexcept { state_ = other.state_; }

 private:
  static constexpr std::uint64_t kLocked = ~std::uint64_t{0};

  std::atomic<std::uint64_t> meta_;
  std::array<std::uint64_t, 3> state_;
};
static_assert(sizeof(Entry) == 32);

/// Four entries, with their fingerprints in a separate cache line: a look-up reads that line and
/// writes only to the entry that it locks.
///
/// A fingerprint changes only under its entry's lock (and its shard's), so the holder of the
/// entry's lock may rely on it; without the lock it is a hint.
struct alignas(64) Group {
  static constexpr unsigned kEntries = 4;

  struct Place {
    std::atomic<std::uint64_t> low;
    std::atomic<std::uint64_t> high;
  };
  std::array<Place, kEntries> places;
  std::array<Entry, kEntries> entries;
};
static_assert(sizeof(Group) == 192);

/// Refers to an entry, or is null. It is one word, which fits a register: the address of the
/// entry's fingerprint. The four fingerprints of a group fill one aligned cache line, so that the
/// address tells the group and the slot.
class EntryRef {
 public:
  EntryRef() noexcept = default;
  EntryRef(Group* group, unsigned slot) noexcept : place_(&group->places[slot]) {}

  explicit operator bool() const noexcept { return place_ != nullptr; }
  [[nodiscard]] Group* group() const noexcept {
    return reinterpret_cast<Group*>(reinterpret_cast<std::byte*>(place_) - offset());
  }
  [[nodiscard]] Entry& entry() const noexcept {
    return group()->entries[offset() / sizeof(Group::Place)];
  }
  [[nodiscard]] Fingerprint fingerprint() const noexcept {
    return {place_->low.load(std::memory_order_relaxed),
            place_->high.load(std::memory_order_relaxed)};
  }
  void SetFingerprint(const Fingerprint& f) const noexcept {
    place_->low.store(f.low, std::memory_order_relaxed);
    place_->high.store(f.high, std::memory_order_relaxed);
  }

 private:
  static constexpr std::size_t kLine = alignof(Group);
  static_assert(sizeof(Group::places) == kLine && offsetof(Group, places) == 0);

  [[nodiscard]] std::size_t offset() const noexcept {
    return reinterpret_cast<std::uintptr_t>(place_) % kLine;
  }

  Group::Place* place_ = nullptr;
};

/// An entry whose lock the caller holds, and the Meta that it had before.
struct LockedEntry {
  EntryRef ref;
  Meta meta;

  explicit operator bool() const noexcept { return static_cast<bool>(ref); }
};

}  // namespace tidegate
