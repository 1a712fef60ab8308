// SPDX-License-Identifier: Apache-2.0
// Requests that the gateway retries, and requests that it never retries.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gateway/behaviour/gateway_fixture.hpp"

namespace tidegate::behaviour {
namespace {

using namespace std::chrono_literals;
using Connection = ScriptedUpstream::Connection;

/// Answers the first request of each connection, and closes the connection without a response at
/// the second.
void ClosesAtSecondRequest(Connection& connection) {
  HttpRequest request;
  if (!connection.Read(request)) return;
  connection.Send(Http("200 OK", {}, "first"));
  if (connection.Read(request)) connection.Reset();
}

TEST(RetriesTest, RetriesGetOnNewConnectionAfterReset) {
  ScriptedUpstream up(ClosesAtSecondRequest);
  Gate gate(Routed(up.url()));
  Client client(gate.at());
  EXPECT_EQ(client.Get("/1").body, "first");
  EXPECT_EQ(client.Get("/2", "X-Mark: kept\r\n").body, "first");
  EXPECT_EQ(up.connections(), 2);
  EXPECT_EQ(up.requests(), 3);
  EXPECT_EQ(up.last().target(), "/2");
  EXPECT_EQ(up.last().Field("X-Mark"), "kept");
  EXPECT_EQ(up.seen()[1].head, up.seen()[2].head) << "the retry differs from the first attempt";
}

TEST(RetriesTest, NeverRetriesPostThatWasSent) {
  ScriptedUpstream up(ClosesAtSecondRequest);
  Gate gate(Routed(up.url()));
  Client client(gate.at());
  EXPECT_EQ(client.Get("/1").body, "first");
  EXPECT_EQ(client.Ask(RequestText("POST", "/2", {}, "body")).status, 502);
  EXPECT_EQ(client.Ask(RequestText("PATCH", "/2", {}, "body")).status, 200);
  EXPECT_EQ(client.Ask(RequestText("PATCH", "/2", {}, "body")).status, 502);
}

TEST(RetriesTest, RetriesPutWhoseBodyIsStillBuffered) {
  ScriptedUpstream up([](Connection& connection) {
    HttpRequest request;
    if (!connection.Read(request)) return;
    if (connection.number() == 0) return connection.Reset();
    connection.Send(Http("200 OK", {}, request.body));
  });
  Gate gate(Routed(up.url()));
  Client client(gate.at());
  EXPECT_EQ(client.Ask(RequestText("PUT", "/", {}, "the body")).body, "the body");
  EXPECT_EQ(up.requests(), 2);
  EXPECT_EQ(client.Get("/").status, 200)
      << "bytes of the retried request were left on the connection";
}

TEST(RetriesTest, DoesNotRetryWhenBodyIsNoLongerBuffered) {
  ScriptedUpstream up([](Connection& connection) {
    HttpRequest request;
    if (connection.Read(request)) connection.Reset();
  });
  Gate gate(Routed(up.url()));
  Client client(gate.at());
  std::thread sender([&] { client.Send(RequestText("PUT", "/", {}, std::string(200'000, 'x'))); });
  EXPECT_EQ(client.Read().status, 502);
  sender.join();
  EXPECT_EQ(up.requests(), 1);
}

TEST(RetriesTest, RetriesPostAfterConnectFailure) {
  ScriptedUpstream down(ScriptedUpstream::Ok("down"));
  ScriptedUpstream up(ScriptedUpstream::Ok("up"));
  down.StopListening();
  Gate gate(Routed("[" + down.url() + ", " + up.url() + "]", "ejection: off"));
  Client client(gate.at());
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(client.Ask(RequestText("POST", "/", {}, "body")).body, "up");
  }
  std::thread sender([&] { client.Send(RequestText("POST", "/", {}, std::string(500'000, 'x'))); });
  EXPECT_EQ(client.Read().body, "up");
  sender.join();
  EXPECT_EQ(up.requests(), 7);
}

TEST(RetriesTest, RetriesOnAnotherTarget) {
  ScriptedUpstream bad([](Connection& connection) {
    HttpRequest request;
    if (connection.Read(request)) connection.Reset();
  });
  ScriptedUpstream good(ScriptedUpstream::Ok("good"));
  Gate gate(Routed("[" + bad.url() + ", " + good.url() + "]", "ejection: off"));
  for (int i = 0; i < 6; ++i) EXPECT_EQ(gate.Get("/").body, "good");
  EXPECT_EQ(good.requests(), 6);
}

class RetryAttemptsTest : public testing::TestWithParam<int> {};

TEST_P(RetryAttemptsTest, RetriesAsOftenAsConfigured) {
  ScriptedUpstream up([](Connection& connection) {
    HttpRequest request;
    if (connection.Read(request)) connection.Reset();
  });
  Gate gate(Routed(up.url(), "retries: {attempts: " + std::to_string(GetParam()) + "}"));
  EXPECT_EQ(gate.Get("/").status, 502);
  EXPECT_EQ(up.requests(), GetParam() + 1);
}
INSTANTIATE_TEST_SUITE_P(All, RetryAttemptsTest, testing::Values(1, 2, 5));

TEST(RetriesTest, DoesNotRetryWhenRetriesAreOff) {
  ScriptedUpstream up([](Connection& connection) {
    HttpRequest request;
    if (connection.Read(request)) connection.Reset();
  });
  Gate gate(Routed(up.url(), "retries: off"));
  EXPECT_EQ(gate.Get("/").status, 502);
  EXPECT_EQ(up.requests(), 1);
}

TEST(RetriesTest, BudgetLimitsRetries) {
  ScriptedUpstream up([](Connection& connection) {
    HttpRequest request;
    if (connection.Read(request)) connection.Reset();
  });
  Gate gate(Routed(up.url(), "retries: {percent: 10}"));
  for (int i = 0; i < 300; ++i) EXPECT_EQ(gate.Get("/").status, 502);
  EXPECT_GE(up.requests(), 300 + 100);
  EXPECT_LE(up.requests(), 300 + 100 + 32)
      << "more than the 100 retries of the initial budget and a tenth of the requests";
}

TEST(RetriesTest, RetriesAfterTimeoutIfConfigured) {
  ScriptedUpstream up([](Connection& connection) {
    HttpRequest request;
    if (!connection.Read(request)) return;
    if (connection.number() != 0) connection.Send(Http("200 OK", {}, "second"));
    (void)connection.WaitForEnd();
  });
  Gate gate(Routed(up.url(), "response_timeout: 150ms\nretries: {timeout: true}"));
  EXPECT_EQ(gate.Get("/").body, "second");
  EXPECT_EQ(up.requests(), 2);
}

TEST(RetriesTest, RetriesConfiguredStatusForIdempotentMethods) {
  std::atomic<int> attempts{0};
  ScriptedUpstream up(ScriptedUpstream::Each([&](const HttpRequest&) {
    return ++attempts % 2 == 1 ? Http("503 Busy", {}, "busy") : Http("200 OK", {}, "second");
  }));
  Gate gate(Routed(up.url(), "ejection: off\nretries: {statuses: [503]}"));
  Client client(gate.at());
  EXPECT_EQ(client.Get("/").body, "second");
  EXPECT_EQ(client.Ask(RequestText("POST", "/", {}, "x")).status, 503) << "a POST was retried";
  EXPECT_EQ(attempts, 3);
}

TEST(RetriesTest, DoesNotRetryUnconfiguredStatuses) {
  ScriptedUpstream up(
      ScriptedUpstream::Each([](const HttpRequest&) { return Http("502 Bad", {}, "theirs"); }));
  Gate gate(Routed(up.url(), "ejection: off\nretries: {statuses: [503]}"));
  const HttpResponse answer = gate.Get("/");
  EXPECT_EQ(answer.status, 502);
  EXPECT_EQ(answer.body, "theirs");
  EXPECT_EQ(up.requests(), 1);
}

TEST(RetriesTest, ForwardsLastResponseWhenAttemptsAreUsedUp) {
  ScriptedUpstream up(ScriptedUpstream::Each(
      [](const HttpRequest&) { return Http("503 Busy", "X-Mine: yes\r\n", "busy"); }));
  Gate gate(Routed(up.url(), "ejection: off\nretries: {statuses: [503]}"));
  const HttpResponse answer = gate.Get("/");
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(answer.body, "busy");
  EXPECT_EQ(answer.Field("X-Mine"), "yes");
  EXPECT_EQ(up.requests(), 2);
}

TEST(RetriesTest, ForwardsResponseWhenBudgetIsUsedUp) {
  ScriptedUpstream up(ScriptedUpstream::Each(
      [](const HttpRequest&) { return Http("503 Busy", "X-Mine: yes\r\n", "busy"); }));
  Gate gate(Routed(up.url(), "ejection: off\nretries: {statuses: [503], percent: 1}"));
  Client client(gate.at());
  for (int i = 0; i < 120; ++i) {
    const HttpResponse answer = client.Get("/");
    EXPECT_EQ(answer.status, 503) << "after " << i;
    EXPECT_EQ(answer.body, "busy");
  }
}

}  // namespace
}  // namespace tidegate::behaviour
