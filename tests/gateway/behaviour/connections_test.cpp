// SPDX-License-Identifier: Apache-2.0
// The gateway reuses connections to clients and to upstreams as long as both sides allow it.
#include <gtest/gtest.h>

#include <thread>

#include "gateway/behaviour/gateway_fixture.hpp"
#include "support/wait.hpp"

namespace tidegate::behaviour {
namespace {

TEST(KeepAliveTest, ReusesClientAndUpstreamConnections) {
  ScriptedUpstream up(ScriptedUpstream::Ok());
  Gate gate(Routed(up.url()));
  Client client(gate.at());
  for (int i = 0; i < 20; ++i) EXPECT_EQ(client.Get("/").status, 200);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(gate.Get("/").status, 200) << "another client";
  EXPECT_EQ(up.connections(), 1);
  EXPECT_EQ(up.requests(), 25);
}

TEST(KeepAliveTest, ClosesUpstreamConnectionsWithKeepAliveZero) {
  ScriptedUpstream up(ScriptedUpstream::Ok());
  Gate gate(Routed(up.url(), "keep_alive: 0"));
  Client client(gate.at());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(client.Get("/").status, 200);
  EXPECT_EQ(up.connections(), 3);
  EXPECT_TRUE(test::WaitUntil([&] { return up.open() == 0; }));
}

TEST(KeepAliveTest, ClosesIdleUpstreamConnectionAfterTimeout) {
  ScriptedUpstream up(ScriptedUpstream::Ok());
  Gate gate(Routed(up.url(), "keep_alive_timeout: 100ms"));
  EXPECT_EQ(gate.Get("/").status, 200);
  EXPECT_TRUE(test::WaitUntil([&] { return up.open() == 0; }));
}

TEST(KeepAliveTest, DoesNotReuseConnectionThatUpstreamCloses) {
  ScriptedUpstream up(ScriptedUpstream::Each(
      [](const HttpRequest&) { return Http("200 OK", "Connection: close\r\n", "x"); }));
  Gate gate(Routed(up.url()));
  Client client(gate.at());
  for (int i = 0; i < 3; ++i) {
    const HttpResponse answer = client.Get("/");
    EXPECT_EQ(answer.status, 200);
    EXPECT_FALSE(answer.Has("Connection")) << "the client received the upstream's Connection field";
  }
  EXPECT_EQ(up.connections(), 3);
}

TEST(KeepAliveTest, AnswersPipelinedRequestsInOrder) {
  ScriptedUpstream up(ScriptedUpstream::Each([](const HttpRequest& request) {
    return Http("200 OK", {}, request.method() + request.target() + request.body);
  }));
  Gate gate(Routed(up.url()));
  Client client(gate.at());
  std::string all;
  std::vector<std::string> expected;
  for (int i = 0; i < 100; ++i) {
    const std::string n = "/" + std::to_string(i);
    switch (i % 4) {
      case 0:
        all += GetText(n);
        expected.push_back("GET" + n);
        break;
      case 1:
        all += RequestText("POST", n, {}, "body");
        expected.push_back("POST" + n + "body");
        break;
      case 2:
        all += "PUT " + n + " HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n" +
               Chunked("some chunks", 4, "X-T: 1\r\n");
        expected.push_back("PUT" + n + "some chunks");
        break;
      default:
        all += RequestText("POST", n, {}, std::string(5000, 'y'));
        expected.push_back("POST" + n + std::string(5000, 'y'));
    }
  }
  std::thread sender([&] { client.Send(all); });
  for (const std::string& body : expected) {
    const HttpResponse answer = client.Read();
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.body, body);
  }
  sender.join();
  EXPECT_EQ(up.requests(), 100);
}

TEST(KeepAliveTest, ClosesClientConnectionOnConnectionClose) {
  ScriptedUpstream up(ScriptedUpstream::Ok());
  Gate gate(Routed(up.url()));
  Client client(gate.at());
  const HttpResponse answer = client.Get("/", "Connection: close\r\n");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.Field("Connection"), "close");
  EXPECT_EQ(client.WaitForEnd(), Client::End::kClosed);
  EXPECT_EQ(gate.Get("/").status, 200);
  EXPECT_EQ(up.connections(), 1) << "the upstream connection was not reused";
}

}  // namespace
}  // namespace tidegate::behaviour
