// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tidegate {

/// How often this thread has called operator new, so that a test can show that the hot path does
/// not.
[[nodiscard]] std::uint64_t AllocationsOfThisThread() noexcept;

}  // namespace tidegate
