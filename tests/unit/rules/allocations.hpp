// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tidegate {

/// Returns how often this thread has called operator new, so that tests can show that the hot path
/// does not allocate.
[[nodiscard]] std::uint64_t AllocationsOfThisThread() noexcept;

}  // namespace tidegate
