// SPDX-License-Identifier: Apache-2.0
#include "tidegate/quota.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <numeric>

#include "core/quota_scale.hpp"
#include "oracle/buckets.hpp"
#include "oracle/windows.hpp"
#include "property/quotas.hpp"
#include "tidegate/decision.hpp"

namespace tidegate {
namespace {

using property::kLongest;
using testing::HasSubstr;

constexpr Algorithm kAll[] = {Algorithm::kTokenBucket,   Algorithm::kSlidingLog,
                              Algorithm::kSlidingWindow, Algorithm::kFixedWindow,
                              Algorithm::kGcra,          Algorithm::kConcurrency};
constexpr Algorithm kBuckets[] = {Algorithm::kTokenBucket, Algorithm::kGcra};
constexpr Algorithm kOthers[] = {Algorithm::kSlidingLog, Algorithm::kSlidingWindow,
                                 Algorithm::kFixedWindow, Algorithm::kConcurrency};

/// Expects that Make() rejects `spec` with an error message that contains `names`.
void ExpectRefused(const QuotaSpec& spec, const std::string& names) {
  const auto made = Quota::Make(spec);
  ASSERT_FALSE(made.has_value()) << Name(spec.algorithm)
                                 << " was accepted; expected an error about " << names;
  EXPECT_EQ(made.error().code, ErrorCode::kBadQuota);
  EXPECT_THAT(made.error().message, HasSubstr(names));
}

TEST(QuotaTest, AlgorithmNamesRoundTrip) {
  ASSERT_EQ(std::size(kAll), std::size_t{kAlgorithms});
  for (const Algorithm algorithm : kAll) EXPECT_EQ(ParseAlgorithm(Name(algorithm)), algorithm);
  EXPECT_EQ(Name(Algorithm::kTokenBucket), "token_bucket");
  EXPECT_EQ(Name(Algorithm::kSlidingLog), "sliding_log");
  EXPECT_EQ(Name(Algorithm::kSlidingWindow), "sliding_window");
  EXPECT_EQ(Name(Algorithm::kFixedWindow), "fixed_window");
  EXPECT_EQ(Name(Algorithm::kGcra), "gcra");
  EXPECT_EQ(Name(Algorithm::kConcurrency), "concurrency");
  for (const char* name : {"", "token", "token_bucket ", "Token_Bucket", "gcra\n"}) {
    EXPECT_EQ(ParseAlgorithm(name), std::nullopt) << name;
  }
}

TEST(DecidedByTest, EveryValueHasAName) {
  EXPECT_EQ(Name(DecidedBy::kStore), "store");
  EXPECT_EQ(Name(DecidedBy::kCache), "cache");
  EXPECT_EQ(Name(DecidedBy::kLocal), "local");
  EXPECT_EQ(Name(DecidedBy::kOpen), "open");
  EXPECT_EQ(Name(DecidedBy::kClosed), "closed");
  EXPECT_EQ(Name(DecidedBy::kOperator), "operator");
}

TEST(ReasonTest, EveryValueHasAName) {
  EXPECT_EQ(Name(Reason::kQuota), "quota");
  EXPECT_EQ(Name(Reason::kBanned), "banned");
  EXPECT_EQ(Name(Reason::kExempt), "exempt");
  EXPECT_EQ(Name(Reason::kStoreError), "rediserror");
  EXPECT_EQ(Name(Reason::kBadResponse), "badresponse");
  EXPECT_EQ(Name(Reason::kBadTypes), "badtypes");
  EXPECT_EQ(Name(Reason::kTimeout), "timeout");
  EXPECT_EQ(Name(Reason::kBreakerOpen), "breaker_open");
  EXPECT_EQ(Name(Reason::kQueueFull), "queue_full");
}

TEST(QuotaTest, RejectsLimitBelowOne) {
  for (const Algorithm algorithm : kAll) {
    ExpectRefused({algorithm, 0}, "limit");
    ExpectRefused({algorithm, -1}, "limit");
    ExpectRefused({algorithm, INT64_MIN}, "limit");
    EXPECT_TRUE(Quota::Make({algorithm, 1}).has_value());
  }
}

TEST(QuotaTest, RejectsPeriodOutOfRange) {
  for (const Algorithm algorithm : kAll) {
    for (const std::int64_t period :
         {std::int64_t{0}, std::int64_t{-1}, kLongest + 1, INT64_MAX, INT64_MIN}) {
      ExpectRefused({algorithm, 1, Micros{period}}, "period");
    }
    EXPECT_TRUE(Quota::Make({algorithm, 1, Micros{1}}).has_value());
    EXPECT_TRUE(Quota::Make({algorithm, 1, Micros{kLongest}}).has_value());
  }
}

TEST(QuotaTest, AllowsBurstForBucketsOnly) {
  for (const Algorithm algorithm : kOthers) {
    ExpectRefused({algorithm, 5, Micros{1000}, 5}, "burst");
    ExpectRefused({algorithm, 5, Micros{1000}, -1}, "burst");
    EXPECT_EQ(Quota::Make({algorithm, 5, Micros{1000}})->capacity(), 5);
  }
  for (const Algorithm algorithm : kBuckets) {
    ExpectRefused({algorithm, 5, Micros{1000}, -1}, "burst");
    ExpectRefused({algorithm, 5, Micros{1000}, INT64_MIN}, "burst");
    EXPECT_EQ(Quota::Make({algorithm, 5, Micros{1000}})->capacity(), 5)
        << "the default burst differs from the limit";
    EXPECT_EQ(Quota::Make({algorithm, 5, Micros{1000}, 1})->capacity(), 1);
    EXPECT_EQ(Quota::Make({algorithm, 5, Micros{1000}, 900})->capacity(), 900);
  }
}

TEST(QuotaTest, BoundsLimitOfSlidingLogAndConcurrency) {
  for (const Algorithm algorithm : {Algorithm::kSlidingLog, Algorithm::kConcurrency}) {
    EXPECT_TRUE(Quota::Make({algorithm, 10'000}).has_value());
    ExpectRefused({algorithm, 10'001}, "ceiling");
    ExpectRefused({algorithm, 10'001}, "10001");
    EXPECT_TRUE(Quota::Make({algorithm, 10'001, Micros{1000}, 0, 10'001}).has_value());
    ExpectRefused({algorithm, 7, Micros{1000}, 0, 6}, "ceiling");
  }
  EXPECT_TRUE(Quota::Make({Algorithm::kFixedWindow, 10'001, Micros{1000}, 0, 6}).has_value());
}

TEST(QuotaTest, RejectsQuotaThatCannotBeCountedExactly) {
  const std::int64_t most = std::int64_t{1} << 51;
  for (const Algorithm algorithm : kBuckets) {
    // One unit per microsecond: a unit is one grain.
    EXPECT_TRUE(Quota::Make({algorithm, 1, Micros{1}, most}).has_value());
    ExpectRefused({algorithm, 1, Micros{1}, most + 1}, "burst");
    // A common divisor of limit and period does not matter: 1000/ms is one per microsecond.
    EXPECT_TRUE(Quota::Make({algorithm, 1000, Micros{1000}, most}).has_value());
    ExpectRefused({algorithm, 1001, Micros{1000}, most / 1000 + 1}, "2^51");
    EXPECT_TRUE(Quota::Make({algorithm, 1001, Micros{1000}, most / 1000}).has_value());
    ExpectRefused({algorithm, 1, Micros{kLongest}, 72}, "2^51");
    EXPECT_TRUE(Quota::Make({algorithm, 1, Micros{kLongest}, 71}).has_value());
    ExpectRefused({algorithm, INT64_MAX, Micros{1}, INT64_MAX}, "2^51");
    ExpectRefused({algorithm, 1, Micros{kLongest}, INT64_MAX}, "2^51");
  }
  ExpectRefused({Algorithm::kFixedWindow, most + 1, Micros{1}}, "limit");
  EXPECT_TRUE(Quota::Make({Algorithm::kFixedWindow, most, Micros{kLongest}}).has_value());
  // A prime period has no slice other than one microsecond.
  ExpectRefused({Algorithm::kSlidingWindow, most, Micros{999'983}}, "sliding_window");
  ExpectRefused({Algorithm::kSlidingWindow, INT64_MAX, Micros{1'000'000}}, "limit");
}

TEST(QuotaTest, RecoveryIsTheTimeFromEmptyToFull) {
  property::Source source(1);
  for (int i = 0; i < 2000; ++i) {
    for (const Algorithm algorithm : kBuckets) {
      const Quota quota = property::AnyQuota(source, algorithm);
      EXPECT_EQ(quota.recovery().count(), oracle::BucketLaw(quota).Recovery());
    }
  }
  EXPECT_EQ(Quota::Make({Algorithm::kFixedWindow, 5, Micros{70}})->recovery(), Micros{70});
  EXPECT_EQ(Quota::Make({Algorithm::kSlidingLog, 5, Micros{70}})->recovery(), Micros{70});
  EXPECT_EQ(Quota::Make({Algorithm::kConcurrency, 5, Micros{70}})->recovery(), Micros{70});
  EXPECT_EQ(Quota::Make({Algorithm::kSlidingWindow, 5, Micros{70}})->recovery(), Micros{140});
}

TEST(QuotaTest, ReducesRateToLowestTerms) {
  property::Source source(2);
  for (int i = 0; i < 2000; ++i) {
    const Quota quota = property::AnyQuota(source, Algorithm::kGcra);
    const oracle::Wide tick = GrainsPerTick(quota);
    const oracle::Wide unit = GrainsPerUnit(quota);
    EXPECT_TRUE(tick * quota.period().count() == unit * quota.limit());
    EXPECT_EQ(std::gcd(GrainsPerTick(quota), GrainsPerUnit(quota)), 1);
    EXPECT_TRUE(Saturation(quota) >= quota.capacity());
    EXPECT_TRUE((Saturation(quota) + quota.capacity()) * unit <= oracle::Wide{1} << 53);
  }
}

TEST(QuotaTest, MaxDebtDefaultsToTenTimesCapacity) {
  EXPECT_EQ(Quota::Make({.limit = 5})->max_debt(), 50);
  EXPECT_EQ(Quota::Make({.limit = 5, .burst = 7})->max_debt(), 70);
  EXPECT_EQ(Quota::Make({.limit = 5, .max_debt = 0})->max_debt(), 0);
  EXPECT_EQ(
      Quota::Make({.algorithm = Algorithm::kFixedWindow, .limit = 5, .max_debt = 3})->max_debt(),
      3);
  EXPECT_EQ(Quota::Make({.algorithm = Algorithm::kConcurrency, .limit = 5})->max_debt(), 0);
  ExpectRefused({.limit = 5, .max_debt = -1}, "max_debt is -1");
  ExpectRefused({.algorithm = Algorithm::kConcurrency, .limit = 5, .max_debt = 1}, "no max_debt");
}

TEST(QuotaTest, CapsMaxDebtToExactlyCountableRange) {
  constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();
  const Quota bucket =
      Quota::Make({.limit = 1, .period = Micros{property::kLongest}, .max_debt = kHuge}).value();
  EXPECT_EQ(bucket.max_debt(), Saturation(bucket));
  const Quota window =
      Quota::Make({.algorithm = Algorithm::kSlidingWindow, .limit = 9, .max_debt = kHuge}).value();
  EXPECT_EQ(window.limit() + window.max_debt(), Saturation(window));
  const std::int64_t most = std::int64_t{1} << 51;
  const Quota widest =
      Quota::Make({.algorithm = Algorithm::kFixedWindow, .limit = most, .period = Micros{1000}})
          .value();
  EXPECT_EQ(widest.max_debt(), most)
      << "max_debt is not capped to the range that is counted exactly";
}

TEST(QuotaTest, ChoosesFinestExactSlices) {
  property::Source source(3);
  for (int i = 0; i < 2000; ++i) {
    const Quota quota = property::AnyQuota(source, Algorithm::kSlidingWindow);
    EXPECT_EQ(Slice(quota).count(), oracle::SlidingWindow::Slice(oracle::Law::Of(quota)));
    EXPECT_EQ(Slice(quota) * Slices(quota), quota.period());
    EXPECT_TRUE(Saturation(quota) > quota.limit());
    EXPECT_TRUE(oracle::Wide{2} * Saturation(quota) * Slices(quota) <= oracle::Wide{1} << 53);
  }
  const auto slice = [](std::int64_t limit, std::int64_t period) {
    return Slice(*Quota::Make({Algorithm::kSlidingWindow, limit, Micros{period}})).count();
  };
  EXPECT_EQ(slice(100, 1'000'000), 1);
  EXPECT_EQ(slice(2'251'799'813, 1'000'000), 1);
  EXPECT_EQ(slice(2'251'799'814, 1'000'000), 10);
  EXPECT_EQ(slice(2'251'799'814 * 10, 1'000'000), 100);
  // 2^20 us is not a multiple of ten, so the slices are powers of two.
  EXPECT_EQ(slice(std::int64_t{1} << 31, 1 << 20), 1);
  EXPECT_EQ(slice((std::int64_t{1} << 31) + 1, 1 << 20), 2);
  EXPECT_EQ(slice(std::int64_t{1} << 51, 1 << 20), 1 << 20);
}

TEST(QuotaTest, ComparesAllParameters) {
  const auto quota = [](std::int64_t limit) { return Quota::Make({.limit = limit}).value(); };
  EXPECT_EQ(quota(5), quota(5));
  EXPECT_NE(quota(5), quota(6));
  EXPECT_EQ(quota(5).algorithm(), Algorithm::kTokenBucket);
  EXPECT_EQ(quota(5).period(), std::chrono::seconds{1});
}

TEST(QuotaTest, FluentQuotaEqualsItsSpec) {
  using namespace std::chrono_literals;
  EXPECT_EQ(Quota::PerSecond(5), *Quota::Make({.limit = 5, .period = 1s}));
  EXPECT_EQ(Quota::PerMinute(5).Burst(10), *Quota::Make({.limit = 5, .period = 1min, .burst = 10}));
  EXPECT_EQ(Quota::PerHour(5).Burst(10).Using(Algorithm::kGcra),
            *Quota::Make({.algorithm = Algorithm::kGcra, .limit = 5, .period = 1h, .burst = 10}));
  EXPECT_EQ(Quota::PerDay(7).Burst(10).Using(Algorithm::kSlidingLog),
            *Quota::Make({.algorithm = Algorithm::kSlidingLog, .limit = 7, .period = 24h}));
  EXPECT_EQ(Quota::Per(250ms, 3).Using(Algorithm::kConcurrency),
            *Quota::Make({.algorithm = Algorithm::kConcurrency, .limit = 3, .period = 250ms}));
}

TEST(QuotaTest, FluentBuilderKeepsTheOtherParameters) {
  using namespace std::chrono_literals;
  const Quota quota = *Quota::Make({.algorithm = Algorithm::kGcra,
                                    .limit = 5,
                                    .period = 1min,
                                    .burst = 8,
                                    .max_debt = 3,
                                    .origin = QuotaOrigin::kCaller});
  const Quota changed = quota.Burst(9);
  EXPECT_EQ(changed.capacity(), 9);
  EXPECT_EQ(changed.max_debt(), 3);
  EXPECT_EQ(changed.origin(), QuotaOrigin::kCaller);
  EXPECT_EQ(Quota::PerSecond(5).Burst(20).max_debt(), 200)
      << "the default of max_debt does not follow the burst";
  const Quota log = *Quota::Make(
      {.algorithm = Algorithm::kSlidingLog, .limit = 20'000, .period = 1h, .ceiling = 50'000});
  EXPECT_EQ(log.Using(Algorithm::kSlidingWindow).Using(Algorithm::kTokenBucket).limit(), 20'000);
}

TEST(QuotaTest, FluentBuilderThrowsWithMessageOfMake) {
  const auto thrown = [](auto make) -> std::string {
    try {
      (void)make();
    } catch (const std::invalid_argument& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_EQ(thrown([] { return Quota::PerSecond(0); }), Quota::Make({.limit = 0}).error().message);
  EXPECT_NE(thrown([] { return Quota::PerSecond(1).Burst(0); }), "");
  EXPECT_NE(thrown([] { return Quota::PerSecond(1).Burst(-4); }), "");
  EXPECT_NE(thrown([] { return Quota::Per(Micros{0}, 1); }), "");
  EXPECT_NE(thrown([] { return Quota::PerHour(1'000'000).Using(Algorithm::kSlidingLog); }), "");
  EXPECT_NE(thrown([] { return Quota::PerSecond(5).Using(Algorithm::kFixedWindow).Burst(7); }), "");
}

}  // namespace
}  // namespace tidegate
