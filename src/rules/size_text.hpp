// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "tidegate/error.hpp"

namespace tidegate {

/// Reads `4096`, `64KiB`, `256MiB` or `1GiB`: bytes. The message says what would be right.
[[nodiscard]] Result<std::int64_t> ParseSize(std::string_view text);

}  // namespace tidegate
