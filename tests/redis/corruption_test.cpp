// SPDX-License-Identifier: Apache-2.0
// Somebody writes nonsense into our keys: callers never hear of it, the state begins anew.
#include <gtest/gtest.h>

#include <iostream>
#include <random>

#include "redis/fault_case.hpp"

namespace tidegate::redis_test {
namespace {

using namespace std::chrono_literals;

struct Case {
  const char* name;
  const char* quota;
};

std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

class CorruptionTest : public FaultCase, public testing::WithParamInterface<Case> {
 protected:
  /// Our keys by now: a kind, a rule, an identity.
  std::vector<std::string> Keys() {
    std::vector<std::string> keys;
    const Reply reply = client_.Command({"KEYS", "tg:*:r:*"});
    for (std::size_t i = 0; reply && i < reply->elements; ++i) {
      keys.emplace_back(reply->element[i]->str, reply->element[i]->len);
    }
    return keys;
  }
  std::string Nonsense() {
    static const std::vector<std::string> kWords = {"",
                                                    "banana",
                                                    "-1",
                                                    "1e309",
                                                    "nan",
                                                    "inf",
                                                    "-inf",
                                                    "9007199254740993",
                                                    "99999999999999999999999",
                                                    "0x10",
                                                    "1.5",
                                                    "-9223372036854775808",
                                                    ":",
                                                    "1:",
                                                    ":1",
                                                    "1:99999999999",
                                                    std::string("\0\xff", 2),
                                                    std::string(5000, '9')};
    return kWords[random_() % kWords.size()];
  }
  void Corrupt(const std::string& key) {
    static const std::vector<std::string> kFields = {
        "tokens", "last_refill", "expires", "tat", "owed", "start", "count", "current", "previous"};
    const std::string field = kFields[random_() % kFields.size()];
    switch (random_() % 8) {
      case 0:
        client_.Text({"SET", key, Nonsense()});
        break;
      case 1:
        client_.Text({"DEL", key});
        client_.Text({"LPUSH", key, Nonsense()});
        break;
      case 2:
        client_.Text({"DEL", key});
        client_.Text({"HSET", key, field, Nonsense()});
        break;
      case 3:
        client_.Text({"HDEL", key, field});
        client_.Text({"PERSIST", key});
        break;
      case 4:
        client_.Text({"ZADD", key, "1e300", Nonsense()});
        client_.Text({"ZADD", key, "inf", "#"});
        break;
      case 5:
        client_.Text({"DEL", key});
        client_.Text({"ZADD", key, "-inf", Nonsense(), "5", "1:banana", "7", "#x"});
        break;
      default:
        client_.Text({"HSET", key, field, Nonsense()});
        break;
    }
  }

  RedisServer redis_;
  RedisClient client_ = redis_.Connect();
  std::mt19937 random_{5};
};

TEST_P(CorruptionTest, IsHealedUnnoticed) {
  const bool leases = std::string_view(GetParam().name) == "Concurrency";
  Start(redis_.url(),
        "rules: [{id: r, per: header:x-user, " + std::string(GetParam().quota) + "}]");
  FaultCase::Ask(leases ? LeaseInTurn("r", kKeys, 1ms) : DecideInTurn("r", kKeys));
  Back(SteadyMicros());
  NothingGrows();
  ASSERT_TRUE(Soon([&] { return !Keys().empty(); }));
  int corrupted = 0;
  const std::int64_t enough = load_->answered() + 4000;
  while (load_->answered() < enough) {
    for (const std::string& key : Keys()) {
      Corrupt(key);
      ++corrupted;
    }
    std::this_thread::sleep_for(1ms);
  }
  // Let every key be asked, and written, again: then none has been left without an end.
  const auto immortal = [&] {
    int count = 0;
    for (const std::string& key : Keys())
      count += static_cast<int>(client_.Text({"PTTL", key}) == "-1");
    return count;
  };
  EXPECT_TRUE(Soon([&] { return immortal() == 0; })) << immortal() << " keys without a TTL";
  const Records records = Finish();
  ExpectUnnoticed(records);
  const double healed = fleet_->Metric("tidegate_state_healed_total");
  std::cout << corrupted << " times corrupted, " << healed << " times healed\n";
  EXPECT_GT(healed, 0);
  EXPECT_EQ(Failures("badresponse"), 0) << "the two implementations must heal alike";
}

INSTANTIATE_TEST_SUITE_P(
    Algorithms, CorruptionTest,
    testing::Values(Case{"TokenBucket", "limit: 100/s, burst: 50"},
                    Case{"Gcra", "limit: 100/s, burst: 50, algorithm: gcra"},
                    Case{"SlidingLog", "limit: 50/500ms, algorithm: sliding_log"},
                    Case{"SlidingWindow", "limit: 50/500ms, algorithm: sliding_window"},
                    Case{"FixedWindow", "limit: 50/500ms, algorithm: fixed_window"},
                    Case{"Concurrency", "limit: 3/30s, algorithm: concurrency"}),
    [](const testing::TestParamInfo<Case>& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace tidegate::redis_test
