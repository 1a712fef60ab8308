// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace tidegate {

/// From 64-bit hashes to numbers; what the hash was of stays elsewhere. Filled once, then read by
/// any thread. Open addressing at a load of at most one half, 16 bytes a slot, so a look-up mostly
/// touches one cache line. What is in it comes from the configuration: a client can ask for
/// anything, but cannot make the table worse.
class HashIndex {
 public:
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

  /// Several entries may have one hash; Find tells them apart. REQUIRES: value != kNone.
  void Insert(std::uint64_t hash, std::uint32_t value) {
    if (slots_.size() < 2 * (size_ + 1)) Grow();
    ++size_;
    Place(hash, value);
  }

  /// The first entry of that hash which `fits(value)`, or kNone.
  template <class Fits>
  [[nodiscard]] std::uint32_t Find(std::uint64_t hash, Fits&& fits) const noexcept {
    if (slots_.empty()) return kNone;
    for (std::size_t i = hash & mask_;; i = (i + 1) & mask_) {
      const Slot& slot = slots_[i];
      if (slot.value == kNone) return kNone;
      if (slot.hash == hash && fits(slot.value)) return slot.value;
    }
  }
  [[nodiscard]] std::uint32_t Find(std::uint64_t hash) const noexcept {
    return Find(hash, [](std::uint32_t) { return true; });
  }

 private:
  struct Slot {
    std::uint64_t hash = 0;
    std::uint32_t value = kNone;
  };

  void Place(std::uint64_t hash, std::uint32_t value) noexcept {
    std::size_t i = hash & mask_;
    while (slots_[i].value != kNone) i = (i + 1) & mask_;
    slots_[i] = {hash, value};
  }

  void Grow() {
    std::vector<Slot> old(slots_.empty() ? 8 : 2 * slots_.size());
    old.swap(slots_);
    mask_ = slots_.size() - 1;
    for (const Slot& slot : old) {
      if (slot.value != kNone) Place(slot.hash, slot.value);
    }
  }

  std::vector<Slot> slots_;
  std::size_t mask_ = 0;
  std::size_t size_ = 0;
};

}  // namespace tidegate
