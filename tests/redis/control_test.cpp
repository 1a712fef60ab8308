// SPDX-License-Identifier: Apache-2.0
// What an operator says to one node of a fleet, as the others see it.
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
    // Connections are spread over the reactors by chance: some of each.
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      for (int c = 0; c < 6; ++c) {
        clients_[i].push_back(std::make_unique<service::HttpClient>(nodes_[i]->api()));
      }
    }
  }

  /// The status that every connection of every node gets; 0: they differ.
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
  /// How long it took until all of them answer so; the test fails after 5 s.
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
  /// All of them have the denial in their caches.
  void DenyEverywhere() {
    (void)Until(429);
    double hits = 0;
    for (int i = 0; i < 100 && hits < 18; ++i) {
      (void)Everywhere();
      hits = 0;
      for (auto& node : nodes_) hits += node->Metric("tidegate_cache_hits_total");
    }
    EXPECT_GE(hits, 18) << "denials are answered from caches";
  }

  RedisServer redis_;
  std::array<std::unique_ptr<Service>, 3> nodes_;
  std::array<std::vector<std::unique_ptr<service::HttpClient>>, 3> clients_;
};

TEST_F(ControlTest, BanAndItsEndReachAllNodesWithinASecond) {
  ASSERT_EQ(AskAdmin(*nodes_[0], "/v1/ban", Alice()).status, 200);
  EXPECT_LT(Until(403), 1s);
  ASSERT_TRUE(AskAdmin(*nodes_[1], "/v1/lift", Alice()).Json().at("applied").as_bool());
  EXPECT_LT(Until(429), 1s) << "the two that the bucket held are taken meanwhile";
}

TEST_F(ControlTest, ResetReachesEveryDenialCache) {
  DenyEverywhere();
  const auto began = Clock::now();
  ASSERT_TRUE(AskAdmin(*nodes_[0], "/v1/reset", Alice()).Json().at("applied").as_bool());
  // Two units are there again: whoever asks must find them, and not what was remembered. A look
  // takes nothing, but only who asks Redis has seen it: each connection of each node, so.
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
  EXPECT_LT(Clock::now() - began, 2s) << "each of 18 had a reset of its own to wait for";
}

TEST_F(ControlTest, OverrideAndItsEndReachEveryDenialCache) {
  DenyEverywhere();
  ASSERT_EQ(
      AskAdmin(*nodes_[0], "/v1/override", Alice(R"(,"limit":"100000/h","burst":100000)")).status,
      200);
  // What is left is carried over, none; more comes by the new rate at once: 27 a second.
  const auto began = Clock::now();
  std::array<int, 3> passed{};
  while (*std::min_element(passed.begin(), passed.end()) == 0 && Clock::now() - began < 5s) {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (passed[i] != 0) continue;  // It would take units that the other nodes wait for.
      const HttpResponse answer = nodes_[i]->Decide(Alice());
      if (answer.status == 200 && answer.Json().at("limit").to_number<int>() == 100000) {
        ++passed[i];
      }
    }
  }
  EXPECT_LT(Clock::now() - began, 1s);
  ASSERT_EQ(AskAdmin(*nodes_[1], "/v1/allow", Alice()).status, 200) << "one replaces the other";
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
  // A cached denial lasts 3 s. A run in which the machine took longer than that shows nothing.
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
  EXPECT_TRUE(quick) << "this machine is too busy to show anything";
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

TEST_F(ControlTest, OverridesEndByTheClockOfRedis) {
  ASSERT_EQ(AskAdmin(*nodes_[0], "/v1/ban", Alice(R"(,"ttl":"400ms")")).status, 200);
  EXPECT_LT(Until(403), 400ms) << test::kTiming;
  // The services' own clocks do not move by themselves here: what is left is reported when the
  // table is read, and is up when they say so.
  for (auto& node : nodes_) node->Advance(400ms);
  for (auto& node : nodes_) EXPECT_NE(node->Decide(Alice()).status, 403);
  // And from Redis it goes with the next change.
  const auto began = Clock::now();
  while (Clock::now() - began < 410ms) std::this_thread::yield();
  ASSERT_EQ(AskAdmin(*nodes_[0], "/v1/ban", ByRule("r", "bob")).status, 200);
  EXPECT_EQ(redis_.Text({"HLEN", "tg:overrides:{fleet}"}), "2") << "bob's, and the version";
}

TEST_F(ControlTest, PollsTwiceASecondWithoutASubscription) {
  // Whoever may not read the channel hears nothing.
  redis_.Text({"ACL", "SETUSER", "default", "resetchannels"});
  // Connections that were subscribed are closed by that.
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

TEST_F(ControlTest, BansHoldDuringAnOutage) {
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
