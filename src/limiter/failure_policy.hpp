// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <unordered_map>

#include "store/call.hpp"
#include "store/store.hpp"
#include "tidegate/quota.hpp"

namespace tidegate {

/// Returns a node's share of a quota among `nodes` equal nodes: rate / n, and max(1, burst / n).
/// All shares together admit no more than the quota does, unless there are more nodes than units:
/// then each node admits one unit.
[[nodiscard]] Quota ShareOf(const Quota& quota, std::int64_t nodes) noexcept;

/// Answers calls that the store did not answer: each charge by the failure policy of its rule.
///
///     closed   denies the charge; the caller may try again in a second
///     local    counts the charge on this node, against its share of the quota
///     open     allows the charge, uncounted
///
/// If one of several charges is closed, the request is refused and nothing is charged. Otherwise
/// the local ones decide, all or nothing. `decided_by` of each decision names its policy. Used by
/// one thread.
class FailurePolicy {
 public:
  static constexpr Micros kClosedFor = std::chrono::seconds{1};

  /// `local` outlives this object, and its buckets outlive an outage: if the store soon fails
  /// again, the buckets are as they were. `nodes` returns how many nodes share them, as last known.
  FailurePolicy(Store& local, std::function<std::int64_t()> nodes)
      : local_(local), nodes_(std::move(nodes)) {}

  /// Fills in the answer of `call`, but does not call `finished`.
  void Answer(Call& call);

 private:
  struct Hash {
    std::size_t operator()(const Quota& quota) const noexcept;
  };

  /// Applies the charges whose policy is local, all or nothing.
  void Apply(Call& call);
  /// Carries out one charge, whose policy is local, as a call of its own.
  void CarryOut(Call& call, std::size_t charge, Call::Kind kind);
  /// Returns the charge with this node's share of its quota. Valid until the next Answer.
  [[nodiscard]] Charge Share(const Charge& charge);

  Store& local_;
  const std::function<std::int64_t()> nodes_;
  std::int64_t sharing_ = 1;  ///< The number of nodes that shares_ is for.
  std::unordered_map<Quota, Quota, Hash> shares_;
};

}  // namespace tidegate
