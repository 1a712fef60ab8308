// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// Returns how often this thread has called operator new or malloc(), so that benchmarks can show
/// that a decision does not allocate.
[[nodiscard]] std::uint64_t AllocationsOfThisThread() noexcept;
