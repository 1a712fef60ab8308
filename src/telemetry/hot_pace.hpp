// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tidegate {

/// Which ones of a stream are counted, and as how many: each of the first so many between two
/// refills, then one of every 32, chosen at random, as 32. In a flood, when twice as many came last
/// time, it is one of 32 from the first on: each that is counted has cold memory to touch.
///
/// What is counted so of any one's is right on average, whatever order they come in, and nobody can
/// foresee which are chosen. How far it may be off is for `HotMargin` to say.
class HotPace {
 public:
  static constexpr std::uint64_t kOneOf = 32;

  /// `seed` must not be known outside.
  HotPace(std::uint32_t exact, std::uint64_t seed) noexcept;

  void Refill() noexcept;

  /// One stands for others now: some of them may have been left out already, or will be.
  [[nodiscard]] bool sampling() const noexcept { return phase_ != Phase::kExact; }

  /// One more has come. Whether it must be asked for, by Turn, as how many it counts: most are left
  /// out, and this is all that they cost.
  [[nodiscard]] bool Due() noexcept { return --until_ == 0; }
  /// REQUIRES: Due has just said so. As how many that one counts; 0: it is left out.
  [[nodiscard]] std::uint64_t Turn() noexcept;

  /// As many as have come, since ever.
  [[nodiscard]] std::uint64_t passed() const noexcept { return begun_ - until_; }

 private:
  /// A block of kOneOf is always brought to its end: those after the chosen one would else be
  /// counted by it and once more.
  enum class Phase : std::uint8_t { kExact, kBefore, kAfter };

  void Begin() noexcept;
  void Await(std::uint64_t until) noexcept;
  [[nodiscard]] std::uint64_t Random() noexcept;

  std::uint64_t until_ = 0;  ///< Turn.
  std::uint64_t begun_ = 0;  ///< All that were ever awaited.
  std::uint64_t after_ = 0;  ///< The chosen one, in its block.
  Phase phase_ = Phase::kExact;
  std::uint32_t exact_;
  std::uint32_t left_;    ///< To be counted one by one.
  std::uint32_t blocks_;  ///< Begun since the last refill.
  std::uint64_t random_;
};

/// How far a sum of chosen ones may be off, if none counted as more than `largest`; 0: all were
/// counted, and it is exact.
///
/// The sum, divided by `largest`, is one of independent numbers in [0, 1]: what a block of 32 gave.
/// By Chernoff's bound such a sum x and its mean m, which is what it should have been, are related
/// by m <= x + L + sqrt(L^2 + 2 x L) and m >= x - sqrt(2 x L), each but for a probability of
/// exp(-L). L = 21: one in a billion, so that it holds for all keys that could break it together.
struct HotMargin {
  std::uint64_t more = 0;
  std::uint64_t less = 0;

  [[nodiscard]] static HotMargin Of(std::uint64_t sum, std::uint64_t largest) noexcept;
};

}  // namespace tidegate
