// SPDX-License-Identifier: Apache-2.0
#include "tidegate/decision.hpp"

#include <array>

#include "core/charge.hpp"
#include "core/quota_scale.hpp"

namespace tidegate {
namespace {

/// Returns the rank of a decision; numbers are compared only between equal ranks. A decision of an
/// `open` policy has none (0). A denial by `closed` comes first (2): waiting would not help.
int Rank(const Decision& decision) noexcept {
  if (decision.decided_by == DecidedBy::kOpen) return 0;
  return decision.decided_by == DecidedBy::kClosed && !decision.allowed ? 2 : 1;
}

/// Returns true if `a` should be reported for the request rather than `b`.
bool Governs(const Decision& a, const Decision& b) noexcept {
  if (Rank(a) != Rank(b)) return Rank(a) > Rank(b);
  if (a.allowed != b.allowed) return !a.allowed;
  if (!a.allowed) {
    if (a.never != b.never) return a.never;
    return a.retry_after > b.retry_after;
  }
  // Compare remaining / limit without a division.
  return static_cast<Int128>(a.remaining) * b.limit < static_cast<Int128>(b.remaining) * a.limit;
}

}  // namespace

std::string_view Name(DecidedBy decided_by) noexcept {
  constexpr std::array<std::string_view, kDecisionSources> kNames = {"store", "cache",  "local",
                                                                     "open",  "closed", "operator"};
  return kNames[static_cast<std::size_t>(decided_by)];
}

std::string_view Name(Reason reason) noexcept {
  constexpr std::array<std::string_view, kDecisionReasons> kNames = {
      "quota",    "banned",  "exempt",       "rediserror", "badresponse",
      "badtypes", "timeout", "breaker_open", "queue_full"};
  return kNames[static_cast<std::size_t>(reason)];
}

const Decision& Governing(std::span<const Charge> charges,
                          std::span<const Decision> decisions) noexcept {
  std::size_t best = 0;
  for (std::size_t i = 1; i < decisions.size(); ++i) {
    const bool counts = charges[i].mode == Mode::kEnforce;
    const bool best_counts = charges[best].mode == Mode::kEnforce;
    if (counts != best_counts ? counts : Governs(decisions[i], decisions[best])) best = i;
  }
  return decisions[best];
}

}  // namespace tidegate
