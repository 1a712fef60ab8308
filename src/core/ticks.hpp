// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tidegate/clock.hpp"

namespace tidegate {

/// Wide enough for any product of two 64-bit numbers.
__extension__ typedef __int128 Int128;

/// The least q with q * b >= a. REQUIRES: a >= 0, b > 0.
constexpr std::int64_t CeilDiv(std::int64_t a, std::int64_t b) noexcept {
  return a / b + (a % b != 0 ? 1 : 0);
}

/// The start of the epoch-aligned window of length `period` that holds `now`.
constexpr Time WindowStart(Time now, Micros period) noexcept {
  const std::int64_t t = now.time_since_epoch().count();
  const std::int64_t p = period.count();
  const std::int64_t into = t % p;
  return Time{Micros{t - (into < 0 ? into + p : into)}};
}

}  // namespace tidegate
