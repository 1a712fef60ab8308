// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "store/redis/redis_error.hpp"

namespace tidegate::redis {

/// A counter that one thread changes and any thread may read.
class Count {
 public:
  void Add(std::uint64_t n = 1) noexcept {
    value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  void Set(std::uint64_t n) noexcept { value_.store(n, std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t get() const noexcept {
    return value_.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<std::uint64_t> value_{0};
};

/// Counts values above 0 in kCount buckets with the upper bounds kFirst, 2 * kFirst, 4 * kFirst and
/// so on, and in a last bucket without a bound.
template <std::uint64_t kFirst, std::size_t kCount>
class Histogram {
 public:
  static constexpr std::size_t kBuckets = kCount;  ///< Without the last bucket.
  [[nodiscard]] static constexpr std::uint64_t Upper(std::size_t bucket) noexcept {
    return kFirst << bucket;
  }
  void Add(std::uint64_t value) noexcept {
    if (value == 0) return;
    const auto bucket = static_cast<std::size_t>(std::bit_width((value - 1) / kFirst));
    counts_[std::min(bucket, kBuckets)].Add();
    sum_.Add(value);
  }
  [[nodiscard]] std::uint64_t count(std::size_t bucket) const noexcept {
    return counts_[bucket].get();
  }
  [[nodiscard]] std::uint64_t sum() const noexcept { return sum_.get(); }

 private:
  std::array<Count, kBuckets + 1> counts_;
  Count sum_;
};
/// The nanoseconds from the send of a batch to its reply: buckets from 64 us to 131 ms.
struct LatencyHistogram : Histogram<64'000, 12> {
  static constexpr double kPerSecond = 1e9;
  [[nodiscard]] static constexpr double UpperSeconds(std::size_t bucket) noexcept {
    return static_cast<double>(Upper(bucket)) / kPerSecond;
  }
  [[nodiscard]] double seconds() const noexcept { return static_cast<double>(sum()) / kPerSecond; }
};
/// The number of calls that a batch answered: buckets from 1 to 1024. Batches that came too late
/// for all of their calls are not counted.
using SizeHistogram = Histogram<1, 11>;

/// What one reactor's client has done so far, and its present state.
struct ClientStats {
  Count batches;        ///< Batches sent.
  Count entries;        ///< Distinct requests in batches.
  Count keys;           ///< Distinct keys in batches.
  Count calls;          ///< Calls that batches answered.
  Count late;           ///< Batches whose reply came when no call waited any more.
  Count connections;    ///< Connections made.
  Count connected;      ///< Nodes that are connected now.
  Count nodes;          ///< Known nodes that serve a slot.
  Count refreshes;      ///< Requests for the topology.
  Count switches;       ///< Changes of the topology.
  Count breaker;        ///< 0 closed, 1 half-open, 2 open.
  Count waiting;        ///< Calls that wait now, sent or not.
  Count healed;         ///< Keys whose content was not a valid state.
  Count repaired;       ///< Stored times found impossibly far ahead.
  Count failed_writes;  ///< Writes of scripts that failed after the first write had succeeded.
  std::array<Count, kErrorKinds> errors;
  LatencyHistogram latency;
  SizeHistogram batch_calls;
};

}  // namespace tidegate::redis
