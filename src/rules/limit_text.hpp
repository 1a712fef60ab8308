// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tidegate/clock.hpp"
#include "tidegate/error.hpp"
#include "tidegate/quota.hpp"

namespace tidegate {

/// How people write a limit: so many per period. For `concurrency` the period is a lease's time.
struct LimitText {
  std::int64_t count = 0;
  Micros period{0};

  /// Reads `100/s`, `1000/1h`, `5/30s`: a whole number of at least 1, a slash, and a period of 1us
  /// to 366d, whose number may be left out where it is 1. The message says what would be right.
  [[nodiscard]] static Result<LimitText> Parse(std::string_view text);
  /// The shortest form that reads back as the same: `100/s`, `5/30s`, `100000/d`.
  [[nodiscard]] std::string Text() const;

  friend bool operator==(const LimitText&, const LimitText&) = default;
};

/// Returns a quota as people read it: `100/s`, `100/s, burst 200`, or, under `concurrency`,
/// `2 at once, lease 30s`. `written` is the limit as the configuration has it, `1000/24h`, if the
/// text should keep its units; without it the shortest units are chosen, `1000/d`.
[[nodiscard]] std::string QuotaText(const Quota& quota, std::string_view written = {});

}  // namespace tidegate
