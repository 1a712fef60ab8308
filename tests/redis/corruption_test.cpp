// SPDX-License-Identifier: Apache-2.0
// Another client corrupts Tidegate's keys in Redis: callers see no error, and a corrupt key starts
// with a fresh state.
#include <gtest/gtest.h>

#include <iostream>
#include <random>

#include "redis/fault_case.hpp"
#include "support/wait.hpp"

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
  /// Returns the keys of rule `r` that exist now, named `tg:<kind>:r:<identity>`.
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
    const std::string& field = kFields[random_() % kFields.size()];
    switch (random_() % 8) {
      case 0: client_.Text({"SET", key, Nonsense()}); break;
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
      default: client_.Text({"HSET", key, field, Nonsense()}); break;
    }
  }

  RedisServer redis_;
  RedisClient client_ = redis_.Connect();
  std::mt19937 random_{5};
};

TEST_P(CorruptionTest, HealsKeysWithoutErrors) {
  const bool leases = std::string_view(GetParam().name) == "Concurrency";
  Start(redis_.url(), "rules: [{id: r, per: header:x-user, " + std::string(GetParam().quota) + "}]",
        1, kPatient);
  FaultCase::StartLoad(leases ? LeaseInTurn("r", kKeys, 1ms) : DecideInTurn("r", kKeys));
  WaitUntilStoreAnswers(SteadyMicros());
  RecordResourceBaseline();
  ASSERT_TRUE(test::WaitUntil([&] { return !Keys().empty(); }));
  int corrupted = 0;
  const std::int64_t enough = load_->answered() + 4000;
  while (load_->answered() < enough) {
    for (const std::string& key : Keys()) {
      Corrupt(key);
      ++corrupted;
    }
    std::this_thread::sleep_for(1ms);
  }
  // Waits until the load has charged, and so written, every key again: none is left without a TTL.
  const auto immortal = [&] {
    int count = 0;
    for (const std::string& key : Keys())
      count += static_cast<int>(client_.Text({"PTTL", key}) == "-1");
    return count;
  };
  EXPECT_TRUE(test::WaitUntil([&] { return immortal() == 0; }))
      << immortal() << " keys without a TTL";
  const Records records = Finish();
  ExpectUnnoticed(records);
  const double healed = fleet_->Metric("tidegate_state_healed_total");
  std::cout << corrupted << " times corrupted, " << healed << " times healed\n";
  EXPECT_GT(healed, 0);
  EXPECT_EQ(Failures("badresponse"), 0) << "the two implementations must heal alike";
}

TEST_P(CorruptionTest, RestoresMissingTtl) {
  const bool leases = std::string_view(GetParam().name) == "Concurrency";
  Start(redis_.url(), "rules: [{id: r, per: header:x-user, " + std::string(GetParam().quota) + "}]",
        1, kPatient);
  int requests = 0;
  const auto ask = [&](int identity) {
    const std::string who = R"({"rule":"r","identity":")" + std::to_string(identity);
    const Answer answer =
        leases ? redis_test::Ask((*fleet_)[0].api(), "/v1/acquire",
                                 who + R"(","lease":"l)" + std::to_string(++requests) + "\"}")
               : (*fleet_)[0].Decide(who + "\"}");
    EXPECT_EQ(answer.status, 200) << answer.body;
  };
  ASSERT_TRUE(test::WaitUntil([&] { return (*fleet_)[0].Metric("tidegate_redis_connected") > 0; }));
  // The field `expires` of a hash stores when its TTL ends. Another client may write anything into
  // it.
  int identity = 0;
  for (const std::string mark : {"", "1800000000000001", "9007199254740992", "1e300", "banana"}) {
    ask(++identity);
    std::vector<std::string> keys = Keys();
    ASSERT_EQ(keys.size(), 1U);
    if (!mark.empty() && redis_.Text({"TYPE", keys[0]}) == "hash") {
      redis_.Text({"HSET", keys[0], "expires", mark});
    }
    ASSERT_EQ(redis_.Text({"PERSIST", keys[0]}), "1");
    // If `expires` was left unchanged, the script trusts it until that time and then sets a new
    // TTL.
    EXPECT_TRUE(test::WaitUntil(
        [&] {
          if (Keys().empty()) return true;
          if (redis_.Text({"PTTL", keys[0]}) != "-1") return true;
          std::this_thread::sleep_for(200ms);
          ask(identity);
          return false;
        },
        5s))
        << "the key has no TTL; its field `expires` is '" << mark << "'";
    redis_.Text({"DEL", keys[0]});
  }
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
