// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tidegate/quota.hpp"

namespace tidegate {

/// An integer that holds any product of two 64-bit numbers.
__extension__ typedef __int128 Int128;

/// Returns the least q with q * b >= a. REQUIRES: a >= 0, b > 0.
constexpr std::int64_t CeilDiv(std::int64_t a, std::int64_t b) noexcept {
  return a / b + (a % b != 0 ? 1 : 0);
}

/// Returns the start of the epoch-aligned window of length `period` that contains `now`.
constexpr Time WindowStart(Time now, Micros period) noexcept {
  const std::int64_t t = now.time_since_epoch().count();
  const std::int64_t p = period.count();
  const std::int64_t into = t % p;
  return Time{Micros{t - (into < 0 ? into + p : into)}};
}

/// Returns true for the algorithms that have a burst.
[[nodiscard]] constexpr bool IsBucket(Algorithm algorithm) noexcept {
  return algorithm == Algorithm::kTokenBucket || algorithm == Algorithm::kGcra;
}
/// Returns true for the algorithms whose state is a list, which grows with the limit.
[[nodiscard]] constexpr bool IsList(Algorithm algorithm) noexcept {
  return algorithm == Algorithm::kSlidingLog || algorithm == Algorithm::kConcurrency;
}

/// Reads the integers that the algorithms compute with and that Quota::Make derives. Their products
/// stay within 2^53, up to which Redis's Lua holds every integer exactly.
class QuotaScale {
 public:
  static std::int64_t Step(const Quota& quota) noexcept { return quota.step_; }
  static std::int64_t Steps(const Quota& quota) noexcept { return quota.steps_; }
  static std::int64_t Saturation(const Quota& quota) noexcept { return quota.saturation_; }
};

/// Buckets count in grains: limit/period in lowest terms is GrainsPerTick / GrainsPerUnit, so that
/// one microsecond refills a whole number of grains and one unit costs a whole number of them.
[[nodiscard]] inline std::int64_t GrainsPerTick(const Quota& quota) noexcept {
  return QuotaScale::Step(quota);
}
[[nodiscard]] inline std::int64_t GrainsPerUnit(const Quota& quota) noexcept {
  return QuotaScale::Steps(quota);
}

/// `sliding_window` divides the window into Slices slices of length Slice and weighs the previous
/// window by those that it still covers. A slice is 1 us unless limit * period is beyond 2^51.
[[nodiscard]] inline Micros Slice(const Quota& quota) noexcept {
  return Micros{QuotaScale::Step(quota)};
}
[[nodiscard]] inline std::int64_t Slices(const Quota& quota) noexcept {
  return QuotaScale::Steps(quota);
}

/// Returns the number of units at which counters and debts saturate, so that their products with
/// GrainsPerUnit or Slices stay within 2^53.
[[nodiscard]] inline std::int64_t Saturation(const Quota& quota) noexcept {
  return QuotaScale::Saturation(quota);
}

}  // namespace tidegate
