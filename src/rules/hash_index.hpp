// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace tidegate {

/// From 64-bit hashes to numbers; what the hash was of stays elsewhere. Filled once, then read by
/// any thread. Open addressing at a load of at most one half; a slot has 8 bytes, with half of the
/// hash, so that 10,000 entries take 256 KiB and a look-up mostly one cache line. What is in it
/// comes from the configuration: a client can ask for anything, but cannot make the table worse.
class HashIndex {
 public:
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

  /// Several entries may have one hash; Find tells them apart. REQUIRES: value != kNone.
  void Insert(std::uint64_t hash, std::uint32_t value) {
    hashes_.push_back({hash, value});
    if (slots_.size() >= 2 * hashes_.size()) {
      Place(hashes_.back());
      return;
    }
    slots_.assign(slots_.empty() ? 8 : 2 * slots_.size(), Slot{});
    mask_ = slots_.size() - 1;
    for (const Entry& entry : hashes_) Place(entry);
  }
  /// No more entries will come: gives back what only growing needs.
  void Finish() { std::vector<Entry>().swap(hashes_); }

  /// The first entry of about that hash which `fits(value)`, or kNone. Hashes that differ may be
  /// taken for one, so `fits` must look at what was hashed.
  template <class Fits>
  [[nodiscard]] std::uint32_t Find(std::uint64_t hash, Fits&& fits) const noexcept {
    if (slots_.empty()) return kNone;
    for (std::size_t i = hash & mask_;; i = (i + 1) & mask_) {
      const Slot& slot = slots_[i];
      if (slot.value == kNone) return kNone;
      if (slot.tag == static_cast<std::uint32_t>(hash >> 32) && fits(slot.value)) return slot.value;
    }
  }

  /// Calls `visit(value)` for all entries of about that hash.
  template <class Visit>
  void Each(std::uint64_t hash, Visit&& visit) const noexcept {
    static_cast<void>(Find(hash, [&](std::uint32_t value) {
      visit(value);
      return false;
    }));
  }

 private:
  struct Slot {
    std::uint32_t tag = 0;  ///< The upper half of the hash; the lower half is the place.
    std::uint32_t value = kNone;
  };
  struct Entry {
    std::uint64_t hash;
    std::uint32_t value;
  };

  void Place(const Entry& entry) noexcept {
    std::size_t i = entry.hash & mask_;
    while (slots_[i].value != kNone) i = (i + 1) & mask_;
    slots_[i] = {static_cast<std::uint32_t>(entry.hash >> 32), entry.value};
  }

  std::vector<Slot> slots_;
  std::size_t mask_ = 0;
  std::vector<Entry> hashes_;
};

}  // namespace tidegate
