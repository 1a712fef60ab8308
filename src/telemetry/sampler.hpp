// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/random.hpp"

namespace tidegate {

/// Chooses which events of a stream are recorded, and with what weight.
///
/// The first `exact` events after each Refill() are recorded with weight 1. Later events are
/// sampled: one of every 32, chosen at random, with weight 32. After an interval with more than
/// twice `exact` events, sampling starts with the first event, because recording touches cold
/// memory. Estimates are unbiased for every key; SamplingError bounds them. Not thread-safe.
class Sampler {
 public:
  static constexpr std::uint64_t kInterval = 32;

  /// `seed` must be secret, so that clients cannot foresee which events are recorded.
  Sampler(std::uint32_t exact, std::uint64_t seed) noexcept;

  void Refill() noexcept;

  /// Returns true while events are sampled, so that one is recorded for several.
  [[nodiscard]] bool sampling() const noexcept { return phase_ != Phase::kExact; }
  /// Returns the number of events since the start.
  [[nodiscard]] std::uint64_t total() const noexcept { return planned_ - until_next_; }

  /// Counts one event. Returns true if the caller must call Weight(); usually just decrements.
  [[nodiscard]] bool Count() noexcept { return --until_next_ == 0; }
  /// Returns the weight of the event just counted; 0 if it is not recorded.
  /// REQUIRES: the last Count() returned true.
  [[nodiscard]] std::uint64_t Weight() noexcept;

 private:
  /// A block of kInterval events always runs to its end. Otherwise the events after the chosen one
  /// would be counted twice: by its weight, and by themselves.
  enum class Phase : std::uint8_t { kExact, kBeforeChosen, kAfterChosen };

  /// Plans the next exactly recorded event, or the next block of sampled events.
  void Begin() noexcept;
  void PlanNext(std::uint64_t events) noexcept;

  std::uint64_t until_next_ = 0;    ///< Events until Weight() must be called.
  std::uint64_t planned_ = 0;       ///< The sum of all values that `until_next_` started from.
  std::uint64_t after_chosen_ = 0;  ///< Number of events in the block after the chosen one.
  Phase phase_ = Phase::kExact;
  std::uint32_t exact_;
  std::uint32_t exact_left_;
  std::uint32_t blocks_ = 0;  ///< Number of blocks since the last Refill().
  Random random_;
};

/// The bounds of the difference between a sum of sampled weights and the true sum.
struct SamplingError {
  std::uint64_t above = 0;  ///< The true sum is at most this much larger.
  std::uint64_t below = 0;  ///< The true sum is at most this much smaller.

  /// Returns the bounds for `sum`. `largest` is the largest weight of an event that was recorded
  /// for several; 0 means that there was none, so the sum is exact. The sum divided by `largest` is
  /// a sum of independent numbers in [0, 1], one for each block. By Chernoff's bound such a sum x
  /// and its mean m are related by m <= x + L + sqrt(L^2 + 2 x L) and m >= x - sqrt(2 x L), each
  /// except with a probability of exp(-L). L = 21 makes that one in a billion, small enough for all
  /// keys that could break a bound together.
  [[nodiscard]] static SamplingError Of(std::uint64_t sum, std::uint64_t largest) noexcept;
};

}  // namespace tidegate
