// SPDX-License-Identifier: Apache-2.0
#include "redis/clock_shim.hpp"

#include <gtest/gtest.h>

#include <sstream>

namespace tidegate::redis_test {
namespace {

using namespace std::chrono_literals;

double RedisSeconds(RedisServer& redis, const std::vector<std::string>& command = {"TIME"}) {
  std::istringstream text(redis.Text(command));
  double seconds = 0;
  double micros = 0;
  text >> seconds >> micros;
  return seconds + micros / 1e6;
}

double SystemSeconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

TEST(ClockShimTest, StepsRedisClockForwardAndBack) {
  ClockShim clock;
  RedisServer redis({.environment = clock.environment()});
  EXPECT_NEAR(RedisSeconds(redis) - SystemSeconds(), 0, 2);
  for (const auto offset : {3600s, -3600s, 5s, 0s}) {
    clock.Set(offset);
    const double expected = static_cast<double>(offset.count());
    EXPECT_NEAR(RedisSeconds(redis) - SystemSeconds(), expected, 2);
    EXPECT_NEAR(RedisSeconds(redis, {"EVAL", "return redis.call('TIME')", "0"}) - SystemSeconds(),
                expected, 2);
  }
}

TEST(ClockShimTest, KeysExpireByTheSteppedClock) {
  ClockShim clock;
  RedisServer redis({.environment = clock.environment()});
  EXPECT_EQ(redis.Text({"SET", "a", "1", "EX", "60"}), "OK");
  EXPECT_EQ(redis.Text({"GET", "a"}), "1");
  clock.Step(1h);
  EXPECT_EQ(redis.Text({"GET", "a"}), "(nil)");
}

}  // namespace
}  // namespace tidegate::redis_test
