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
  kTokenBucket,    ///< Admits bursts up to `burst`, then `limit` per `period`, evenly spread.
  kSlidingLog,     ///< At most `limit` in every window; memory grows with the limit.
  kSlidingWindow,  ///< As kSlidingLog, but estimated from two counters.
  kFixedWindow,    ///< At most `limit` per epoch-aligned window; up to twice the limit around a
                   ///< boundary.
  kGcra,           ///< Decides as the token bucket does; stores one theoretical arrival time.
  kConcurrency,    ///< At most `limit` units leased at the same time; a lease lasts for `period`.
};
inline constexpr int kAlgorithms = 6;

/// The name used in configuration, metrics and documents: `token_bucket`, ...
[[nodiscard]] std::string_view Name(Algorithm algorithm) noexcept;
[[nodiscard]] std::optional<Algorithm> ParseAlgorithm(std::string_view name) noexcept;

/// Who sets the parameters of a Quota.
enum class QuotaOrigin : std::uint8_t {
  kRule,    ///< A rule sets the parameters: they are the same for all requests until a reload.
  kCaller,  ///< Callers set the parameters: requests for one key may differ in them (CL.THROTTLE).
};

/// The parameters of a Quota as a person writes them; Quota::Make validates them.
struct QuotaSpec {
  Algorithm algorithm = Algorithm::kTokenBucket;
  std::int64_t limit = 0;  ///< Units per period; leases for `concurrency`.
  /// 1 us to 366 days; for `concurrency`, how long a lease lasts. A bucket of origin kCaller may
  /// have up to 2^51 us (71 years).
  Micros period = std::chrono::seconds{1};
  std::int64_t burst = 0;  ///< The capacity of a bucket; 0 means `limit`. Only for buckets.
  /// The largest `limit` that is accepted for the two algorithms whose memory grows with the limit,
  /// `sliding_log` and `concurrency`.
  std::int64_t ceiling = 10'000;
  /// How many units debits may take the quota below empty. With 0, no debit goes below empty.
  /// Default: kDebtPerCapacity times the capacity. Not allowed for `concurrency`, which has no
  /// debits.
  std::optional<std::int64_t> max_debt = std::nullopt;
  /// Only `gcra` uses the origin. If callers set the parameters, `gcra` keeps a theoretical arrival
  /// time that is far ahead of the clock, because a slower quota may have written it. If a rule
  /// sets the parameters, `gcra` repairs that time.
  QuotaOrigin origin = QuotaOrigin::kRule;
};

/// The default of `max_debt` is this many times the capacity: at a constant rate, a key that owes
/// the most admits again after ten times the time in which an empty quota becomes full.
inline constexpr std::int64_t kDebtPerCapacity = 10;

/// How much a key may use: an algorithm and its parameters, validated once.
///
/// A rate and a burst answer different questions. The rate says how much may pass in the long run;
/// the burst says how much may pass at once after a pause.
///
///     Quota::PerSecond(5)             // 5 at once; then one every 200 ms
///     Quota::PerSecond(5).Burst(20)   // 20 at once after 4 s of silence; then one every 200 ms
///     Quota::PerMinute(60).Burst(1)   // never two within a second
///     Quota::PerHour(100).Using(Algorithm::kSlidingLog)   // at most 100 in every hour, exactly
///
/// Invalid parameters throw std::invalid_argument with a sentence that says why; use Make for
/// parameters that come from outside the program. A Quota is a value: copy it freely.
class Quota {
 public:
  /// Returns a token bucket that refills `limit` units per period and holds `limit` units.
  [[nodiscard]] static Quota Per(Micros period, std::int64_t limit);
  [[nodiscard]] static Quota PerSecond(std::int64_t limit) {
    return Per(std::chrono::seconds{1}, limit);
  }
  [[nodiscard]] static Quota PerMinute(std::int64_t limit) {
    return Per(std::chrono::minutes{1}, limit);
  }
  [[nodiscard]] static Quota PerHour(std::int64_t limit) {
    return Per(std::chrono::hours{1}, limit);
  }
  [[nodiscard]] static Quota PerDay(std::int64_t limit) {
    return Per(std::chrono::hours{24}, limit);
  }

  /// Returns the same quota with another burst. Only buckets have a burst.
  [[nodiscard]] Quota Burst(std::int64_t burst) const;
  /// Returns the same quota, counted by another algorithm. Keeps the burst only if both algorithms
  /// are buckets.
  [[nodiscard]] Quota Using(Algorithm algorithm) const;

  /// Validates a spec from outside, for example from a file. Returns an Error with a sentence that
  /// says why the quota cannot work.
  [[nodiscard]] static Result<Quota> Make(const QuotaSpec& spec);

  [[nodiscard]] Algorithm algorithm() const noexcept { return algorithm_; }
  [[nodiscard]] std::int64_t limit() const noexcept { return limit_; }
  [[nodiscard]] Micros period() const noexcept { return period_; }
  /// Returns the most units that can be admitted at one instant: the burst of a bucket, the limit
  /// of any other algorithm. A cost above it never fits.
  [[nodiscard]] std::int64_t capacity() const noexcept { return capacity_; }
  /// Returns the time in which an empty quota without debt becomes full.
  [[nodiscard]] Micros recovery() const noexcept { return recovery_; }

  /// Returns how many units all debits together can take the quota below empty; 0 for
  /// `concurrency`.
  [[nodiscard]] std::int64_t max_debt() const noexcept { return max_debt_; }

  [[nodiscard]] QuotaOrigin origin() const noexcept { return origin_; }

  friend bool operator==(const Quota&, const Quota&) = default;

 private:
  friend class QuotaScale;  // Reads step_, steps_ and saturation_ for the algorithms.
  Quota() = default;
  /// Returns the spec from which Make creates this quota.
  [[nodiscard]] QuotaSpec Spec() const;

  Algorithm algorithm_ = Algorithm::kTokenBucket;
  QuotaOrigin origin_ = QuotaOrigin::kRule;
  std::int64_t limit_ = 0;
  Micros period_{};
  std::int64_t capacity_ = 0;
  Micros recovery_{};
  // Derived by Make; src/core/quota_scale.hpp says what they mean for each algorithm.
  std::int64_t step_ = 1;
  std::int64_t steps_ = 1;
  std::int64_t saturation_ = 0;
  std::int64_t max_debt_ = 0;
};

}  // namespace tidegate
