// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "tidegate/clock.hpp"

namespace tidegate::cli {

/// Numbers as people read them.
[[nodiscard]] std::string Count(std::int64_t count);      ///< `12,345`
[[nodiscard]] std::string Rate(double per_second);        ///< `12,345`; `0.4` below ten
[[nodiscard]] std::string Share(double part, double of);  ///< `1.9%`; `-` of nothing
[[nodiscard]] std::string Bytes(std::int64_t bytes);      ///< `512 B`, `1.5 MiB`
[[nodiscard]] std::string Seconds(double seconds);        ///< `85 us`, `1.3 ms`, `2.5 s`
/// Without fractions: `14 s`, `2 min 3 s`, `5 d 2 h`.
[[nodiscard]] std::string Span(std::chrono::milliseconds span);
/// UTC, whatever the machine's zone: what nodes in several places say can be put in order.
[[nodiscard]] std::string TimeStamp(std::int64_t ms_since_epoch);  ///< `2024-01-31 09:05:07Z`
/// `1 rule`, `2 rules`
[[nodiscard]] std::string Plural(std::int64_t count, const std::string& noun);

}  // namespace tidegate::cli
