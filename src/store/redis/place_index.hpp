// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tidegate::redis {

/// Which of a batch's keys, or entries, it is: numbers by a hash. While there are few they are
/// looked through, and nothing is kept: on a cluster most batches have one.
class PlaceIndex {
 public:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  /// `places`: a power of two, more than there will be numbers.
  explicit PlaceIndex(std::size_t places) noexcept : most_(places) {}

  /// Of the first `count` numbers, the one that `is(number)` says yes to.
  template <class Is>
  [[nodiscard]] std::uint32_t Find(std::uint64_t hash, std::size_t count, Is is) const {
    if (places_.empty()) {
      for (std::uint32_t number = 0; number < count; ++number) {
        if (is(number)) return number;
      }
      return kNone;
    }
    for (std::size_t at = hash & (most_ - 1); places_[at] != 0; at = (at + 1) & (most_ - 1)) {
      const std::uint32_t number = places_[at] - 1u;
      if (is(number)) return number;
    }
    return kNone;
  }

  /// `number` is new, all before it are known: `hash_of(number)` of each may be asked for.
  template <class HashOf>
  void Add(std::uint32_t number, HashOf hash_of) {
    if (!places_.empty()) return Put(hash_of(number), number);
    if (number < kFew) return;
    places_.resize(most_);
    for (std::uint32_t each = 0; each <= number; ++each) Put(hash_of(each), each);
  }
  void Clear() noexcept { places_.clear(); }

 private:
  static constexpr std::uint32_t kFew = 8;

  void Put(std::uint64_t hash, std::uint32_t number) noexcept {
    std::size_t at = hash & (most_ - 1);
    while (places_[at] != 0) at = (at + 1) & (most_ - 1);
    places_[at] = static_cast<std::uint16_t>(number + 1);
  }

  std::size_t most_;
  std::vector<std::uint16_t> places_;  ///< Number + 1; empty: few of them.
};

}  // namespace tidegate::redis
