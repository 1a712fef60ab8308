// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstdint>

#include "store/redis/redis_error.hpp"

namespace tidegate::redis {

/// A counter that one thread counts and any may read.
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

/// How long batches took, from their send to their reply: powers of two from 64 us on.
class LatencyHistogram {
 public:
  static constexpr std::size_t kBuckets = 12;  ///< 64 us to 131 ms, and all above.
  [[nodiscard]] static constexpr double UpperSeconds(std::size_t bucket) noexcept {
    return static_cast<double>(64u << bucket) / 1e6;
  }
  void Add(std::chrono::nanoseconds took) noexcept {
    const auto micros = static_cast<std::uint64_t>(took.count() / 1000);
    std::size_t bucket = 0;
    while (bucket < kBuckets && micros > (64u << bucket)) ++bucket;
    counts_[bucket].Add();
    nanoseconds_.Add(static_cast<std::uint64_t>(took.count()));
  }
  [[nodiscard]] std::uint64_t count(std::size_t bucket) const noexcept {
    return counts_[bucket].get();
  }
  [[nodiscard]] double seconds() const noexcept {
    return static_cast<double>(nanoseconds_.get()) / 1e9;
  }

 private:
  std::array<Count, kBuckets + 1> counts_;
  Count nanoseconds_;
};

/// How many calls a batch answered: powers of two. Batches whose calls had all gone are left out.
class SizeHistogram {
 public:
  static constexpr std::size_t kBuckets = 11;  ///< 1 to 1024, and all above.
  [[nodiscard]] static constexpr std::uint64_t Upper(std::size_t bucket) noexcept {
    return std::uint64_t{1} << bucket;
  }
  void Add(std::uint64_t size) noexcept {
    if (size == 0) return;
    counts_[std::min<std::size_t>(static_cast<std::size_t>(std::bit_width(size - 1)), kBuckets)]
        .Add();
    sum_.Add(size);
  }
  [[nodiscard]] std::uint64_t count(std::size_t bucket) const noexcept {
    return counts_[bucket].get();
  }
  [[nodiscard]] std::uint64_t sum() const noexcept { return sum_.get(); }

 private:
  std::array<Count, kBuckets + 1> counts_;
  Count sum_;
};

/// What one reactor's client has done so far.
struct ClientStats {
  Count batches;        ///< Sent.
  Count entries;        ///< In them: distinct requests.
  Count keys;           ///< In them: distinct keys.
  Count calls;          ///< Answered by them.
  Count late;           ///< Batches whose reply came when nobody waited any more.
  Count connections;    ///< Made.
  Count connected;      ///< Now: nodes.
  Count nodes;          ///< That serve something, as far as is known.
  Count refreshes;      ///< Questions who serves what.
  Count switches;       ///< Times that the answer was another one.
  Count breaker;        ///< 0 closed, 1 half-open, 2 open.
  Count waiting;        ///< Calls now, sent and not.
  Count healed;         ///< Keys whose state was not what it should be.
  Count repaired;       ///< Stored times found impossibly far ahead.
  Count failed_writes;  ///< That a script could not carry out after its first.
  std::array<Count, kErrorKinds> errors;
  LatencyHistogram latency;
  SizeHistogram batch_calls;
};

}  // namespace tidegate::redis
