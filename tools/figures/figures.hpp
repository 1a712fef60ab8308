// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "svg.hpp"

/// Every figure of docs/algorithms, each drawn from a new run of the library.
namespace tidegate::figures {

[[nodiscard]] Svg DrawSix();            ///< All six algorithms with the same arrivals.
[[nodiscard]] Svg DrawClockSteps();     ///< A clock that steps back by little and by much.
[[nodiscard]] Svg DrawTokenBucket();    ///< token_bucket: the level over time.
[[nodiscard]] Svg DrawGcra();           ///< gcra: the theoretical arrival time over time.
[[nodiscard]] Svg DrawSlidingLog();     ///< sliding_log: units as bars with a length of one period.
[[nodiscard]] Svg DrawConcurrency();    ///< concurrency: leases as bars.
[[nodiscard]] Svg DrawFixedWindow();    ///< fixed_window: twice the limit around a window boundary.
[[nodiscard]] Svg DrawSlidingWindow();  ///< sliding_window: the worst case.
[[nodiscard]] Svg DrawSlidingError();   ///< sliding_window: the usual error of the estimate.

/// Print the worked examples and tables of the pages to stdout, as Markdown.
void PrintExamples();
void PrintBucketExamples();
void PrintErrorTable();

}  // namespace tidegate::figures
