// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "tidegate/clock.hpp"
#include "tidegate/error.hpp"

namespace tidegate {

/// How a Quota counts. `kTokenBucket` is what most people want; docs/algorithms
/// compares the six.
enum class Algorithm : std::uint8_t {
  kTokenBucket,    ///< Bursts up to `burst`, then `limit` per `period`, smoothly.
  kSlidingLog,     ///< At most `limit` in every window; memory grows with the limit.
  kSlidingWindow,  ///< The same, estimated from two counters.
  kFixedWindow,    ///< At most `limit` per epoch-aligned window; 2x at the boundary.
  kGcra,           ///< The token bucket's law, kept as one theoretical arrival time.
  kConcurrency,    ///< At most `limit` leases alive; each lives for `period`.
};
inline constexpr int kAlgorithms = 6;

/// The name used in configuration, metrics and documents: `token_bucket`, ...
[[nodiscard]] std::string_view Name(Algorithm algorithm) noexcept;
[[nodiscard]] std::optional<Algorithm> ParseAlgorithm(std::string_view name) noexcept;

/// Who sets the parameters of a Quota.
enum class QuotaOrigin : std::uint8_t {
  kRule,    ///< A rule: all requests bring the same parameters, until a reload changes them.
  kCaller,  ///< The caller: each request may bring others for the same key, as CL.THROTTLE does.
};

/// A Quota as a person writes it; Quota::Make checks it.
struct QuotaSpec {
  Algorithm algorithm = Algorithm::kTokenBucket;
  std::int64_t limit = 0;  ///< Units per period; leases for `concurrency`.
  /// 1 us to 366 days; a lease's time. Buckets of a caller: up to 2^51 us (71 years).
  Micros period = std::chrono::seconds{1};
  std::int64_t burst = 0;  ///< Capacity of a bucket; 0: `limit`. Not for other algorithms.
  /// The largest `limit` of the two algorithms whose memory grows with it,
  /// `sliding_log` and `concurrency`.
  std::int64_t ceiling = 10'000;
  /// How many units a debit may take the quota below empty: 0 for none. Default: kDebtPerCapacity
  /// times the capacity. Not for `concurrency`, which has no debits.
  std::optional<std::int64_t> max_debt = std::nullopt;
  /// Only `gcra` uses it. A theoretical arrival time far ahead of the clock is kept if callers set
  /// the parameters: a slower quota may have written it. If a rule sets them, it is repaired.
  QuotaOrigin origin = QuotaOrigin::kRule;
};

/// The default of `max_debt` is this many times the capacity: at a constant rate, a key that owes
/// the most admits again after ten times the time in which an empty quota becomes full.
inline constexpr std::int64_t kDebtPerCapacity = 10;

/// An algorithm and its parameters, checked: every step on it stays exact.
///
/// Beside what the person wrote, a Quota holds the few integers that the steps
/// compute with. All products of them stay within 2^53: the integers that Redis's
/// Lua can hold exactly.
class Quota {
 public:
  /// Refuses a spec that cannot work, with a sentence that says why.
  [[nodiscard]] static Result<Quota> Make(const QuotaSpec& spec);

  [[nodiscard]] Algorithm algorithm() const noexcept { return algorithm_; }
  [[nodiscard]] std::int64_t limit() const noexcept { return limit_; }
  [[nodiscard]] Micros period() const noexcept { return period_; }
  /// The most that one instant can admit: the burst of buckets, the limit of
  /// the others. A cost above it never fits.
  [[nodiscard]] std::int64_t capacity() const noexcept { return capacity_; }
  /// The time from empty to full, without a debit.
  [[nodiscard]] Micros recovery() const noexcept { return recovery_; }

  /// Buckets count in grains: limit/period in lowest terms is
  /// `grains_per_tick / grains_per_unit`, so that one microsecond refills a
  /// whole number of grains and one unit costs a whole number of them.
  [[nodiscard]] std::int64_t grains_per_tick() const noexcept { return grains_per_tick_; }
  [[nodiscard]] std::int64_t grains_per_unit() const noexcept { return grains_per_unit_; }

  /// `sliding_window` weighs the previous window in `slices()` steps of
  /// `slice()` each: one microsecond unless limit * period is beyond 2^51.
  [[nodiscard]] Micros slice() const noexcept { return slice_; }
  [[nodiscard]] std::int64_t slices() const noexcept { return slices_; }

  /// What counters and debts saturate at, in units, so that products with
  /// `grains_per_unit` or `slices` stay within 2^53.
  [[nodiscard]] std::int64_t saturation() const noexcept { return saturation_; }

  /// The most units that debits can take the quota below empty, all debits together. At most what
  /// `saturation` allows, and 0 for `concurrency`.
  [[nodiscard]] std::int64_t max_debt() const noexcept { return max_debt_; }

  [[nodiscard]] QuotaOrigin origin() const noexcept { return origin_; }

  friend bool operator==(const Quota&, const Quota&) = default;

 private:
  Quota() = default;

  Algorithm algorithm_ = Algorithm::kTokenBucket;
  QuotaOrigin origin_ = QuotaOrigin::kRule;
  std::int64_t limit_ = 0;
  Micros period_{};
  std::int64_t capacity_ = 0;
  Micros recovery_{};
  std::int64_t grains_per_tick_ = 1;
  std::int64_t grains_per_unit_ = 1;
  Micros slice_{1};
  std::int64_t slices_ = 1;
  std::int64_t saturation_ = 0;
  std::int64_t max_debt_ = 0;
};

}  // namespace tidegate
