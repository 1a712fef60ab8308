// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate {

/// Who is counted, as a sketch knows it.
struct SketchKey {
  std::uint64_t fingerprint = 0;  ///< Never 0; of slot and identity, keyed by a secret.
  std::uint32_t slot = 0;
  std::string_view identity = {};
};

/// Counts of the heaviest keys of a stream, in memory that does not grow: Space-Saving (Metwally,
/// Agrawal, El Abbadi, 2005) in sets of eight places, so that an addition looks at eight and not at
/// all of them. A key's fingerprint chooses its set. A key that has a place adds its weight there;
/// another takes the place with the smallest count, adds to that, and remembers it as its error.
///
/// So the true weight of a key that has a place is in [count - error, count], and that of one that
/// has none is at most the smallest count of its set: that of a place only grows, and who lost one
/// had no more than it showed. Both are exact, but for keys that share a fingerprint: two of a
/// million do with a probability of 3e-8.
///
/// A name is copied when a key comes a second time, or with more weight than its place had before:
/// so a flood of names that come once costs no copies. A place without a name bounds what is not
/// listed.
///
/// Of one thread. Add allocates only where a name is longer than kShortName and than all that its
/// place has held before.
class HotSketch {
 public:
  static constexpr std::size_t kWays = 8;
  static constexpr std::size_t kShortName = 64;

  /// `places` is rounded up to a power of two, and to one set at least.
  explicit HotSketch(std::size_t places);

  void Add(const SketchKey& key, std::uint64_t weight) noexcept {
    Set& set = sets_[key.fingerprint & mask_];
    total_ += weight;
    const unsigned found = Find(set, key.fingerprint);
    if (found == 0) return Replace(set, key, weight);
    const auto way = static_cast<unsigned>(__builtin_ctz(found));
    set.count[way] += weight;
    if ((named_[key.fingerprint & mask_] & found) == 0) SetName(key, way);
  }

  /// Empty again; names keep their memory.
  void Clear() noexcept;
  /// Becomes the same as another of as many places.
  void CopyFrom(const HotSketch& other);

  [[nodiscard]] std::uint64_t total() const noexcept { return total_; }
  [[nodiscard]] std::size_t places() const noexcept { return sets_.size() * kWays; }

  /// What is known of a key.
  struct Known {
    std::uint64_t count = 0;
    std::uint64_t error = 0;
    bool placed = false;
    bool named = false;
    std::uint32_t slot = 0;          ///< Where it is named.
    std::string_view identity = {};  ///< Likewise; until the next Add.
  };
  /// Of one without a place: both are the most that it can have.
  [[nodiscard]] Known Look(std::uint64_t fingerprint) const noexcept;
  /// The fingerprint at a place; 0: nobody's.
  [[nodiscard]] std::uint64_t At(std::size_t place) const noexcept {
    return sets_[place / kWays].fingerprint[place % kWays];
  }
  /// The most that a key without a place can have, if its fingerprint leads to this place's set.
  [[nodiscard]] std::uint64_t Bound(std::size_t place) const noexcept {
    return Smallest(sets_[place / kWays]);
  }

 private:
  /// All that most additions touch: two cache lines.
  struct alignas(64) Set {
    std::array<std::uint64_t, kWays> fingerprint{};
    std::array<std::uint64_t, kWays> count{};
  };
  struct Place {
    std::uint64_t error = 0;
    std::uint32_t slot = 0;
    std::string identity;
  };

  /// The bit of its way; 0: it has none. Without a branch: which way it is cannot be foreseen.
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
  std::vector<std::uint8_t> named_;  ///< A bit per way, one byte per set.
  std::vector<Place> rest_;          ///< What is seldom touched.
  std::uint64_t mask_;
  std::uint64_t total_ = 0;
};

}  // namespace tidegate
