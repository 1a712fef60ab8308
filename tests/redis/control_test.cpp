// SPDX-License-Identifier: Apache-2.0
// Tests that bans, overrides and resets made on one node of a fleet take effect on the other nodes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <thread>

#include "redis/redis_server.hpp"
#include "service/admin_case.hpp"
#include "support/timing.hpp"

namespace tidegate::redis_test {
namespace {

using namespace std::chrono_literals;
using service::AskAdmin;
using service::ByRule;
using service::HttpResponse;
using service::ReadAdmin;
using service::Service;
using testing::HasSubstr;

using Clock = std::chrono::steady_clock;

std::string Yaml(int port) {
  return "store: { url: \"redis://127.0.0.1:" + std::to_string(port) +
         "\", on_failure: closed, deadline: 5s, connect_timeout: 5s }\n"
         "rules:\n"
         "  - { id: r, per: header:x-user, limit: 2/h }\n"
         "  - { id: log, per: header:x-user, limit: 2/h, algorithm: sliding_log }\n";
}

std::string Alice(std::string_view more = {}) { return ByRule("r", "alice", more); }

/// Three nodes of two reactors each on one Redis.
class ControlTest : public testing::Test {
 protected:
  ControlTest() {
    for (auto& node : nodes_) node = std::make_unique<Service>(Yaml(redis_.port()), 2);
    // Connections are spread over the two reactors at random, so six of them per node reach both.
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      for (int c = 0; c < 6; ++c) {
        clients_[i].push_back(std::make_unique<service::HttpClient>(nodes_[i]->api()));
      }
    }
  }

  /// Sends one decide request on every connection of every node. Returns the status that all of
  /// them get; 0: the statuses differ.
  int Everywhere() {
    int all = -1;
    for (auto& of_node : clients_) {
      for (auto& client : of_node) {
        const int status = client->Ask("/v1/decide", Alice()).status;
        if (all != -1 && status != all) return 0;
        all = status;
      }
    }
    return all;
  }
  /// Waits until every connection gets `status`, and returns how long it took. The test fails after
  /// 5 s.
  std::chrono::milliseconds Until(int status) {
    const auto began = Clock::now();
    while (Everywhere() != status) {
      if (Clock::now() - began > 5s) {
        ADD_FAILURE() << "not " << status << " everywhere";
        break;
      }
    }
    return std::chrono::floor<std::chrono::milliseconds>(Clock::now() - began);
  }
  /// Waits until every reactor has the denial in its cache.
  void DenyEverywhere() {
    (void)Until(429);
    double hits = 0;
    for (int i = 0; i < 100 && hits < 18; ++i) {
      (void)Everywhere();
      hits = 0;
      for (auto& node : nodes_) hits += node->Metric("tidegate_cache_hits_total");
    }
    EXPECT_GE(hits, 18) << "cache hits; denials must come from the caches";
  }

  RedisServer redis_;
  std::array<std::unique_ptr<Service>, 3> nodes_;
  std::array<std::vector<std::unique_ptr<service::HttpClient>>, 3> clients_;
};

TEST_F(ControlTest, BanAndLiftReachAllNodesWithinASecond) {
  ASSERT_EQ(AskAdmin(*nodes_[0], "/v1/ban", Alice()).status, 200);
  EXPECT_LT(Until(403), 1s);
  ASSERT_TRUE(AskAdmin(*nodes_[1], "/v1/lift", Alice()).Json().at("applied").as_bool());
  EXPECT_LT(Until(429), 1s) << "the calls before the ban used up both units";
}

TEST_F(ControlTest, ResetReachesEveryDenialCache) {
  DenyEverywhere();
  const auto began = Clock::now();
  ASSERT_TRUE(AskAdmin(*nodes_[0], "/v1/reset", Alice()).Json().at("applied").as_bool());
  // After the reset two units are available, so the next decision on every connection of every node
  // must come from the store and not from a cached denial. That decision takes a unit, so the key
  // is reset again after it.
  for (auto& of_node : clients_) {
    for (auto& client : of_node) {
      std::string decided_by = "cache";
      while (decided_by == "cache" && Clock::now() - began < 5s) {
        decided_by = client->Ask("/v1/decide", Alice()).Json().at("decided_by").as_string().c_str();
        if (decided_by == "cache") continue;
        (void)AskAdmin(*nodes_[1], "/v1/reset", Alice());
      }
      EXPECT_EQ(decided_by, "store");
    }
  }
  EXPECT_LT(Clock::now() - began, 2s) << "time for the resets of all 18 connections";
}

TEST_F(ControlTest, OverrideAndLiftReachEveryDenialCache) {
  DenyEverywhere();
  ASSERT_EQ(
      AskAdmin(*nodes_[0], "/v1/override", Alice(R"(,"limit":"100000/h","burst":100000)")).status,
      200);
  // The override carries over what remains, which is 0. The new rate refills 27 units per second.
  const auto began = Clock::now();
  std::array<int, 3> passed{};
  while (*std::min_element(passed.begin(), passed.end()) == 0 && Clock::now() - began < 5s) {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (passed[i] != 0) continue;  // The request would take units that the other nodes wait for.
      const HttpResponse answer = nodes_[i]->Decide(Alice());
      if (answer.status == 200 && answer.Json().at("limit").to_number<int>() == 100000) {
        ++passed[i];
      }
    }
  }
  EXPECT_LT(Clock::now() - began, 1s);
  ASSERT_EQ(AskAdmin(*nodes_[1], "/v1/allow", Alice()).status, 200)
      << "the allowance replaces the override";
  EXPECT_LT(Until(200), 1s);
  ASSERT_EQ(AskAdmin(*nodes_[2], "/v1/lift", Alice()).status, 200);
  EXPECT_LT(Until(429), 1s);
}

TEST(ControlCacheTest, BanDropsCachedDenialsOfItsKeyOnly) {
  RedisServer redis;
  Service service(Yaml(redis.port()), 1);
  const auto decided_by = [&](const std::string& who) {
    return std::string(service.Decide(ByRule("r", who)).Json().at("decided_by").as_string());
  };
  // A cached denial lasts 3 s, so a run that takes longer proves nothing.
  bool quick = false;
  for (int run = 0; run < 10 && !quick; ++run) {
    const std::string banned = "banned-" + std::to_string(run);
    const std::string other = "other-" + std::to_string(run);
    const auto began = Clock::now();
    for (const std::string& who : {banned, other}) {
      for (int i = 0; i < 3; ++i) EXPECT_EQ(decided_by(who), "store");
    }
    const std::string before = decided_by(banned) + decided_by(other);
    ASSERT_EQ(AskAdmin(service, "/v1/ban", ByRule("r", banned)).status, 200);
    ASSERT_EQ(service.Decide(ByRule("r", banned)).status, 403);
    ASSERT_EQ(AskAdmin(service, "/v1/lift", ByRule("r", banned)).status, 200);
    const std::string after = decided_by(banned) + decided_by(other);
    quick = Clock::now() - began < 2s;
    if (!quick) continue;
    EXPECT_EQ(before, "cachecache");
    EXPECT_EQ(after, "storecache");
  }
  EXPECT_TRUE(quick) << "the machine was too busy: no run took less than 2 s";
}

TEST_F(ControlTest, StartingNodeReadsOverrides) {
  ASSERT_EQ(AskAdmin(*nodes_[0], "/v1/ban", Alice(R"(,"reason":"scraping","ttl":"1h")")).status,
            200);
  Service late(Yaml(redis_.port()));
  const auto began = Clock::now();
  while (late.Decide(Alice()).status != 403 && Clock::now() - began < 5s) {
  }
  EXPECT_LT(Clock::now() - began, 1s);
  const HttpResponse overrides = ReadAdmin(late, "/v1/overrides");
  EXPECT_THAT(overrides.body, HasSubstr(R"("reason":"scraping")"));
  EXPECT_THAT(overrides.body, HasSubstr(R"("left_ms":35)"));
  EXPECT_THAT(ReadAdmin(late, "/v1/audit").body, HasSubstr(R"("action":"ban")"));
}

TEST_F(ControlTest, OverridesExpireByTheClockOfRedis) {
  ASSERT_EQ(AskAdmin(*nodes_[0], "/v1/ban", Alice(R"(,"ttl":"400ms")")).status, 200);
  EXPECT_LT(Until(403), 400ms) << test::kTiming;
  // In this test, the clocks of the services move only by Advance(). A node learns the remaining
  // time of a ban when it reads the table, so the ban ends when its clock has moved by that time.
  for (auto& node : nodes_) node->Advance(400ms);
  for (auto& node : nodes_) EXPECT_NE(node->Decide(Alice()).status, 403);
  // The next change removes the expired ban from Redis.
  const auto began = Clock::now();
  while (Clock::now() - began < 410ms) std::this_thread::yield();
  ASSERT_EQ(AskAdmin(*nodes_[0], "/v1/ban", ByRule("r", "bob")).status, 200);
  EXPECT_EQ(redis_.Text({"HLEN", "tg:overrides:{fleet}"}), "2")
      << "only bob's ban and the version are left";
}

TEST_F(ControlTest, PollsOverridesTwicePerSecondWithoutSubscription) {
  // A user without access to the channel receives no messages.
  redis_.Text({"ACL", "SETUSER", "default", "resetchannels"});
  // Redis closes the subscribed connections when it removes the access.
  const auto began = Clock::now();
  while (AskAdmin(*nodes_[0], "/v1/ban", Alice()).status != 200 && Clock::now() - began < 5s) {
  }
  EXPECT_LT(Until(403), 1s);
}

TEST_F(ControlTest, UnansweredChangeIsNotReportedAsDone) {
  redis_.Kill();
  for (const char* path : {"/v1/ban", "/v1/lift", "/v1/reset", "/v1/inspect"}) {
    const HttpResponse answer = AskAdmin(*nodes_[0], path, Alice());
    EXPECT_EQ(answer.status, 503) << path << answer.body;
  }
  EXPECT_EQ(ReadAdmin(*nodes_[0], "/v1/audit").status, 503);
}

TEST_F(ControlTest, BansDenyDuringAnOutage) {
  ASSERT_EQ(AskAdmin(*nodes_[0], "/v1/ban", Alice()).status, 200);
  EXPECT_LT(Until(403), 1s);
  redis_.Kill();
  EXPECT_EQ(Everywhere(), 403);
  EXPECT_THAT(ReadAdmin(*nodes_[2], "/v1/overrides").body, HasSubstr("\"ban\""));
}

TEST_F(ControlTest, InspectShowsStateInRedis) {
  (void)nodes_[0]->Decide(Alice());
  const auto bucket = AskAdmin(*nodes_[1], "/v1/inspect", Alice()).Json();
  EXPECT_EQ(bucket.at("remaining").to_number<int>(), 1);
  EXPECT_TRUE(bucket.at("tracked").as_bool());
  const std::string key(bucket.at("stored_as").as_string());
  EXPECT_EQ(redis_.Text({"EXISTS", key.c_str()}), "1");
  EXPECT_THAT(boost::json::serialize(bucket), HasSubstr(R"({"name":"tokens",)"));
  (void)nodes_[0]->Decide(ByRule("log", "alice"));
  const auto log = AskAdmin(*nodes_[1], "/v1/inspect", ByRule("log", "alice")).Json();
  EXPECT_EQ(log.at("state").as_array().size(), 1u);
  EXPECT_FALSE(
      AskAdmin(*nodes_[1], "/v1/inspect", ByRule("log", "bob")).Json().at("tracked").as_bool());
}

TEST_F(ControlTest, GarbageInRedisDoesNotAffectBans) {
  ASSERT_EQ(AskAdmin(*nodes_[0], "/v1/ban", Alice()).status, 200);
  EXPECT_LT(Until(403), 1s);
  redis_.Text(
      {"HSET", "tg:overrides:{fleet}", "x y", "1 0 nonsense", "z", "garbage", "v", "other"});
  const auto began = Clock::now();
  while (redis_.Text({"HGET", "tg:overrides:{fleet}", "v"}) == "other" &&
         Clock::now() - began < 600ms) {
    EXPECT_EQ(nodes_[1]->Decide(Alice()).status, 403);
  }
  redis_.Text({"SET", "tg:overrides:{fleet}", "not a hash"});
  ASSERT_EQ(AskAdmin(*nodes_[0], "/v1/lift", Alice()).status, 200);
  EXPECT_LT(Until(429), 1s);
}

TEST_F(ControlTest, RejectsBanWhenOverrideTableIsFull) {
  std::string fill = "for i = 1, 1000 do redis.call('HSET', KEYS[1], 'r x' .. i, '1 0 {}') end";
  redis_.Text({"EVAL", fill.c_str(), "1", "tg:overrides:{fleet}"});
  const HttpResponse full = AskAdmin(*nodes_[0], "/v1/ban", Alice());
  EXPECT_EQ(full.status, 409) << full.body;
  EXPECT_THAT(full.body, HasSubstr("lift some"));
}

}  // namespace
}  // namespace tidegate::redis_test
