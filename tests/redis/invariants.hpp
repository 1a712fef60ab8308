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

/// What limits promise, checked over what was seen from outside. From outside it is not known when
/// Redis decided, only that it was between the sending and the receiving. So a set of admissions
/// counts as inside an interval only if each was sent after its beginning and received before its
/// end: a violation that is found is one, whatever the delays were.

/// The parameters of a quota, in microseconds.
struct Promise {
  double limit = 0;  ///< Units per period.
  std::int64_t period_us = 0;
  double burst = 0;  ///< Buckets only.
};

/// When Redis lost state, or might have: between `from_us` and `to_us`.
struct Loss {
  std::int64_t from_us = 0;
  std::int64_t to_us = 0;
};

/// Every check takes the records of one key, in any order, and looks at those of status 200 only.
/// With losses: within each stretch without one the promise holds in full, and over all stretches
/// each loss may have handed out one burst (or limit) more.

/// token_bucket, gcra. Any interval t: admitted <= burst + limit / period * t.
[[nodiscard]] testing::AssertionResult BucketHolds(std::span<const Record> records,
                                                   const Promise& promise,
                                                   std::span<const Loss> losses = {});
/// sliding_log. Any interval shorter than one period: admitted <= limit.
[[nodiscard]] testing::AssertionResult LogHolds(std::span<const Record> records,
                                                const Promise& promise,
                                                std::span<const Loss> losses = {});
/// fixed_window. Any n neighbouring windows, aligned to the epoch: admitted <= n * limit.
/// `epoch_us`: what the clock of Redis shows beyond the clock of the records.
[[nodiscard]] testing::AssertionResult FixedWindowHolds(std::span<const Record> records,
                                                        const Promise& promise,
                                                        std::int64_t epoch_us,
                                                        std::span<const Loss> losses = {});
/// sliding_window. As fixed_window, and any interval shorter than one period: admitted <= 2 limit
/// - 1.
[[nodiscard]] testing::AssertionResult SlidingWindowHolds(std::span<const Record> records,
                                                          const Promise& promise,
                                                          std::int64_t epoch_us,
                                                          std::span<const Loss> losses = {});
/// concurrency. At every moment: leases that are certainly held <= limit. One is from the moment
/// its acquisition was received until its release was sent or its period is over.
/// `losses` may each have let another `limit` in.
[[nodiscard]] testing::AssertionResult LeasesHold(std::span<const Record> records,
                                                  const Promise& promise,
                                                  std::span<const Loss> losses = {});
/// The most leases that were certainly held at once.
[[nodiscard]] std::int64_t MostLeases(std::span<const Record> records, const Promise& promise);

using Check = std::function<testing::AssertionResult(std::span<const Record>)>;
/// `check` for the records of each key by themselves.
[[nodiscard]] testing::AssertionResult EachKey(const Records& records, const Check& check);

/// What the clock of the system shows beyond the steady one.
[[nodiscard]] std::int64_t EpochMicros();

[[nodiscard]] std::int64_t Admitted(std::span<const Record> records);

/// Where latencies lie.
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
