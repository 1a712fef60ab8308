// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "core/outcome.hpp"

/// Prints a worked example as a Markdown table on stdout.
namespace tidegate::figures {

/// Returns 1234567 as 1,234,567.
[[nodiscard]] std::string Grouped(std::int64_t value);
/// Returns the microseconds since kZero.
[[nodiscard]] std::string Ticks(Time time);

void TableHead(std::string_view title);
/// Prints one row. `asked`: number of requests; 0 for a peek, a debit or a refund.
void TableRow(Time now, std::string_view call, std::int64_t asked, const Outcome& outcome,
              const std::string& state);

}  // namespace tidegate::figures
