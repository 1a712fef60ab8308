// SPDX-License-Identifier: Apache-2.0
// Tests the table of overrides on a real redis-server: which differences each node reports.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>

#include "redis/node.hpp"
#include "store/redis/redis_overrides.hpp"
#include "support/wait.hpp"

namespace tidegate::redis_test {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

/// A node with a table of overrides, which collects the differences that the node reports.
class RegisterNode {
 public:
  explicit RegisterNode(const RedisServer& redis) : node_(Options(redis)) {
    node_.WaitUntilReady();
    node_.Run([&](RedisStore& redis_store) {
      register_ = std::make_unique<redis::RedisOverrides>(
          node_.reactor(), redis_store.client(),
          redis::RedisOverrides::Listener{
              .on_change =
                  [this](const SharedOverrides::Delta& delta) {
                    const std::lock_guard lock(mutex_);
                    deltas_.push_back(delta);
                  },
              .on_problem = [](const std::string&) {},
              .on_restored = [this](std::size_t entries) { restored_ = entries; }});
      register_->Start();
    });
  }
  ~RegisterNode() {
    node_.Run([&](RedisStore& redis_store) {
      register_->Stop();
      redis_store.Shutdown();  // Ends the calls whose callbacks use the register.
      register_.reset();
    });
  }
  RegisterNode(const RegisterNode&) = delete;
  RegisterNode& operator=(const RegisterNode&) = delete;

  /// Stores an entry. Waits until Redis has stored it and this node has reported the change.
  void Put(const std::string& field, const std::string& value,
           std::optional<std::chrono::milliseconds> ttl = std::nullopt) {
    Wait([&](auto done) { register_->Put(field, value, ttl, "put", std::move(done)); });
  }
  void Remove(const std::string& field) {
    Wait([&](auto done) { register_->Remove(field, "remove", std::move(done)); });
  }
  /// Reads the table as if another node had published a change.
  void Poll() {
    node_.Run([&](RedisStore&) { register_->OnChanged(); });
  }
  /// Returns the fields of all differences since the last call, one text per difference: `+a=1`
  /// changed, `-a` removed.
  std::vector<std::string> Reported() {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> texts;
    for (const SharedOverrides::Delta& delta : std::exchange(deltas_, {})) {
      std::string text;
      for (const auto& entry : delta.changed) text += "+" + entry.field + "=" + entry.value;
      for (const auto& field : delta.removed) text += "-" + field;
      texts.push_back(std::move(text));
    }
    return texts;
  }
  [[nodiscard]] std::size_t restored() const { return restored_; }

 private:
  RedisStore::Options Options(const RedisServer& redis) {
    RedisStore::Options options = Node::To(redis);
    options.on_register = [this] {
      if (register_) register_->OnChanged();
    };
    return options;
  }
  template <class Start>
  void Wait(Start start) {
    std::promise<bool> done;
    node_.Run([&](RedisStore&) {
      start([&](const Result<SharedOverrides::Change>& change) {
        done.set_value(change.has_value());
      });
    });
    EXPECT_TRUE(done.get_future().get());
  }

  std::mutex mutex_;
  std::vector<SharedOverrides::Delta> deltas_;
  std::atomic<std::size_t> restored_ = 0;
  std::unique_ptr<redis::RedisOverrides> register_;
  Node node_;
};

TEST(RedisOverridesTest, EveryNodeReportsOnlyDifferences) {
  RedisServer redis;
  RegisterNode one(redis);
  RegisterNode two(redis);
  std::vector<std::string> seen;
  const auto two_sees = [&] {
    return test::WaitUntil([&] {
      for (std::string& text : two.Reported()) seen.push_back(std::move(text));
      return !seen.empty();
    });
  };
  one.Put("a", "1");
  EXPECT_THAT(one.Reported(), ElementsAre("+a=1"));
  ASSERT_TRUE(two_sees());
  EXPECT_THAT(std::exchange(seen, {}), ElementsAre("+a=1"));
  one.Put("b", "2");
  EXPECT_THAT(one.Reported(), ElementsAre("+b=2"));
  ASSERT_TRUE(two_sees());
  EXPECT_THAT(std::exchange(seen, {}), ElementsAre("+b=2"));
  two.Put("a", "3");
  ASSERT_TRUE(two_sees());
  EXPECT_THAT(std::exchange(seen, {}), ElementsAre("+a=3"));
  two.Remove("b");
  ASSERT_TRUE(two_sees());
  EXPECT_THAT(std::exchange(seen, {}), ElementsAre("-b"));
  // A node that starts later learns the whole table at once.
  RegisterNode three(redis);
  ASSERT_TRUE(test::WaitUntil([&] {
    for (std::string& text : three.Reported()) seen.push_back(std::move(text));
    return !seen.empty();
  }));
  EXPECT_THAT(seen, ElementsAre("+a=3"));
}

TEST(RedisOverridesTest, ReportsNothingIfNothingDiffers) {
  RedisServer redis;
  RegisterNode node(redis);
  // Each Remove makes a new version, which the node has read when Remove returns.
  node.Remove("unknown");
  EXPECT_THAT(node.Reported(), IsEmpty())
      << "a node that starts with an empty table must report nothing";
  node.Put("a", "1");
  EXPECT_THAT(node.Reported(), ElementsAre("+a=1"));
  node.Remove("unknown");
  EXPECT_THAT(node.Reported(), IsEmpty());
}

TEST(RedisOverridesTest, ReportsExpiredEntriesAsRemovedWithTheNextChange) {
  RedisServer redis;
  RegisterNode node(redis);
  node.Put("ending", "1", 1h);
  EXPECT_THAT(node.Reported(), ElementsAre("+ending=1"));
  // The entry began 1 ms after the epoch and ended 2 ms after it, so it has expired.
  redis.Text({"HSET", "tg:overrides:{fleet}", "ending", "1 2 1"});
  node.Put("a", "2");
  EXPECT_THAT(node.Reported(), ElementsAre("+a=2-ending"));
}

TEST(RedisOverridesTest, RestoresLostEntriesWithoutReportingChanges) {
  RedisServer redis;
  RegisterNode node(redis);
  node.Put("a", "1");
  node.Put("b", "2");
  (void)node.Reported();
  redis.Text({"FLUSHALL"});
  node.Poll();
  EXPECT_TRUE(test::WaitUntil([&] { return node.restored() == 2; }));
  EXPECT_THAT(node.Reported(), IsEmpty()) << "the overrides in force have not changed";
  EXPECT_EQ(redis.Text({"HLEN", "tg:overrides:{fleet}"}), "3") << "two entries and the version";
  node.Remove("a");
  EXPECT_THAT(node.Reported(), ElementsAre("-a"));
}

}  // namespace
}  // namespace tidegate::redis_test
