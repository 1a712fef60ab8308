// SPDX-License-Identifier: Apache-2.0
// Compares CL.THROTTLE with a model that computes as redis-cell does: random histories with
// changing quotas, quantities and times. Also tests each difference that docs/resp.md lists.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "oracle/redis_cell.hpp"
#include "property/source.hpp"
#include "service/fixture.hpp"
#include "support/resp_client.hpp"

namespace tidegate::service {
namespace {

using oracle::RedisCell;
using property::Source;
using Answer = RedisCell::Answer;

struct Parameters {
  std::int64_t max_burst;
  std::int64_t count;
  std::int64_t period;
};

std::string TextOf(const Answer& answer) {
  std::string text = "[";
  for (const std::int64_t number : answer) text += std::to_string(number) + ",";
  text.back() = ']';
  return text;
}

/// A server with a clock that the test moves.
class Cell {
 public:
  Cell() : service_(ConfigWithResp()), client_(service_.server().resp()) {}

  void Advance(std::int64_t micros) {
    service_.Advance(Micros{micros});
    now_us_ += micros;
  }
  [[nodiscard]] std::int64_t now_us() const { return now_us_; }
  std::string Throttle(const std::string& key, const Parameters& p, std::int64_t quantity) {
    return client_.Ask({"CL.THROTTLE", key, std::to_string(p.max_burst), std::to_string(p.count),
                        std::to_string(p.period), std::to_string(quantity)});
  }
  std::string Ask(std::initializer_list<std::string_view> words) { return client_.Ask(words); }
  std::string Send(std::string_view bytes) {
    client_.Send(bytes);
    return client_.Read();
  }

 private:
  static Config ConfigWithResp() {
    Config config = Service::ConfigOf("rules: []");
    config.listen.resp = "127.0.0.1:0";
    return config;
  }

  Service service_;
  test::RespClient client_;
  std::int64_t now_us_ = 1'800'000'000'000'000;
};

/// Returns whether the time of a full burst is at most 2^50 us, so that the debts of two quotas fit
/// into 64 bits of nanoseconds.
bool IsCountable(const Parameters& p, std::int64_t interval_us) {
  return interval_us > 0 && p.max_burst + 1 <= (std::int64_t{1} << 50) / interval_us;
}

/// Returns a random quota whose interval per unit is a whole number of microseconds: both
/// implementations count it exactly.
Parameters AnyWholeQuota(Source& source) {
  while (true) {
    const Parameters p{
        source.OneOf<std::int64_t>({0, 0, 1, 2, 9, 15, 99, 1000, source.Between(0, 100'000)}),
        source.OneOf<std::int64_t>({1, 1, 2, 5, 10, 30, 60, 100, 1000, 1'000'000}),
        source.OneOf<std::int64_t>(
            {1, 1, 2, 10, 60, 60, 3600, 86'400, 31'622'400, 63'072'000, 1'000'000'000})};
    const std::int64_t period_us = p.period * 1'000'000;
    if (period_us % p.count == 0 && IsCountable(p, period_us / p.count)) return p;
  }
}

std::int64_t AnyQuantity(Source& source, const Parameters& p, const Answer& last) {
  switch (source.Below(10)) {
    case 0: return 0;
    case 1: return std::min<std::int64_t>(p.max_burst + 1, 2'147'483'647);
    case 2: return p.max_burst + 2;
    case 3: return last[2];
    case 4: return last[2] + 1;
    case 5: return source.Between(1, 10);
    case 6: return source.Below(8) == 0 ? 3'000'000'000 : 2;
    default: return 1;
  }
}

/// Returns the time until the next call, in microseconds; often at an edge case.
std::int64_t AnyDelay(Source& source, const Parameters& p, const RedisCell& cell) {
  const std::int64_t jitter = source.Between(-1, 1);
  const std::int64_t interval = std::max<std::int64_t>(p.period * 1'000'000 / p.count, 1);
  std::int64_t delay = 0;
  switch (source.Below(9)) {
    case 0: delay = cell.last_wait_us() + jitter; break;
    case 1: delay = cell.last_reset_us() + jitter; break;
    case 2: delay = interval + jitter; break;
    case 3: delay = source.Between(0, 2 * interval); break;
    case 4: delay = source.Between(0, 2'000'000); break;
    case 5: delay = source.Between(0, cell.last_reset_us()); break;
    default: break;
  }
  return std::clamp<std::int64_t>(delay, 0, 100'000'000'000'000);
}

TEST(RedisCellTest, AgreesWithRedisCellWhileQuotasChange) {
  constexpr std::uint64_t kHistories = 2000;
  constexpr int kSteps = 20;
  Cell cell;
  RedisCell redis_cell;
  for (std::uint64_t seed = 1; seed <= kHistories; ++seed) {
    Source source(seed);
    const std::string key = "h" + std::to_string(seed);
    Parameters p = AnyWholeQuota(source);
    Answer expected{};
    std::string history;
    for (int i = 0; i < kSteps; ++i) {
      if (i > 0) cell.Advance(AnyDelay(source, p, redis_cell));
      if (source.Below(3) == 0) p = AnyWholeQuota(source);
      const std::int64_t quantity = AnyQuantity(source, p, expected);
      expected = redis_cell.Throttle(key, p.max_burst, p.count, p.period, quantity, cell.now_us());
      history += "\n  at " + std::to_string(cell.now_us() % 1'000'000'000'000) +
                 " us: " + std::to_string(p.max_burst) + " " + std::to_string(p.count) + " " +
                 std::to_string(p.period) + " " + std::to_string(quantity) + " -> " +
                 TextOf(expected);
      ASSERT_EQ(cell.Throttle(key, p, quantity), TextOf(expected))
          << "history " << seed << ", redis-cell's answers:" << history;
    }
  }
}

/// Tidegate counts intervals that are no whole number of microseconds exactly.
TEST(RedisCellTest, CountsIntervalsOfFractionalMicrosecondsExactly) {
  Cell cell;
  RedisCell exact(RedisCell::Interval::kExact);
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    Source source(seed);
    const std::string key = "x" + std::to_string(seed);
    const Parameters p{source.OneOf<std::int64_t>({0, 1, 2, 15, 999}),
                       source.Between(1, 10'000'000), source.OneOf<std::int64_t>({1, 7, 60, 3600})};
    Answer expected{};
    for (int i = 0; i < 15; ++i) {
      if (i > 0) cell.Advance(AnyDelay(source, p, exact));
      const std::int64_t quantity = AnyQuantity(source, p, expected);
      expected = exact.Throttle(key, p.max_burst, p.count, p.period, quantity, cell.now_us());
      ASSERT_EQ(cell.Throttle(key, p, quantity), TextOf(expected))
          << "history " << seed << ", step " << i << ": " << p.max_burst << " " << p.count << " "
          << p.period << " " << quantity;
    }
  }
}

TEST(RedisCellTest, KeepsDebtOfSlowerQuotaAfterQuotaChange) {
  Cell cell;
  EXPECT_EQ(cell.Throttle("k", {0, 1, 3600}, 1), "[0,1,0,-1,3600]");
  EXPECT_EQ(cell.Throttle("k", {9, 10, 60}, 1), "[1,10,0,3546,3600]");
  // Even a burst whose interval is shorter than one microsecond does not pass before that time.
  EXPECT_EQ(cell.Throttle("k", {0, 2'000'000'000, 1}, 1), "[1,1,0,3600,3600]");
  cell.Advance(3'545'999'999);
  EXPECT_EQ(cell.Throttle("k", {9, 10, 60}, 1), "[1,10,0,0,54]");
  cell.Advance(1);
  EXPECT_EQ(cell.Throttle("k", {9, 10, 60}, 1), "[0,10,0,-1,60]");
}

TEST(RedisCellTest, AcceptsNumberFormatsAndSizesOfRedisCell) {
  Cell cell;
  RedisCell redis_cell;
  EXPECT_EQ(cell.Ask({"CL.THROTTLE", "plus", "+4", "+01", "01", "+1"}), "[0,5,4,-1,1]");
  EXPECT_EQ(cell.Ask({"CL.THROTTLE", "zero", "-0", "1", "1"}), "[0,1,0,-1,1]");
  const std::vector<Parameters> large = {
      {0, 1, 63'072'000},             // Two years.
      {0, 1, 2'000'000'000},          // 63 years.
      {0, 5'000'000'000, 3600},       // A count above 2^31.
      {3'000'000'000, 1'000'000, 1},  // A burst above 2^31.
      {999'999, 1'000'000, 86'400},   // A large burst.
  };
  int number = 0;
  for (const Parameters& p : large) {
    const std::string key = "large-" + std::to_string(++number);
    for (const std::int64_t quantity : {1, 1, 0}) {
      const Answer expected =
          redis_cell.Throttle(key, p.max_burst, p.count, p.period, quantity, cell.now_us());
      if (p.count > 1'000'000'000) {  // CountsRemainingUnitsExactly explains this difference.
        EXPECT_EQ(cell.Throttle(key, p, quantity).substr(0, 2), "[" + std::to_string(expected[0]));
      } else {
        EXPECT_EQ(cell.Throttle(key, p, quantity), TextOf(expected)) << key;
      }
    }
  }
  // Quantities above the capacity, up to the largest integer.
  EXPECT_EQ(cell.Ask({"CL.THROTTLE", "never", "4", "1", "1", "9007199254740993"}), "[1,5,5,-1,0]");
  EXPECT_EQ(cell.Ask({"CL.THROTTLE", "never", "4", "1", "1", "9223372036854775807"}),
            "[1,5,5,-1,0]");
}

/// An interval that cannot be counted exactly is rounded as redis-cell rounds it.
TEST(RedisCellTest, RoundsIntervalsThatCannotBeCountedExactly) {
  Cell cell;
  RedisCell redis_cell;
  const Parameters p{999'999, 999'983, 86'400};
  for (const std::int64_t quantity : {1'000'000, 1, 999'999, 0}) {
    const Answer expected =
        redis_cell.Throttle("k", p.max_burst, p.count, p.period, quantity, cell.now_us());
    EXPECT_EQ(cell.Throttle("k", p, quantity), TextOf(expected));
    cell.Advance(86'401'469);
  }
}

// --- Documented differences ----------------------------------------------------------

TEST(RedisCellTest, CountsRemainingUnitsExactly) {
  Cell cell;
  RedisCell redis_cell;
  // One unit takes 166.666 us; redis-cell divides by 166 and reports more units than the limit.
  EXPECT_EQ(TextOf(redis_cell.Throttle("k", 5999, 6000, 1, 1, cell.now_us())),
            "[0,6000,6023,-1,0]");
  EXPECT_EQ(cell.Throttle("k", {5999, 6000, 1}, 1), "[0,6000,5999,-1,0]");
}

TEST(RedisCellTest, DoesNotTruncateIntervalsToNanoseconds) {
  Cell cell;
  RedisCell redis_cell;
  // With 600 million units per second, each takes 1.67 ns; redis-cell counts 1 ns.
  const Parameters p{1'799'999'999, 600'000'000, 1};
  const Answer there =
      redis_cell.Throttle("k", p.max_burst, p.count, p.period, 1'800'000'000, cell.now_us());
  EXPECT_EQ(there[4], 2);
  EXPECT_EQ(cell.Throttle("k", p, 1'800'000'000), "[0,1800000000,0,-1,3]");
}

TEST(RedisCellTest, RejectsInvalidArguments) {
  Cell cell;
  for (const auto& words : std::vector<std::vector<std::string>>{
           {"k", "4", "1", "1", "-1"},  // A negative quantity would give quota back.
           {"k", "-1", "1", "1"},       // redis-cell denies every call with such a burst.
           {"k", "4", "-1", "1"},       // A negative rate would make time run backwards.
           {"k", "4", "1", "-1"},
           {"k", "4", "0", "1"},  // redis-cell also replies with an error.
           {"k", "4", "1", "0"},
           {"", "4", "1", "1"},             // All callers without a key would share a quota.
           {"k", "0", "1", "3155760000"},   // 100 years.
           {"k", "9999", "1", "31622400"},  // 10,016 years until the key is full.
           {"k", "2999999999", "1000000", "1", "2999999999"}}) {
    std::string command = "*" + std::to_string(words.size() + 1) + "\r\n$11\r\nCL.THROTTLE\r\n";
    for (const std::string& word : words) {
      command += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
    }
    EXPECT_EQ(cell.Send(command).substr(0, 5), "-ERR ") << command;
  }
  EXPECT_EQ(cell.Throttle("k", {4, 1, 1}, 0), "[0,5,5,-1,0]");
}

TEST(RedisCellTest, AcceptsKeysOfAnyBytesUpTo8KiB) {
  Cell cell;
  EXPECT_EQ(cell.Throttle("\xff\xfe", {4, 1, 1}, 1), "[0,5,4,-1,1]");
  EXPECT_EQ(cell.Throttle(std::string(8192, 'k'), {4, 1, 1}, 1), "[0,5,4,-1,1]");
  EXPECT_EQ(cell.Throttle(std::string(8193, 'k'), {4, 1, 1}, 1).substr(0, 5), "-ERR ");
}

}  // namespace
}  // namespace tidegate::service
