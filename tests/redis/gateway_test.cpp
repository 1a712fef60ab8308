// SPDX-License-Identifier: Apache-2.0
// Tests the gateway with a real Redis: a limit that several gateways share, leases, debits, and the
// failure policy while Redis is down.
#include <gtest/gtest.h>

#include "gateway/behaviour/gateway_fixture.hpp"
#include "redis/redis_server.hpp"
#include "support/wait.hpp"

namespace tidegate::redis_test {
namespace {

using behaviour::Client;
using test::HttpResponse;
using Connection = behaviour::ScriptedUpstream::Connection;
using behaviour::Gate;
using behaviour::GetText;
using behaviour::Http;
using behaviour::Routed;
using behaviour::ScriptedUpstream;
using behaviour::Signal;
using test::HttpRequest;

std::string WithRedis(const RedisServer& redis, std::string_view rule, std::string_view routed) {
  return "store: { url: \"redis://127.0.0.1:" + std::to_string(redis.port()) +
         "\", on_failure: closed, deadline: 5s, connect_timeout: 5s }\nidentity: { hmac_key: "
         "0123456789abcdef0123 "
         "}\nrules: [ { " +
         std::string(rule) + " } ]\n" + std::string(routed);
}

ScriptedUpstream::Handler Fine() {
  return ScriptedUpstream::Each(
      [](const test::HttpRequest&) { return Http("200 OK", {}, "fine"); });
}

TEST(RedisGatewayTest, SeveralGatewaysShareOneLimit) {
  RedisServer redis;
  ScriptedUpstream up(Fine());
  const std::string yaml = WithRedis(
      redis, "id: r, per: client_ip, limit: 7/h, algorithm: sliding_log", Routed(up.url()));
  Gate one(yaml);
  Gate two(yaml, 2);
  Client first(one.at());
  Client second(two.at());
  int passed = 0;
  for (int i = 0; i < 20; ++i)
    passed += (i % 2 == 0 ? first : second).Get("/").status == 200 ? 1 : 0;
  EXPECT_EQ(passed, 7);
  EXPECT_EQ(up.requests(), 7);  // Denied requests did not reach the upstream.
}

TEST(RedisGatewayTest, HoldsAndReleasesLeaseThroughRedis) {
  RedisServer redis;
  Signal go;
  ScriptedUpstream up([&](Connection& connection) {
    test::HttpRequest request;
    while (connection.Read(request)) {
      if (request.target() == "/held") (void)go.Wait();
      connection.Send(Http("200 OK", {}, "fine"));
    }
  });
  const std::string yaml = WithRedis(
      redis, "id: r, per: client_ip, limit: 1/60s, algorithm: concurrency", Routed(up.url()));
  Gate one(yaml);
  Gate two(yaml);
  {
    Client holder(one.at());
    holder.Send(GetText("/held"));
    ASSERT_TRUE(test::WaitUntil([&] { return up.requests() == 1; }));
    EXPECT_EQ(two.Get("/").status, 429);
    // Leaving the block closes the client's connection before its response.
  }
  EXPECT_TRUE(test::WaitUntil([&] { return two.Get("/").status == 200; }));
  EXPECT_TRUE(test::WaitUntil([&] { return two.Get("/").status == 200; }))
      << "the lease was not released after a complete response";
  go.Give();
}

TEST(RedisGatewayTest, DebitsCostFromTheResponse) {
  RedisServer redis;
  ScriptedUpstream up(ScriptedUpstream::Each(
      [](const test::HttpRequest&) { return Http("200 OK", "X-Tokens-Used: 60\r\n", "fine"); }));
  const std::string yaml =
      WithRedis(redis, "id: r, per: client_ip, limit: 100/h, cost: \"response:x-tokens-used\"",
                Routed(up.url()));
  Gate one(yaml);
  Gate two(yaml);
  EXPECT_EQ(one.Get("/").status, 200);
  ASSERT_TRUE(test::WaitUntil([&] { return one.Remaining("r", "127.0.0.1") == 40; }));
  EXPECT_EQ(two.Get("/").status, 200);  // 40 units are left, so the request is admitted.
  EXPECT_TRUE(test::WaitUntil([&] { return one.Get("/").status == 429; }));
}

TEST(RedisGatewayTest, AppliesPolicyWithoutRedis) {
  RedisServer redis;
  ScriptedUpstream up(Fine());
  const std::string url =
      "store: { url: \"redis://127.0.0.1:" + std::to_string(redis.port()) +
      "\", on_failure: open, deadline: 50ms }\nidentity: { hmac_key: 0123456789abcdef0123 "
      "}\nresponses: { decided_by: always }\nrules:\n"
      "  - { id: shut, match: { path: /shut }, per: client_ip, limit: 9/h, on_failure: closed }\n"
      "  - { id: wide, match: { path: /wide }, per: client_ip, limit: 9/h }\n";
  Gate gate(url + Routed(up.url()));
  ASSERT_TRUE(test::WaitUntil([&] { return gate.Get("/shut").status == 200; }));
  redis.Kill();
  ASSERT_TRUE(test::WaitUntil([&] { return gate.Get("/shut").status == 503; }));
  const test::HttpResponse open = gate.Get("/wide");
  EXPECT_EQ(open.status, 200);
  EXPECT_EQ(open.Field("X-Tidegate-Decided-By"), "open");
  EXPECT_FALSE(open.Has("RateLimit"));
  EXPECT_EQ(gate.Get("/shut").Field("Retry-After"), "1");
  const test::HttpResponse grpc = gate.Get("/shut", "Content-Type: application/grpc\r\n");
  EXPECT_EQ(grpc.status, 200);
  EXPECT_EQ(grpc.Field("grpc-status"), "14");
}

}  // namespace
}  // namespace tidegate::redis_test
