// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tidegate {

/// Which ones of a stream are counted, and as how many: each of the first so many between two
/// refills, then one of every 16, chosen at random, as 16.
///
/// What is counted so of any one's is right on average, whatever order they come in, and nobody can
/// foresee which are chosen. How far it may be off is for `HotMargin` to say.
class HotPace {
 public:
  static constexpr std::uint64_t kOneOf = 16;

  /// `seed` must not be known outside.
  HotPace(std::uint32_t exact, std::uint64_t seed) noexcept
      : exact_(exact), left_(exact), random_(seed | 1) {}

  void Refill() noexcept { left_ = exact_; }

  /// As how many the next one counts; 0: it is left out.
  [[nodiscard]] std::uint64_t Next() noexcept {
    if (left_ != 0) {
      --left_;
      return 1;
    }
    if (ahead_ == 0) {
      ahead_ = kOneOf;
      chosen_ = Random() % kOneOf;
    }
    return --ahead_ == chosen_ ? kOneOf : 0;
  }

 private:
  /// xorshift64*, as in Vigna, "An experimental exploration of Marsaglia's xorshift generators".
  [[nodiscard]] std::uint64_t Random() noexcept {
    random_ ^= random_ >> 12;
    random_ ^= random_ << 25;
    random_ ^= random_ >> 27;
    return (random_ * 0x2545F4914F6CDD1Du) >> 32;
  }

  std::uint32_t exact_;
  std::uint32_t left_;
  std::uint64_t ahead_ = 0;   ///< In this block of kOneOf.
  std::uint64_t chosen_ = 0;  ///< How many are ahead when it is its turn.
  std::uint64_t random_;
};

/// How far a sum of chosen ones may be off, if none counted as more than `largest`; 0: all were
/// counted, and it is exact.
///
/// The sum, divided by `largest`, is one of independent numbers in [0, 1]: what a block of 16 gave.
/// By Chernoff's bound such a sum x and its mean m, which is what it should have been, are related
/// by m <= x + L + sqrt(L^2 + 2 x L) and m >= x - sqrt(2 x L), each but for a probability of
/// exp(-L). L = 21: one in a billion, so that it holds for all keys that could break it together.
struct HotMargin {
  std::uint64_t more = 0;
  std::uint64_t less = 0;

  [[nodiscard]] static HotMargin Of(std::uint64_t sum, std::uint64_t largest) noexcept;
};

}  // namespace tidegate
