// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tidegate/clock.hpp"

namespace tidegate {

/// Who made a decision, from the exact store down to a failure policy.
enum class DecidedBy : std::uint8_t {
  kStore,     ///< The store, exactly.
  kCache,     ///< A denial by the store that still holds, remembered by this process.
  kLocal,     ///< This node alone, against its share of the quota: the store did not answer.
  kOpen,      ///< The rule's failure policy: the request passes uncounted.
  kClosed,    ///< The rule's failure policy: the request is refused.
  kOperator,  ///< A ban or an allowance that an operator gave; the store was not asked.
};
inline constexpr std::size_t kDecisionSources = 6;
[[nodiscard]] std::string_view Name(DecidedBy decided_by) noexcept;

/// Why a decision is what it is: the quota, an operator, or a store that did not answer.
enum class Reason : std::uint8_t {
  kQuota,   ///< What the quota had left: `store`, `cache`.
  kBanned,  ///< `operator`: the key is banned.
  kExempt,  ///< `operator`: the key is allowed to pass uncounted.
  // `local`, `open` and `closed`: why the store did not decide.
  kStoreError,   ///< It refused, or the connection broke.
  kBadResponse,  ///< Its reply was malformed.
  kBadTypes,     ///< Its reply had the wrong type.
  kTimeout,      ///< It did not reply within the deadline.
  kBreakerOpen,  ///< It was not asked: it has been failing.
  kQueueFull,    ///< It was not asked: too many calls are waiting.
};
inline constexpr std::size_t kDecisionReasons = 9;
[[nodiscard]] std::string_view Name(Reason reason) noexcept;

/// The answer to one Charge. Carries durations, never absolute times.
struct Decision {
  /// Whether the charge fits its quota. With several charges, the request passes
  /// only if every enforcing one is allowed.
  bool allowed = false;
  /// Denied for good: the cost is above the quota's capacity. There is no retry_after.
  bool never = false;
  DecidedBy decided_by = DecidedBy::kStore;
  Reason reason = Reason::kQuota;
  std::int64_t limit = 0;      ///< The burst of buckets, the limit of the others.
  std::int64_t remaining = 0;  ///< Whole units left after this decision.
  /// Until the same request passes, if nobody else comes: exact to one
  /// microsecond. Zero when allowed.
  Micros retry_after{0};
  Micros more_after{0};   ///< Until `remaining` is larger, if nobody else comes; zero when full.
  Micros reset_after{0};  ///< Until fully recovered, if nobody else comes.
  std::string_view rule;  ///< The charge's rule: the caller's memory.

  friend bool operator==(const Decision&, const Decision&) = default;
};

}  // namespace tidegate
