// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "redis/node.hpp"
#include "redis/redis_cluster.hpp"
#include "redis/slots.hpp"
#include "store/redis/redis_url.hpp"
#include "support/wait.hpp"

namespace tidegate::redis_test {

[[nodiscard]] inline Quota Of(const QuotaSpec& spec) { return Quota::Make(spec).value(); }

[[nodiscard]] inline RedisStore::Options To(const std::string& url) {
  RedisStore::Options options;
  options.redis.url = redis::ParseRedisUrl(url).value();
  options.redis.deadline = std::chrono::seconds{5};
  return options;
}

/// One node in this process on a cluster of three masters. All tests of a suite share the cluster;
/// each test uses its own identities and restores what it changed.
class ClusterNodeCase : public testing::Test {
 protected:
  static void SetUpTestSuite() { cluster_ = new RedisCluster({.masters = 3, .replicas = false}); }
  static void TearDownTestSuite() {
    delete cluster_;
    cluster_ = nullptr;
  }
  void SetUp() override {
    EXPECT_EQ(cluster_->All({"FLUSHALL"}), "OK");
    node_ = std::make_unique<Node>(To(cluster_->url()));
    node_->WaitUntilReady();
  }

  /// Returns an identity whose keys are stored on `master`.
  static const std::string& On(std::size_t master, int number = 0) {
    return TagOf(static_cast<int>(master) * 5461 + 100 + number);
  }
  static std::string Stored(std::size_t master, const std::string& key) {
    return (*cluster_)[master].Text({"HGET", key, "count"});
  }
  /// Waits until every call is finished, including the compensations of denied calls.
  void WaitUntilNoCallWaits() {
    ASSERT_TRUE(test::WaitUntil([&] {
      bool all = false;
      node_->Run([&](RedisStore& redis_store) { all = redis_store.waiting() == 0; });
      return all;
    }));
  }

  inline static RedisCluster* cluster_ = nullptr;
  std::unique_ptr<Node> node_;
};

}  // namespace tidegate::redis_test
