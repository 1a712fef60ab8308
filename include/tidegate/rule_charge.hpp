// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tidegate/clock.hpp"
#include "tidegate/decision.hpp"
#include "tidegate/quota.hpp"

namespace tidegate {

/// Whether a charge may deny the request, or only counts requests that pass.
enum class Mode : std::uint8_t { kEnforce, kShadow };

inline constexpr std::int64_t kMaxCost = 2'147'483'647;
inline constexpr std::size_t kMaxCharges = 32;  ///< The most charges of one request.

/// One charge of a request: a rule, the identity that it counts, its quota and the cost.
///
/// The rule and the identity together are the key: the same identity under two rules is counted
/// separately. One request charges a key once at most. All memory that a RuleCharge points to must
/// outlive the call that receives it; Decision::rule points to `rule`.
struct RuleCharge {
  std::string_view rule;
  std::string_view identity;
  const Quota* quota = nullptr;
  std::int64_t cost = 1;  ///< 1 to kMaxCost.
  Mode mode = Mode::kEnforce;
  /// `concurrency` only: the id of the lease, chosen by the caller. Acquiring the same id again
  /// renews the lease and takes no further units.
  std::string_view lease = {};
};

/// Identifies a refund, and says when the charge was made that the refund gives back.
struct RefundRequest {
  /// Chosen by the caller. Refunds with the same id are applied once per key; the id is remembered
  /// until the key must have recovered.
  std::string_view id;
  /// When the charge was made, if the caller knows. Window algorithms drop a refund whose window
  /// has passed; without a time, the charge counts as made now.
  std::optional<Time> charged_at = std::nullopt;
  /// How long ago the charge was made. Callers that do not know the store's clock can set this
  /// instead of a time.
  std::optional<Micros> age = std::nullopt;
};

/// Whether a refund, reset, renewal or release changed anything.
enum class Applied : std::uint8_t { kNo, kYes };

/// The answer to a request with several charges.
struct Verdict {
  bool allowed = false;
  /// The decision to report: the denial with the longest retry_after or, if there is no denial, the
  /// decision with the smallest share left. A denial by a `closed` failure policy is preferred to
  /// all other decisions; a decision of an `open` policy is reported only if there is no other.
  Decision governing;
  std::vector<Decision> decisions;  ///< One per charge, in order.
};

/// The state that a store holds for one key, for people and consoles.
struct Inspection {
  bool tracked = false;  ///< False if nothing is stored, so that the key's full quota is left.
  Decision decision;     ///< The decision that the charge would get; nothing is charged.
  struct Field {
    std::string name;
    std::string value;
  };
  /// The stored fields: `tokens`, `last_refill`, ...; one `entry` (time, units) per item of a log,
  /// one `lease` (expiry, units) per lease.
  std::vector<Field> state;
};

}  // namespace tidegate
