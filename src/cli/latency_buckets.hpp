// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/members.hpp"

namespace tidegate::cli {

/// A quantile, as far as buckets tell.
struct LatencyBound {
  double seconds = 0;
  bool beyond = false;  ///< It took longer than the last bucket's end, nobody knows how long.

  [[nodiscard]] std::string Text() const;  ///< `128 us`, `> 8.19 s`

  friend bool operator==(const LatencyBound&, const LatencyBound&) = default;
};

/// How long things took, as a server counts it: cumulative buckets.
class LatencyBuckets {
 public:
  LatencyBuckets() = default;
  /// Of `{"count":...,"buckets":[[seconds,count],...,[null,count]]}`.
  [[nodiscard]] static LatencyBuckets Of(const Members& latency);

  /// What came since `before`; all of it, if that is not an earlier state of the same counts.
  [[nodiscard]] LatencyBuckets Since(const LatencyBuckets& before) const;
  [[nodiscard]] std::int64_t count() const noexcept {
    return buckets_.empty() ? 0 : buckets_.back().second;
  }
  /// The end of the bucket in which the q-th of all lies, so it is never told too short. None of
  /// nothing.
  [[nodiscard]] std::optional<LatencyBound> Quantile(double q) const;

 private:
  /// Up to so many seconds (infinity: all), how many.
  std::vector<std::pair<double, std::int64_t>> buckets_;
};

}  // namespace tidegate::cli
