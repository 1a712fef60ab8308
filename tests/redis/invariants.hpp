// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "redis/record.hpp"

namespace tidegate::redis_test {

/// Checks of what limits promise, based on what a client saw. A client does not know when Redis
/// decided, only that it was between the sending of the request and the receipt of the response. So
/// an admission counts as inside an interval only if it was sent after the beginning and received
/// before the end of the interval: whatever the delays were, a violation that is found is real.

/// The promise of a quota: its parameters, with times in microseconds.
struct Promise {
  double limit = 0;  ///< Units per period.
  std::int64_t period_us = 0;
  double burst = 0;  ///< Burst of a bucket; 0 for other algorithms.
};

/// A time between `from_us` and `to_us` in which Redis lost state, or may have lost it.
struct Loss {
  std::int64_t from_us = 0;
  std::int64_t to_us = 0;
};

/// Each check takes the records of one key, in any order, and uses only those with status 200. With
/// losses, the promise holds in full within each stretch without a loss; over all stretches
/// together, each loss may have admitted one more burst (or limit).

/// Checks token_bucket and gcra: admitted <= burst + limit / period * t in any interval t.
[[nodiscard]] testing::AssertionResult BucketHolds(std::span<const Record> records,
                                                   const Promise& promise,
                                                   std::span<const Loss> losses = {});
/// Checks sliding_log: admitted <= limit in any interval shorter than one period.
[[nodiscard]] testing::AssertionResult LogHolds(std::span<const Record> records,
                                                const Promise& promise,
                                                std::span<const Loss> losses = {});
/// Checks fixed_window: admitted <= n * limit in any n neighbouring windows, which are aligned to
/// the epoch. `epoch_us` is the clock of Redis minus the clock of the records.
[[nodiscard]] testing::AssertionResult FixedWindowHolds(std::span<const Record> records,
                                                        const Promise& promise,
                                                        std::int64_t epoch_us,
                                                        std::span<const Loss> losses = {});
/// Checks sliding_window: the promise of fixed_window, and admitted <= 2 * limit - 1 in any
/// interval shorter than one period.
[[nodiscard]] testing::AssertionResult SlidingWindowHolds(std::span<const Record> records,
                                                          const Promise& promise,
                                                          std::int64_t epoch_us,
                                                          std::span<const Loss> losses = {});
/// Checks concurrency: at every moment, the leases that are certainly held <= limit. A lease is
/// certainly held from the receipt of its grant until its release is sent or its period ends. Each
/// loss may have admitted another `limit`.
[[nodiscard]] testing::AssertionResult LeasesHold(std::span<const Record> records,
                                                  const Promise& promise,
                                                  std::span<const Loss> losses = {});
/// Returns the largest number of leases that were certainly held at once.
[[nodiscard]] std::int64_t MostLeases(std::span<const Record> records, const Promise& promise);

using Check = std::function<testing::AssertionResult(std::span<const Record>)>;
/// Runs `check` on the records of each key separately.
[[nodiscard]] testing::AssertionResult EachKey(const Records& records, const Check& check);

/// Returns the system clock minus the steady clock, in microseconds.
[[nodiscard]] std::int64_t EpochMicros();

[[nodiscard]] std::int64_t Admitted(std::span<const Record> records);

/// Percentiles of the latencies, and the number of responses.
struct Latencies {
  double p50_ms = 0;
  double p99_ms = 0;
  double p999_ms = 0;
  double most_ms = 0;
  std::size_t count = 0;
};
[[nodiscard]] Latencies LatenciesOf(std::span<const Record> records);
std::ostream& operator<<(std::ostream& out, const Latencies& latencies);

}  // namespace tidegate::redis_test
