// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "property/source.hpp"
#include "tidegate/quota.hpp"

namespace tidegate::property {

inline constexpr std::int64_t kDay = 86'400'000'000;
inline constexpr std::int64_t kLongest = 366 * kDay;
/// Greatest length of a list under any random quota, also after changes of the quota.
inline constexpr std::int64_t kLongestList = 64;

inline QuotaSpec BucketSpec(Source& source, Algorithm algorithm) {
  switch (source.Below(14)) {
    case 0: return {algorithm, 3, Micros{1'000'000}};
    case 1: return {algorithm, 7, Micros{11}};
    case 2: return {algorithm, 5'000'000, Micros{1'000'000}};
    case 3: return {algorithm, 1, Micros{kLongest}};
    case 4: return {algorithm, 101, Micros{103}, 5};
    case 5: return {algorithm, 1, Micros{1}};
    case 6: return {algorithm, 10, Micros{1'000'000}, 1};
    case 7: return {algorithm, 2, Micros{1'000'000}, 1'000'000};
    case 8: return {algorithm, 1'000'003, Micros{999'983}, 7};
    case 9: return {algorithm, 2'147'483'647, Micros{1}};
    case 10: return {algorithm, 17, Micros{13}, 1};
    default: {
      const std::int64_t limit = source.Magnitude(source.OneOf<std::int64_t>({10, 10'000'000}));
      const std::int64_t period =
          source.Magnitude(source.OneOf<std::int64_t>({100, 10'000'000, kLongest}));
      return {algorithm, limit, Micros{period}, source.Below(2) ? source.Magnitude(1000) : 0};
    }
  }
}

inline QuotaSpec WindowSpec(Source& source, Algorithm algorithm) {
  const bool listed = algorithm == Algorithm::kSlidingLog || algorithm == Algorithm::kConcurrency;
  switch (source.Below(9)) {
    case 0: return {algorithm, 1, Micros{1}};
    case 1: return {algorithm, 3, Micros{1'000'000}};
    case 2: return {algorithm, 7, Micros{11}};
    case 3: return {algorithm, 2, Micros{kLongest}};
    case 4: return {algorithm, listed ? 10 : 5'000'000, Micros{1'000'000}};
    case 5: return {algorithm, listed ? 5 : 2'147'483'647, Micros{60'000'000}};
    default: {
      const std::int64_t limit = source.Magnitude(listed ? 20 : source.OneOf({10, 1'000'000}));
      const std::int64_t period =
          source.Magnitude(source.OneOf<std::int64_t>({20, 10'000'000, kLongest}));
      return {algorithm, limit, Micros{period}};
    }
  }
}

/// Returns the default bound on debts, no debt at all, a small bound, or one that no history
/// reaches.
inline std::optional<std::int64_t> AnyMaxDebt(Source& source, Algorithm algorithm) {
  if (algorithm == Algorithm::kConcurrency || source.Below(2) == 0) return std::nullopt;
  return source.OneOf<std::int64_t>({0, 1, source.Magnitude(1000), std::int64_t{1} << 53});
}

/// Returns a random origin. Only `gcra` treats the two origins differently.
inline QuotaOrigin AnyOrigin(Source& source, Algorithm algorithm) {
  if (algorithm != Algorithm::kGcra) return QuotaOrigin::kRule;
  return source.OneOf({QuotaOrigin::kRule, QuotaOrigin::kCaller});
}

/// Returns a random quota. Never fails: a spec that Quota::Make rejects is replaced by a plain one.
inline Quota AnyQuota(Source& source, Algorithm algorithm, QuotaOrigin origin) {
  const bool bucket = algorithm == Algorithm::kTokenBucket || algorithm == Algorithm::kGcra;
  QuotaSpec spec = bucket ? BucketSpec(source, algorithm) : WindowSpec(source, algorithm);
  spec.max_debt = AnyMaxDebt(source, algorithm);
  spec.origin = origin;
  const auto made = Quota::Make(spec);
  return made ? *made
              : Quota::Make({.algorithm = algorithm,
                             .limit = 5,
                             .period = Micros{1'000'000},
                             .origin = origin})
                    .value();
}
inline Quota AnyQuota(Source& source, Algorithm algorithm) {
  return AnyQuota(source, algorithm, AnyOrigin(source, algorithm));
}

/// Returns another quota that may replace `quota` while the state is kept. Windows and lists keep
/// their period, because their state depends on it. The origin of the quota stays the same.
inline Quota ChangedQuota(Source& source, const Quota& quota) {
  const Algorithm algorithm = quota.algorithm();
  const bool bucket = algorithm == Algorithm::kTokenBucket || algorithm == Algorithm::kGcra;
  if (bucket && source.Below(2) == 0) return AnyQuota(source, algorithm, quota.origin());
  const std::int64_t limit = source.OneOf(
      {std::max<std::int64_t>(quota.limit() / 2, 1), quota.limit() + 1, quota.limit() * 2});
  const auto made =
      Quota::Make({algorithm, limit, quota.period(), /*burst=*/0,
                   /*ceiling=*/kLongestList, AnyMaxDebt(source, algorithm), quota.origin()});
  return made ? *made : quota;
}

}  // namespace tidegate::property
