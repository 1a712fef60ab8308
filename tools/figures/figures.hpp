// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "svg.hpp"

/// Every figure of docs/algorithms, each drawn from a new run of the library.
namespace tidegate::figures {

[[nodiscard]] Svg DrawSix();            ///< All algorithms with the same arrivals.
[[nodiscard]] Svg DrawClockSteps();     ///< Clocks that step back: small and large steps.
[[nodiscard]] Svg DrawTokenBucket();    ///< The level over time.
[[nodiscard]] Svg DrawGcra();           ///< The theoretical arrival time over time.
[[nodiscard]] Svg DrawSlidingLog();     ///< Units as bars with a length of one period.
[[nodiscard]] Svg DrawConcurrency();    ///< Leases as bars.
[[nodiscard]] Svg DrawFixedWindow();    ///< Twice the limit around a window boundary.
[[nodiscard]] Svg DrawSlidingWindow();  ///< The worst case of sliding_window.
[[nodiscard]] Svg DrawSlidingError();   ///< The usual error of sliding_window.

/// Print the worked examples and tables of the pages to stdout, as Markdown.
void PrintExamples();
void PrintBucketExamples();
void PrintErrorTable();

}  // namespace tidegate::figures
