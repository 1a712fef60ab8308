// SPDX-License-Identifier: Apache-2.0
// Bytes through TLS: many, one by one, slowly, and how they end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "service/secure/doors.hpp"
#include "service/secure/tls_stream.hpp"

namespace tidegate::service {
namespace {

using namespace std::chrono_literals;
using testing::StartsWith;

class TlsBytesTest : public testing::Test {
 protected:
  static Config MakeConfig(const std::string& upstream) {
    Config config = AllDoorsTls(TlsFor(), upstream);
    config.listen.admin.tls.reset();
    return config;
  }
  /// Whether the doors have no connection any more.
  bool AllGone() {
    return Soon([&] {
      return service_.Metric("tidegate_connections{door=\"api\"}") +
                 service_.Metric("tidegate_connections{door=\"gateway\"}") +
                 service_.Metric("tidegate_connections{door=\"resp\"}") ==
             0;
    });
  }

  behaviour::ScriptedUpstream upstream_{
      behaviour::ScriptedUpstream::Each([](const behaviour::Request& request) {
        return behaviour::Http("200 OK", {}, request.body);
      })};
  Service service_{MakeConfig(upstream_.url())};
};

// --- Many ---------------------------------------------------------------------------

TEST_F(TlsBytesTest, AThousandCommandsInOnePipeline) {
  TlsRespClient client(At(service_, Door::kResp));
  std::string bytes;
  for (int i = 0; i < 1'000; ++i) {
    bytes += i % 2 == 0 ? RespCommand({"ECHO", std::to_string(i)})
                        : RespCommand({"CL.THROTTLE", "k", "999", "1", "1"});
  }
  client.Send(bytes);
  for (int i = 0; i < 1'000; i += 2) {
    ASSERT_EQ(client.Read(), "\"" + std::to_string(i) + "\"");
    ASSERT_THAT(client.Read(), StartsWith("[0,1000," + std::to_string(999 - i / 2) + ","));
  }
}

TEST_F(TlsBytesTest, ManyRequestsInOnePipeline) {
  TlsHttpClient client(At(service_, Door::kApi));
  std::string bytes;
  for (int i = 0; i < 300; ++i) {
    bytes += Post("/v1/decide", ByRule("per-key", std::to_string(i / 3)));
  }
  client.Send(bytes);
  for (int i = 0; i < 300; ++i) {
    const HttpAnswer answer = client.Read();
    ASSERT_EQ(answer.status, 200) << i;
    ASSERT_EQ(answer.Json().at("remaining"), 2 - i % 3) << i;
  }
}

TEST_F(TlsBytesTest, ManyRequestsInOnePipelineThroughTheGateway) {
  TlsHttpClient client(At(service_, Door::kGateway));
  std::string bytes;
  for (int i = 0; i < 100; ++i) bytes += Get("/" + std::to_string(i));
  client.Send(bytes);
  for (int i = 0; i < 100; ++i) ASSERT_EQ(client.Read().status, 200) << i;
  const auto seen = upstream_.seen();
  ASSERT_EQ(seen.size(), 100u);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(seen[static_cast<std::size_t>(i)].target(), "/" + std::to_string(i));
  }
}

TEST_F(TlsBytesTest, ALongQuestion) {
  TlsHttpClient client(At(service_, Door::kApi));
  const std::string padding(900'000, ' ');
  const HttpAnswer answer =
      client.Ask("/v1/decide", ByRule("per-key", "a", padding + ",\"cost\":2"));
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(answer.Json().at("remaining"), 1);
}

// --- Few at a time --------------------------------------------------------------------

TEST_F(TlsBytesTest, BytesMayTrickleIn) {
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    const TlsOptions options{.least = version, .most = version, .trickle = true};
    TlsRespClient resp(At(service_, Door::kResp), options);
    EXPECT_EQ(resp.Ask({"PING", "one by one"}), "\"one by one\"");
    for (const Door door : {Door::kApi, Door::kGateway}) {
      EXPECT_TRUE(Served(std::make_unique<TlsStream>(At(service_, door), options), door)) << door;
    }
  }
}

TEST_F(TlsBytesTest, ARecordMayHoldOneByte) {
  TlsRespClient resp(At(service_, Door::kResp));
  for (const char c : RespCommand({"TG.DECIDE", "per-key", "a"})) resp.Send({&c, 1});
  EXPECT_THAT(resp.Read(), StartsWith("[0,3,2,"));
  TlsHttpClient api(At(service_, Door::kApi));
  for (const char c : Post("/v1/decide", ByRule("per-key", "a"))) api.Send({&c, 1});
  EXPECT_EQ(api.Read().Json().at("remaining"), 1);
  TlsHttpClient gateway(At(service_, Door::kGateway));
  for (const char c : Post("/x", "body")) gateway.Send({&c, 1});
  EXPECT_EQ(gateway.Read().body, "body");
}

TEST_F(TlsBytesTest, ARequestMayComeWithTheLastOfTheHandshake) {
  for (const Door door : {Door::kApi, Door::kGateway, Door::kResp}) {
    const TlsOptions options{.least = TLS1_3_VERSION, .hold = true};
    EXPECT_TRUE(Served(std::make_unique<TlsStream>(At(service_, door), options), door)) << door;
  }
}

TEST_F(TlsBytesTest, KeysMayBeRenewedInBetween) {
  TlsRespClient client(At(service_, Door::kResp), {.least = TLS1_3_VERSION});
  TlsHttpClient http(At(service_, Door::kGateway), {.least = TLS1_3_VERSION});
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(client.Ask({"PING"}), "PONG");
    EXPECT_TRUE(client.tls().UpdateKeys());
    http.Send(Post("/x", "body"));
    EXPECT_EQ(http.Read().body, "body");
    EXPECT_TRUE(http.tls().UpdateKeys());
  }
}

TEST_F(TlsBytesTest, AClientThatReadsSlowlyGetsAllInTheEnd) {
  TlsRespClient lazy(At(service_, Door::kResp), {.receive_buffer = 4096});
  TlsHttpClient slow(At(service_, Door::kApi), {.receive_buffer = 4096});
  std::string commands;
  for (int i = 0; i < 500; ++i) commands += RespCommand({"COMMAND"});
  std::string requests;
  for (int i = 0; i < 60; ++i) requests += Get("/openapi.json");
  ASSERT_TRUE(lazy.Send(commands));
  ASSERT_TRUE(slow.Send(requests));
  EXPECT_TRUE(Served(std::make_unique<TlsStream>(At(service_, Door::kApi)), Door::kApi))
      << "the others are served";
  const std::string first = slow.Read().body;
  EXPECT_GT(first.size(), 1'000u);
  for (int i = 1; i < 60; ++i) ASSERT_TRUE(slow.Read().body == first) << i;
  for (int i = 0; i < 500; ++i) ASSERT_THAT(lazy.Read(), StartsWith("[[")) << i;
}

// --- Ends -----------------------------------------------------------------------------

TEST_F(TlsBytesTest, TheDoorsSayGoodbye) {
  TlsRespClient resp(At(service_, Door::kResp));
  EXPECT_EQ(resp.Ask({"QUIT"}), "OK");
  std::string rest;
  EXPECT_EQ(resp.tls().Receive(rest), Stream::Got::kEnd) << resp.tls().problem();
  for (const Door door : {Door::kApi, Door::kGateway}) {
    TlsHttpClient client(At(service_, door));
    client.Send("GET /openapi.json HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
    EXPECT_EQ(client.Read().status, 200);
    EXPECT_EQ(client.WaitForEnd(), HttpClient::End::kClosed) << door << client.tls().problem();
  }
}

TEST_F(TlsBytesTest, WhatWasAskedBeforeAGoodbyeIsAnswered) {
  TlsRespClient resp(At(service_, Door::kResp));
  resp.Send(RespCommand({"PING"}) + RespCommand({"TG.DECIDE", "per-key", "a"}) + "*1\r\n$4\r\nPI");
  resp.EndSending();
  EXPECT_EQ(resp.Read(), "PONG");
  EXPECT_THAT(resp.Read(), StartsWith("[0,3,2,"));
  EXPECT_EQ(resp.Read(), "(end)");
  TlsHttpClient api(At(service_, Door::kApi));
  api.Send(Post("/v1/decide", ByRule("per-key", "a")) + Get("/openapi.json"));
  api.EndSending();
  EXPECT_EQ(api.Read().status, 200);
  EXPECT_EQ(api.Read().status, 200);
  EXPECT_EQ(api.WaitForEnd(), HttpClient::End::kClosed);
  EXPECT_TRUE(AllGone());
}

TEST_F(TlsBytesTest, AnAbruptEndIsOne) {
  const auto leave = [&](Door door, std::string_view half) {
    TlsStream stream(At(service_, door));
    stream.Send(half);  // And the socket is closed without a word.
  };
  leave(Door::kApi, "POST /v1/decide HTTP/1.1\r\nHost: te");
  leave(Door::kGateway, "POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 10\r\n\r\n12345");
  leave(Door::kResp, "*2\r\n$4\r\nEC");
  leave(Door::kApi, "");
  leave(Door::kGateway, "");
  leave(Door::kResp, "");
  EXPECT_TRUE(AllGone());
}

TEST_F(TlsBytesTest, ADrainSaysGoodbyeToIdleConnections) {
  TlsRespClient resp(At(service_, Door::kResp));
  TlsHttpClient api(At(service_, Door::kApi));
  EXPECT_EQ(resp.Ask({"PING"}), "PONG");
  EXPECT_EQ(api.Ask("/v1/peek", ByRule("per-key", "a")).status, 200);
  std::atomic<bool> drained = false;
  service_.server().Drain([&] { drained = true; });
  EXPECT_EQ(resp.Read(), "(end)");
  EXPECT_EQ(api.WaitForEnd(), HttpClient::End::kClosed) << api.tls().problem();
  EXPECT_TRUE(Soon([&] { return drained.load(); }));
}

}  // namespace
}  // namespace tidegate::service
