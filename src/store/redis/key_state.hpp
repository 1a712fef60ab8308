// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "core/outcome.hpp"
#include "tidegate/quota.hpp"

namespace tidegate::redis {

/// Whether the state is a few numbers, which travel, or a list, which does not.
[[nodiscard]] constexpr bool IsList(Algorithm algorithm) noexcept {
  return algorithm == Algorithm::kSlidingLog || algorithm == Algorithm::kConcurrency;
}

/// A key's state as the script told it, stepped on by src/core as the script did. Not for lists.
class KeyState {
 public:
  using Numbers = std::array<std::int64_t, 3>;

  KeyState(Algorithm algorithm, const Numbers& numbers) noexcept
      : algorithm_(algorithm), numbers_(numbers) {}

  Outcome Step(const Quota& quota, std::int64_t cost, std::int64_t count, Time now) noexcept;
  Outcome Debit(const Quota& quota, std::int64_t units, Time now) noexcept;
  Outcome Refund(const Quota& quota, std::int64_t units, Time charged_at, Time now) noexcept;
  void Reset(const Quota& quota, Time now) noexcept;

  [[nodiscard]] const Numbers& numbers() const noexcept { return numbers_; }

 private:
  Algorithm algorithm_;
  Numbers numbers_;
};

}  // namespace tidegate::redis
