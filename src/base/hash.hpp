// SPDX-License-Identifier: Apache-2.0
#pragma once

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

namespace tidegate {

/// Returns a hash for tables inside one process. It must not be stored or sent.
[[nodiscard]] inline std::uint64_t Hash(std::string_view text, std::uint64_t seed = 0) noexcept {
  return XXH3_64bits_withSeed(text.data(), text.size(), seed);
}

/// Maps 64-bit hashes to numbers; the hashed values are stored elsewhere. It is filled once, from
/// the configuration; then any thread may read it. Uses open addressing at a load of at most one
/// half. A slot has 8 bytes, so 10,000 entries take 256 KiB and a look-up mostly one cache line.
class HashIndex {
 public:
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

  /// Adds an entry. Several may have the same hash; Find tells them apart. `value` is not kNone.
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
  /// Frees the memory that only Insert needs. Insert must not be called afterwards.
  void Finish() { std::vector<Entry>().swap(hashes_); }

  /// Returns the first value of an entry with this hash for which `fits(value)` is true, or kNone.
  /// Different hashes may look equal here, so `fits` must compare the keys themselves.
  template <class Fits>
  [[nodiscard]] std::uint32_t Find(std::uint64_t hash, Fits&& fits) const noexcept {
    if (slots_.empty()) return kNone;
    for (std::size_t i = hash & mask_;; i = (i + 1) & mask_) {
      const Slot& slot = slots_[i];
      if (slot.value == kNone) return kNone;
      if (slot.tag == static_cast<std::uint32_t>(hash >> 32) && fits(slot.value)) return slot.value;
    }
  }

  /// Calls `visit(value)` for all entries with this hash, and perhaps for some with a similar hash.
  template <class Visit>
  void Each(std::uint64_t hash, Visit&& visit) const noexcept {
    static_cast<void>(Find(hash, [&](std::uint32_t value) {
      visit(value);
      return false;
    }));
  }

 private:
  struct Slot {
    std::uint32_t tag = 0;  ///< The upper half of the hash. The lower half selects the slot.
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
