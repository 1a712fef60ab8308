// SPDX-License-Identifier: Apache-2.0
// The gateway chooses a target by round robin, weights and load. It skips targets that fail and
// targets at their cap of requests.
#include <gtest/gtest.h>

#include <thread>

#include "gateway/behaviour/gateway_fixture.hpp"
#include "support/wait.hpp"

namespace tidegate::behaviour {
namespace {

using Connection = ScriptedUpstream::Connection;

std::string List(const ScriptedUpstream& a, const ScriptedUpstream& b) {
  return "[" + a.url() + ", " + b.url() + "]";
}
std::string Up(const ScriptedUpstream& upstream) {
  return "tidegate_upstream_target_up{upstream=\"up\",target=\"127.0.0.1:" +
         std::to_string(upstream.port()) + "\"}";
}
std::string Active(const ScriptedUpstream& upstream) {
  return "tidegate_upstream_target_requests{upstream=\"up\",target=\"127.0.0.1:" +
         std::to_string(upstream.port()) + "\"}";
}
std::string Counter(std::string_view name) {
  return "tidegate_upstream_" + std::string(name) + "_total{upstream=\"up\"}";
}
void ExpectUnavailable(const HttpResponse& answer) {
  EXPECT_EQ(answer.status, 503) << answer.head << answer.body;
  EXPECT_EQ(answer.Field("Retry-After"), "1");
  EXPECT_EQ(answer.Field("Content-Type"), "application/problem+json");
  EXPECT_EQ(answer.Json().at("status"), 503);
}
ScriptedUpstream::Handler Always(const std::string& answer) {
  return ScriptedUpstream::Each([answer](const HttpRequest&) { return answer; });
}

// --- Load balancing ---------------------------------------------------------------

TEST(LoadBalancingTest, RoundRobinSpreadsRequestsEqually) {
  ScriptedUpstream a(ScriptedUpstream::Ok("a"));
  ScriptedUpstream b(ScriptedUpstream::Ok("b"));
  Gate gate(Routed(List(a, b)));
  Client client(gate.at());
  std::string order;
  for (int i = 0; i < 10; ++i) order += client.Get("/").body;
  EXPECT_TRUE(order == "ababababab" || order == "bababababa") << order;
  EXPECT_EQ(a.connections(), 1);
  EXPECT_EQ(b.connections(), 1);
}

TEST(LoadBalancingTest, RoundRobinSpreadsRequestsByWeight) {
  ScriptedUpstream a(ScriptedUpstream::Ok("a"));
  ScriptedUpstream b(ScriptedUpstream::Ok("b"));
  Gate gate(Routed("[{url: \"" + a.url() + "\", weight: 3}, " + b.url() + "]"));
  Client client(gate.at());
  for (int i = 0; i < 40; ++i) EXPECT_EQ(client.Get("/").status, 200);
  EXPECT_EQ(a.requests(), 30);
  EXPECT_EQ(b.requests(), 10);
}

TEST(LoadBalancingTest, LeastRequestsSkipsBusyTarget) {
  Signal go;
  ScriptedUpstream slow([&](Connection& connection) {
    HttpRequest request;
    while (connection.Read(request)) {
      (void)go.Wait();
      connection.Send(Http("200 OK", {}, "slow"));
    }
  });
  ScriptedUpstream quick(ScriptedUpstream::Ok("quick"));
  Gate gate(Routed(List(slow, quick), "balance: least_requests"));
  Client waiting(gate.at());
  while (slow.requests() == 0) {  // One of the first two requests goes to `slow`.
    waiting.Send(GetText("/"));
    ASSERT_TRUE(
        test::WaitUntil([&] { return slow.requests() == 1 || waiting.stream().Readable({}); }));
    if (slow.requests() == 0) {
      ASSERT_EQ(waiting.Read().status, 200);
    }
  }
  Client client(gate.at());
  for (int i = 0; i < 10; ++i) EXPECT_EQ(client.Get("/").body, "quick");
  EXPECT_EQ(gate.Metric(Active(slow)), 1);
  go.Give();
  EXPECT_EQ(waiting.Read().body, "slow");
  EXPECT_TRUE(test::WaitUntil([&] { return gate.Metric(Active(slow)) == 0; }));
}

TEST(LoadBalancingTest, ForwardsToAddressesOfAHostname) {
  ScriptedUpstream up(ScriptedUpstream::Ok());
  Gate gate(Routed("http://localhost:" + std::to_string(up.port())));
  // The name may also resolve to ::1, where nothing listens: the gateway then tries the next
  // address.
  Client client(gate.at());
  for (int i = 0; i < 4; ++i) EXPECT_EQ(client.Get("/").status, 200);
  EXPECT_EQ(gate.Metric(Up(up)), 1);
}

TEST(LoadBalancingTest, TreatsTargetAsDownWhenItsNameDoesNotResolve) {
  Gate gate(Routed("http://unknown.invalid:1"));
  ExpectUnavailable(gate.Get("/"));
  EXPECT_EQ(gate.Metric(Counter("down")), 1);
}

// --- Ejection -----------------------------------------------------------------------

TEST(EjectionTest, EjectsFailingTargetUntilEjectionTimeIsOver) {
  ScriptedUpstream bad(Always(Http("503 Service Unavailable", {}, "bad")));
  ScriptedUpstream good(ScriptedUpstream::Ok("good"));
  Gate gate(Routed(List(bad, good), "ejection: {failures: 3, time: 300ms}"));
  Client client(gate.at());
  int failed = 0;
  for (int i = 0; i < 6; ++i) failed += client.Get("/").status == 503 ? 1 : 0;
  const auto ejected = std::chrono::steady_clock::now();
  EXPECT_EQ(failed, 3);
  EXPECT_EQ(gate.Metric(Counter("ejections")), 1);
  bad.Use(ScriptedUpstream::Ok("better"));
  bad.EndConnections();
  EXPECT_TRUE(test::WaitUntil([&] { return client.Get("/").body == "better"; }))
      << "the ejected target did not return";
  // The gateway ejects the target for 300 ms. `ejected` is slightly later than the beginning of the
  // ejection, so slightly less than 300 ms may have passed since.
  EXPECT_GE(std::chrono::steady_clock::now() - ejected, std::chrono::milliseconds{250});
  EXPECT_EQ(gate.Metric(Up(bad)), 1);
}

TEST(EjectionTest, MetricsShowEjectedTarget) {
  ScriptedUpstream bad(Always(Http("502 Bad Gateway")));
  ScriptedUpstream good(ScriptedUpstream::Ok("good"));
  Gate gate(Routed(List(bad, good), "ejection: {failures: 1, time: 1h}"));
  Client client(gate.at());
  for (int i = 0; i < 10; ++i) (void)client.Get("/");
  EXPECT_EQ(bad.requests(), 1);
  EXPECT_EQ(gate.Metric(Up(bad)), 0);
  EXPECT_EQ(gate.Metric(Up(good)), 1);
  EXPECT_EQ(gate.Metric(Counter("attempts")), 10);
  EXPECT_EQ(gate.Metric("tidegate_gateway_responses_total{route=\"all\",code=\"5xx\"}"), 1);
  EXPECT_EQ(gate.Metric("tidegate_gateway_responses_total{route=\"all\",code=\"2xx\"}"), 9);
  EXPECT_EQ(gate.Metric("tidegate_upstream_response_seconds_count{upstream=\"up\"}"), 10);
}

TEST(EjectionTest, SuccessResetsTheFailureCount) {
  std::atomic<int> count{0};
  ScriptedUpstream flaky(ScriptedUpstream::Each([&](const HttpRequest&) {
    return ++count % 3 == 0 ? Http("200 OK") : Http("503 Service Unavailable");
  }));
  ScriptedUpstream good(ScriptedUpstream::Ok("good"));
  Gate gate(Routed(List(flaky, good), "ejection: {failures: 3, time: 1h}"));
  Client client(gate.at());
  for (int i = 0; i < 24; ++i) (void)client.Get("/");
  EXPECT_EQ(flaky.requests(), 12);
  EXPECT_EQ(gate.Metric(Counter("ejections")), 0);
}

TEST(EjectionTest, NeverEjectsTheOnlyTarget) {
  ScriptedUpstream one(Always(Http("503 Service Unavailable")));
  Gate gate(Routed(one.url(), "ejection: {failures: 1, time: 1h, percent: 100}"));
  Client client(gate.at());
  for (int i = 0; i < 5; ++i) EXPECT_EQ(client.Get("/").status, 503);
  EXPECT_EQ(one.requests(), 5);
  EXPECT_EQ(gate.Metric(Up(one)), 1);
}

TEST(EjectionTest, CountsRefusedConnectionsAsFailures) {
  ScriptedUpstream gone(ScriptedUpstream::Ok());
  gone.StopListening();
  ScriptedUpstream good(ScriptedUpstream::Ok("good"));
  Gate gate(Routed(List(gone, good), "ejection: {failures: 2, time: 1h}"));
  Client client(gate.at());
  for (int i = 0; i < 10; ++i) EXPECT_EQ(client.Get("/").body, "good");
  EXPECT_EQ(gate.Metric(Counter("connect_failures")), 2);
  EXPECT_EQ(gate.Metric(Counter("retries")), 2);
  EXPECT_EQ(gate.Metric(Counter("ejections")), 1);
}

// --- Health checks --------------------------------------------------------------------

/// Returns a handler that answers health checks with 204 or 500 depending on `healthy`, and all
/// other requests with 200.
ScriptedUpstream::Handler WithHealth(const std::atomic<bool>& healthy, const std::string& name) {
  return ScriptedUpstream::Each([&healthy, name](const HttpRequest& request) {
    if (request.target() != "/health?full=1") return Http("200 OK", {}, name);
    return healthy ? Http("204 No Content") : Http("500 Internal Server Error");
  });
}
constexpr std::string_view kHealth =
    "health: {path: \"/health?full=1\", interval: 100ms, timeout: 100ms, healthy: 2, unhealthy: 2}";

TEST(HealthCheckTest, RemovesUnhealthyTargetUntilItRecovers) {
  std::atomic<bool> healthy{true};
  const std::atomic<bool> always{true};
  ScriptedUpstream a(WithHealth(healthy, "a"));
  ScriptedUpstream b(WithHealth(always, "b"));
  Gate gate(Routed(List(a, b), kHealth));
  Client client(gate.at());
  const auto asks_a = [&] { return client.Get("/").body == "a" || client.Get("/").body == "a"; };
  EXPECT_TRUE(asks_a());
  healthy = false;
  EXPECT_TRUE(test::WaitUntil([&] { return gate.Metric(Up(a)) == 0; }));
  for (int i = 0; i < 10; ++i) EXPECT_EQ(client.Get("/").body, "b");
  EXPECT_EQ(gate.Metric(Up(b)), 1);
  healthy = true;
  EXPECT_TRUE(test::WaitUntil([&] { return gate.Metric(Up(a)) == 1; }));
  EXPECT_TRUE(asks_a());
}

TEST(HealthCheckTest, AnswersWith503WhenAllTargetsAreDown) {
  std::atomic<bool> healthy{false};
  ScriptedUpstream a(WithHealth(healthy, "a"));
  ScriptedUpstream b(WithHealth(healthy, "b"));
  Gate gate(Routed(List(a, b), kHealth));
  EXPECT_TRUE(test::WaitUntil([&] { return gate.Metric(Up(a)) + gate.Metric(Up(b)) == 0; }));
  Client client(gate.at());
  ExpectUnavailable(client.Get("/"));
  EXPECT_EQ(gate.Metric(Counter("down")), 1);
  healthy = true;
  EXPECT_TRUE(test::WaitUntil([&] { return client.Get("/").status == 200; }))
      << "no 200 on the connection that received 503";
}

TEST(HealthCheckTest, MarksHangingOrRefusingTargetDown) {
  ScriptedUpstream hangs([](Connection& connection) { (void)connection.WaitForEnd(); });
  ScriptedUpstream gone(ScriptedUpstream::Ok());
  gone.StopListening();
  Gate gate(Routed(List(hangs, gone), kHealth));
  EXPECT_TRUE(test::WaitUntil([&] { return gate.Metric(Up(hangs)) + gate.Metric(Up(gone)) == 0; }));
  EXPECT_TRUE(test::WaitUntil([&] { return hangs.open() <= 1; })) << "health checks pile up";
}

TEST(HealthCheckTest, SendsConfiguredRequestThatIsNotCounted) {
  const std::atomic<bool> always{true};
  ScriptedUpstream a(WithHealth(always, "a"));
  Gate gate(Routed(a.url(), kHealth, "rules: [{id: all, per: const, limit: 1000/h}]\n"));
  ASSERT_TRUE(test::WaitUntil([&] { return a.requests() >= 2; }));
  const HttpRequest check = a.last();
  EXPECT_EQ(check.start, "GET /health?full=1 HTTP/1.1");
  EXPECT_EQ(check.Field("Host"), "127.0.0.1:" + std::to_string(a.port()));
  EXPECT_EQ(gate.Metric(Counter("attempts")), 0);
}

// --- Caps on concurrent requests ------------------------------------------------------

TEST(ConcurrentRequestCapTest, AnswersWith503AboveMaxRequests) {
  Signal go;
  ScriptedUpstream up([&](Connection& connection) {
    HttpRequest request;
    while (connection.Read(request)) {
      (void)go.Wait();
      connection.Send(Http("200 OK"));
    }
  });
  Gate gate(Routed(up.url(), "max_requests: 2"));
  Client one(gate.at());
  Client two(gate.at());
  one.Send(GetText("/"));
  two.Send(GetText("/"));
  ASSERT_TRUE(test::WaitUntil([&] { return up.requests() == 2; }));
  Client three(gate.at());
  for (int i = 0; i < 3; ++i) ExpectUnavailable(three.Get("/"));
  EXPECT_EQ(gate.Metric(Counter("full")), 3);
  EXPECT_EQ(gate.Metric("tidegate_gateway_requests_total{route=\"all\",outcome=\"unavailable\"}"),
            3);
  EXPECT_EQ(up.requests(), 2);
  go.Give();
  EXPECT_EQ(one.Read().status, 200);
  EXPECT_EQ(two.Read().status, 200);
  EXPECT_EQ(three.Get("/").status, 200);
}

TEST(ConcurrentRequestCapTest, DisconnectedClientFreesItsRequestSlot) {
  ScriptedUpstream up([&](Connection& connection) {
    HttpRequest request;
    while (connection.Read(request)) {
      if (request.target() == "/hang") {
        (void)connection.WaitForEnd();
        return;
      }
      connection.Send(Http("200 OK"));
    }
  });
  Gate gate(Routed(up.url(), "max_requests: 1"));
  for (int i = 0; i < 5; ++i) {
    Client client(gate.at());
    client.Send(GetText("/hang"));
    ASSERT_TRUE(test::WaitUntil([&] { return up.requests() == 2 * i + 1; }));
    client.stream().Close();
    ASSERT_TRUE(test::WaitUntil([&] { return gate.Metric(Active(up)) == 0; }));
    EXPECT_EQ(gate.Get("/").status, 200);
  }
}

TEST(ConcurrentRequestCapTest, SkipsTargetAtMaxRequests) {
  ScriptedUpstream slow([&](Connection& connection) {
    HttpRequest request;
    if (connection.Read(request)) (void)connection.WaitForEnd();
  });
  ScriptedUpstream quick(ScriptedUpstream::Ok("quick"));
  Gate gate(Routed(List(slow, quick), "max_requests: 1"));
  Client waiting(gate.at());
  Client other(gate.at());
  waiting.Send(GetText("/"));
  other.Send(GetText("/"));
  ASSERT_TRUE(test::WaitUntil([&] { return slow.requests() == 1 && quick.requests() == 1; }));
  for (int i = 0; i < 10; ++i) EXPECT_EQ(gate.Get("/").body, "quick");
}

}  // namespace
}  // namespace tidegate::behaviour
