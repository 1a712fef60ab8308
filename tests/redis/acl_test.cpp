// SPDX-License-Identifier: Apache-2.0
// Checks the ACL user that docs/redis.md documents. Its permissions suffice for everything that
// Tidegate does on one Redis, behind sentinels and in a cluster, and no permission is superfluous.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>

#include "redis/cluster_case.hpp"
#include "redis/documented_acl.hpp"
#include "redis/redis_sentinels.hpp"
#include "redis/slot_move.hpp"
#include "support/wait.hpp"

namespace tidegate::redis_test {
namespace {

using namespace std::chrono_literals;

constexpr const char* kUser = "tidegate:pw@";
constexpr const char* kRules = R"(api: { inline_quotas: true }
rules:
  - { id: token_bucket, match: { path: /t }, per: client_ip, limit: 3/24h, algorithm: token_bucket }
  - { id: gcra, match: { path: /t }, per: host, limit: 3/24h, algorithm: gcra }
  - { id: sliding_log, match: { path: /t }, per: host, limit: 3/24h, algorithm: sliding_log }
  - { id: sliding_window, match: { path: /t }, per: client_ip, limit: 3/24h, algorithm: sliding_window }
  - { id: fixed_window, match: { path: /t }, per: header:x-user, limit: 3/24h, algorithm: fixed_window }
  - { id: concurrency, match: { path: /t }, per: client_ip, limit: 2/30s, algorithm: concurrency }
)";

class AclTest : public ClusterCase {
 protected:
  void StartFleet(const std::string& url, int nodes = 3, std::string_view more = {}) {
    std::string store = "store: { url: \"" + url + "\", deadline: 500ms, on_failure: closed";
    store.append(more).append(" }\n");
    fleet_ = std::make_unique<Fleet>(
        Fleet::Options{.yaml = store + kRules, .nodes = nodes, .resp = true});
  }
  void AwaitFleet() {
    for (std::size_t node = 0; node < fleet_->size(); ++node) {
      ASSERT_TRUE(test::WaitUntil([&] {
        return (*fleet_)[node].Metric("tidegate_fleet_nodes") == 3;
      })) << fleet_->Output();
    }
  }
  Answer Do(std::size_t node, std::string_view what, std::string_view rule,
            const std::string& identity, std::string_view more = {}) {
    std::string body = R"({"rule":")" + std::string(rule) + R"(","identity":")" + identity + '"';
    body.append(more).append("}");
    return redis_test::Ask((*fleet_)[node].api(), what, body);
  }
  /// Returns an identity for the source that `rule` names first in `per`: an IP address or a host
  /// name.
  static std::string IdentityFor(std::string_view rule, int round) {
    const std::string number = std::to_string(round);
    const bool address =
        rule == "token_bucket" || rule == "sliding_window" || rule == "concurrency";
    return address ? "10.1.0." + number : "h" + number + ".example";
  }

  /// Sends every kind of request that exists, with identities that belong to `round`.
  void DoEverything(int round) {
    for (const std::string rule :
         {"token_bucket", "gcra", "sliding_log", "sliding_window", "fixed_window"}) {
      SCOPED_TRACE(rule);
      CountOn(rule, IdentityFor(rule, round));
    }
    HoldLeases(IdentityFor("concurrency", round));
    // A request that matches all rules, which count it by three identities; the later requests are
    // denied.
    const std::string request = R"({"request":{"method":"GET","path":"/t","host":"h)" +
                                std::to_string(100 + round) +
                                R"(.example","client_ip":"10.2.0.1","headers":{"x-user":"u"}},)" +
                                R"("lease":"l)" + std::to_string(round) + "\"}";
    for (int i = 0; i < 4; ++i) {
      const Answer answer = redis_test::Ask((*fleet_)[1].api(), "/v1/acquire", request);
      EXPECT_TRUE(answer.status == 200 || answer.status == 429) << answer.body;
    }
    const Answer quota = (*fleet_)[2].Decide(R"({"key":"job","limit":"1000/m"})");
    EXPECT_EQ(quota.Member("decided_by"), "store") << quota.body;
    Operate("h" + std::to_string(50 + round) + ".example");
  }
  /// Sends the operations of an operator (inspect, ban, lift, reset, audit) and checks that the
  /// other nodes learn of them.
  void Operate(const std::string& host) {
    const std::string log = R"({"rule":"sliding_log","identity":")" + host + "\"}";
    const std::string bucket = R"({"rule":"gcra","identity":")" + host + "\"}";
    const auto admin = [&](std::size_t node, std::string_view what, const std::string& body) {
      Answer answer = redis_test::Ask((*fleet_)[node].admin(), what, body);
      EXPECT_EQ(answer.status, 200) << what << answer.body;
      return answer;
    };
    EXPECT_EQ(Do(0, "/v1/decide", "sliding_log", host).status, 200);
    EXPECT_EQ(admin(1, "/v1/inspect", log).Member("tracked"), "true");
    (void)admin(1, "/v1/inspect", bucket);
    (void)admin(0, "/v1/ban", bucket);
    EXPECT_TRUE(
        test::WaitUntil([&] { return Do(2, "/v1/decide", "gcra", host).status == 403; }, 1s));
    EXPECT_EQ(admin(1, "/v1/lift", bucket).Member("applied"), "true");
    EXPECT_TRUE(
        test::WaitUntil([&] { return Do(2, "/v1/decide", "gcra", host).status == 200; }, 1s));
    EXPECT_EQ(admin(1, "/v1/reset", bucket).Member("applied"), "true");
    EXPECT_NE(Fetch((*fleet_)[2].admin(), "/v1/audit").body.find("\"lift\""), std::string::npos);
  }
  /// Sends decide, peek, debit, refund and reset; checks that a denial cached by one node is
  /// dropped after a refund or reset on another.
  void CountOn(const std::string& rule, const std::string& identity) {
    EXPECT_EQ(Do(0, "/v1/decide", rule, identity).status, 200);
    EXPECT_EQ(Do(1, "/v1/decide", rule, identity).status, 200);
    EXPECT_EQ(Do(2, "/v1/peek", rule, identity).Number("remaining"), 1);
    EXPECT_EQ(Do(0, "/v1/debit", rule, identity, R"(,"cost":1)").status, 200);
    // Redis decides the first denial; then the node denies from its cache.
    EXPECT_TRUE(test::WaitUntil([&] {
      return Do(0, "/v1/decide", rule, identity).Member("decided_by") == "cache";
    })) << "node 0 caches no denial: it may not read the channel";
    EXPECT_EQ(Do(1, "/v1/refund", rule, identity, R"(,"id":"r","cost":1)").Member("applied"),
              "true");
    EXPECT_TRUE(
        test::WaitUntil([&] { return Do(0, "/v1/decide", rule, identity).status == 200; }, 1s))
        << "node 0 did not learn of the refund";
    EXPECT_EQ(Do(1, "/v1/refund", rule, identity, R"(,"id":"r","cost":1)").Member("applied"),
              "false");
    EXPECT_EQ(Do(0, "/v1/decide", rule, identity).status, 429);
    RedisClient resp((*fleet_)[2].resp());
    EXPECT_EQ(resp.Text({"TG.RESET", rule, identity}), "1");
    EXPECT_TRUE(
        test::WaitUntil([&] { return Do(0, "/v1/decide", rule, identity).status == 200; }, 1s))
        << "node 0 did not learn of the reset";
  }
  void HoldLeases(const std::string& identity) {
    const auto lease = [&](std::size_t node, std::string_view what, std::string_view name) {
      return Do(node, what, "concurrency", identity, ",\"lease\":\"" + std::string(name) + '"');
    };
    EXPECT_EQ(lease(0, "/v1/acquire", "one").status, 200);
    EXPECT_EQ(lease(1, "/v1/acquire", "two").status, 200);
    EXPECT_EQ(lease(2, "/v1/acquire", "three").status, 429);
    EXPECT_EQ(lease(2, "/v1/renew", "one").status, 200);
    EXPECT_EQ(Do(1, "/v1/peek", "concurrency", identity).status, 429);
    EXPECT_EQ(lease(0, "/v1/release", "one").Member("applied"), "true");
    EXPECT_EQ(lease(0, "/v1/release", "two").Member("applied"), "true");
    EXPECT_EQ(lease(0, "/v1/renew", "two").status, 404);
  }

  void ExpectNothingRefused() const {
    for (const char* kind : {"noperm", "noauth", "wrongpass", "other"}) {
      EXPECT_EQ(Errors(kind), 0) << kind;
    }
    EXPECT_EQ(fleet_->Output().find("NOPERM"), std::string::npos) << fleet_->Output();
  }
  static void ExpectCleanLog(RedisServer& server) {
    if (!server.running()) return;
    EXPECT_EQ(server.Text({"ACL", "LOG"}), "");
  }
  /// Checks that without `permission` at least one of the servers soon logs a refused command.
  void ExpectMissed(const std::string& permission, const std::vector<RedisServer*>& servers,
                    const std::function<void()>& act) {
    SCOPED_TRACE(permission);
    const std::vector<std::string> acl = DocumentedAcl("pw");
    EXPECT_TRUE(std::find(acl.begin(), acl.end(), '+' + permission) != acl.end())
        << "the documented ACL does not contain this permission";
    for (RedisServer* server : servers) {
      ASSERT_EQ(server->Text(acl), "OK");
      ASSERT_EQ(server->Text({"ACL", "SETUSER", "tidegate", '-' + permission}), "OK");
      ASSERT_EQ(server->Text({"ACL", "LOG", "RESET"}), "OK");
      server->Text({"CLIENT", "KILL", "USER", "tidegate"});
    }
    EXPECT_TRUE(test::WaitUntil([&] {
      act();
      return std::any_of(servers.begin(), servers.end(), [](RedisServer* server) {
        return server->Text({"ACL", "LOG"}).find("tidegate") != std::string::npos;
      });
    })) << "Redis refused no command without this permission\n"
        << Do(0, "/v1/decide", "token_bucket", "10.9.9.9").body << fleet_->Output();
    for (RedisServer* server : servers) ASSERT_EQ(server->Text(acl), "OK");
  }
};

TEST_F(AclTest, DocumentedPermissionsSufficeOnOneRedis) {
  RedisServer redis;
  ASSERT_EQ(redis.Text(DocumentedAcl("pw")), "OK");
  StartFleet("redis://" + std::string(kUser) + redis.address());
  AwaitFleet();
  DoEverything(1);
  ExpectNothingRefused();
  ExpectCleanLog(redis);
  int round = 1;
  // HELLO itself needs no permission, so the permission for it cannot be taken from the user.
  for (const std::string permission :
       {"script|load", "evalsha", "hset", "zadd", "publish", "subscribe"}) {
    ExpectMissed(permission, {&redis}, [&] {
      // A new identity in each round, so that the script has something to write.
      ++round;
      const std::string identity =
          "10.3." + std::to_string(round / 250) + '.' + std::to_string(round % 250);
      (void)Do(0, "/v1/decide", "token_bucket", identity);
      (void)Do(0, "/v1/decide", "sliding_log", identity);
      (void)Do(0, "/v1/refund", "token_bucket", identity, R"(,"id":"r")");
    });
  }
}

TEST_F(AclTest, DocumentedPermissionsSufficeWithSentinels) {
  RedisSentinels sentinels;
  for (std::size_t i = 0; i < sentinels.size(); ++i) {
    ASSERT_EQ(sentinels[i].Text(DocumentedAcl("pw")), "OK");
  }
  const std::vector<std::string> own = DocumentedSentinelAcl("pw2");
  std::string more;
  if (!own.empty()) {
    for (std::size_t i = 0; i < 3; ++i) ASSERT_EQ(sentinels.sentinel(i).Text(own), "OK");
    more = ", sentinel: { user: " + own[2] + ", password: pw2 }";
  }
  StartFleet(sentinels.url(kUser), 3, more);
  AwaitFleet();
  DoEverything(1);
  const std::size_t before = sentinels.Master();
  sentinels[before].Kill();
  ASSERT_TRUE(test::WaitUntil([&] { return sentinels.Switched(before); }, 20s));
  const std::size_t master = sentinels.Master();
  for (std::size_t node = 0; node < 3; ++node) {
    ASSERT_TRUE(test::WaitUntil([&] {
      return Do(node, "/v1/peek", "gcra", "h9.example").Member("decided_by") == "store";
    })) << fleet_->Output();
  }
  DoEverything(2);
  AwaitFleet();
  ExpectNothingRefused();
  for (std::size_t i = 0; i < sentinels.size(); ++i) ExpectCleanLog(sentinels[i]);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(sentinels.sentinel(i).Text({"ACL", "LOG"}), "");
  ExpectMissed("role", {&sentinels[master]},
               [&] { (void)Do(0, "/v1/peek", "gcra", "h9.example"); });
}

TEST_F(AclTest, DocumentedPermissionsSufficeInACluster) {
  cluster_.emplace(RedisCluster::Options{.node_timeout_ms = kNoFailoverMs});
  ASSERT_EQ(cluster_->All(DocumentedAcl("pw")), "OK");
  StartFleet(cluster_->url(kUser));
  AwaitFleet();
  // Four rounds, so that the identities cover all masters.
  for (int round = 1; round <= 4; ++round) DoEverything(round);
  std::vector<RedisServer*> servers;
  for (std::size_t i = 0; i < cluster_->size(); ++i) servers.push_back(&(*cluster_)[i]);
  // Leaves one slot half migrated: its key is on the target already and is charged there.
  const int slot = SlotOf(0);
  const auto ask = [&] { return Do(0, "/v1/debit", "token_bucket", AddressOf(0), R"(,"cost":1)"); };
  EXPECT_EQ(ask().Member("decided_by"), "store");
  SlotMove move(*cluster_, slot, 0, 1);
  move.Begin();
  EXPECT_EQ(move.MoveKeys(100), 1U);
  EXPECT_EQ(ask().Member("decided_by"), "store");
  EXPECT_GT(Errors("ask"), 0);
  ExpectNothingRefused();
  for (RedisServer* server : servers) ExpectCleanLog(*server);
  ExpectMissed("asking", servers, [&] { (void)ask(); });
  move.End();
  EXPECT_TRUE(test::WaitUntil([&] { return ask().Member("decided_by") == "store"; }));
  // Checks every permission of the documented ACL that starts with `+cluster`.
  int of_cluster = 0;
  for (const std::string& word : DocumentedAcl("pw")) {
    if (!word.starts_with("+cluster")) continue;
    ++of_cluster;
    ExpectMissed(word.substr(1), servers, [&] {
      (void)ask();
      // A redirection makes the node read the cluster's topology again.
      const std::size_t from = cluster_->MasterOf(slot);
      cluster_->MoveSlot(slot, from, (from + 1) % 3);
    });
  }
  EXPECT_GT(of_cluster, 0);
}

}  // namespace
}  // namespace tidegate::redis_test
