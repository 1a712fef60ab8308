// SPDX-License-Identifier: Apache-2.0
// Framing of HTTP/1.1 on real sockets: pipelines, bodies, closing, malformed input, slow clients
// and connection limits.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "service/fixture.hpp"

namespace tidegate::service {
namespace {

using namespace std::chrono_literals;
using End = HttpClient::End;
using testing::HasSubstr;

constexpr std::string_view kRules = "rules: [{id: r, per: header:x-api-key, limit: 1000000/h}]\n";

std::string Decide(std::string_view more_fields = {}) {
  return Post("/v1/decide", ByRule("r", "alice"), more_fields);
}

std::int64_t Remaining(const HttpResponse& answer) {
  return answer.status == 200 ? answer.Json().at("remaining").as_int64() : -1;
}

class FramingTest : public testing::Test {
 protected:
  /// Checks that the server responds to `bytes` with `status` and then closes the connection
  /// without a reset.
  void ExpectRefused(std::string_view bytes, int status, std::string_view word = {}) {
    HttpClient client(service_.api());
    client.Send(bytes);
    const HttpResponse answer = client.Read();
    EXPECT_EQ(answer.status, status) << bytes.substr(0, 100);
    EXPECT_EQ(answer.Field("Connection"), "close");
    EXPECT_THAT(answer.body, HasSubstr(std::string(word)));
    EXPECT_EQ(client.WaitForEnd(), End::kClosed) << bytes.substr(0, 100);
  }
  void ExpectServing() {
    HttpClient client(service_.api());
    client.Send(Decide());
    EXPECT_EQ(client.Read().status, 200);
  }

  Service service_{kRules};
};

// --- Many requests on one connection ------------------------------------------

TEST_F(FramingTest, AnswersHundredRequestsInOneWriteInOrder) {
  std::string all;
  for (int i = 0; i < 100; ++i) all += Decide();
  HttpClient client(service_.api());
  client.Send(all);
  for (int i = 1; i <= 100; ++i) EXPECT_EQ(Remaining(client.Read()), 1'000'000 - i);
}

TEST_F(FramingTest, ParsesRequestsCutAtAnyByte) {
  const std::string pair =
      Decide() +
      "POST /v1/decide HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
      "Transfer-Encoding: chunked\r\n\r\n5;a=b\r\n{\"rul\r\n1a\r\ne\":\"r\",\"identity\":"
      "\"alice\"}\r\n0\r\nTrailer: x\r\n\r\n";
  HttpClient client(service_.api());
  std::int64_t left = 1'000'000;
  for (std::size_t cut = 1; cut < pair.size(); ++cut) {
    client.Send(pair.substr(0, cut));
    if (cut % 8 == 0) std::this_thread::yield();
    client.Send(pair.substr(cut));
    for (int i = 0; i < 2; ++i) {
      const HttpResponse answer = client.Read();
      ASSERT_EQ(Remaining(answer), --left)
          << "cut before " << pair.substr(cut) << " got " << answer.body;
    }
  }
  for (const char c : pair) client.Send({&c, 1});
  EXPECT_EQ(Remaining(client.Read()), --left);
  EXPECT_EQ(Remaining(client.Read()), --left);
}

TEST_F(FramingTest, AnswersLargeAndSmallBodiesAlternately) {
  HttpClient client(service_.api());
  const std::string blank(900'000, ' ');
  for (int i = 0; i < 3; ++i) {
    client.Send(Post("/v1/decide", blank + ByRule("r", "alice")) + Decide());
    EXPECT_EQ(Remaining(client.Read()), 1'000'000 - 2 * i - 1);
    EXPECT_EQ(Remaining(client.Read()), 1'000'000 - 2 * i - 2);
  }
}

TEST_F(FramingTest, SkipsEmptyLineBetweenRequests) {
  HttpClient client(service_.api());
  client.Send(Decide() + "\r\n" + Decide());
  EXPECT_EQ(client.Read().status, 200);
  EXPECT_EQ(client.Read().status, 200);
}

// --- Bodies -------------------------------------------------------------------

TEST_F(FramingTest, Sends100ContinueWhenExpected) {
  const std::string body = ByRule("r", "alice");
  HttpClient client(service_.api());
  client.Send(
      "POST /v1/decide HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
      "Expect: 100-continue\r\nContent-Length: " +
      std::to_string(body.size()) + "\r\n\r\n");
  EXPECT_EQ(client.Read().status, 100);
  client.Send(body);
  EXPECT_EQ(client.Read().status, 200);
  // The body is sent with its head, so the server need not send 100.
  client.Send(Decide("Expect: 100-continue\r\n"));
  HttpResponse answer = client.Read();
  if (answer.status == 100) answer = client.Read();
  EXPECT_EQ(answer.status, 200);
}

TEST_F(FramingTest, Returns417ForUnknownExpectation) {
  HttpClient client(service_.api());
  client.Send(Decide("Expect: a-miracle\r\n"));
  EXPECT_EQ(client.Read().status, 417);
}

TEST_F(FramingTest, RejectsTooLargeBodyByItsDeclaredLength) {
  ExpectRefused(
      "POST /v1/decide HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
      "Expect: 100-continue\r\nContent-Length: 1048577\r\n\r\n",
      413);
  ExpectRefused(
      "POST /v1/decide HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999\r\n\r\n", 413);
  ExpectRefused(
      "POST /v1/decide HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
      "100001\r\n",
      413);
}

TEST_F(FramingTest, DeliversRejectionWhileClientIsStillSending) {
  HttpClient client(service_.api());
  client.Send(Post("/v1/decide", std::string(1'500'000, ' ')));
  EXPECT_EQ(client.Read().status, 413);
}

TEST_F(FramingTest, SurvivesClientsThatDisconnectDuringABody) {
  for (int i = 0; i < 20; ++i) {
    HttpClient client(service_.api());
    client.Send(Decide().substr(0, Decide().size() - 1 - static_cast<std::size_t>(i)));
    if (i % 2 == 0) {
      const linger abort{.l_onoff = 1, .l_linger = 0};
      setsockopt(client.fd(), SOL_SOCKET, SO_LINGER, &abort, sizeof abort);
    }
  }
  HttpClient client(service_.api());
  client.Send(Decide());
  EXPECT_EQ(Remaining(client.Read()), 999'999);
}

// --- Closing connections ------------------------------------------------------

TEST_F(FramingTest, ClosesAfterConnectionCloseHeader) {
  HttpClient client(service_.api());
  client.Send(Decide("Connection: close\r\n"));
  const HttpResponse answer = client.Read();
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.Field("Connection"), "close");
  EXPECT_EQ(client.WaitForEnd(), End::kClosed);
}

TEST_F(FramingTest, IgnoresRequestsAfterConnectionClose) {
  HttpClient client(service_.api());
  client.Send(Decide("Connection: close\r\n") + Decide());
  EXPECT_EQ(client.Read().status, 200);
  EXPECT_EQ(client.WaitForEnd(), End::kClosed);
  HttpClient other(service_.api());
  other.Send(Decide());
  // The second request of the other connection was not charged either.
  EXPECT_EQ(Remaining(other.Read()), 999'998);
}

/// RFC 9112, 9.6: closing a socket with unread bytes would reset the connection, and the client
/// might lose the response.
TEST_F(FramingTest, DeliversLastResponseDespiteUnreadRequests) {
  HttpClient client(service_.api());
  std::string much = Decide("Connection: close\r\n");
  while (much.size() < 100'000) much += Decide();
  client.Send(much);
  EXPECT_EQ(client.Read().status, 200);
  client.EndSending();
  EXPECT_EQ(client.WaitForEnd(), End::kClosed);
}

TEST_F(FramingTest, ClosesHttp10ConnectionUnlessKeepAlive) {
  const std::string body = ByRule("r", "alice");
  const std::string rest =
      "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
      "\r\n\r\n" + body;
  HttpClient once(service_.api());
  once.Send("POST /v1/decide HTTP/1.0\r\n" + rest);
  EXPECT_EQ(once.Read().status, 200);
  EXPECT_EQ(once.WaitForEnd(), End::kClosed);

  HttpClient kept(service_.api());
  for (int i = 0; i < 2; ++i) {
    kept.Send("POST /v1/decide HTTP/1.0\r\nConnection: keep-alive\r\n" + rest);
    const HttpResponse answer = kept.Read();
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.Field("Connection"), "keep-alive");
  }
}

TEST_F(FramingTest, AnswersAllRequestsAfterHalfClose) {
  for (const int requests : {1, 3, 300}) {
    HttpClient client(service_.api());
    for (int i = 0; i < requests; ++i) client.Send(Decide());
    client.EndSending();
    for (int i = 0; i < requests; ++i) ASSERT_EQ(client.Read().status, 200) << i;
    EXPECT_EQ(client.WaitForEnd(), End::kClosed);
  }
}

TEST_F(FramingTest, ClosesWhenClientEndsInsideARequest) {
  HttpClient client(service_.api());
  client.Send(Decide() + Decide().substr(0, 30));
  client.EndSending();
  EXPECT_EQ(client.Read().status, 200);
  EXPECT_EQ(client.WaitForEnd(), End::kClosed);
}

// --- Rejected requests --------------------------------------------------------

TEST_F(FramingTest, RejectsAmbiguousFraming) {
  const std::string head = "POST /v1/decide HTTP/1.1\r\nHost: localhost\r\n";
  ExpectRefused(head + "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", 400);
  ExpectRefused(head + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400);
  ExpectRefused(head + "Content-Length: 5\r\nContent-Length: 6\r\n\r\n", 400);
  ExpectRefused(head + "Content-Length: +5\r\n\r\n", 400);
  ExpectRefused(head + "Transfer-Encoding: gzip\r\n\r\n", 400);
  ExpectRefused(head + "Content-Length : 5\r\n\r\n", 400);
  ExpectRefused(head + "X: a\r\n b\r\n\r\n", 400);
  ExpectRefused(head + "X: a\n\r\n\r\n", 400);
  ExpectRefused("GET / HTTP/1.1\r\n\r\n", 400);
  ExpectRefused("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400);
  ExpectRefused("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400);
  ExpectRefused(head + "Transfer-Encoding: chunked\r\n\r\n5\n", 400);
  ExpectRefused(head + "Transfer-Encoding: chunked\r\n\r\n0x5\r\n", 400);
  ExpectRefused(head + "Transfer-Encoding: chunked\r\n\r\n-1\r\n", 400);
  ExpectServing();
}

TEST_F(FramingTest, AnswersRequestsThatPrecedeABadRequest) {
  HttpClient client(service_.api());
  client.Send(Decide() + "BAD\r\n\r\n" + Decide());
  EXPECT_EQ(client.Read().status, 200);
  EXPECT_EQ(client.Read().status, 400);
  EXPECT_EQ(client.WaitForEnd(), End::kClosed);
}

TEST_F(FramingTest, RejectsTooManyOrTooLargeHeaders) {
  std::string many = "GET / HTTP/1.1\r\nHost: x\r\n";
  for (int i = 0; i < 101; ++i) many += "A: b\r\n";
  ExpectRefused(many + "\r\n", 431);
  ExpectRefused("GET / HTTP/1.1\r\nHost: x\r\nA: " + std::string(20'000, 'b') + "\r\n\r\n", 431);
  ExpectRefused("GET / HTTP/1.1\r\nHost: x\r\n" + std::string(900'000, 'b'), 431);
  ExpectRefused("GET /" + std::string(9'000, 'a') + " HTTP/1.1\r\nHost: x\r\n\r\n", 414);
  ExpectRefused("GET /" + std::string(100'000, 'a'), 414);
  ExpectServing();
}

TEST_F(FramingTest, RejectsBytesOfOtherProtocols) {
  ExpectRefused(
      std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11) + std::string(500, '\x5a'),
      400, "TLS");
  ExpectRefused("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505);
  ExpectRefused("*1\r\n$4\r\nPING\r\n", 400);
  ExpectRefused("GET / HTTP/0.9\r\n\r\n", 505);
  ExpectServing();
}

// --- Slow clients and clients that do not read --------------------------------

/// Returns the resident memory of this process, in bytes.
std::int64_t Resident() {
  std::int64_t pages = 0;
  std::int64_t resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

TEST_F(FramingTest, StopsReadingWhenTheClientDoesNotRead) {
  HttpClient deaf(service_.api(), 4096);
  std::string some;
  for (int i = 0; i < 500; ++i) some += Decide();
  const std::size_t size = Decide().size();
  fcntl(deaf.fd(), F_SETFL, O_NONBLOCK);
  const std::int64_t before = Resident();
  std::size_t sent = 0;
  while (sent < (256u << 20)) {
    const ssize_t now = send(deaf.fd(), some.data() + sent % some.size(),
                             some.size() - sent % some.size(), MSG_NOSIGNAL);
    if (now > 0) {
      sent += static_cast<std::size_t>(now);
      continue;
    }
    pollfd poll{.fd = deaf.fd(), .events = POLLOUT, .revents = 0};
    if (::poll(&poll, 1, 300) == 0) break;  // The server reads no more.
  }
  EXPECT_LT(sent, 128u << 20);
  EXPECT_LT(Resident() - before, 16 << 20);
  for (int i = 0; i < 10; ++i) ExpectServing();
  // The client reads again: no response is missing.
  fcntl(deaf.fd(), F_SETFL, 0);
  std::int64_t last = 1'000'000;
  for (std::size_t i = 0; i < sent / size; ++i) {
    const HttpResponse answer = deaf.Read();
    ASSERT_TRUE(answer.status == 200 || answer.status == 429) << i << " of " << sent / size;
    if (answer.status == 429) continue;
    const std::int64_t remaining = Remaining(answer);
    ASSERT_LT(remaining, last);
    last = remaining;
  }
}

constexpr std::string_view kImpatient =
    "limits: {header_timeout: 100ms, body_timeout: 100ms, idle_timeout: 200ms}\n"
    "rules: [{id: r, per: header:x-api-key, limit: 1000000/h}]\n";

TEST(SlowClientTest, TimesOutHeadThatArrivesByteByByte) {
  Service service(kImpatient);
  HttpClient client(service.api());
  const auto start = std::chrono::steady_clock::now();
  client.Send("POST /v1/decide HTTP/1.1\r\nX: ");
  for (int i = 0; i < 500; ++i) {
    pollfd poll{.fd = client.fd(), .events = POLLIN, .revents = 0};
    if (::poll(&poll, 1, 10) != 0) break;
    client.Send("a");
  }
  EXPECT_EQ(client.Read().status, 408);
  EXPECT_GE(std::chrono::steady_clock::now() - start, 100ms);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 3s);
  EXPECT_EQ(client.WaitForEnd(), End::kClosed);
}

TEST(SlowClientTest, TimesOutSlowBody) {
  Service service(kImpatient);
  HttpClient client(service.api());
  client.Send(Decide().substr(0, Decide().size() - 5));
  EXPECT_EQ(client.Read().status, 408);
  EXPECT_EQ(client.WaitForEnd(), End::kClosed);
}

TEST(SlowClientTest, ClosesIdleConnectionWithoutResponse) {
  Service service(kImpatient);
  HttpClient fresh(service.api());
  HttpClient used(service.api());
  used.Send(Decide());
  EXPECT_EQ(used.Read().status, 200);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(fresh.WaitForEnd(), End::kClosed);
  EXPECT_EQ(used.WaitForEnd(), End::kClosed);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 3s);
}

/// Each request has its own deadline: a client that sends every request quickly is not slow, even
/// if the beginning of each request arrives together with the end of the previous one.
TEST(SlowClientTest, DoesNotTimeOutOverlappingRequests) {
  for (const bool in_body : {false, true}) {
    Service service(kImpatient);
    HttpClient client(service.api());
    const std::string one = Decide();
    const std::size_t cut = in_body ? one.size() - 10 : 20;
    client.Send(one.substr(0, cut));
    const auto end = std::chrono::steady_clock::now() + 400ms;
    while (std::chrono::steady_clock::now() < end) {
      client.Send(one.substr(cut) + one.substr(0, cut));
      const HttpResponse answer = client.Read();
      ASSERT_EQ(answer.status, 200) << answer.body;
      pollfd poll{.fd = client.fd(), .events = POLLIN, .revents = 0};
      ASSERT_EQ(::poll(&poll, 1, 20), 0);
    }
  }
}

TEST(SlowClientTest, DoesNotCloseBusyConnectionAsIdle) {
  Service service(kImpatient);
  HttpClient client(service.api());
  const auto end = std::chrono::steady_clock::now() + 600ms;
  while (std::chrono::steady_clock::now() < end) {
    client.Send(Decide());
    ASSERT_EQ(client.Read().status, 200);
    pollfd poll{.fd = client.fd(), .events = POLLIN, .revents = 0};
    ASSERT_EQ(::poll(&poll, 1, 50), 0);
  }
}

TEST(SlowClientTest, ClosesConnectionOfClientThatNeverReads) {
  Service service(kImpatient);
  HttpClient deaf(service.api(), 4096);
  fcntl(deaf.fd(), F_SETFL, O_NONBLOCK);
  std::string some;
  for (int i = 0; i < 500; ++i) some += Decide();
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  bool cut = false;
  while (!cut && std::chrono::steady_clock::now() < deadline) {
    const ssize_t sent = send(deaf.fd(), some.data(), some.size(), MSG_NOSIGNAL);
    if (sent >= 0) continue;
    cut = errno != EAGAIN;
    pollfd poll{.fd = deaf.fd(), .events = POLLOUT, .revents = 0};
    (void)::poll(&poll, 1, 100);
  }
  EXPECT_TRUE(cut);
}

// --- Connection limit ---------------------------------------------------------

TEST(ConnectionLimitTest, Returns503ForConnectionsBeyondTheLimit) {
  Service service("limits: {connections: 3}\n" + std::string(kRules));
  std::vector<std::unique_ptr<HttpClient>> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(std::make_unique<HttpClient>(service.api()));
    clients.back()->Send(Decide());
    EXPECT_EQ(clients.back()->Read().status, 200);
  }
  HttpClient more(service.api());
  const HttpResponse shed = more.Read();
  EXPECT_EQ(shed.status, 503);
  EXPECT_GE(std::stoi("0" + shed.Field("Retry-After")), 1);
  EXPECT_EQ(shed.Json().at("type"),
            "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity");
  EXPECT_EQ(
      service.Metric(R"(tidegate_connections_shed_total{listener="api",reason="connections"})"), 1);
  clients[1]->Send(Decide());
  EXPECT_EQ(clients[1]->Read().status, 200);
  clients.pop_back();
  // The server accepts another connection as soon as it has noticed the close.
  for (int i = 0; i < 500; ++i) {
    HttpClient next(service.api());
    next.Send(Decide());
    const auto answer = next.TryRead();
    if (answer && answer->status == 200) return;
  }
  FAIL() << "a closed connection still counts against the limit";
}

}  // namespace
}  // namespace tidegate::service
