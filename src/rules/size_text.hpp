// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "tidegate/error.hpp"

namespace tidegate {

inline constexpr std::int64_t kKibibyte = 1 << 10;
inline constexpr std::int64_t kMebibyte = 1 << 20;
inline constexpr std::int64_t kGibibyte = 1 << 30;

/// Reads `4096`, `64KiB`, `256MiB` or `1GiB`: bytes. The message says what would be right.
[[nodiscard]] Result<std::int64_t> ParseSize(std::string_view text);

}  // namespace tidegate
