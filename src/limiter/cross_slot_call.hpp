// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "limiter/deny_cache.hpp"
#include "limiter/failure_policy.hpp"
#include "store/call.hpp"
#include "store/fingerprint.hpp"
#include "store/redis/client.hpp"
#include "store/redis/client_stats.hpp"
#include "store/redis/redis_error.hpp"
#include "tidegate/decision.hpp"

namespace tidegate {

/// Counters of one reactor's Redis store.
struct RedisStoreStats {
  redis::Count cache_hits;
  std::array<std::array<redis::Count, redis::kReasons>, kDecisionSources>
      failures;  ///< Answers of failure policies, by who decided and why.
  /// Decisions of failure policies on requests, by DecidedBy.
  /// `failures` also counts debits, refunds, renewals and releases.
  std::array<redis::Count, kDecisionSources> policy_decisions;
  redis::Count cross_slot_calls;      ///< Requests that were divided into parts.
  redis::Count compensations;         ///< Charges that were given back: another part denied.
  redis::Count failed_compensations;  ///< Charges not given back: they stay until they recover.

  /// Counts an answer of a failure policy. A peek is not counted: readiness probes would appear as
  /// refused requests.
  void CountFailure(Call::Kind kind, DecidedBy decided_by, redis::Reason reason) noexcept {
    if (kind == Call::Kind::kPeek) return;
    if (kind == Call::Kind::kApply) policy_decisions[static_cast<std::size_t>(decided_by)].Add();
    failures[static_cast<std::size_t>(decided_by)][static_cast<std::size_t>(reason)].Add();
  }
};

/// Receives the result of a part of a request. `CallRecord::owner` of the part points to it.
class PartOwner {
 public:
  virtual void OnAnswered(Call& part) = 0;
  virtual void OnFailed(Call& part, redis::Reason reason) = 0;
  /// Redis did not execute `part`: each of its charges must be sent alone.
  virtual void OnSplit(Call& part) = 0;

 protected:
  ~PartOwner() = default;
};

/// A pool of objects that are reused. Owns all of them, in use or not.
template <class T>
class ReusePool {
 public:
  template <class Argument>
  [[nodiscard]] T& Take(Argument& argument) {
    if (spare_.empty()) {
      all_.push_back(std::make_unique<T>(argument));
      spare_.reserve(all_.size());  // So that Give cannot fail.
      return *all_.back();
    }
    T* const spare = spare_.back();
    spare_.pop_back();
    return *spare;
  }
  void Give(T& unused) noexcept { spare_.push_back(&unused); }

 private:
  std::vector<std::unique_ptr<T>> all_;
  std::vector<T*> spare_;
};

/// Carries out requests whose keys are in several slots of a cluster, where no script reaches all
/// of them. The charges of each slot are a part; all parts are applied at the same time. If one
/// part is denied, the charges of the others are compensated: given back. So no limit is ever
/// exceeded, but another request may be denied until the compensation arrives.
///
/// - A compensation carries the time of its charge, by the clock of the Redis that made the charge.
///   If the window has passed since, the compensation changes nothing.
/// - A part whose reply is missing is never compensated: it may not have been charged.
/// - Parts with leases or with only shadow charges are sent after all others have passed: a lease
///   that is acquired and released at once would deny other requests, and a shadow charge counts
///   only requests that pass.
/// - If parts fail, the failure policies of their rules answer for them; a policy that refuses its
///   charge refuses the whole request.
/// - If the DenyCache holds a denial of a part, that part is not sent, and the others are only
///   peeked at: a flood of denied requests charges no key. The denial of the whole request is kept
///   too, but is used only while the denial of such a part is valid; refunds invalidate the denials
///   of parts in the order in which they are received.
///
/// Used by one reactor.
class CrossSlotCalls {
 public:
  /// All arguments must outlive this object.
  CrossSlotCalls(redis::Client& client, const Fingerprinter& fingerprinter, FailurePolicy& policy,
                 DenyCache& cache, RedisStoreStats& stats);
  ~CrossSlotCalls();

  /// Starts `whole` and calls its `finished` in the end. REQUIRES: a checked call of several parts.
  void Start(Call& whole, const redis::Client::Parts& parts);

 private:
  class Request;
  class Compensation;

  /// Gives the charges of `part` back.
  void Compensate(const Call& part);

  redis::Client& client_;
  const Fingerprinter& fingerprinter_;
  FailurePolicy& policy_;
  DenyCache& cache_;
  RedisStoreStats& stats_;
  ReusePool<Request> requests_;
  ReusePool<Compensation> compensations_;
};

}  // namespace tidegate
