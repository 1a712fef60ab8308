// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "tidegate/decision.hpp"
#include "tidegate/quota.hpp"

namespace tidegate {

/// `CL.THROTTLE key max_burst count period [quantity]`, as redis-cell has it: what is asked...
struct Throttle {
  std::string_view key;
  QuotaSpec quota;            ///< gcra; its burst is max_burst + 1.
  std::int64_t quantity = 1;  ///< 0: a look that takes nothing.
};

/// `arguments` begin with the command's name. False: `problem` says what is wrong with them.
[[nodiscard]] bool ReadThrottle(std::span<const std::string_view> arguments, Throttle& throttle,
                                std::string& problem);

/// ... and what is answered: 0 or 1 (limited), the limit, what remains, the seconds until a retry
/// makes sense (-1: it passed, or never will), the seconds until all is there again.
using ThrottleAnswer = std::array<std::int64_t, 5>;
[[nodiscard]] ThrottleAnswer AnswerThrottle(const Decision& decision, const Quota& quota,
                                            std::int64_t quantity);

/// Rounded up to seconds where there are milliseconds; what is below one does not count.
[[nodiscard]] constexpr std::int64_t CellSeconds(Micros duration) noexcept {
  const std::int64_t millis = duration.count() / 1000;
  return millis / 1000 + (millis % 1000 != 0 ? 1 : 0);
}

/// Strict: `-`, digits, nothing else; false where it does not fit.
[[nodiscard]] bool ReadInteger(std::string_view text, std::int64_t& number) noexcept;

}  // namespace tidegate
