// SPDX-License-Identifier: Apache-2.0
#include "cli/latency_buckets.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "cli/human.hpp"

namespace tidegate::cli {

std::string LatencyBound::Text() const { return (beyond ? "> " : "") + Seconds(seconds); }

LatencyBuckets LatencyBuckets::Of(const Members& latency) {
  LatencyBuckets read;
  std::int64_t highest = 0;
  for (const auto& entry : latency.Array("buckets")) {
    if (!entry.is_array() || entry.get_array().size() != 2) continue;
    const auto& bucket = entry.get_array();
    const double end =
        bucket[0].is_null() ? std::numeric_limits<double>::infinity() : NumberOf(bucket[0]);
    highest = std::max(highest, WholeOf(bucket[1]));  // Cumulative, whatever came.
    read.buckets_.emplace_back(end, highest);
  }
  return read;
}

LatencyBuckets LatencyBuckets::Since(const LatencyBuckets& before) const {
  if (before.buckets_.size() != buckets_.size() || before.count() > count()) return *this;
  LatencyBuckets difference = *this;
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    difference.buckets_[i].second -= before.buckets_[i].second;
    if (difference.buckets_[i].second < 0) return *this;
  }
  return difference;
}

std::optional<LatencyBound> LatencyBuckets::Quantile(double q) const {
  if (count() == 0) return std::nullopt;
  const double wanted = std::max(1.0, std::ceil(q * static_cast<double>(count())));
  double last = 0;
  for (const auto& [end, up_to] : buckets_) {
    if (!std::isfinite(end)) break;
    last = end;
    if (static_cast<double>(up_to) >= wanted) return LatencyBound{end};
  }
  return LatencyBound{last, true};
}

}  // namespace tidegate::cli
