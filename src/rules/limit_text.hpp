// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tidegate/clock.hpp"
#include "tidegate/error.hpp"
#include "tidegate/quota.hpp"

namespace tidegate {

/// A limit as people write it: a count per period. For `concurrency` the period is the lease time.
struct LimitText {
  std::int64_t count = 0;
  Micros period{0};

  /// Parses `100/s`, `1000/1h` or `5/30s`: a whole number of at least 1, a slash, and a period of
  /// 1us to 366d. A period such as `1h` may be written `h`. The error message shows a valid form.
  [[nodiscard]] static Result<LimitText> Parse(std::string_view text);
  /// Returns the shortest text that Parse() reads as this limit: `100/s`, `5/30s`, `100000/d`.
  [[nodiscard]] std::string Text() const;

  friend bool operator==(const LimitText&, const LimitText&) = default;
};

/// Returns the text of a quota: `100/s`, `100/s, burst 200`, or, under `concurrency`, `2 at once,
/// lease 30s`. If `written` is not empty, it is the limit as the configuration has it (`1000/24h`),
/// and the text keeps its units. Otherwise the text has the shortest units (`1000/d`).
[[nodiscard]] std::string QuotaText(const Quota& quota, std::string_view written = {});

}  // namespace tidegate
