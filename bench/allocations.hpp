// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// How often this thread has called operator new or malloc through it, so that a
/// benchmark can show that a decision does not.
[[nodiscard]] std::uint64_t AllocationsOfThisThread() noexcept;
