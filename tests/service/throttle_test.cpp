// SPDX-License-Identifier: Apache-2.0
// Tests CL.THROTTLE with replies that were computed by hand from the documentation of redis-cell. T
// is the time in which one unit is refilled, period / count; a key is full when it has nothing left
// to refill.
#include <gtest/gtest.h>

#include <vector>

#include "service/fixture.hpp"
#include "support/resp_client.hpp"

namespace tidegate::service {
namespace {

using namespace std::chrono_literals;

struct Step {
  Micros later;  ///< Time since the previous step.
  std::vector<std::string_view> arguments;
  std::string_view answer;  ///< limited, limit, remaining, retry after, reset after.
};
struct Story {
  const char* name;
  std::vector<Step> steps;
};

class ThrottleTest : public testing::TestWithParam<Story> {};

TEST_P(ThrottleTest, AnswersAsRedisCellDoes) {
  Config config = Service::ConfigOf("rules: []");
  config.listen.resp = "127.0.0.1:0";
  Service service(config);
  test::RespClient client(service.server().resp());
  int number = 0;
  for (const Step& step : GetParam().steps) {
    service.Advance(step.later);
    std::string command =
        "*" + std::to_string(step.arguments.size() + 2) + "\r\n$11\r\nCL.THROTTLE\r\n$1\r\nk\r\n";
    for (const std::string_view argument : step.arguments) {
      command += "$" + std::to_string(argument.size()) + "\r\n" + std::string(argument) + "\r\n";
    }
    client.Send(command);
    EXPECT_EQ(client.Read(), step.answer) << "step " << ++number;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Stories, ThrottleTest,
    testing::Values(
        // The example in the documentation of redis-cell: 30 in 60 s, so T = 2 s, with a burst of
        // 15 in addition.
        Story{"DocumentedExample", {{0s, {"15", "30", "60", "1"}, "[0,16,15,-1,2]"}}},
        Story{"QuantityIsOneIfNotGiven", {{0s, {"15", "30", "60"}, "[0,16,15,-1,2]"}}},
        // T = 1 s: three at once (2 + 1), then one per second.
        Story{"BurstThenRate",
              {{0s, {"2", "1", "1"}, "[0,3,2,-1,1]"},
               {0s, {"2", "1", "1"}, "[0,3,1,-1,2]"},
               {0s, {"2", "1", "1"}, "[0,3,0,-1,3]"},
               {0s, {"2", "1", "1"}, "[1,3,0,1,3]"},
               // 1 us before the second ends: 0.000001 s are 0 milliseconds.
               {999'999us, {"2", "1", "1"}, "[1,3,0,0,2]"},
               {1us, {"2", "1", "1"}, "[0,3,0,-1,3]"}}},
        // Without a burst: one call, and the next one after T = 3 s.
        Story{"NoBurst",
              {{0s, {"0", "1", "3"}, "[0,1,0,-1,3]"},
               {0s, {"0", "1", "3"}, "[1,1,0,3,3]"},
               {2s, {"0", "1", "3"}, "[1,1,0,1,1]"},
               {1s, {"0", "1", "3"}, "[0,1,0,-1,3]"}}},
        // T = 400 ms. After one call the key is full in 0.4 s, rounded up to 1; after two in 0.8 s,
        // also 1; after three in 1.2 s, which is 2.
        Story{"SecondsAreRoundedUp",
              {{0s, {"2", "5", "2"}, "[0,3,2,-1,1]"},
               {0s, {"2", "5", "2"}, "[0,3,1,-1,1]"},
               {0s, {"2", "5", "2"}, "[0,3,0,-1,2]"},
               {0s, {"2", "5", "2"}, "[1,3,0,1,2]"},
               // 0.2 s later: 0.2 s to wait and exactly 1.0 s until the key is full, so 1 is not
               // rounded up.
               {200ms, {"2", "5", "2"}, "[1,3,0,1,1]"}}},
        // T = 1.0004 s, written as 10000 in 10004 s because the period must be whole seconds. Less
        // than a millisecond does not count: 1.0004 s are 1.
        Story{"IgnoresTimesBelowAMillisecond", {{0s, {"9", "10000", "10004"}, "[0,10,9,-1,1]"}}},
        // T = 1 s. Calls for several units at once, and for more than are left.
        Story{"QuantityAboveOne",
              {{0s, {"9", "1", "1", "4"}, "[0,10,6,-1,4]"},
               {0s, {"9", "1", "1", "7"}, "[1,10,6,1,4]"},
               {0s, {"9", "1", "1", "6"}, "[0,10,0,-1,10]"},
               {0s, {"9", "1", "1", "5"}, "[1,10,0,5,10]"},
               {4s, {"9", "1", "1", "5"}, "[1,10,4,1,6]"},
               {1s, {"9", "1", "1", "5"}, "[0,10,0,-1,10]"}}},
        // A quantity above the capacity: retry after is -1, and nothing is charged.
        Story{"QuantityAboveCapacityNeverFits",
              {{0s, {"4", "1", "1", "6"}, "[1,5,5,-1,0]"},
               {0s, {"4", "1", "1", "5"}, "[0,5,0,-1,5]"},
               {0s, {"4", "1", "1", "6"}, "[1,5,0,-1,5]"}}},
        // A quantity of zero always fits and charges nothing.
        Story{"QuantityZeroChargesNothing",
              {{0s, {"4", "1", "1", "0"}, "[0,5,5,-1,0]"},
               {0s, {"4", "1", "1", "3"}, "[0,5,2,-1,3]"},
               {0s, {"4", "1", "1", "0"}, "[0,5,2,-1,3]"},
               {0s, {"4", "1", "1", "2"}, "[0,5,0,-1,5]"},
               {0s, {"4", "1", "1", "0"}, "[0,5,0,-1,5]"},
               {1500ms, {"4", "1", "1", "0"}, "[0,5,1,-1,4]"}}},
        // 3 in 1 s: T is a third of a second, which has no exact decimal fraction. Three of them
        // are exactly one second.
        Story{"Thirds",
              {{0s, {"2", "3", "1", "3"}, "[0,3,0,-1,1]"},
               {333'333us, {"2", "3", "1"}, "[1,3,0,0,1]"},
               {1us, {"2", "3", "1"}, "[0,3,0,-1,1]"},
               {666'665us, {"2", "3", "1", "2"}, "[1,3,1,0,1]"},
               {1us, {"2", "3", "1", "2"}, "[0,3,0,-1,1]"}}},
        // After a long time the key is full and no fuller.
        Story{"FullKeyGetsNoFuller",
              {{0s, {"1", "1", "60", "2"}, "[0,2,0,-1,120]"},
               {1h, {"1", "1", "60", "0"}, "[0,2,2,-1,0]"},
               {0s, {"1", "1", "60"}, "[0,2,1,-1,60]"}}},
        // Another limit for the same key keeps what was charged, as time until the key is full.
        Story{"ChangedLimitKeepsDebt",
              {{0s, {"9", "1", "1", "10"}, "[0,10,0,-1,10]"},
               {0s, {"19", "1", "1", "0"}, "[0,20,10,-1,10]"}}}),
    [](const auto& of) { return std::string(of.param.name); });

struct Bad {
  const char* name;
  std::vector<std::string_view> arguments;
};
class BadThrottleTest : public testing::TestWithParam<Bad> {};

TEST_P(BadThrottleTest, RepliesWithErrorAndChargesNothing) {
  Config config = Service::ConfigOf("rules: []");
  config.listen.resp = "127.0.0.1:0";
  Service service(config);
  test::RespClient client(service.server().resp());
  std::string command =
      "*" + std::to_string(GetParam().arguments.size() + 1) + "\r\n$11\r\nCL.THROTTLE\r\n";
  for (const std::string_view argument : GetParam().arguments) {
    command += "$" + std::to_string(argument.size()) + "\r\n" + std::string(argument) + "\r\n";
  }
  client.Send(command);
  EXPECT_EQ(client.Read().substr(0, 5), "-ERR ");
  EXPECT_EQ(client.Ask({"CL.THROTTLE", "k", "4", "1", "1", "0"}), "[0,5,5,-1,0]");
}

INSTANTIATE_TEST_SUITE_P(
    Table, BadThrottleTest,
    testing::Values(
        Bad{"NoArguments", {}}, Bad{"TooFew", {"k", "4", "1"}},
        Bad{"TooMany", {"k", "4", "1", "1", "1", "1"}}, Bad{"EmptyKey", {"", "4", "1", "1"}},
        Bad{"RateZero", {"k", "4", "0", "1"}}, Bad{"PeriodZero", {"k", "4", "1", "0"}},
        Bad{"NegativeBurst", {"k", "-1", "1", "1"}}, Bad{"NegativeRate", {"k", "4", "-1", "1"}},
        Bad{"NegativePeriod", {"k", "4", "1", "-1"}},
        Bad{"NegativeQuantity", {"k", "4", "1", "1", "-1"}},
        Bad{"NotANumber", {"k", "x", "1", "1"}}, Bad{"Float", {"k", "4", "1.5", "1"}},
        Bad{"Nan", {"k", "4", "nan", "1"}}, Bad{"HugeFloat", {"k", "4", "1e309", "1"}},
        Bad{"Quantity2To63", {"k", "4", "1", "1", "9223372036854775808"}},
        Bad{"Blank", {"k", "4", " 1", "1"}}, Bad{"TwoSigns", {"k", "4", "+-1", "1"}},
        Bad{"Empty", {"k", "4", "", "1"}}, Bad{"AHundredYears", {"k", "4", "1", "3155760000"}}),
    [](const auto& of) { return std::string(of.param.name); });

}  // namespace
}  // namespace tidegate::service
