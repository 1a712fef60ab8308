// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "tidegate/decision.hpp"
#include "tidegate/quota.hpp"
#include "tidegate/rule_charge.hpp"

namespace tidegate {

/// What a charge does when its store cannot answer: pass, refuse, or count on this node alone.
enum class OnFailure : std::uint8_t { kOpen, kClosed, kLocal };

/// One key, one Quota, one cost: the unit that a Store applies. The key is the rule and the
/// identity together; the same identity under two rules, or under two algorithms of one rule, is
/// counted separately. One request charges a key once at most, whatever the slot tags. All memory
/// that a Charge points to must outlive the call that receives it.
struct Charge {
  std::string_view rule;
  std::string_view identity;
  const Quota* quota = nullptr;
  std::int64_t cost = 1;  ///< 1 to kMaxCost.
  Mode mode = Mode::kEnforce;
  /// `concurrency` only: the id of the lease, chosen by the caller. Acquiring the same id again
  /// renews the lease and takes no second place.
  std::string_view lease = {};
  OnFailure on_failure = OnFailure::kOpen;
  /// Selects the slot of the key in a Redis Cluster: charges of one request with the same slot tag
  /// are applied atomically, in one call. If it is empty, the identity is the tag. Any other tag,
  /// such as the organisation of several API keys, is a part of the key's name in Redis, so a key
  /// must always be charged with the same tag. The memory store ignores the tag.
  std::string_view slot_tag = {};

  /// The slot tag, or the identity if there is none.
  [[nodiscard]] constexpr std::string_view effective_slot_tag() const noexcept {
    return slot_tag.empty() ? identity : slot_tag;
  }
  /// True if the tag differs from the identity and is therefore a part of the key's name.
  [[nodiscard]] constexpr bool tagged() const noexcept {
    return !slot_tag.empty() && slot_tag != identity;
  }
};

/// Returns the decision to report, by the rule of Verdict::governing. Shadow charges are ignored
/// unless all charges are shadows. REQUIRES: as many charges as decisions, at least one.
[[nodiscard]] const Decision& Governing(std::span<const Charge> charges,
                                        std::span<const Decision> decisions) noexcept;

inline constexpr std::int64_t kMaxCount = 2'147'483'647;

}  // namespace tidegate
