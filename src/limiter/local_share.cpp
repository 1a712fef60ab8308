// SPDX-License-Identifier: Apache-2.0
#include "limiter/local_share.hpp"

#include <algorithm>

namespace tidegate {
namespace {

constexpr std::size_t kMostShares = 4096;

bool IsBucket(const Quota& quota) noexcept {
  return quota.algorithm() == Algorithm::kTokenBucket || quota.algorithm() == Algorithm::kGcra;
}

}  // namespace

Quota ShareOf(const Quota& quota, std::int64_t nodes) noexcept {
  if (nodes <= 1) return quota;
  nodes = std::min<std::int64_t>(nodes, 10'000);  // So that n times a year is a number.
  QuotaSpec spec{.algorithm = quota.algorithm(),
                 .limit = quota.limit(),
                 .period = quota.period(),
                 .ceiling = quota.limit()};
  if (quota.algorithm() != Algorithm::kConcurrency) spec.max_debt = quota.max_debt() / nodes;
  if (IsBucket(quota)) {
    // The same units in n times the time: a rate that need not divide by n.
    spec.burst = std::max<std::int64_t>(1, quota.capacity() / nodes);
    spec.period = quota.period() * nodes;
    if (auto share = Quota::Make(spec)) return *share;
    spec.period = quota.period();
  }
  spec.limit = std::max<std::int64_t>(1, quota.limit() / nodes);
  auto share = Quota::Make(spec);
  if (share) return *share;
  // Too odd to be counted so: the smallest there is admits less, never more.
  spec.limit = 1;
  spec.burst = IsBucket(quota) ? 1 : 0;
  share = Quota::Make(spec);
  return share ? *share : quota;
}

std::size_t LocalShares::Hash::operator()(const Quota& quota) const noexcept {
  auto hash = static_cast<std::size_t>(quota.limit());
  for (const std::int64_t part :
       {quota.period().count(), quota.capacity(), static_cast<std::int64_t>(quota.algorithm())}) {
    hash = (hash ^ static_cast<std::size_t>(part)) * 0x9E3779B97F4A7C15u;
    hash ^= hash >> 29;
  }
  return hash;
}

void LocalShares::Begin(std::int64_t nodes) {
  if (nodes == nodes_ && shares_.size() < kMostShares) return;
  shares_.clear();
  nodes_ = nodes;
}

const Quota& LocalShares::Of(const Quota& quota) {
  if (nodes_ <= 1) return quota;
  const auto found = shares_.find(quota);
  if (found != shares_.end()) return found->second;
  return shares_.emplace(quota, ShareOf(quota, nodes_)).first->second;
}

}  // namespace tidegate
