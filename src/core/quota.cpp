// SPDX-License-Identifier: Apache-2.0
#include "tidegate/quota.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <string>

#include "core/refuse.hpp"
#include "core/ticks.hpp"

namespace tidegate {
namespace {

/// A quota's capacity is at most 2^51 grains and its debts 2^52, so that every sum
/// of two of them is at most 2^53: up to there doubles hold every integer.
constexpr std::int64_t kCapacityGrains = std::int64_t{1} << 51;
constexpr std::int64_t kDebtGrains = std::int64_t{1} << 52;
constexpr Micros kLongestPeriod = std::chrono::hours{24 * 366};
/// The longest period of a caller's bucket: one unit must not take more than kCapacityGrains.
constexpr Micros kLongestCallerPeriod{kCapacityGrains};

constexpr std::array<std::string_view, kAlgorithms> kNames = {
    "token_bucket", "sliding_log", "sliding_window", "fixed_window", "gcra", "concurrency"};

bool IsBucket(Algorithm algorithm) noexcept {
  return algorithm == Algorithm::kTokenBucket || algorithm == Algorithm::kGcra;
}

/// Its memory grows with its limit.
bool IsList(Algorithm algorithm) noexcept {
  return algorithm == Algorithm::kSlidingLog || algorithm == Algorithm::kConcurrency;
}

Result<void> CheckRanges(const QuotaSpec& spec) {
  const std::string name{Name(spec.algorithm)};
  if (spec.limit < 1) {
    return Refuse(ErrorCode::kBadQuota,
                  "the limit is " + std::to_string(spec.limit) +
                      ", and a limit below 1 would refuse every request; to refuse all of them, "
                      "use a deny rule");
  }
  const bool callers_bucket = spec.origin == QuotaOrigin::kCaller && IsBucket(spec.algorithm);
  if (spec.period < Micros{1} ||
      spec.period > (callers_bucket ? kLongestCallerPeriod : kLongestPeriod)) {
    return Refuse(ErrorCode::kBadQuota, "the period is " + std::to_string(spec.period.count()) +
                                            " us, and a period must be between 1 us and " +
                                            (callers_bucket ? "2^51 us (71 years)" : "366 days"));
  }
  if (spec.burst < 0) {
    return Refuse(ErrorCode::kBadQuota, "the burst is " + std::to_string(spec.burst) +
                                            ", and a burst cannot be negative");
  }
  if (spec.burst != 0 && !IsBucket(spec.algorithm)) {
    return Refuse(ErrorCode::kBadQuota,
                  name +
                      " has no burst: its limit is all that one period admits; leave burst "
                      "out, or use token_bucket or gcra");
  }
  if (spec.max_debt && *spec.max_debt < 0) {
    return Refuse(ErrorCode::kBadQuota,
                  "max_debt is " + std::to_string(*spec.max_debt) +
                      ", and it cannot be negative; use 0 to keep debits from going below empty");
  }
  if (spec.max_debt && spec.algorithm == Algorithm::kConcurrency) {
    return Refuse(ErrorCode::kBadQuota,
                  "concurrency has no debits, so it has no max_debt; leave it out");
  }
  if (IsList(spec.algorithm) && spec.limit > spec.ceiling) {
    return Refuse(ErrorCode::kBadQuota,
                  name + " remembers every unit, so its memory grows with the limit; " +
                      std::to_string(spec.limit) + " is above the ceiling of " +
                      std::to_string(spec.ceiling) +
                      (spec.algorithm == Algorithm::kSlidingLog
                           ? "; raise the ceiling, or use sliding_window, whose memory is constant"
                           : "; raise the ceiling, or lower the limit"));
  }
  return {};
}

/// The bound on debts in units, no more than `most`, which can be counted exactly.
std::int64_t MaxDebt(const QuotaSpec& spec, std::int64_t capacity, std::int64_t most) noexcept {
  if (spec.algorithm == Algorithm::kConcurrency) return 0;
  if (spec.max_debt) return std::min(*spec.max_debt, most);
  return capacity > most / kDebtPerCapacity ? most : capacity * kDebtPerCapacity;
}

/// The finest slice that divides the period and keeps limit * slices in range.
std::optional<Micros> Slice(std::int64_t limit, Micros period) noexcept {
  for (const std::int64_t base : {std::int64_t{10}, std::int64_t{2}}) {
    for (std::int64_t slice = 1; period.count() % slice == 0; slice *= base) {
      const Int128 product = static_cast<Int128>(limit) * (period.count() / slice);
      if (product <= kCapacityGrains) return Micros{slice};
    }
  }
  return std::nullopt;
}

}  // namespace

std::string_view Name(Algorithm algorithm) noexcept {
  return kNames[static_cast<std::size_t>(algorithm)];
}

std::optional<Algorithm> ParseAlgorithm(std::string_view name) noexcept {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<Algorithm>(i);
  }
  return std::nullopt;
}

Result<Quota> Quota::Make(const QuotaSpec& spec) {
  if (auto ok = CheckRanges(spec); !ok) return std::unexpected(ok.error());
  Quota q;
  q.algorithm_ = spec.algorithm;
  q.origin_ = spec.origin;
  q.limit_ = spec.limit;
  q.period_ = spec.period;
  q.capacity_ = spec.burst > 0 ? spec.burst : spec.limit;
  q.recovery_ = spec.period;
  q.saturation_ = kDebtGrains;

  if (IsBucket(spec.algorithm)) {
    const std::int64_t common = std::gcd(spec.limit, spec.period.count());
    q.grains_per_tick_ = spec.limit / common;
    q.grains_per_unit_ = spec.period.count() / common;
    const Int128 grains = static_cast<Int128>(q.capacity_) * q.grains_per_unit_;
    if (grains > kCapacityGrains || q.grains_per_tick_ > kCapacityGrains) {
      return Refuse(
          ErrorCode::kBadQuota,
          "a burst of " + std::to_string(q.capacity_) + " at " + std::to_string(spec.limit) +
              " per " + std::to_string(spec.period.count()) +
              " us cannot be counted exactly: burst * period, after cancelling what limit "
              "and period share, must not exceed 2^51; use a rounder limit, a smaller burst "
              "or a shorter period");
    }
    const auto full = static_cast<std::int64_t>(grains);
    q.recovery_ = Micros{CeilDiv(full, q.grains_per_tick_)};
    q.saturation_ = kDebtGrains / q.grains_per_unit_;
  } else if (spec.algorithm == Algorithm::kSlidingWindow) {
    const auto slice = Slice(spec.limit, spec.period);
    if (!slice) {
      return Refuse(
          ErrorCode::kBadQuota,
          "sliding_window of " + std::to_string(spec.limit) + " per " +
              std::to_string(spec.period.count()) +
              " us cannot be weighed exactly: limit * period is beyond 2^51; use a period "
              "of whole seconds or a smaller limit");
    }
    q.slice_ = *slice;
    q.slices_ = spec.period / *slice;
    q.recovery_ = 2 * spec.period;
    q.saturation_ = kDebtGrains / q.slices_;
  } else if (spec.limit > kCapacityGrains) {
    return Refuse(ErrorCode::kBadQuota, "the limit is " + std::to_string(spec.limit) +
                                            ", and a limit above 2^51 cannot be counted exactly");
  }
  // The counters of windows and logs hold the limit too; a bucket's level is negative by the debt.
  const std::int64_t counted = IsBucket(spec.algorithm) ? 0 : q.limit_;
  q.max_debt_ = MaxDebt(spec, q.capacity_, q.saturation_ - counted);
  return q;
}

}  // namespace tidegate
