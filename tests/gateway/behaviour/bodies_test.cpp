// SPDX-License-Identifier: Apache-2.0
// The gateway forwards bodies unchanged in both directions, at the pace of the slower side.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <future>

#include "gateway/behaviour/gateway_fixture.hpp"
#include "support/wait.hpp"

namespace tidegate::behaviour {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using Connection = ScriptedUpstream::Connection;

// --- Bytes are unchanged --------------------------------------------------------

/// Size of a body and size of its chunks, in bytes; chunk size 0: the body has a Content-Length.
using Shape = std::tuple<std::size_t, std::size_t>;
class EchoedBodyTest : public testing::TestWithParam<Shape> {
 protected:
  /// Returns a handler that sends each request's body back once it is complete, in chunks of
  /// `chunk` bytes; 0: with a Content-Length.
  static ScriptedUpstream::Handler Echo(std::size_t chunk) {
    return ScriptedUpstream::Each([chunk](const HttpRequest& request) {
      return Framed("HTTP/1.1 200 OK\r\n", request.body, chunk);
    });
  }
  static std::string Framed(std::string start, std::string_view body, std::size_t chunk) {
    if (chunk == 0) {
      start.append("Content-Length: ").append(std::to_string(body.size()));
      return start.append("\r\n\r\n").append(body);
    }
    return start.append("Transfer-Encoding: chunked\r\n\r\n").append(Chunked(body, chunk));
  }
};

TEST_P(EchoedBodyTest, ForwardsBodiesUnchangedBothWays) {
  const auto [size, chunk] = GetParam();
  ScriptedUpstream up(Echo(chunk));
  Gate gate(Routed(up.url()));
  Client client(gate.at());
  for (unsigned round = 0; round < (size > 100'000 ? 1 : 3); ++round) {
    const std::string body = RandomBytes(size, round);
    // The client sends on a second thread, because it must read the response at the same time.
    std::thread sender(
        [&] { client.Send(Framed("POST /echo HTTP/1.1\r\nHost: test\r\n", body, chunk)); });
    const HttpResponse answer = client.Read();
    sender.join();
    ASSERT_EQ(answer.status, 200);
    ASSERT_EQ(answer.body.size(), size);
    ASSERT_TRUE(answer.whole);
    ASSERT_TRUE(answer.body == body) << "the response body differs from the request body";
    EXPECT_EQ(answer.Field("Transfer-Encoding"), chunk == 0 ? "" : "chunked");
  }
  EXPECT_EQ(up.connections(), 1);
}

std::string ShapeName(const testing::TestParamInfo<Shape>& of) {
  const auto [size, chunk] = of.param;
  return std::to_string(size) + (chunk == 0 ? "Length" : "Chunks" + std::to_string(chunk));
}
INSTANTIATE_TEST_SUITE_P(Small, EchoedBodyTest,
                         testing::Combine(testing::Values(0, 1, 2047, 2048, 16383, 16384, 16385),
                                          testing::Values(0, 1000, 16384, 100'000)),
                         ShapeName);
INSTANTIATE_TEST_SUITE_P(Tiny, EchoedBodyTest, testing::Values(Shape{5000, 1}, Shape{40'000, 7}),
                         ShapeName);
INSTANTIATE_TEST_SUITE_P(Large, EchoedBodyTest,
                         testing::Combine(testing::Values(1u << 20, 20u << 20),
                                          testing::Values(0, 100'000)),
                         ShapeName);

TEST(BodiesTest, ForwardsRequestBodySentByteByByte) {
  ScriptedUpstream up(ScriptedUpstream::Each(
      [](const HttpRequest& request) { return Http("200 OK", {}, request.body); }));
  Gate gate(Routed(up.url()));
  Client client(gate.at());
  const std::string text = "POST / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n" +
                           Chunked("hello, world", 5, "X-Sum: 12\r\n");
  for (const char byte : text) client.Send({&byte, 1});
  EXPECT_EQ(client.Read().body, "hello, world");
  EXPECT_EQ(client.Get("/").status, 200) << "the request after the body failed";
}

TEST(BodiesTest, ForwardsResponseSentByteByByte) {
  ScriptedUpstream up([](Connection& connection) {
    HttpRequest request;
    while (connection.Read(request)) {
      const std::string text = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" +
                               Chunked("hello, world", 5, "X-Sum: 12\r\n");
      for (const char byte : text) connection.Send({&byte, 1});
    }
  });
  Gate gate(Routed(up.url()));
  Client client(gate.at());
  for (int i = 0; i < 3; ++i) {
    const HttpResponse answer = client.Get("/", "TE: trailers\r\n");
    EXPECT_EQ(answer.body, "hello, world");
    EXPECT_EQ(answer.trailers.Value("X-Sum"), "12");
  }
  EXPECT_EQ(up.connections(), 1);
}

// --- Backpressure ---------------------------------------------------------------

std::size_t ResidentBytes() {
  std::size_t pages = 0;
  std::size_t resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

/// Sends `piece` repeatedly until the other side accepts nothing for 300 ms. Returns the number of
/// bytes sent.
std::size_t SendUntilStalled(test::Stream& socket, std::string_view piece, std::size_t at_most) {
  std::size_t total = 0;
  while (total < at_most) {
    const timeval briefly{.tv_sec = 0, .tv_usec = 300'000};
    setsockopt(socket.fd(), SOL_SOCKET, SO_SNDTIMEO, &briefly, sizeof briefly);
    const ssize_t sent = ::send(socket.fd(), piece.data(), piece.size(), MSG_NOSIGNAL);
    if (sent <= 0) break;
    total += static_cast<std::size_t>(sent);
  }
  return total;
}

constexpr std::size_t kMuch = 64u << 20;
/// Upper bound on the bytes that the socket buffers of both connections hold; far less than kMuch.
constexpr std::size_t kInSockets = 24u << 20;
/// Upper bound on the growth of this process's memory during a test: a few buffers, and freed
/// memory that sanitizers keep.
constexpr std::size_t kInMemory = 8u << 20;

TEST(BackpressureTest, SlowClientStallsUpstreamWithoutBuffering) {
  std::promise<std::size_t> taken;
  std::size_t grown = 0;
  const std::string piece(65536, 'x');
  ScriptedUpstream up([&](Connection& connection) {
    HttpRequest request;
    if (!connection.Read(request)) return;
    connection.Send("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(kMuch) + "\r\n\r\n");
    const std::size_t before = ResidentBytes();
    const std::size_t sent = SendUntilStalled(connection, piece, kMuch);
    const std::size_t after = ResidentBytes();
    grown = after > before ? after - before : 0;
    taken.set_value(sent);
    const timeval patience{.tv_sec = kPatience.count(), .tv_usec = 0};
    setsockopt(connection.fd(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    connection.Send(std::string(kMuch - sent, 'x'));
  });
  Gate gate(Routed(up.url()));
  Client client(gate.at(), 65536);
  client.Send(GetText("/"));
  const std::size_t sent = taken.get_future().get();
  EXPECT_LT(sent, kInSockets) << "the gateway buffered the whole body";
  EXPECT_LT(grown, kInMemory);
  // The client now reads the whole response: no byte is missing.
  const HttpResponse answer = client.Read();
  EXPECT_EQ(answer.body.size(), kMuch);
}

TEST(BackpressureTest, SlowUpstreamStallsClientWithoutBuffering) {
  Signal read;
  ScriptedUpstream up([&](Connection& connection) {
    HttpRequest request;
    if (!connection.ReadHead(request)) return;
    (void)read.Wait();
    connection.ReadBody(request);
    connection.Send(Http("200 OK", {}, std::to_string(request.body.size())));
  });
  Gate gate(Routed(up.url()));
  Client client(gate.at());
  client.Send("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: " + std::to_string(kMuch) +
              "\r\n\r\n");
  const std::string piece(65536, 'x');
  const std::size_t before = ResidentBytes();
  const std::size_t sent = SendUntilStalled(client.stream(), piece, kMuch);
  const std::size_t after = ResidentBytes();
  EXPECT_LT(sent, kInSockets) << "the gateway buffered the whole body";
  EXPECT_LT(after, before + kInMemory);
  read.Give();
  const timeval patience{.tv_sec = kPatience.count(), .tv_usec = 0};
  setsockopt(client.fd(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  EXPECT_TRUE(client.Send(std::string(kMuch - sent, 'x')));
  EXPECT_EQ(client.Read().body, std::to_string(kMuch));
}

TEST(BackpressureTest, ForwardsServerSentEventsImmediately) {
  Signal first_seen;
  ScriptedUpstream up([&](Connection& connection) {
    HttpRequest request;
    if (!connection.Read(request)) return;
    connection.Send(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        "9\r\ndata: 1\n\n\r\n");
    if (!first_seen.Wait()) return;
    connection.Send("9\r\ndata: 2\n\n\r\n0\r\n\r\n");
  });
  Gate gate(Routed(up.url()));
  Client client(gate.at());
  client.Send(GetText("/events", "Accept: text/event-stream\r\n"));
  EXPECT_THAT(client.stream().ReadUntil("data: 1\n\n\r\n"), HasSubstr("text/event-stream"));
  first_seen.Give();  // The upstream sends the second event only after this.
  EXPECT_THAT(client.stream().ReadUntil("0\r\n\r\n"), HasSubstr("data: 2\n\n"));
}

TEST(BackpressureTest, ForwardsRequestBodyBeforeItIsComplete) {
  Signal first_seen;
  ScriptedUpstream up([&](Connection& connection) {
    HttpRequest request;
    if (!connection.ReadHead(request)) return;
    if (connection.ReadExactly(5) == "first") first_seen.Give();
    connection.ReadExactly(6);
    connection.Send(Http("200 OK"));
  });
  Gate gate(Routed(up.url()));
  Client client(gate.at());
  client.Send("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 11\r\n\r\nfirst");
  EXPECT_TRUE(first_seen.Wait());
  client.Send("second");
  EXPECT_EQ(client.Read().status, 200);
}

// --- Early responses --------------------------------------------------------------

/// Returns a handler that responds as soon as it has a request's head and then reads the body if
/// `reads`.
ScriptedUpstream::Handler Early(std::string answer, bool reads) {
  return [answer = std::move(answer), reads](Connection& connection) {
    HttpRequest request;
    while (connection.ReadHead(request)) {
      connection.Send(answer);
      if (!reads) break;
      connection.ReadBody(request);
      if (!request.whole) break;
    }
    (void)connection.WaitForEnd();
  };
}

TEST(EarlyResponseTest, ForwardsResponseBeforeRequestBodyIsSent) {
  ScriptedUpstream up(Early(Http("403 Forbidden", {}, "no"), true));
  Gate gate(Routed(up.url()));
  Client client(gate.at());
  client.Send("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 10\r\n\r\n12345");
  const HttpResponse answer = client.Read();
  EXPECT_EQ(answer.status, 403);
  EXPECT_EQ(answer.body, "no");
  if (answer.Field("Connection") == "close") return;
  client.Send("67890");  // The rest of the body, which the gateway must not parse as a request.
  EXPECT_EQ(client.Get("/").status, 403);
}

TEST(EarlyResponseTest, AnnouncesCloseWhenBodyIsTooLongToDrain) {
  // The rest of the body is too long to read and discard: the client must know that its next
  // request needs a new connection.
  ScriptedUpstream up(Early(Http("403 Forbidden", {}, "no"), false));
  Gate gate(Routed(up.url()));
  Client client(gate.at());
  client.Send("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 1000000\r\n\r\n12345");
  const HttpResponse answer = client.Read();
  EXPECT_EQ(answer.status, 403);
  client.EndSending();
  EXPECT_EQ(client.WaitForEnd(), Client::End::kClosed);
  EXPECT_EQ(answer.Field("Connection"), "close") << "Connection: close is missing";
}

TEST(EarlyResponseTest, DoesNotReuseUpstreamConnectionOfUnfinishedRequest) {
  ScriptedUpstream up(Early(Http("403 Forbidden", {}, "no"), false));
  Gate gate(Routed(up.url()));
  Client client(gate.at());
  client.Send("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 10\r\n\r\n12345");
  EXPECT_EQ(client.Read().status, 403);
  Client other(gate.at());
  EXPECT_EQ(other.Get("/").status, 403);
  EXPECT_EQ(up.connections(), 2);
}

// --- Body limit -------------------------------------------------------------------

TEST(BodyLimitTest, RejectsTooLargeContentLengthAtOnce) {
  ScriptedUpstream up(ScriptedUpstream::Ok());
  Gate gate(Routed(up.url(), {}, "gateway: {body_bytes: 100}\n"));
  Client client(gate.at());
  EXPECT_EQ(client.Ask(RequestText("POST", "/", {}, std::string(100, 'x'))).status, 200);
  client.Send("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 101\r\n\r\n");
  const HttpResponse answer = client.Read();
  EXPECT_EQ(answer.status, 413);
  EXPECT_EQ(answer.Field("Content-Type"), "application/problem+json");
  EXPECT_EQ(up.requests(), 1);
}

TEST(BodyLimitTest, RejectsChunkedBodyOnceItExceedsTheLimit) {
  std::atomic<bool> looked_whole{false};
  ScriptedUpstream up([&](Connection& connection) {
    HttpRequest request;
    while (connection.ReadHead(request)) {
      connection.ReadBody(request);
      if (!request.whole) return;
      if (request.body.size() > 100) looked_whole = true;
      connection.Send(Http("200 OK"));
    }
  });
  Gate gate(Routed(up.url(), {}, "gateway: {body_bytes: 100}\n"));
  const std::string head = "POST / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n";
  EXPECT_EQ(Client(gate.at()).Ask(head + Chunked(std::string(100, 'x'), 30)).status, 200);
  Client client(gate.at());
  client.Send(head + "32\r\n" + std::string(50, 'x') + "\r\n");
  ASSERT_TRUE(test::WaitUntil([&] { return up.requests() == 2; }));
  client.Send("33\r\n" + std::string(51, 'x') + "\r\n0\r\n\r\n");
  const HttpResponse answer = client.Read();
  EXPECT_EQ(answer.status, 413);
  EXPECT_EQ(answer.Field("Content-Type"), "application/problem+json");
  EXPECT_TRUE(test::WaitUntil([&] { return up.open() <= 1; }));
  EXPECT_FALSE(looked_whole);
}

TEST(BodyLimitTest, RouteOverridesBodyLimit) {
  ScriptedUpstream up(ScriptedUpstream::Ok());
  Gate gate(
      "gateway: {body_bytes: 10}\nroutes:\n  - {match: {path: /big}, upstream: up, "
      "body_bytes: off}\n  - {upstream: up}\nupstreams: {up: {targets: \"" +
      up.url() + "\"}}\n");
  const std::string body(3u << 20, 'x');
  Client client(gate.at());
  EXPECT_EQ(client.Ask(RequestText("POST", "/big", {}, body)).status, 200);
  EXPECT_EQ(client.Ask(RequestText("POST", "/", {}, "12345678901")).status, 413);
}

}  // namespace
}  // namespace tidegate::behaviour
