// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate {

/// A key to count.
struct SketchKey {
  std::uint64_t fingerprint = 0;  ///< Keyed hash of slot and identity; never 0.
  std::uint32_t slot = 0;
  std::string_view identity = {};
};

/// Counts the heaviest keys of a stream in bounded memory: Space-Saving (Metwally, Agrawal, El
/// Abbadi, 2005) in sets of eight places; a key's fingerprint chooses its set. The weight of a key
/// that has a place is added to the count of that place. Any other key takes the place with the
/// smallest count of its set: its weight adds to that count, and the old count is its error.
///
/// So the true weight of a key that has a place is in [count - error, count]. The true weight of
/// any other key is at most the smallest count of its set, because the counts of places only grow,
/// and a key that lost its place had no more weight than the count there. Only keys that share a
/// fingerprint break these bounds: two of a million keys do with a probability of 3e-8.
///
/// The name of a key is copied when the key comes again, or if its weight exceeds the previous
/// count of its place, so a flood of new names costs no copies. Add allocates only for a name that
/// is longer than kShortName and than every earlier name of its place. Not thread-safe.
class HotSketch {
 public:
  static constexpr std::size_t kWays = 8;
  static constexpr std::size_t kShortName = 64;

  /// Rounds `places` up to a power of two, and to at least one set.
  explicit HotSketch(std::size_t places);

  void Add(const SketchKey& key, std::uint64_t weight) noexcept {
    Set& set = sets_[key.fingerprint & mask_];
    const unsigned found = Find(set, key.fingerprint);
    if (found == 0) return Replace(set, key, weight);
    const auto way = static_cast<unsigned>(__builtin_ctz(found));
    set.count[way] += weight;
    if ((named_[key.fingerprint & mask_] & found) == 0) SetName(key, way);
  }

  /// Removes all keys, but keeps the memory of their names.
  void Clear() noexcept;
  /// Copies all keys of `other`. REQUIRES: `other` has as many places as this sketch.
  void CopyFrom(const HotSketch& other);

  [[nodiscard]] std::size_t places() const noexcept { return sets_.size() * kWays; }

  struct Estimate {
    std::uint64_t count = 0;
    std::uint64_t error = 0;
    bool placed = false;  ///< If false, count and error are upper bounds.
    bool named = false;   ///< Slot and identity are known.
    std::uint32_t slot = 0;
    std::string_view identity = {};  ///< Valid until the next Add.
  };
  [[nodiscard]] Estimate Get(std::uint64_t fingerprint) const noexcept;
  /// Returns the fingerprint at a place; 0 if the place is free.
  [[nodiscard]] std::uint64_t At(std::size_t place) const noexcept {
    return sets_[place / kWays].fingerprint[place % kWays];
  }
  /// Returns the largest weight that a key without a place can have in the set of `place`.
  [[nodiscard]] std::uint64_t Bound(std::size_t place) const noexcept {
    return Smallest(sets_[place / kWays]);
  }

 private:
  /// A set fills two cache lines; most additions touch no other memory.
  struct alignas(64) Set {
    std::array<std::uint64_t, kWays> fingerprint{};
    std::array<std::uint64_t, kWays> count{};
  };
  struct Name {
    std::uint32_t slot = 0;
    std::string identity;
  };

  /// Returns the bit of the key's place; 0 if the key has none. Has no branches to mispredict.
  [[nodiscard]] static unsigned Find(const Set& set, std::uint64_t fingerprint) noexcept {
    unsigned found = 0;
    for (unsigned way = 0; way < kWays; ++way) {
      found |= static_cast<unsigned>(set.fingerprint[way] == fingerprint) << way;
    }
    return found;
  }
  [[nodiscard]] static std::uint64_t Smallest(const Set& set) noexcept;
  void Replace(Set& set, const SketchKey& key, std::uint64_t weight) noexcept;
  void SetName(const SketchKey& key, unsigned way) noexcept;

  std::vector<Set> sets_;
  std::vector<std::uint8_t> named_;   ///< One byte per set, with a bit for each place.
  std::vector<std::uint64_t> error_;  ///< The error of each place.
  std::vector<Name> names_;
  std::uint64_t mask_;
};

}  // namespace tidegate
