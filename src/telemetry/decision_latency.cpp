// SPDX-License-Identifier: Apache-2.0
#include "telemetry/decision_latency.hpp"

#include <algorithm>
#include <bit>

namespace tidegate {

void DecisionLatency::Add(std::chrono::nanoseconds took, std::uint64_t times) noexcept {
  const auto nanoseconds = static_cast<std::uint64_t>(std::max<std::int64_t>(took.count(), 0));
  const std::uint64_t micros = (nanoseconds + 999) / 1000;
  // 0 and 1 belong to the first, 2 to the second, 3 and 4 to the third.
  const std::size_t bucket =
      micros <= 1 ? 0 : std::min<std::size_t>(std::bit_width(micros - 1), kBuckets);
  const auto add = [](std::atomic<std::uint64_t>& to, std::uint64_t n) {
    to.store(to.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  };
  add(counts_[bucket], times);
  add(nanoseconds_, nanoseconds * times);
}

}  // namespace tidegate
