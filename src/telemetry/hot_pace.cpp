// SPDX-License-Identifier: Apache-2.0
#include "telemetry/hot_pace.hpp"

#include <cmath>

namespace tidegate {

HotMargin HotMargin::Of(std::uint64_t sum, std::uint64_t largest) noexcept {
  if (largest == 0) return {};
  constexpr double kL = 21;
  const auto most = static_cast<double>(largest);
  const double twice = 2 * kL * most * static_cast<double>(sum);
  const double more = kL * most + std::sqrt(kL * kL * most * most + twice);
  return {static_cast<std::uint64_t>(std::ceil(more)),
          static_cast<std::uint64_t>(std::ceil(std::sqrt(twice)))};
}

}  // namespace tidegate
