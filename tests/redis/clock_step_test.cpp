// SPDX-License-Identifier: Apache-2.0
// Steps the clock of Redis by seconds and by an hour, forward and back. No key is denied for longer
// than one full recovery, and each step admits at most one burst too many.
#include <gtest/gtest.h>

#include <iostream>

#include "redis/clock_shim.hpp"
#include "redis/fault_case.hpp"
#include "support/wait.hpp"

namespace tidegate::redis_test {
namespace {

using namespace std::chrono_literals;

struct Case {
  const char* name;
  const char* quota;
  Promise promise;           ///< For a window algorithm the burst equals the limit.
  std::int64_t recovery_us;  ///< Microseconds until an empty quota is full again.
};

class ClockStepTest : public FaultCase, public testing::WithParamInterface<Case> {
 protected:
  [[nodiscard]] testing::AssertionResult Holds(std::span<const Record> key,
                                               const std::vector<Loss>& losses) const {
    const Promise& promise = GetParam().promise;
    if (promise.burst > 0) return BucketHolds(key, promise, losses);
    const bool exact = std::string_view(GetParam().name) == "SlidingLog";
    // Windows are aligned to a clock that steps, so one period may overlap two of them.
    const double limit = exact ? promise.limit : 2 * promise.limit;
    return LogHolds(key, Promise{limit, promise.period_us, 0}, losses);
  }
  ClockShim clock_;
  RedisServer redis_{{.environment = clock_.environment()}};
};

TEST_P(ClockStepTest, ClockStepDeniesNoKeyLongerThanOneRecovery) {
  Start(redis_.url(), "rules: [{id: r, per: header:x-user, " + std::string(GetParam().quota) + "}]",
        1, kPatient);
  FaultCase::StartLoad(DecideInTurn("r", kKeys));
  WaitUntilStoreAnswers(SteadyMicros());
  std::vector<Loss> losses;
  for (const std::chrono::milliseconds step :
       {3000ms, -3000ms, 300ms, -300ms, 3'600'000ms, -3'600'000ms, -3'600'000ms, 3'600'000ms}) {
    Loss loss;
    loss.from_us = SteadyMicros();
    clock_.Step(step);
    loss.to_us = SteadyMicros();
    losses.push_back(loss);
    const std::int64_t enough = loss.to_us + GetParam().recovery_us * 3 / 2 + 200'000;
    ASSERT_TRUE(test::WaitUntil([&] { return load_->last_store_us() > enough; }));
  }
  const Records records = Finish();
  ExpectUnnoticed(records);
  EXPECT_TRUE(EachKey(records, [&](std::span<const Record> key) {
    for (const Loss& loss : losses) {
      std::int64_t by = loss.to_us + GetParam().recovery_us + 100'000;
      by += canary_->LateMicros(loss.to_us, by);
      const bool passed = std::any_of(key.begin(), key.end(), [&](const Record& record) {
        return record.admitted() && record.sent_us >= loss.to_us && record.sent_us <= by;
      });
      if (!passed) {
        return testing::AssertionFailure()
               << "frozen after step " << &loss - losses.data() + 1 << " of " << losses.size();
      }
    }
    return Holds(key, losses);
  }));
  std::cout << fleet_->Metric("tidegate_state_repaired_total") << " states repaired\n";
  EXPECT_GT(fleet_->Metric("tidegate_state_repaired_total"), 0);
}

constexpr std::int64_t kSecond = 1'000'000;

std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

INSTANTIATE_TEST_SUITE_P(
    Algorithms, ClockStepTest,
    testing::Values(
        Case{"TokenBucket", "limit: 100/s, burst: 20", {100, kSecond, 20}, kSecond / 5},
        Case{"Gcra", "limit: 100/s, burst: 20, algorithm: gcra", {100, kSecond, 20}, kSecond / 5},
        Case{"SlidingLog",
             "limit: 10/100ms, algorithm: sliding_log",
             {10, kSecond / 10, 0},
             kSecond / 5},
        Case{"SlidingWindow",
             "limit: 10/100ms, algorithm: sliding_window",
             {10, kSecond / 10, 0},
             2 * kSecond / 5},
        Case{"FixedWindow",
             "limit: 10/100ms, algorithm: fixed_window",
             {10, kSecond / 10, 0},
             2 * kSecond / 5}),
    [](const testing::TestParamInfo<Case>& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace tidegate::redis_test
