// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "svg.hpp"

/// Every figure of docs/algorithms, each from a fresh run of the library.
namespace tidegate::figures {

[[nodiscard]] Svg DrawSix();            ///< All algorithms, the same arrivals.
[[nodiscard]] Svg DrawClockSteps();     ///< Held and repaired.
[[nodiscard]] Svg DrawTokenBucket();    ///< The level over time.
[[nodiscard]] Svg DrawGcra();           ///< The theoretical arrival time over time.
[[nodiscard]] Svg DrawSlidingLog();     ///< Units as bars of one period.
[[nodiscard]] Svg DrawConcurrency();    ///< Leases as bars.
[[nodiscard]] Svg DrawFixedWindow();    ///< Twice the limit around a boundary.
[[nodiscard]] Svg DrawSlidingWindow();  ///< The worst case.
[[nodiscard]] Svg DrawSlidingError();   ///< The usual case.

/// The worked examples and tables of the pages, as Markdown, to stdout.
void PrintExamples();
void PrintBucketExamples();
void PrintErrorTable();

}  // namespace tidegate::figures
