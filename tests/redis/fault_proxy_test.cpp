// SPDX-License-Identifier: Apache-2.0
#include "redis/fault_proxy.hpp"

#include <gtest/gtest.h>

#include "redis/record.hpp"
#include "redis/redis_server.hpp"

namespace tidegate::redis_test {
namespace {

using namespace std::chrono_literals;
using Kind = Fault::Kind;

class FaultProxyTest : public testing::Test {
 protected:
  RedisServer redis_;
  FaultProxy proxy_{redis_.port()};
};

TEST_F(FaultProxyTest, ForwardsBytesUnchanged) {
  RedisClient client(proxy_.port());
  EXPECT_EQ(client.Text({"SET", "a", "1"}), "OK");
  EXPECT_EQ(client.Text({"GET", "a"}), "1");
  const std::string large(3'000'000, 'x');
  EXPECT_EQ(client.Text({"SET", "b", large}), "OK");
  EXPECT_EQ(client.Text({"GET", "b"}), large);
  EXPECT_EQ(proxy_.accepted(), 1);
  EXPECT_EQ(proxy_.open(), 1);
  EXPECT_EQ(proxy_.AcceptTimes().size(), 1U);
}

TEST_F(FaultProxyTest, DelaysRepliesOfOpenConnections) {
  RedisClient client(proxy_.port());
  EXPECT_EQ(client.Text({"PING"}), "PONG");
  proxy_.Set({.kind = Kind::kDelayReplies, .delay = 60ms});
  const std::int64_t start = SteadyMicros();
  EXPECT_EQ(client.Text({"PING"}), "PONG");
  EXPECT_GE(SteadyMicros() - start, 60'000);
  EXPECT_LT(SteadyMicros() - start, 1'000'000);
  proxy_.Pass();
  EXPECT_EQ(client.Text({"PING"}), "PONG");  // No byte was lost, so the connection stays open.
}

TEST_F(FaultProxyTest, DropsRepliesAfterExecution) {
  RedisClient client(proxy_.port());
  proxy_.Set({.kind = Kind::kDropReplies});
  std::thread asking([&] { EXPECT_EQ(client.Command({"INCR", "n"}), nullptr); });
  while (redis_.Text({"GET", "n"}) != "1") std::this_thread::sleep_for(1ms);
  while (proxy_.hits() == 0) std::this_thread::sleep_for(1ms);
  proxy_.Pass();  // Resets the connection, because its stream lost bytes.
  asking.join();
  EXPECT_EQ(redis_.Text({"GET", "n"}), "1");
  RedisClient other(proxy_.port());
  EXPECT_EQ(other.Text({"GET", "n"}), "1");
}

TEST_F(FaultProxyTest, CutsConnectionInTheMiddleOfAReply) {
  RedisClient client(proxy_.port());
  EXPECT_EQ(client.Text({"SET", "a", "0123456789"}), "OK");
  proxy_.Set({.kind = Kind::kCutReplies, .bytes = 8});
  EXPECT_EQ(client.Command({"GET", "a"}), nullptr);
  EXPECT_FALSE(client.connected());
  EXPECT_EQ(proxy_.hits(), 1);
}

TEST_F(FaultProxyTest, CutsAllConnectionsAtOnce) {
  std::vector<std::unique_ptr<RedisClient>> clients;
  for (int i = 0; i < 50; ++i) {
    clients.push_back(std::make_unique<RedisClient>(proxy_.port()));
    EXPECT_EQ(clients.back()->Text({"PING"}), "PONG");
  }
  EXPECT_EQ(proxy_.open(), 50);
  proxy_.CutAll();
  EXPECT_EQ(proxy_.open(), 0);
  for (const auto& client : clients) EXPECT_EQ(client->Command({"PING"}), nullptr);
}

TEST_F(FaultProxyTest, RefusesAndAcceptsConnectionsAgain) {
  RedisClient before(proxy_.port());
  EXPECT_EQ(before.Text({"PING"}), "PONG");
  proxy_.Refuse();
  EXPECT_FALSE(RedisClient(proxy_.port()).connected());
  EXPECT_EQ(before.Text({"PING"}), "PONG");  // Open connections stay open.
  proxy_.Accept();
  EXPECT_EQ(RedisClient(proxy_.port()).Text({"PING"}), "PONG");
}

TEST_F(FaultProxyTest, GarblesReplies) {
  proxy_.Set({.kind = Kind::kGarble});
  int wrong = 0;
  for (int i = 0; i < 50; ++i) {
    RedisClient garbled(proxy_.port());
    const int hits = proxy_.hits();
    // A garbled length makes the client wait for bytes that never come, so another thread closes
    // its connection.
    std::thread cut([&] {
      const auto deadline = std::chrono::steady_clock::now() + 1s;
      while (proxy_.hits() == hits && std::chrono::steady_clock::now() < deadline) {
        std::this_thread::sleep_for(1ms);
      }
      std::this_thread::sleep_for(2ms);
      proxy_.CutAll();
    });
    wrong += static_cast<int>(garbled.Text({"ECHO", "hello"}) != "hello");
    cut.join();
  }
  EXPECT_GT(wrong, 25);
  EXPECT_GE(proxy_.hits(), 45);
}

TEST_F(FaultProxyTest, ForwardsBytesAfterAStall) {
  RedisClient client(proxy_.port());
  EXPECT_EQ(client.Text({"PING"}), "PONG");
  proxy_.Set({.kind = Kind::kStall});
  const std::int64_t start = SteadyMicros();
  std::thread asking([&] { EXPECT_EQ(client.Text({"INCR", "n"}), "1"); });
  std::this_thread::sleep_for(50ms);  // Nothing may arrive during this time.
  EXPECT_EQ(redis_.Text({"GET", "n"}), "(nil)");
  proxy_.Pass();
  asking.join();
  EXPECT_GE(SteadyMicros() - start, 50'000);
}

TEST_F(FaultProxyTest, ClosesConnectionsWhenServerDies) {
  RedisClient client(proxy_.port());
  EXPECT_EQ(client.Text({"PING"}), "PONG");
  redis_.Kill();
  EXPECT_EQ(client.Command({"PING"}), nullptr);
  EXPECT_EQ(RedisClient(proxy_.port()).Command({"PING"}), nullptr);
  redis_.Start();
  EXPECT_EQ(RedisClient(proxy_.port()).Text({"PING"}), "PONG");
}

TEST_F(FaultProxyTest, ForwardsAllRepliesUnderLoadWhileFaultsChange) {
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      RedisClient client(proxy_.port());
      for (int n = 0; n < 500; ++n) right += static_cast<int>(client.Text({"ECHO", "x"}) == "x");
    });
  }
  for (int i = 0; i < 20; ++i) {
    proxy_.Set({.kind = i % 2 == 0 ? Kind::kStall : Kind::kDelayReplies, .delay = 1ms});
    std::this_thread::sleep_for(1ms);
    proxy_.Pass();
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 8 * 500);
}

}  // namespace
}  // namespace tidegate::redis_test
