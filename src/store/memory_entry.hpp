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
  // The holder may have lost its core: after ~1 us of spinning let it have ours.
  if (round > 32) {
    sched_yield();
  } else {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
}

/// What an entry is when nobody holds its lock: its kind and when it will have
/// recovered, in one word.
class Meta {
 public:
  /// 0: nothing written yet; 1 + Algorithm: its state; kMark: a refund's id.
  using Kind = std::uint8_t;
  static constexpr Kind kBlank = 0;
  static constexpr Kind kMark = kAlgorithms + 1;
  static_assert(kMark < 8);

  constexpr Meta() noexcept = default;
  Meta(Kind kind, Time recovered) noexcept
      : word_((std::uint64_t{kind} << kShift) | Clip(recovered)) {}

  [[nodiscard]] Kind kind() const noexcept { return static_cast<Kind>((word_ >> kShift) & 7); }
  /// From then on the entry says no more than a fresh one would.
  [[nodiscard]] Time recovered() const noexcept {
    return Time{Micros{static_cast<std::int64_t>(word_ & kTimeBits)}};
  }

  /// Kept until `until` for a request that is about to lock it together with
  /// others. Whoever charges the entry writes a Meta without the pin.
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

/// One key's state, 32 bytes, with its own lock. The lock takes the place of the
/// Meta while it is held, so that taking it is one exchange and giving it back
/// one store. Fresh memory of zeros is a blank, unlocked entry.
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

  /// Guesses without the lock: when it recovers (at once if somebody is just at it
  /// or has pinned it), and whether it is worth trying to reclaim at `now`.
  [[nodiscard]] Time SeemsToRecover() const noexcept {
    const std::uint64_t word = meta_.load(std::memory_order_relaxed);
    return word == kLocked || Meta{word}.pinned() ? Time{} : Meta{word}.recovered();
  }
  [[nodiscard]] bool SeemsRecovered(Time now) const noexcept {
    const std::uint64_t word = meta_.load(std::memory_order_relaxed);
    return word != kLocked && Meta{word}.recovered() <= now;
  }

  /// The state. REQUIRES for both: the lock is held.
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
    // Word by word, as it was written: a wider copy would wait for the stores.
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

/// Four entries and, in a cache line of their own, their fingerprints: a look-up
/// reads that line, and only the entry that it wants is written to.
///
/// A fingerprint changes only under its entry's lock (and its shard's), so who
/// holds the lock may rely on it; without the lock it is a hint.
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

/// Where an entry is; null if nowhere. One word, the address of its fingerprint:
/// that the four of them fill a line tells the group and the slot, and what is one
/// word travels in a register.
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

/// An entry whose lock we hold, and what its Meta said.
struct LockedEntry {
  EntryRef ref;
  Meta meta;

  explicit operator bool() const noexcept { return static_cast<bool>(ref); }
};

}  // namespace tidegate
