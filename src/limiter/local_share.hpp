// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unordered_map>

#include "tidegate/quota.hpp"

namespace tidegate {

/// This node's share of a quota among `nodes` equal ones: rate / n, and max(1, burst / n). Together
/// they admit no more than the quota does, unless there are more nodes than units: each admits one
/// then.
[[nodiscard]] Quota ShareOf(const Quota& quota, std::int64_t nodes) noexcept;

/// Shares that were asked for before. One thread's.
class LocalShares {
 public:
  /// From now on so many nodes share. What Of returned before is gone.
  void Begin(std::int64_t nodes);
  /// Valid until the next Begin.
  [[nodiscard]] const Quota& Of(const Quota& quota);

 private:
  struct Hash {
    std::size_t operator()(const Quota& quota) const noexcept;
  };
  std::int64_t nodes_ = 1;
  std::unordered_map<Quota, Quota, Hash> shares_;
};

}  // namespace tidegate
