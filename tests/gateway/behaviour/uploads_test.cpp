// SPDX-License-Identifier: Apache-2.0
// Uploads whose upstream responds before it has the whole body, and clients that wait, disconnect
// or half-close meanwhile.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gateway/behaviour/gateway_fixture.hpp"
#include "gateway/behaviour/log_file.hpp"
#include "support/wait.hpp"

namespace tidegate::behaviour {
namespace {

using Connection = ScriptedUpstream::Connection;

/// Reads one request and then waits until the gateway ends the connection, without a response.
void Hang(Connection& connection) {
  HttpRequest request;
  if (connection.Read(request)) (void)connection.WaitForEnd();
}

TEST(UploadTest, ForwardsEarlyResponseWithoutEjectingUpstream) {
  ScriptedUpstream up([](Connection& connection) {
    HttpRequest request;
    if (!connection.ReadHead(request)) return;
    connection.Send(
        "HTTP/1.1 413 Content Too Large\r\nConnection: close\r\nContent-Length: 3\r\n\r\nno\n");
  });
  Gate gate(Routed("[" + up.url() + "]", "ejection: { failures: 1 }"));
  int passed = 0;
  for (int i = 0; i < 50; ++i) {
    Client client(gate.at());
    client.Send("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 300000\r\n\r\n");
    (void)client.Send(std::string(300'000, 'x'));
    passed += client.Read().status == 413 ? 1 : 0;
  }
  EXPECT_EQ(passed, 50);
}

TEST(UploadTest, DoesNotEjectTargetForClientThatWaitsForContinue) {
  ScriptedUpstream one(Hang);
  ScriptedUpstream two(Hang);
  Gate gate(Routed("[" + one.url() + ", " + two.url() + "]",
                   "ejection: { failures: 2 }\nresponse_timeout: 100ms\nretries: off"));
  for (int i = 0; i < 6; ++i) {
    Client client(gate.at());
    EXPECT_EQ(client
                  .Ask("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 5\r\nExpect: "
                       "100-continue\r\n\r\n")
                  .status,
              504);
  }
  EXPECT_EQ(gate.Metric("tidegate_upstream_ejections_total{upstream=\"up\"}"), 0);
}

TEST(UploadTest, DetectsClientCloseThatArrivesWithTheRequest) {
  ScriptedUpstream up(Hang);
  Gate gate(Routed(up.url(), {},
                   "rules: [ { id: r, per: client_ip, limit: 1/60s, algorithm: concurrency } ]\n"));
  Client client(gate.at());
  client.Send(GetText("/"));
  client.EndSending();
  // A disconnected client holds neither a request slot nor an upstream connection.
  EXPECT_TRUE(test::WaitUntil([&] { return up.connections() >= 1 && up.open() == 0; }));
}

TEST(UploadTest, ChargesClientThatDisconnectsBeforeTrailers) {
  Signal left;
  ScriptedUpstream up([&](Connection& connection) {
    HttpRequest request;
    while (connection.Read(request)) {
      connection.Send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n");
      (void)left.Wait();
      connection.Send("0\r\nX-Tokens-Used: 60\r\n\r\n");
    }
  });
  Gate gate(Routed(
      up.url(), {},
      "rules: [ { id: r, per: client_ip, limit: 100/h, cost: \"response:x-tokens-used\" } ]\n"));
  {
    Client client(gate.at());
    client.Send(GetText("/"));
    EXPECT_THAT(client.stream().ReadUntil("hello"), testing::HasSubstr("hello"));
  }
  left.Give();
  EXPECT_TRUE(test::WaitUntil([&] { return gate.Remaining("r", "127.0.0.1") == 40; }));
}

TEST(UploadTest, LogsRequestHeadAfterClientDisconnects) {
  // Regression: the connection freed the buffer of a long head while the log line was still to be
  // written from it.
  LogFile log;
  ScriptedUpstream up(Hang);
  Gate gate(Routed(up.url(), {}, log.yaml() + "limits: { header_bytes: 64KiB }\n"));
  {
    Client client(gate.at());
    client.Send(GetText("/left", "X-Long: " + std::string(40'000, 'x') + "\r\n"));
    ASSERT_TRUE(test::WaitUntil([&] { return up.requests() == 1; }));
  }
  const auto line = log.Line();
  EXPECT_EQ(line.at("path"), "/left");
  EXPECT_EQ(line.at("method"), "GET");
  EXPECT_EQ(line.at("outcome"), "client_gone");
}

TEST(UploadTest, KnowsAddressOfClientThatResetsBeforeAccept) {
  LogFile log;
  ScriptedUpstream up(ScriptedUpstream::Ok());
  Gate gate(Routed(up.url(), {}, log.yaml() + "deny: [ { client_ip: 127.0.0.1 } ]\n"));
  for (int i = 0; i < 100; ++i) {
    Client client(gate.at());
    client.Send(GetText("/"));
    client.stream().Reset();
  }
  EXPECT_EQ(gate.Get("/").status, 403);
  EXPECT_EQ(up.requests(), 0);
  EXPECT_EQ(log.text().find("0.0.0.0"), std::string::npos);
}

TEST(UploadTest, RenewsShortLeasesUntilRequestEnds) {
  // Regression: a lease so short that its renewal was due again at once kept the reactor in an
  // endless loop.
  Signal go;
  ScriptedUpstream up([&](Connection& connection) {
    HttpRequest request;
    while (connection.Read(request)) {
      if (request.target() == "/held") (void)go.Wait();
      connection.Send(Http("200 OK", {}, "fine"));
    }
  });
  Gate gate(
      Routed(up.url(), {},
             "rules: [ { id: r, per: client_ip, limit: 50/3ms, algorithm: concurrency } ]\n"));
  std::vector<std::unique_ptr<Client>> held;
  for (int i = 0; i < 20; ++i) {
    held.push_back(std::make_unique<Client>(gate.at()));
    held.back()->Send(GetText("/held"));
  }
  ASSERT_TRUE(test::WaitUntil([&] { return up.requests() == 20; }));
  for (int i = 0; i < 100; ++i) EXPECT_EQ(gate.Get("/").status, 200);
  go.Give();
}

}  // namespace
}  // namespace tidegate::behaviour
