// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>

#include "service/late_support.hpp"

namespace tidegate::service {
namespace {

// If the buffer of a connection always contains the beginning of the next request, its header
// deadline must still be set again for each request. Otherwise the deadline of the first head
// closes a connection that has answered thousands of requests.
TEST(DeadlinesTest, HeaderTimeoutDoesNotEndABusyPipeline) {
  Echo echo;
  auto deadlines = Patient();
  deadlines[static_cast<std::size_t>(net::Deadlines::Kind::kHeader)] = 300ms;
  Service service(echo, deadlines);
  service.Start();
  Client client(service.port());
  std::string request = "GET / HTTP/1.1\r\nHost: x\r\nX: ";
  // Requests of 200 bytes: 2048 % 200 == 48, so a block of 2048 bytes ends inside a request.
  request += std::string(200 - request.size() - 4, 'a') + "\r\n\r\n";
  std::string many;
  for (int i = 0; i < 2000; ++i) many += request;
  std::atomic<bool> end{false};
  std::atomic<int> refused{0};
  std::atomic<std::size_t> bytes{0};
  std::thread reader([&] {
    std::string tail;
    char buffer[65536];
    while (true) {
      const ssize_t count = ::recv(client.fd(), buffer, sizeof buffer, 0);
      if (count <= 0) break;
      bytes += static_cast<std::size_t>(count);
      tail.append(buffer, static_cast<std::size_t>(count));
      if (tail.find("408 Request Timeout") != std::string::npos) ++refused;
      tail = tail.substr(tail.size() - std::min<std::size_t>(tail.size(), 18));
    }
    end = true;
  });
  const auto until = std::chrono::steady_clock::now() + 3s;
  while (!end && std::chrono::steady_clock::now() < until && client.Send(many)) {
  }
  ::shutdown(client.fd(), SHUT_WR);
  reader.join();
  EXPECT_EQ(refused, 0) << "after " << bytes << " bytes of responses";
}

// The last response must reach a client that has sent more than the server has read: close() with
// unread data sends RST, which discards what the client has not yet received.
TEST(CloseTest, DoesNotResetConnectionBeforeTheLastResponseIsRead) {
  Echo echo;
  Service service(echo);
  service.Start();
  Client client(service.port());
  client.Send("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n" + std::string(100'000, 'x'));
  char buffer[4096];
  ssize_t count = 0;
  std::string got;
  while ((count = ::recv(client.fd(), buffer, sizeof buffer, 0)) > 0) {
    got.append(buffer, static_cast<std::size_t>(count));
  }
  EXPECT_EQ(count, 0) << std::strerror(errno) << " after: " << got.substr(0, 15);
}

// The response to a connection above the limit must arrive as well, although the server has not
// read the request.
TEST(CloseTest, DoesNotResetConnectionAboveTheLimit) {
  Echo echo;
  net::HttpListener::Options options;
  options.max_connections = 1;
  Service service(echo, Patient(), options);
  Client first(service.port());
  Client second(service.port());
  // Sent before the server accepts the connection, as happens under load.
  second.Send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  service.Start();
  char buffer[4096];
  ssize_t count = 0;
  while ((count = ::recv(second.fd(), buffer, sizeof buffer, 0)) > 0) {
  }
  EXPECT_EQ(count, 0) << std::strerror(errno);
}

/// A watcher that always requests another turn, like a connection whose client sends faster than it
/// is served.
struct Busy final : net::Watcher {
  net::Reactor* reactor = nullptr;
  std::size_t turns = 0;
  void OnReady(std::uint32_t) override {
    ++turns;
    reactor->Again(*this);
  }
};

// Each event adds an entry to the reactor's list of watchers to run again, and each entry renews
// itself; the number of turns per round must stay bounded.
TEST(FairnessTest, WatcherRunsAtMostThreeTimesPerRound) {
  net::Reactor reactor(Patient());
  Busy busy;
  busy.reactor = &reactor;
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
  ASSERT_TRUE(reactor.Watch(ends[0], busy));
  std::size_t before = 0;
  std::size_t most = 0;
  int rounds = 0;
  std::function<void()> each_round = [&] {
    most = std::max(most, busy.turns - before);
    before = busy.turns;
    (void)!::write(ends[1], "x", 1);  // Causes an event in every round.
    if (++rounds == 200) return reactor.Stop();
    reactor.Post(each_round);
  };
  reactor.Post(each_round);
  reactor.Run(std::nullopt);
  ::close(ends[0]);
  ::close(ends[1]);
  EXPECT_LE(most, 3u) << "turns in one of 200 rounds";
}

}  // namespace
}  // namespace tidegate::service
