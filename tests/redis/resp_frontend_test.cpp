// SPDX-License-Identifier: Apache-2.0
// The Redis protocol frontend on a real Redis, which answers asynchronously: order of replies,
// batches, and connections that end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <thread>

#include "redis/redis_server.hpp"
#include "service/fixture.hpp"
#include "support/ports.hpp"
#include "support/resp_client.hpp"

namespace tidegate::redis_test {
namespace {

using service::Service;
using testing::HasSubstr;
using testing::StartsWith;

constexpr std::string_view kRules = R"(
rules:
  - { id: few, per: header:x-user, limit: 3/h, on_failure: closed }
  - { id: many, per: header:x-user, limit: 5000/h, on_failure: closed }
  - { id: open, per: header:x-user, limit: 2/h, on_failure: open }
  - { id: local, per: header:x-user, limit: 4/h, on_failure: local }
  - { id: jobs, per: header:x-user, limit: 2/1m, algorithm: concurrency, on_failure: closed }
)";

Config MakeConfig(int port, std::string_view store = "deadline: 5s, connect_timeout: 5s") {
  Config config = Service::ConfigOf("store: { url: \"redis://127.0.0.1:" + std::to_string(port) +
                                    "\", on_failure: closed, " + std::string(store) + " }" +
                                    std::string(kRules));
  config.listen.resp = "127.0.0.1:0";
  return config;
}

TEST(RedisRespTest, AnswersPipelineInOrderWithFewBatches) {
  RedisServer redis;
  Service service(MakeConfig(redis.port()));
  test::RespClient client(service.server().resp());
  EXPECT_THAT(client.Ask({"TG.DECIDE", "few", "warm"}), HasSubstr("\"store\""));
  constexpr int kMany = 1000;
  std::string bytes;
  for (int i = 0; i < kMany; ++i) {
    bytes += test::RespCommand({"TG.DECIDE", "many", "a"});
    if (i % 10 == 0) bytes += test::RespCommand({"TG.DECIDE", "nope", "a"});
    bytes += test::RespCommand({"CL.THROTTLE", "k" + std::to_string(i % 7), "9999", "1", "3600"});
  }
  client.Send(bytes);
  for (int i = 0; i < kMany; ++i) {
    ASSERT_THAT(client.Read(), StartsWith("[0,5000," + std::to_string(4999 - i) + ","));
    if (i % 10 == 0) {
      ASSERT_THAT(client.Read(), StartsWith("-ERR there is no rule"));
    }
    ASSERT_THAT(client.Read(), StartsWith("[0,10000," + std::to_string(9999 - i / 7) + ","));
  }
  EXPECT_LT(service.Metric("tidegate_redis_batches_total"), 200);
}

TEST(RedisRespTest, AnswersWriteCommandsInOrder) {
  RedisServer redis;
  Service service(MakeConfig(redis.port()));
  test::RespClient client(service.server().resp());
  std::string bytes;
  for (int i = 0; i < 4; ++i) bytes += test::RespCommand({"TG.DECIDE", "few", "a"});
  bytes += test::RespCommand({"PING"}) + test::RespCommand({"TG.RESET", "few", "a"}) +
           test::RespCommand({"TG.DECIDE", "few", "a"}) +
           test::RespCommand({"TG.REFUND", "few", "a", "ID", "x"}) +
           test::RespCommand({"TG.PEEK", "few", "a"}) +
           test::RespCommand({"TG.DEBIT", "few", "a", "COST", "9"}) +
           test::RespCommand({"TG.PEEK", "few", "a"}) +
           test::RespCommand({"TG.ACQUIRE", "jobs", "a", "l"}) +
           test::RespCommand({"TG.RENEW", "jobs", "a", "l"}) +
           test::RespCommand({"TG.RELEASE", "jobs", "a", "l"}) +
           test::RespCommand({"TG.RELEASE", "jobs", "a", "l"}) + test::RespCommand({"ECHO", "end"});
  client.Send(bytes);
  for (const char* const remaining : {"2", "1", "0"}) {
    EXPECT_THAT(client.Read(), StartsWith("[0,3," + std::string(remaining) + ","));
  }
  EXPECT_THAT(client.Read(), StartsWith("[1,3,0,"));
  EXPECT_EQ(client.Read(), "PONG");
  EXPECT_EQ(client.Read(), "1");
  EXPECT_THAT(client.Read(), StartsWith("[0,3,2,"));
  EXPECT_EQ(client.Read(), "1");
  EXPECT_THAT(client.Read(), StartsWith("[0,3,3,"));
  EXPECT_THAT(client.Read(), StartsWith("[1,3,0,"));
  EXPECT_THAT(client.Read(), StartsWith("[1,3,0,"));
  EXPECT_THAT(client.Read(), StartsWith("[0,2,1,"));
  EXPECT_EQ(client.Read(), "1");
  EXPECT_EQ(client.Read(), "1");
  EXPECT_EQ(client.Read(), "0");
  EXPECT_EQ(client.Read(), "\"end\"");
}

TEST(RedisRespTest, ReportsErrorAfterPendingReplies) {
  RedisServer redis;
  Service service(MakeConfig(redis.port()));
  test::RespClient client(service.server().resp());
  client.Send(test::RespCommand({"TG.DECIDE", "few", "a"}) +
              test::RespCommand({"TG.DECIDE", "few", "a"}) + "*1\r\n!bad\r\n");
  EXPECT_THAT(client.Read(), StartsWith("[0,3,2,"));
  EXPECT_THAT(client.Read(), StartsWith("[0,3,1,"));
  EXPECT_THAT(client.Read(), StartsWith("-ERR Protocol error"));
  EXPECT_EQ(client.Read(), "(end)");
}

TEST(RedisRespTest, AnswersCommandsSentBeforeAHalfClose) {
  RedisServer redis;
  Service service(MakeConfig(redis.port()));
  test::RespClient client(service.server().resp());
  client.Send(test::RespCommand({"TG.DECIDE", "few", "a"}) +
              test::RespCommand({"TG.RESET", "few", "a"}) +
              test::RespCommand({"TG.DECIDE", "few", "a"}));
  client.EndSending();
  EXPECT_THAT(client.Read(), StartsWith("[0,3,2,"));
  EXPECT_EQ(client.Read(), "1");
  EXPECT_THAT(client.Read(), StartsWith("[0,3,2,"));
  EXPECT_EQ(client.Read(), "(end)");
}

TEST(RedisRespTest, SurvivesClientsThatDisconnectWithPendingCommands) {
  RedisServer redis;
  Service service(MakeConfig(redis.port()));
  std::string bytes;
  for (int i = 0; i < 200; ++i) bytes += test::RespCommand({"TG.DECIDE", "many", "a"});
  for (int i = 0; i < 20; ++i) {
    test::RespClient client(service.server().resp());
    client.Send(bytes);
  }
  test::RespClient client(service.server().resp());
  EXPECT_THAT(client.Ask({"TG.DECIDE", "few", "a"}), StartsWith("[0,3,2,"));
}

TEST(RedisRespTest, AppliesPoliciesWithoutRedis) {
  Service service(MakeConfig(test::FreePort(), "connect_timeout: 10ms"));
  test::RespClient client(service.server().resp());
  // The last element is the reason. It depends on how far the first connection attempt has got.
  EXPECT_THAT(client.Ask({"TG.DECIDE", "open", "a"}), StartsWith("[0,-1,-1,-1,-1,\"open\",\""));
  EXPECT_THAT(client.Ask({"TG.DECIDE", "few", "a"}), StartsWith("[1,-1,-1,1000,-1,\"closed\",\""));
  for (int i = 0; i < 4; ++i) {
    EXPECT_THAT(client.Ask({"TG.DECIDE", "local", "a"}), StartsWith("[0,4,"));
  }
  EXPECT_THAT(client.Ask({"TG.DECIDE", "local", "a"}), StartsWith("[1,4,0,"));
  EXPECT_EQ(client.Ask({"CL.THROTTLE", "k", "4", "1", "1"}), "[1,5,0,1,0]");
  EXPECT_THAT(client.Ask({"TG.RESET", "few", "a"}), StartsWith("-UNAVAILABLE"));
  EXPECT_THAT(client.Ask({"HELLO", "3"}), StartsWith("{"));
  EXPECT_THAT(client.Ask({"TG.DECIDE", "open", "a"}), StartsWith("[0,-1,-1,-1,-1,\"open\",\""));
  EXPECT_THAT(client.Ask({"TG.DECIDE", "open", "a", "MAP"}),
              StartsWith(R"({"allowed":1,"rule":"open","decided_by":"open","reason":")"));
  EXPECT_THAT(client.Ask({"TG.DECIDE", "few", "a", "MAP"}),
              StartsWith(R"({"allowed":0,"rule":"few","retry_after_ms":1000,)"
                         R"("decided_by":"closed","reason":")"));
}

/// As in redis-cell, a key keeps its time, whatever the quota of the next call is.
TEST(RedisRespTest, ThrottleKeepsTimeOfASlowerQuota) {
  RedisServer redis;
  Service service(MakeConfig(redis.port()));
  test::RespClient client(service.server().resp());
  EXPECT_EQ(client.Ask({"CL.THROTTLE", "k", "0", "1", "3600"}), "[0,1,0,-1,3600]");
  EXPECT_EQ(client.Ask({"CL.THROTTLE", "k", "9", "10", "60"}), "[1,10,0,3546,3600]");
  EXPECT_EQ(client.Ask({"CL.THROTTLE", "k", "0", "1", "7200"}), "[1,1,0,3600,3600]");
  EXPECT_EQ(client.Ask({"CL.THROTTLE", "k", "1", "1", "7200"}), "[0,2,0,-1,10800]");
  EXPECT_EQ(client.Ask({"CL.THROTTLE", "k", "9", "10", "60", "0"}), "[1,10,0,10740,10800]");
}

/// NOAUTH must not overtake the replies to earlier commands.
TEST(RedisRespTest, AnswersPendingCommandsBeforeNoauth) {
  RedisServer redis;
  Config config = MakeConfig(redis.port());
  config.listen.resp.auth = ListenSpec::Auth::kRequired;
  config.access.tokens = {{.name = "one", .secret = "the-first-of-two-tokens"},
                          {.name = "two", .secret = "the-second-of-two-tokens"}};
  Service service(config);
  test::RespClient client(service.server().resp());
  EXPECT_EQ(client.Ask({"AUTH", "the-first-of-two-tokens"}), "OK");
  EXPECT_THAT(client.Ask({"TG.DECIDE", "few", "a"}), StartsWith("[0,3,2,"));
  redis.Signal(SIGSTOP);
  client.Send(test::RespCommand({"TG.DECIDE", "few", "a"}));
  test::RespClient other(service.server().resp());
  config.access.tokens.erase(config.access.tokens.begin());
  Problems problems;
  ASSERT_TRUE(service.server().Reload(config, problems));
  // The reactor has applied the reload once it rejects the first token.
  const auto latest = std::chrono::steady_clock::now() + service::kPatience;
  while (other.Ask({"AUTH", "the-first-of-two-tokens"}) == "OK" &&
         std::chrono::steady_clock::now() < latest) {
  }
  client.Send(test::RespCommand({"TG.DECIDE", "few", "a"}));
  EXPECT_EQ(other.Ask({"AUTH", "the-second-of-two-tokens"}), "OK");
  redis.Signal(SIGCONT);
  EXPECT_THAT(client.Read(), StartsWith("["));
  EXPECT_THAT(client.Read(), StartsWith("-NOAUTH"));
}

TEST(RedisRespTest, ShutsDownWithPendingCommands) {
  RedisServer redis;
  auto service = std::make_unique<Service>(MakeConfig(redis.port()));
  test::RespClient client(service->server().resp());
  EXPECT_THAT(client.Ask({"TG.DECIDE", "few", "a"}), StartsWith("[0,3,2,"));
  redis.Signal(SIGSTOP);
  client.Send(test::RespCommand({"TG.DECIDE", "few", "a"}) +
              test::RespCommand({"TG.DECIDE", "few", "b"}));
  service.reset();
  redis.Signal(SIGCONT);
}

}  // namespace
}  // namespace tidegate::redis_test
