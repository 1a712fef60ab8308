// SPDX-License-Identifier: Apache-2.0
#pragma once

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstdint>
#include <string_view>

namespace tidegate {

/// For tables inside one process; never stored, never sent.
[[nodiscard]] inline std::uint64_t Hash(std::string_view text, std::uint64_t seed = 0) noexcept {
  return XXH3_64bits_withSeed(text.data(), text.size(), seed);
}

}  // namespace tidegate
