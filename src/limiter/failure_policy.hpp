// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "limiter/local_share.hpp"
#include "tidegate/call.hpp"
#include "tidegate/store.hpp"

namespace tidegate {

/// Answers calls that their store did not: each charge as its rule says.
///
///     closed   refuses; the caller may come again in a second
///     local    is counted on this node, against its share of the quota
///     open     passes
///
/// Where one request has several: a closed one refuses it and nothing is charged; else the local
/// ones decide, all or nothing; open ones say nothing. `decided_by` of each decision names its
/// policy.
class FailurePolicy {
 public:
  static constexpr Micros kClosedFor = std::chrono::seconds{1};

  /// `local` outlives this, and any outage: a store that fails again soon finds the buckets as they
  /// were. `nodes`: how many share the quotas, as last known.
  FailurePolicy(Store& local, std::function<std::int64_t()> nodes)
      : local_(local), nodes_(std::move(nodes)) {}

  /// Fills everything but `finished`.
  void Answer(Call& call);

 private:
  void Apply(Call& call);
  void Each(Call& call);
  /// REQUIRES: a charge of policy local.
  [[nodiscard]] Charge Share(const Charge& charge);
  /// A look at the local bucket.
  [[nodiscard]] Decision Look(const Charge& charge);
  [[nodiscard]] Result<Done> Carry(const Call& call, const Charge& charge);
  [[nodiscard]] Result<Done> Renew(const Charge& charge);

  Store& local_;
  std::function<std::int64_t()> nodes_;
  LocalShares shares_;
};

}  // namespace tidegate
