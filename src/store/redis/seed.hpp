// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <random>

namespace tidegate::redis {

/// For what is left to chance.
[[nodiscard]] inline std::uint64_t Seed() {
  std::random_device random;
  return static_cast<std::uint64_t>(random()) << 32 | random();
}

}  // namespace tidegate::redis
