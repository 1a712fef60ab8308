// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tidegate/clock.hpp"

namespace tidegate {

/// What made a decision: the store, this process, a failure policy or an operator.
enum class DecidedBy : std::uint8_t {
  kStore,     ///< The store; the decision is exact.
  kCache,     ///< This process, from a cached denial of the store that still holds.
  kLocal,     ///< This node alone, by its share of the quota, because the store did not answer.
  kOpen,      ///< The failure policy `open`: the request passes uncounted.
  kClosed,    ///< The failure policy `closed`: the request is denied.
  kOperator,  ///< A ban or an allowance of an operator; the store was not consulted.
};
inline constexpr std::size_t kDecisionSources = 6;
[[nodiscard]] std::string_view Name(DecidedBy decided_by) noexcept;

/// Why a decision is what it is: the quota, an operator, or a store that did not answer.
enum class Reason : std::uint8_t {
  kQuota,   ///< The units that the quota had left (`store`, `cache`).
  kBanned,  ///< An operator banned the key (`operator`).
  kExempt,  ///< An operator allowed the key to pass uncounted (`operator`).
  // The reasons below say why the store did not decide (`local`, `open`, `closed`).
  kStoreError,   ///< The store returned an error, or the connection broke.
  kBadResponse,  ///< The store's reply was malformed.
  kBadTypes,     ///< The store's reply had the wrong type.
  kTimeout,      ///< The store did not reply within the deadline.
  kBreakerOpen,  ///< The request was not sent, because Redis has been failing.
  kQueueFull,    ///< The request was not sent, because too many calls are waiting.
};
inline constexpr std::size_t kDecisionReasons = 9;
[[nodiscard]] std::string_view Name(Reason reason) noexcept;

/// The answer to one Charge. Contains durations, but no absolute times.
struct Decision {
  /// Whether the charge fits its quota. With several charges, the request passes only if every
  /// enforcing charge is allowed.
  bool allowed = false;
  /// True if the charge can never pass, because its cost is above the quota's capacity. Then
  /// `retry_after` has no meaning.
  bool never = false;
  DecidedBy decided_by = DecidedBy::kStore;
  Reason reason = Reason::kQuota;
  std::int64_t limit = 0;      ///< The burst of a bucket, the limit of any other algorithm.
  std::int64_t remaining = 0;  ///< Whole units left after this decision.
  /// The time until the same request passes, if no other request comes, exact to one microsecond.
  /// Zero when allowed.
  Micros retry_after{0};
  Micros more_after{
      0};  ///< The time until `remaining` grows, if no other request comes; zero when full.
  Micros reset_after{0};  ///< The time until fully recovered, if no other request comes.
  std::string_view rule;  ///< The charge's rule; points into the caller's memory.

  friend bool operator==(const Decision&, const Decision&) = default;
};

}  // namespace tidegate
