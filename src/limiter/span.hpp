// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "limiter/deny_cache.hpp"
#include "limiter/failure_policy.hpp"
#include "limiter/guard_stats.hpp"
#include "store/fingerprint.hpp"
#include "store/redis/client.hpp"
#include "tidegate/call.hpp"

namespace tidegate {

/// What becomes of a call that is part of something: `CallRecord::span` points here.
class Partial {
 public:
  virtual void OnAnswered(Call& part) = 0;
  virtual void OnFailed(Call& part, redis::Reason reason) = 0;
  /// Nothing was done of it, and it has to go in parts itself.
  virtual void OnSplit(Call& part) = 0;

 protected:
  ~Partial() = default;
};

/// Requests whose charges live in several slots of a cluster, where no script reaches all of them.
/// Each part is applied in its slot, all at the same time; where one denies, the others are given
/// back what they had charged. So neither limit is ever passed, but a neighbour may be denied for
/// the moment that a charge takes to come back.
///
/// - What gives something back carries the time of its charge, by the clock of the Redis that made
///   it: if the window has passed since, it does nothing.
/// - A part of unknown fate (no reply) is never taken back: it may not have been charged.
/// - Leases and shadows come after all others have passed: a lease that is taken and given back at
///   once would be in others' way, and a shadow sees only what passes.
/// - Where parts fail, their rules' policies answer for them, and what they refuse refuses all.
/// - A part that is known to deny (DenyCache) is not asked for, and the others are only looked at:
///   a flood of denied requests charges nobody. The answer as a whole is kept too, but holds only
///   as long as that of such a part does, which hears of refunds in their order.
///
/// One reactor's.
class Spans {
 public:
  /// Keeps a denial that was true when the question left.
  using Keep = std::function<void(const Call& denied, redis::Client::Clock::time_point sent)>;

  /// All outlive this.
  Spans(redis::Client& client, const Fingerprinter& fingerprinter, FailurePolicy& policy,
        DenyCache& cache, Keep keep, GuardStats& stats);
  ~Spans();

  /// Finishes `whole` in the end. REQUIRES: a checked call, of several parts.
  void Start(Call& whole, const redis::Client::Parts& parts);

 private:
  class Span;
  class GiveBack;

  void Recycle(Span* span);
  void TakeBack(const Call& part);

  redis::Client& client_;
  const Fingerprinter& fingerprinter_;
  FailurePolicy& policy_;
  DenyCache& cache_;
  Keep keep_;
  GuardStats& stats_;
  std::vector<std::unique_ptr<Span>> all_;  ///< In use and not.
  std::vector<Span*> spare_;
  std::vector<std::unique_ptr<GiveBack>> gifts_;
  std::vector<GiveBack*> spare_gifts_;
};

}  // namespace tidegate
