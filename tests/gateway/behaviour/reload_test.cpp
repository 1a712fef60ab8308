// SPDX-License-Identifier: Apache-2.0
// Clients notice neither a reload of the configuration under load nor a graceful shutdown.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <thread>

#include "gateway/behaviour/gateway_fixture.hpp"
#include "support/wait.hpp"

namespace tidegate::behaviour {
namespace {

using Connection = ScriptedUpstream::Connection;

constexpr int kReactors = 3;

/// Returns a configuration with routes `a` and `b` to upstreams `a` and `b`. `more_of_a`:
/// additional keys of upstream `a`.
std::string Two(const std::string& a, const std::string& b, std::string_view more_of_a = {}) {
  return "routes:\n  - {id: a, match: {path: /a/**}, upstream: a}\n"
         "  - {id: b, match: {path: /b/**}, upstream: b}\n"
         "upstreams:\n  a: {targets: \"" +
         a + "\"" + std::string(more_of_a) + "}\n  b: {targets: \"" + b + "\"}\n";
}

/// Clients that send requests without a pause. Counts responses with status 200 as good and all
/// others as bad.
class Load {
 public:
  Load(const net::Endpoint& at, std::string_view target, int clients) {
    for (int i = 0; i < clients; ++i) {
      threads_.emplace_back([this, at, text = GetText(target)] {
        Client client(at);
        while (!stop_) {
          ++(client.Ask(text).status == 200 ? good_ : bad_);
          if (bad_ > 10) return;
        }
      });
    }
  }
  ~Load() { Stop(); }
  void Stop() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }
  [[nodiscard]] int good() const { return good_; }
  [[nodiscard]] int bad() const { return bad_; }
  /// Waits until `count` more requests have succeeded, or one has failed. Returns false on timeout.
  [[nodiscard]] bool More(int count) const {
    return test::WaitUntil([this, until = good_ + count] { return good_ >= until || bad_ > 0; });
  }

 private:
  std::atomic<bool> stop_{false};
  std::atomic<int> good_{0};
  std::atomic<int> bad_{0};
  std::vector<std::thread> threads_;
};

// --- Reloads ------------------------------------------------------------------------

TEST(ReloadTest, RepeatedReloadsUnderLoadFailNoRequest) {
  ScriptedUpstream a(ScriptedUpstream::Ok("a"));
  ScriptedUpstream b(ScriptedUpstream::Ok("b"));
  Gate gate(Two(a.url(), b.url()), kReactors);
  Load load_a(gate.at(), "/a/x", 4);
  Load load_b(gate.at(), "/b/x", 4);
  for (int i = 0; i < 30; ++i) {
    // Each reload changes the configuration of upstream `a`; `b` stays unchanged.
    EXPECT_TRUE(gate.Reload(Two(a.url(), b.url(), ", keep_alive: " + std::to_string(100 + i % 7))));
    EXPECT_TRUE(load_a.More(5));
    EXPECT_TRUE(load_b.More(5));
  }
  load_a.Stop();
  load_b.Stop();
  EXPECT_EQ(load_a.bad() + load_b.bad(), 0);
  EXPECT_EQ(gate.Metric("tidegate_gateway_requests_total{route=\"a\",outcome=\"passed\"}"),
            load_a.good());
}

TEST(ReloadTest, UsesNewRoutesAndDropsOldOnes) {
  ScriptedUpstream a(ScriptedUpstream::Ok("a"));
  ScriptedUpstream b(ScriptedUpstream::Ok("b"));
  Gate gate(Two(a.url(), b.url()), kReactors);
  Client client(gate.at());
  EXPECT_EQ(client.Get("/a/x").body, "a");
  EXPECT_EQ(client.Get("/c").status, 404);
  EXPECT_TRUE(
      gate.Reload("routes: [{id: c, match: {path: /c}, upstream: b}]\nupstreams: {b: "
                  "{targets: \"" +
                  b.url() + "\"}}\n"));
  EXPECT_TRUE(test::WaitUntil([&] { return client.Get("/c").status == 200; }))
      << "the existing connection uses the old routes";
  EXPECT_EQ(client.Get("/c").body, "b");
  EXPECT_EQ(client.Get("/a/x").status, 404);
}

TEST(ReloadTest, InvalidConfigurationChangesNothing) {
  ScriptedUpstream a(ScriptedUpstream::Ok("a"));
  Gate gate(Routed(a.url()), kReactors);
  EXPECT_EQ(gate.Get("/").body, "a");
  Config config = Gate::ConfigOf(Routed("https://127.0.0.1:1"));
  config.upstreams.front().tls.ca_pem = "no certificate";
  Problems problems;
  EXPECT_FALSE(gate.server().Reload(config, problems));
  EXPECT_FALSE(problems.empty());
  EXPECT_EQ(gate.Get("/").body, "a");
}

TEST(ReloadTest, KeepsConnectionsOfUnchangedUpstream) {
  ScriptedUpstream a(ScriptedUpstream::Ok("a"));
  ScriptedUpstream b(ScriptedUpstream::Ok("b"));
  Gate gate(Two(a.url(), b.url()), 1);
  Client client(gate.at());
  EXPECT_EQ(client.Get("/a/x").body, "a");
  EXPECT_EQ(client.Get("/b/x").body, "b");
  for (int i = 1; i < 10; ++i) {
    EXPECT_TRUE(gate.Reload(Two(a.url(), b.url(), ", keep_alive: " + std::to_string(i))));
    EXPECT_TRUE(
        test::WaitUntil([&] { return client.Get("/a/x").status == 200 && a.connections() > i; }));
    EXPECT_EQ(client.Get("/b/x").body, "b");
  }
  EXPECT_EQ(b.connections(), 1);
  EXPECT_TRUE(test::WaitUntil([&] { return a.open() == 1; }))
      << "connections of a replaced upstream are still open";
}

TEST(ReloadTest, SendsNewRequestsToChangedTarget) {
  ScriptedUpstream before(ScriptedUpstream::Ok("before"));
  ScriptedUpstream after(ScriptedUpstream::Ok("after"));
  Gate gate(Routed(before.url()), kReactors);
  Load load(gate.at(), "/", 6);
  EXPECT_TRUE(load.More(50));
  EXPECT_TRUE(gate.Reload(Routed(after.url())));
  EXPECT_TRUE(test::WaitUntil([&] { return before.open() == 0; }))
      << "a connection to the old target is still open";
  const int requests = before.requests();
  EXPECT_TRUE(load.More(100));
  load.Stop();
  EXPECT_EQ(load.bad(), 0);
  EXPECT_EQ(before.requests(), requests);
}

TEST(ReloadTest, FinishesRequestsOfRemovedUpstream) {
  Signal go;
  ScriptedUpstream a([&](Connection& connection) {
    HttpRequest request;
    while (connection.Read(request)) {
      connection.Send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nfirst");
      (void)go.Wait();
      connection.Send("later");
    }
  });
  ScriptedUpstream b(ScriptedUpstream::Ok("b"));
  Gate gate(Routed(a.url()), kReactors);
  Client client(gate.at());
  client.Send(GetText("/"));
  ASSERT_TRUE(test::WaitUntil([&] { return a.requests() == 1; }));
  EXPECT_TRUE(gate.Reload("routes: [{id: all, upstream: other}]\nupstreams: {other: {targets: \"" +
                          b.url() + "\"}}\n"));
  EXPECT_TRUE(test::WaitUntil([&] { return gate.Get("/").body == "b"; }));
  go.Give();
  EXPECT_EQ(client.Read().body, "firstlater");
  EXPECT_EQ(client.Get("/").body, "b") << "the next request reached the wrong upstream";
  EXPECT_TRUE(test::WaitUntil([&] { return a.open() == 0; }));
}

TEST(ReloadTest, KeepsTunnelsOpen) {
  ScriptedUpstream a([](Connection& connection) {
    HttpRequest request;
    if (!connection.ReadHead(request)) return;
    connection.Send("HTTP/1.1 101 Go\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n");
    while (true) {
      const std::string line = connection.ReadUntil("\n");
      if (line.empty() || !connection.Send(line)) return;
    }
  });
  ScriptedUpstream b(ScriptedUpstream::Ok("b"));
  Gate gate(Routed(a.url()), kReactors);
  Client client(gate.at());
  EXPECT_EQ(client.Get("/", "Upgrade: x\r\nConnection: Upgrade\r\n").status, 101);
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(gate.Reload(Routed(b.url(), "keep_alive: " + std::to_string(i))));
    client.Send("line\n");
    EXPECT_EQ(client.stream().ReadUntil("\n"), "line\n");
  }
}

TEST(ReloadTest, RestoresUnhealthyTargetWhenHealthChecksAreRemoved) {
  // Without health checks nothing would ever mark the target healthy again, and it would receive no
  // more requests.
  ScriptedUpstream up(ScriptedUpstream::Each([](const HttpRequest& request) {
    return request.target() == "/health" ? Http("500 Internal Server Error") : Http("200 OK");
  }));
  Gate gate(Routed(up.url(), "health: {path: /health, interval: 100ms, unhealthy: 1}"));
  Client client(gate.at());
  EXPECT_TRUE(test::WaitUntil([&] { return client.Get("/").status == 503; }));
  EXPECT_TRUE(gate.Reload(Routed(up.url())));
  EXPECT_TRUE(test::WaitUntil([&] { return client.Get("/").status == 200; }));
}

TEST(ReloadTest, AppliesLatestTimeoutAfterManyReloads) {
  ScriptedUpstream up([](Connection& connection) { (void)connection.WaitForEnd(); });
  Gate gate(Routed(up.url()));
  for (int i = 0; i < 60; ++i) {
    EXPECT_TRUE(gate.Reload(Routed(up.url(), "response_timeout: " + std::to_string(20 + i) + "s")));
  }
  EXPECT_TRUE(gate.Reload(Routed(up.url(), "response_timeout: 150ms")));
  Client client(gate.at());
  client.Send(GetText("/"));
  ASSERT_TRUE(client.stream().Readable(std::chrono::seconds{3}))
      << "the request uses the response_timeout of an older configuration";
  EXPECT_EQ(client.Read().status, 504);
}

// --- Shutdown ---------------------------------------------------------------------------

/// Returns the status of /readyz.
int Ready(Gate& gate) {
  service::HttpClient client(gate.server().admin());
  client.Send(service::Get("/readyz"));
  return client.Read().status;
}

bool Refuses(const net::Endpoint& at) {
  const int fd = ::socket(at.family(), SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool refused = ::connect(fd, at.address(), at.size()) != 0;
  ::close(fd);
  return refused;
}

TEST(DrainTest, FailsReadinessCheckFirstAndStillServes) {
  ScriptedUpstream up(ScriptedUpstream::Ok());
  Gate gate(Routed(up.url()), kReactors);
  EXPECT_EQ(Ready(gate), 200);
  gate.server().NotReady();
  EXPECT_EQ(Ready(gate), 503);
  const HttpResponse answer = gate.Get("/");
  EXPECT_EQ(answer.status, 200);
  EXPECT_FALSE(answer.Has("Connection"));
}

TEST(DrainTest, FinishesPendingRequestsWithConnectionClose) {
  Signal go;
  ScriptedUpstream up([&](Connection& connection) {
    HttpRequest request;
    while (connection.Read(request)) {
      (void)go.Wait();
      connection.Send(Http("200 OK", {}, "done"));
    }
  });
  Gate gate(Routed(up.url()), kReactors);
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 12; ++i) {
    clients.push_back(std::make_unique<Client>(gate.at()));
    clients.back()->Send(GetText("/"));
  }
  ASSERT_TRUE(test::WaitUntil([&] { return up.requests() == 12; }));
  Signal drained;
  gate.server().Drain([&] { drained.Give(); });
  EXPECT_EQ(Ready(gate), 503);
  EXPECT_TRUE(test::WaitUntil([&] { return Refuses(gate.at()); }));
  EXPECT_FALSE(drained.given());
  go.Give();
  for (auto& client : clients) {
    const HttpResponse answer = client->Read();
    EXPECT_EQ(answer.body, "done");
    EXPECT_EQ(answer.Field("Connection"), "close");
    EXPECT_EQ(client->WaitForEnd(), Client::End::kClosed);
  }
  clients.clear();
  EXPECT_TRUE(drained.Wait());
}

TEST(DrainTest, FinishesResponseThatHasBegun) {
  Signal go;
  ScriptedUpstream up([&](Connection& connection) {
    HttpRequest request;
    if (!connection.Read(request)) return;
    connection.Send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n");
    (void)go.Wait();
    connection.Send("5\r\nlater\r\n0\r\n\r\n");
  });
  Gate gate(Routed(up.url()), kReactors);
  Client client(gate.at());
  client.Send(GetText("/"));
  HttpResponse answer;
  ASSERT_TRUE(test::ReadHead(client.stream(), answer));
  Signal drained;
  gate.server().Drain([&] { drained.Give(); });
  EXPECT_TRUE(test::WaitUntil([&] { return Refuses(gate.at()); }));
  go.Give();
  test::ReadResponseBody(client.stream(), answer);
  EXPECT_TRUE(answer.whole);
  EXPECT_EQ(answer.body, "firstlater");
  EXPECT_EQ(client.WaitForEnd(), Client::End::kClosed);
  client.stream().Close();
  EXPECT_TRUE(drained.Wait());
}

TEST(DrainTest, ClosesIdleConnections) {
  ScriptedUpstream up(ScriptedUpstream::Ok());
  Gate gate(Routed(up.url()), kReactors);
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 12; ++i) {
    clients.push_back(std::make_unique<Client>(gate.at()));
    if (i % 2 != 0) continue;
    EXPECT_EQ(clients.back()->Get("/").status, 200);
  }
  Signal drained;
  gate.server().Drain([&] { drained.Give(); });
  for (auto& client : clients) EXPECT_EQ(client->WaitForEnd(), Client::End::kClosed);
  EXPECT_TRUE(drained.Wait());
}

TEST(DrainTest, AnswersLastRequestOnIdleConnection) {
  ScriptedUpstream up(ScriptedUpstream::Ok());
  Gate gate(Routed(up.url()), kReactors);
  Client client(gate.at());
  EXPECT_EQ(client.Get("/").status, 200);
  gate.server().Drain([] {});
  EXPECT_TRUE(test::WaitUntil([&] { return Refuses(gate.at()); }));
  // The client could not know that the server shuts down.
  const HttpResponse answer = client.Get("/");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.Field("Connection"), "close");
}

TEST(DrainTest, CutsNoResponseUnderLoad) {
  ScriptedUpstream up(ScriptedUpstream::Ok(std::string(50'000, 'x')));
  Gate gate(Routed(up.url()), kReactors);
  std::atomic<int> cut{0};
  std::atomic<int> good{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, at = gate.at()] {
      Client client(at);
      while (client.Send(GetText("/"))) {
        HttpResponse answer;
        if (!test::ReadHead(client.stream(), answer)) return;
        test::ReadResponseBody(client.stream(), answer);
        ++(answer.whole ? good : cut);
        if (answer.Field("Connection") == "close") return;
      }
    });
  }
  ASSERT_TRUE(test::WaitUntil([&] { return good > 100; }));
  Signal drained;
  gate.server().Drain([&] { drained.Give(); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(cut, 0);
  EXPECT_TRUE(drained.Wait());
}

}  // namespace
}  // namespace tidegate::behaviour
