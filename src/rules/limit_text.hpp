// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tidegate/clock.hpp"
#include "tidegate/error.hpp"

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

}  // namespace tidegate
