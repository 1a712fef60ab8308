// SPDX-License-Identifier: Apache-2.0
#include "tidegate/clock.hpp"

namespace tidegate {
namespace {

Micros Monotonic() noexcept {
  return std::chrono::duration_cast<Micros>(std::chrono::steady_clock::now().time_since_epoch());
}

}  // namespace

RealClock::RealClock() noexcept
    : wall_minus_monotonic_(
          std::chrono::duration_cast<Micros>(std::chrono::system_clock::now().time_since_epoch()) -
          Monotonic()) {}

Time RealClock::Now() const noexcept { return Time{wall_minus_monotonic_ + Monotonic()}; }

}  // namespace tidegate
