// SPDX-License-Identifier: Apache-2.0
// Upstreams that refuse connections, hang, reset, or send malformed responses: the client gets one
// valid response, or one that is visibly incomplete.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gateway/behaviour/gateway_fixture.hpp"
#include "support/wait.hpp"

namespace tidegate::behaviour {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using Connection = ScriptedUpstream::Connection;

void ExpectProblem(const HttpResponse& answer, int status) {
  EXPECT_EQ(answer.status, status) << answer.head << answer.body;
  EXPECT_EQ(answer.Field("Content-Type"), "application/problem+json");
  EXPECT_TRUE(answer.Has("X-Request-Id"));
  EXPECT_EQ(answer.Json().at("status"), status);
}

TEST(UpstreamFaultTest, AnswersWith502WhenUpstreamRefusesConnection) {
  ScriptedUpstream up(ScriptedUpstream::Ok());
  up.StopListening();
  Gate gate(Routed(up.url()));
  Client client(gate.at());
  ExpectProblem(client.Get("/"), 502);
  up.ListenAgain();
  EXPECT_EQ(client.Get("/").status, 200)
      << "the client's connection does not serve the next request";
}

TEST(UpstreamFaultTest, SendsReasonPhraseAndTitleOf502And504) {
  ScriptedUpstream up([](Connection& connection) { (void)connection.WaitForEnd(); });
  Gate gate(Routed(up.url(), "response_timeout: 100ms"));
  const HttpResponse late = gate.Get("/");
  EXPECT_EQ(late.start, "HTTP/1.1 504 Gateway Timeout");
  EXPECT_EQ(late.Json().at("title"), "Gateway Timeout");
  up.StopListening();
  const HttpResponse refused = gate.Get("/");
  EXPECT_EQ(refused.start, "HTTP/1.1 502 Bad Gateway");
  EXPECT_EQ(refused.Json().at("title"), "Bad Gateway");
}

/// A listening socket whose backlog is full and which accepts no connection.
class FullListener {
 public:
  FullListener() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(fd_, reinterpret_cast<const sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(fd_, 0), 0);
    EXPECT_EQ(getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
    for (int& waiting : waiting_) {
      waiting = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
      (void)connect(waiting, reinterpret_cast<const sockaddr*>(&address), size);
    }
  }
  ~FullListener() {
    for (const int waiting : waiting_) ::close(waiting);
    ::close(fd_);
  }
  [[nodiscard]] std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }

 private:
  int fd_;
  int port_ = 0;
  std::array<int, 4> waiting_{};
};

TEST(UpstreamFaultTest, AnswersWith504OnConnectTimeout) {
  FullListener full;
  Gate gate(Routed(full.url(), "connect_timeout: 100ms\nretries: off"));
  ExpectProblem(gate.Get("/"), 504);
}

TEST(UpstreamFaultTest, TriesNextTargetWhenOneIsUnreachable) {
  FullListener full;
  ScriptedUpstream up(ScriptedUpstream::Ok());
  Gate gate(Routed("[" + full.url() + ", " + up.url() + "]", "connect_timeout: 100ms"));
  for (int i = 0; i < 2; ++i) {
    const HttpResponse answer = Client(gate.at()).Ask(RequestText("POST", "/", {}, "body"));
    EXPECT_EQ(answer.status, 200) << "a POST that was not sent to any target was not retried";
  }
  EXPECT_EQ(up.requests(), 2);
  EXPECT_EQ(up.last().Field("Content-Length"), "4");
}

TEST(UpstreamFaultTest, AnswersWith504AfterResponseTimeout) {
  ScriptedUpstream up([](Connection& connection) { (void)connection.WaitForEnd(); });
  Gate gate(Routed(up.url(), "response_timeout: 150ms"));
  Client client(gate.at());
  const auto begun = std::chrono::steady_clock::now();
  ExpectProblem(client.Get("/"), 504);
  EXPECT_GE(std::chrono::steady_clock::now() - begun, 150ms);
  EXPECT_TRUE(test::WaitUntil([&] { return up.open() == 0; }))
      << "the connection of the timed-out request is still open";
  EXPECT_EQ(up.connections(), 1) << "a timeout was retried although this is not configured";
}

TEST(UpstreamFaultTest, RouteOverridesResponseTimeout) {
  ScriptedUpstream up([](Connection& connection) { (void)connection.WaitForEnd(); });
  Gate gate("routes: [{upstream: up, response_timeout: 100ms}]\nupstreams: {up: {targets: \"" +
            up.url() + "\"}}\n");
  ExpectProblem(gate.Get("/"), 504);
}

TEST(UpstreamFaultTest, AnswersWith504WhenResponseHeadStalls) {
  ScriptedUpstream up([](Connection& connection) {
    connection.Send("HTTP/1.1 200 OK\r\nContent-Le");
    (void)connection.WaitForEnd();
  });
  Gate gate(Routed(up.url(), "response_timeout: 150ms"));
  ExpectProblem(gate.Get("/"), 504);
}

TEST(UpstreamFaultTest, AnswersWith504WhenUpstreamNeverSendsContinue) {
  // The gateway waits for the upstream here, not for the client, so response_timeout applies and
  // not body_timeout.
  ScriptedUpstream up([](Connection& connection) { (void)connection.WaitForEnd(); });
  Gate gate(Routed(up.url(), "response_timeout: 150ms", "limits: {body_timeout: 1s}\n"));
  Client client(gate.at());
  client.Send("POST / HTTP/1.1\r\nHost: test\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n");
  ExpectProblem(client.Read(), 504);
}

TEST(UpstreamFaultTest, CutsResponseWhoseBodyStalls) {
  ScriptedUpstream up([](Connection& connection) {
    HttpRequest request;
    if (!connection.Read(request)) return;
    connection.Send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345");
    (void)connection.WaitForEnd();
  });
  Gate gate(Routed(up.url(), "idle_timeout: 150ms"));
  Client client(gate.at());
  client.Send(GetText("/"));
  const HttpResponse answer = client.ReadPartial();
  EXPECT_EQ(answer.body, "12345");
  EXPECT_FALSE(answer.whole);
}

TEST(UpstreamFaultTest, AnswersWith502OnResetBeforeResponse) {
  ScriptedUpstream up([](Connection& connection) {
    HttpRequest request;
    if (connection.Read(request)) connection.Reset();
  });
  Gate gate(Routed(up.url(), "retries: off"));
  Client client(gate.at());
  ExpectProblem(client.Get("/"), 502);
  ExpectProblem(client.Ask(RequestText("POST", "/", {}, "body")), 502);
}

TEST(UpstreamFaultTest, AnswersWith502OnCloseBeforeResponse) {
  ScriptedUpstream up([](Connection& connection) {
    HttpRequest request;
    (void)connection.Read(request);
  });
  Gate gate(Routed(up.url(), "retries: off"));
  ExpectProblem(gate.Get("/"), 502);
}

/// A response that breaks off: the upstream sends `bytes`, sends `then` once the client has
/// received those, and then closes or resets the connection.
struct Broken {
  std::string_view name;
  std::string_view bytes;
  std::string_view then;
  bool reset;
};
class TruncatedResponseTest : public testing::TestWithParam<Broken> {};

TEST_P(TruncatedResponseTest, LeavesResponseVisiblyIncomplete) {
  const Broken& broken = GetParam();
  Signal read;
  ScriptedUpstream up([&](Connection& connection) {
    HttpRequest request;
    if (!connection.Read(request)) return;
    connection.Send(broken.bytes);
    (void)read.Wait();
    connection.Send(broken.then);
    if (broken.reset) connection.Reset();
  });
  Gate gate(Routed(up.url()));
  Client client(gate.at());
  client.Send(GetText("/"));
  const std::string head = client.stream().ReadUntil("\r\n\r\n");
  EXPECT_THAT(head, HasSubstr("200 OK"));
  const bool chunked = head.find("chunked") != std::string::npos;
  EXPECT_EQ(client.stream().ReadUntil("some"), chunked ? "4\r\nsome" : "some");
  read.Give();
  const std::string rest = client.stream().ReadRest();
  if (chunked) {
    EXPECT_EQ(rest.find("0\r\n\r\n"), std::string::npos) << rest;
  }
  EXPECT_EQ(rest.find("HTTP/1.1"), std::string::npos) << "a second response inside the first";
  EXPECT_EQ(up.requests(), 1) << "the gateway retried although the response had begun";
}

constexpr std::string_view kLengthHead = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nsome";
constexpr std::string_view kChunkedHead =
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nsome\r\n";
INSTANTIATE_TEST_SUITE_P(All, TruncatedResponseTest,
                         testing::Values(Broken{"ShortLength", kLengthHead, "", false},
                                         Broken{"ResetLength", kLengthHead, "", true},
                                         Broken{"ShortChunks", kChunkedHead, "", false},
                                         Broken{"ShortChunk", kChunkedHead, "5\r\nab", false},
                                         Broken{"NoLastLine", kChunkedHead, "0\r\n", false},
                                         Broken{"ResetChunks", kChunkedHead, "", true},
                                         Broken{"BadChunks", kChunkedHead, "zz\r\n", false},
                                         Broken{"ResetUntilClose", "HTTP/1.1 200 OK\r\n\r\nsome",
                                                "", true}),
                         [](const auto& of) { return std::string(of.param.name); });

TEST(UpstreamFaultTest, AnswersWith502WhenFirstChunkIsMalformed) {
  ScriptedUpstream up([](Connection& connection) {
    HttpRequest request;
    if (connection.Read(request)) connection.Send(std::string(kChunkedHead) + "zz\r\n");
  });
  Gate gate(Routed(up.url()));
  Client client(gate.at());
  ExpectProblem(client.Get("/"), 502);  // No byte of the response had been sent to the client yet.
}

const std::string kGood = Http("200 OK", {}, "good");
const std::string kEvil = Http("200 OK", {}, "evil");

TEST(SurplusBytesTest, DropsSurplusBytesAfterResponseWithTheConnection) {
  ScriptedUpstream up(ScriptedUpstream::Each([](const HttpRequest&) { return kGood + kEvil; }));
  Gate gate(Routed(up.url()));
  Client client(gate.at());
  for (int i = 0; i < 5; ++i) EXPECT_EQ(client.Get("/").body, "good");
  EXPECT_EQ(up.connections(), 5);
}

TEST(SurplusBytesTest, ClosesIdleConnectionThatReceivesBytes) {
  Signal answered;
  ScriptedUpstream up([&](Connection& connection) {
    HttpRequest request;
    while (connection.Read(request)) {
      connection.Send(kGood);
      if (connection.number() != 0) continue;
      (void)answered.Wait();
      connection.Send(kEvil);
    }
  });
  Gate gate(Routed(up.url()));
  Client client(gate.at());
  EXPECT_EQ(client.Get("/1").body, "good");
  answered.Give();
  EXPECT_TRUE(test::WaitUntil([&] { return up.open() == 0; }))
      << "the connection with surplus bytes is still open";
  for (int i = 0; i < 3; ++i) EXPECT_EQ(client.Get("/2").body, "good");
}

class MalformedResponseTest : public testing::TestWithParam<std::string_view> {};

TEST_P(MalformedResponseTest, AnswersWith502ToMalformedResponse) {
  ScriptedUpstream up([](Connection& connection) {
    HttpRequest request;
    if (!connection.Read(request)) return;
    connection.Send(GetParam());
    (void)connection.WaitForEnd();
  });
  Gate gate(Routed(up.url()));
  Client client(gate.at());
  ExpectProblem(client.Get("/"), 502);
  EXPECT_TRUE(test::WaitUntil([&] { return up.open() == 0; }));
}

INSTANTIATE_TEST_SUITE_P(
    All, MalformedResponseTest,
    testing::Values(
        "SSH-2.0-OpenSSH_9.2\r\n", "HTTP/2.0 200 OK\r\n\r\n", "HTTP/1.1 20 OK\r\n\r\n",
        "HTTP/1.1 200 OK\nContent-Length: 0\n\n", "HTTP/1.1 099 Odd\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        "HTTP/1.1 200 OK\r\nBad Name: x\r\n\r\n", "HTTP/1.1 200 OK\r\n folded\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX: a\rb\r\n\r\n", "HTTP/1.1 101 Go\r\nUpgrade: x\r\n\r\n"));

TEST(UpstreamFaultTest, AnswersWith502ToEndlessResponseHead) {
  ScriptedUpstream up([](Connection& connection) {
    HttpRequest request;
    if (!connection.Read(request)) return;
    connection.Send("HTTP/1.1 200 OK\r\n");
    for (int i = 0; i < 100'000; ++i) {
      if (!connection.Send("X-Filler: 0123456789012345678901234567890123456789\r\n")) return;
    }
  });
  Gate gate(Routed(up.url()));
  ExpectProblem(gate.Get("/"), 502);
}

TEST(UpstreamFaultTest, AnswersWith502ToEndlessInterimResponses) {
  ScriptedUpstream up([](Connection& connection) {
    HttpRequest request;
    if (!connection.Read(request)) return;
    for (int i = 0; i < 100'000; ++i) {
      if (!connection.Send("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n")) return;
    }
  });
  Gate gate(Routed(up.url()));
  Client client(gate.at());
  client.Send(GetText("/"));
  HttpResponse answer = client.Read();
  for (int i = 0; i < 1000 && answer.status == 103; ++i) answer = client.Read();
  ExpectProblem(answer, 502);
}

}  // namespace
}  // namespace tidegate::behaviour
