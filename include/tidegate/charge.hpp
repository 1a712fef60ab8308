// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "tidegate/quota.hpp"

namespace tidegate {

/// Whether a charge may refuse the request, or only counts what passed.
enum class Mode : std::uint8_t { kEnforce, kShadow };

/// What a charge does when its store cannot answer: pass, refuse, or count on this node alone.
enum class OnFailure : std::uint8_t { kOpen, kClosed, kLocal };

/// One key, one Quota, one cost: the unit that a Store applies.
///
/// The key is the rule and the identity together; the same identity under two
/// rules, or under two algorithms of one rule, is counted apart. All memory that
/// a Charge points at must outlive the call that it is given to.
struct Charge {
  std::string_view rule;
  std::string_view identity;
  const Quota* quota = nullptr;
  std::int64_t cost = 1;  ///< 1 to kMaxCost.
  Mode mode = Mode::kEnforce;
  /// `concurrency` only: the id of the lease, chosen by the caller. Acquiring
  /// the same id again renews it and holds no second place.
  std::string_view lease = {};
  OnFailure on_failure = OnFailure::kOpen;
};

inline constexpr std::int64_t kMaxCost = 2'147'483'647;
inline constexpr std::int64_t kMaxCount = 2'147'483'647;
inline constexpr std::size_t kMaxCharges = 32;  ///< In one request.

}  // namespace tidegate
