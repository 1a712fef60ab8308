// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "tidegate/charge.hpp"
#include "tidegate/decision.hpp"
#include "tidegate/quota.hpp"

namespace tidegate {

/// The arguments of `CL.THROTTLE key max_burst count period [quantity]`, as in redis-cell.
struct Throttle {
  std::string_view key;
  QuotaSpec quota;            ///< gcra; its burst is max_burst + 1.
  std::int64_t quantity = 1;  ///< 0: a peek, which charges nothing.

  /// True if the quantity never fits, and is larger than the cost that a store can charge.
  [[nodiscard]] bool IsTooLarge() const noexcept {
    return quantity > kMaxCost && quantity > quota.burst;
  }
};

/// Reads `arguments`, which begin with the command's name. Returns false if they are invalid;
/// `problem` says why.
[[nodiscard]] bool ReadThrottle(std::span<const std::string_view> arguments, Throttle& throttle,
                                std::string& problem);

/// Returns the quota of a command: exact if it can be counted exactly. Otherwise the time that one
/// unit takes is rounded down to nanoseconds, as redis-cell does, or to the least of 10, 100 and
/// 1000 ns with which it can be counted.
[[nodiscard]] Result<Quota> MakeThrottleQuota(const QuotaSpec& spec);

/// The reply to CL.THROTTLE: 0 or 1 (limited); the limit; the units that remain; the seconds until
/// a retry would pass (-1: this one passed, or none will); the seconds until the quota is full.
using ThrottleAnswer = std::array<std::int64_t, 5>;
[[nodiscard]] ThrottleAnswer AnswerThrottle(const Decision& decision, const Quota& quota,
                                            std::int64_t quantity);

/// Rounds whole milliseconds up to seconds, as redis-cell does. Parts of a millisecond are ignored.
[[nodiscard]] constexpr std::int64_t CellSeconds(Micros duration) noexcept {
  const std::int64_t millis = duration.count() / 1000;
  return millis / 1000 + (millis % 1000 != 0 ? 1 : 0);
}

/// Parses an optional `-` followed by digits only. Returns false for anything else, and if the
/// number does not fit.
[[nodiscard]] bool ReadInteger(std::string_view text, std::int64_t& number) noexcept;

}  // namespace tidegate
