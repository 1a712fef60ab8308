// SPDX-License-Identifier: Apache-2.0
#include "tidegate/quota.hpp"

#include <algorithm>
#include <array>
#include <expected>
#include <numeric>
#include <stdexcept>
#include <string>

#include "base/failure.hpp"
#include "core/quota_scale.hpp"

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

std::unexpected<Error> Bad(std::string why) {
  return Failure(ErrorCode::kBadQuota, std::move(why));
}

Result<void> CheckRanges(const QuotaSpec& spec) {
  const std::string name{Name(spec.algorithm)};
  if (spec.limit < 1) {
    return Bad("the limit is " + std::to_string(spec.limit) +
               ", and a limit below 1 would refuse every request; to refuse all of them, "
               "use a deny rule");
  }
  const bool callers_bucket = spec.origin == QuotaOrigin::kCaller && IsBucket(spec.algorithm);
  if (spec.period < Micros{1} ||
      spec.period > (callers_bucket ? kLongestCallerPeriod : kLongestPeriod)) {
    return Bad("the period is " + std::to_string(spec.period.count()) +
               " us, and a period must be between 1 us and " +
               (callers_bucket ? "2^51 us (71 years)" : "366 days"));
  }
  if (spec.burst < 0) {
    return Bad("the burst is " + std::to_string(spec.burst) + ", and a burst cannot be negative");
  }
  if (spec.burst != 0 && !IsBucket(spec.algorithm)) {
    return Bad(name +
               " has no burst: its limit is all that one period admits; leave burst "
               "out, or use token_bucket or gcra");
  }
  if (spec.max_debt && *spec.max_debt < 0) {
    return Bad("max_debt is " + std::to_string(*spec.max_debt) +
               ", and it cannot be negative; use 0 to keep debits from going below empty");
  }
  if (spec.max_debt && spec.algorithm == Algorithm::kConcurrency) {
    return Bad("concurrency has no debits, so it has no max_debt; leave it out");
  }
  if (IsList(spec.algorithm) && spec.limit > spec.ceiling) {
    return Bad(name + " stores every unit, so its memory grows with the limit; " +
               std::to_string(spec.limit) + " is above the ceiling of " +
               std::to_string(spec.ceiling) +
               (spec.algorithm == Algorithm::kSlidingLog
                    ? "; raise the ceiling, or use sliding_window, whose memory is constant"
                    : "; raise the ceiling, or lower the limit"));
  }
  return {};
}

/// Returns the bound on debts in units: at most `most`, the largest debt that is counted exactly.
std::int64_t MaxDebt(const QuotaSpec& spec, std::int64_t capacity, std::int64_t most) noexcept {
  if (spec.algorithm == Algorithm::kConcurrency) return 0;
  if (spec.max_debt) return std::min(*spec.max_debt, most);
  return capacity > most / kDebtPerCapacity ? most : capacity * kDebtPerCapacity;
}

/// Returns the finest slice that divides the period and keeps limit * slices within range.
std::optional<Micros> FinestSlice(std::int64_t limit, Micros period) noexcept {
  for (const std::int64_t base : {std::int64_t{10}, std::int64_t{2}}) {
    for (std::int64_t slice = 1; period.count() % slice == 0; slice *= base) {
      const Int128 product = static_cast<Int128>(limit) * (period.count() / slice);
      if (product <= kCapacityGrains) return Micros{slice};
    }
  }
  return std::nullopt;
}

Quota ValidOrThrow(const Result<Quota>& quota) {
  if (!quota) throw std::invalid_argument(quota.error().message);
  return *quota;
}

}  // namespace

std::string_view Name(Algorithm algorithm) noexcept {
  return kNames[static_cast<std::size_t>(algorithm)];
}

std::optional<Algorithm> ParseAlgorithm(std::string_view name) noexcept {
  const auto* const found = std::ranges::find(kNames, name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<Algorithm>(found - kNames.begin());
}

Quota Quota::Per(Micros period, std::int64_t limit) {
  return ValidOrThrow(Make({.limit = limit, .period = period}));
}

Quota Quota::Burst(std::int64_t burst) const {
  if (burst < 1) {
    throw std::invalid_argument("the burst is " + std::to_string(burst) +
                                ", and a burst below 1 would refuse every request");
  }
  QuotaSpec spec = Spec();
  spec.burst = burst;
  return ValidOrThrow(Make(spec));
}

Quota Quota::Using(Algorithm algorithm) const {
  QuotaSpec spec = Spec();
  spec.algorithm = algorithm;
  if (!IsBucket(algorithm)) spec.burst = 0;
  if (algorithm == Algorithm::kConcurrency) spec.max_debt.reset();
  return ValidOrThrow(Make(spec));
}

QuotaSpec Quota::Spec() const {
  QuotaSpec spec{.algorithm = algorithm_, .limit = limit_, .period = period_, .origin = origin_};
  if (IsBucket(algorithm_) && capacity_ != limit_) spec.burst = capacity_;
  // A quota that was made with a higher ceiling stays valid.
  if (IsList(algorithm_)) spec.ceiling = std::max(spec.ceiling, limit_);
  const std::int64_t counted = IsBucket(algorithm_) ? 0 : limit_;
  if (max_debt_ != MaxDebt(spec, capacity_, saturation_ - counted)) spec.max_debt = max_debt_;
  return spec;
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
    q.step_ = spec.limit / common;
    q.steps_ = spec.period.count() / common;
    const Int128 grains = static_cast<Int128>(q.capacity_) * q.steps_;
    if (grains > kCapacityGrains || q.step_ > kCapacityGrains) {
      return Bad("a burst of " + std::to_string(q.capacity_) + " at " + std::to_string(spec.limit) +
                 " per " + std::to_string(spec.period.count()) +
                 " us cannot be counted exactly: burst * period, after cancelling what limit "
                 "and period share, must not exceed 2^51; use a rounder limit, a smaller burst "
                 "or a shorter period");
    }
    const auto full = static_cast<std::int64_t>(grains);
    q.recovery_ = Micros{CeilDiv(full, q.step_)};
    q.saturation_ = kDebtGrains / q.steps_;
  } else if (spec.algorithm == Algorithm::kSlidingWindow) {
    const auto slice = FinestSlice(spec.limit, spec.period);
    if (!slice) {
      return Bad("sliding_window of " + std::to_string(spec.limit) + " per " +
                 std::to_string(spec.period.count()) +
                 " us cannot be counted exactly: limit * period is beyond 2^51; use a "
                 "period of whole seconds or a smaller limit");
    }
    q.step_ = slice->count();
    q.steps_ = spec.period / *slice;
    q.recovery_ = 2 * spec.period;
    q.saturation_ = kDebtGrains / q.steps_;
  } else if (spec.limit > kCapacityGrains) {
    return Bad("the limit is " + std::to_string(spec.limit) +
               ", and a limit above 2^51 cannot be counted exactly");
  }
  // Counters of windows and logs hold the limit and the debt; a bucket's level only the debt.
  const std::int64_t counted = IsBucket(spec.algorithm) ? 0 : q.limit_;
  q.max_debt_ = MaxDebt(spec, q.capacity_, q.saturation_ - counted);
  return q;
}

}  // namespace tidegate
