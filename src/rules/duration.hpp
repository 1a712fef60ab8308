// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "tidegate/clock.hpp"
#include "tidegate/error.hpp"

namespace tidegate {

struct DurationUnit {
  std::string_view name;
  Micros length;
};
/// From the longest, so that printing finds the shortest text.
inline constexpr std::array<DurationUnit, 6> kDurationUnits = {
    {{"d", std::chrono::days{1}},
     {"h", std::chrono::hours{1}},
     {"m", std::chrono::minutes{1}},
     {"s", std::chrono::seconds{1}},
     {"ms", std::chrono::milliseconds{1}},
     {"us", Micros{1}}}};

/// Reads "250us", "100ms", "1s", "5m", "24h" or "7d": a whole number and its unit,
/// without a sign or a space. The message of the Error says what would be right.
[[nodiscard]] Result<Micros> ParseDuration(std::string_view text);

/// For people: "840 ms", "333.334 ms", "2 s", "1 min 30 s", "24 h", "2 d 3 h".
///
/// Rounds up to what a person reads: milliseconds from one second on, seconds
/// from one minute on, and so forth. Whoever waits as long as this says does not
/// come too early. REQUIRES: not negative.
[[nodiscard]] std::string FormatDuration(Micros duration);

}  // namespace tidegate
