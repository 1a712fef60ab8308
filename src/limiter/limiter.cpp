// SPDX-License-Identifier: Apache-2.0
#include "tidegate/limiter.hpp"

#include <utility>

namespace tidegate {
namespace {

/// What a decision has to say before its numbers count. One that a failure policy let pass says
/// nothing; one that it refused is what the caller must hear, since waiting for the others is no
/// use.
int Voice(const Decision& decision) noexcept {
  if (decision.decided_by == DecidedBy::kOpen) return 0;
  return decision.decided_by == DecidedBy::kClosed && !decision.allowed ? 2 : 1;
}

/// Whether `a` should be told rather than `b`.
bool Governs(const Decision& a, const Decision& b) noexcept {
  if (Voice(a) != Voice(b)) return Voice(a) > Voice(b);
  if (a.allowed != b.allowed) return !a.allowed;
  if (!a.allowed) {
    if (a.never != b.never) return a.never;
    return a.retry_after > b.retry_after;
  }
  // remaining / limit, compared without a division.
  __extension__ typedef __int128 Wide;
  return static_cast<Wide>(a.remaining) * b.limit < static_cast<Wide>(b.remaining) * a.limit;
}

}  // namespace

Limiter::Limiter(const MemoryOptions& options) : store_(NewMemoryStore(options)) {}

Limiter::Limiter(std::unique_ptr<Store> store) : store_(std::move(store)) {}

Result<Verdict> Limiter::Decide(std::span<const Charge> charges) {
  Verdict verdict;
  verdict.decisions.resize(charges.size());
  const auto admitted = store_->Apply(charges, 1, verdict.decisions);
  if (!admitted) return std::unexpected(admitted.error());
  verdict.allowed = *admitted == 1;
  verdict.governing = Governing(charges, verdict.decisions);
  return verdict;
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
