// SPDX-License-Identifier: Apache-2.0
// Tests data over TLS: long pipelines, single bytes, slow readers, and how connections end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "service/secure/listeners.hpp"
#include "service/secure/tls_stream.hpp"
#include "support/wait.hpp"

namespace tidegate::service {
namespace {

using namespace std::chrono_literals;
using testing::StartsWith;

class TlsBytesTest : public testing::Test {
 protected:
  static Config MakeConfig(const std::string& upstream) {
    Config config = AllListenersTls(TlsFor(), upstream);
    config.listen.admin.tls.reset();
    return config;
  }
  /// Waits until the listeners have no open connection.
  bool AllGone() {
    return test::WaitUntil([&] {
      return service_.Metric("tidegate_connections{listener=\"api\"}") +
                 service_.Metric("tidegate_connections{listener=\"gateway\"}") +
                 service_.Metric("tidegate_connections{listener=\"resp\"}") ==
             0;
    });
  }

  behaviour::ScriptedUpstream upstream_{
      behaviour::ScriptedUpstream::Each([](const test::HttpRequest& request) {
        return behaviour::Http("200 OK", {}, request.body);
      })};
  Service service_{MakeConfig(upstream_.url())};
};

// --- Pipelines and large bodies -----------------------------------------------------

TEST_F(TlsBytesTest, AnswersAThousandRespCommandsInOnePipeline) {
  TlsRespClient client(At(service_, ListenerId::kResp));
  std::string bytes;
  for (int i = 0; i < 1'000; ++i) {
    bytes += i % 2 == 0 ? test::RespCommand({"ECHO", std::to_string(i)})
                        : test::RespCommand({"CL.THROTTLE", "k", "999", "1", "1"});
  }
  client.Send(bytes);
  for (int i = 0; i < 1'000; i += 2) {
    ASSERT_EQ(client.Read(), "\"" + std::to_string(i) + "\"");
    ASSERT_THAT(client.Read(), StartsWith("[0,1000," + std::to_string(999 - i / 2) + ","));
  }
}

TEST_F(TlsBytesTest, AnswersManyApiRequestsInOnePipeline) {
  TlsHttpClient client(At(service_, ListenerId::kApi));
  std::string bytes;
  for (int i = 0; i < 300; ++i) {
    bytes += Post("/v1/decide", ByRule("per-key", std::to_string(i / 3)));
  }
  client.Send(bytes);
  for (int i = 0; i < 300; ++i) {
    const HttpResponse answer = client.Read();
    ASSERT_EQ(answer.status, 200) << i;
    ASSERT_EQ(answer.Json().at("remaining"), 2 - i % 3) << i;
  }
}

TEST_F(TlsBytesTest, ForwardsManyPipelinedRequests) {
  TlsHttpClient client(At(service_, ListenerId::kGateway));
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

TEST_F(TlsBytesTest, AcceptsLargeRequestBody) {
  TlsHttpClient client(At(service_, ListenerId::kApi));
  const std::string padding(900'000, ' ');
  const HttpResponse answer =
      client.Ask("/v1/decide", ByRule("per-key", "a", padding + ",\"cost\":2"));
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(answer.Json().at("remaining"), 1);
}

// --- Small pieces and slow readers ----------------------------------------------------

TEST_F(TlsBytesTest, AcceptsHandshakeAndRequestsByteByByte) {
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    const TlsOptions options{.least = version, .most = version, .trickle = true};
    TlsRespClient resp(At(service_, ListenerId::kResp), options);
    EXPECT_EQ(resp.Ask({"PING", "one by one"}), "\"one by one\"");
    for (const ListenerId listener : {ListenerId::kApi, ListenerId::kGateway}) {
      EXPECT_TRUE(Served(std::make_unique<TlsStream>(At(service_, listener), options), listener))
          << listener;
    }
  }
}

TEST_F(TlsBytesTest, AcceptsRecordsOfOneByte) {
  TlsRespClient resp(At(service_, ListenerId::kResp));
  for (const char c : test::RespCommand({"TG.DECIDE", "per-key", "a"})) resp.Send({&c, 1});
  EXPECT_THAT(resp.Read(), StartsWith("[0,3,2,"));
  TlsHttpClient api(At(service_, ListenerId::kApi));
  for (const char c : Post("/v1/decide", ByRule("per-key", "a"))) api.Send({&c, 1});
  EXPECT_EQ(api.Read().Json().at("remaining"), 1);
  TlsHttpClient gateway(At(service_, ListenerId::kGateway));
  for (const char c : Post("/x", "body")) gateway.Send({&c, 1});
  EXPECT_EQ(gateway.Read().body, "body");
}

TEST_F(TlsBytesTest, AcceptsRequestTogetherWithEndOfHandshake) {
  for (const ListenerId listener : {ListenerId::kApi, ListenerId::kGateway, ListenerId::kResp}) {
    const TlsOptions options{.least = TLS1_3_VERSION, .hold = true};
    EXPECT_TRUE(Served(std::make_unique<TlsStream>(At(service_, listener), options), listener))
        << listener;
  }
}

TEST_F(TlsBytesTest, AcceptsKeyUpdatesBetweenRequests) {
  TlsRespClient client(At(service_, ListenerId::kResp), {.least = TLS1_3_VERSION});
  TlsHttpClient http(At(service_, ListenerId::kGateway), {.least = TLS1_3_VERSION});
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(client.Ask({"PING"}), "PONG");
    EXPECT_TRUE(client.tls().UpdateKeys());
    http.Send(Post("/x", "body"));
    EXPECT_EQ(http.Read().body, "body");
    EXPECT_TRUE(http.tls().UpdateKeys());
  }
}

TEST_F(TlsBytesTest, DeliversAllResponsesToSlowReader) {
  TlsRespClient lazy(At(service_, ListenerId::kResp), {.receive_buffer = 4096});
  TlsHttpClient slow(At(service_, ListenerId::kApi), {.receive_buffer = 4096});
  std::string commands;
  for (int i = 0; i < 500; ++i) commands += test::RespCommand({"COMMAND"});
  std::string requests;
  for (int i = 0; i < 60; ++i) requests += Get("/openapi.json");
  ASSERT_TRUE(lazy.Send(commands));
  ASSERT_TRUE(slow.Send(requests));
  EXPECT_TRUE(Served(std::make_unique<TlsStream>(At(service_, ListenerId::kApi)), ListenerId::kApi))
      << "other clients must be served";
  const std::string first = slow.Read().body;
  EXPECT_GT(first.size(), 1'000u);
  for (int i = 1; i < 60; ++i) ASSERT_TRUE(slow.Read().body == first) << i;
  for (int i = 0; i < 500; ++i) ASSERT_THAT(lazy.Read(), StartsWith("[[")) << i;
}

// --- Closing connections --------------------------------------------------------------

TEST_F(TlsBytesTest, SendsCloseNotifyBeforeClosing) {
  TlsRespClient resp(At(service_, ListenerId::kResp));
  EXPECT_EQ(resp.Ask({"QUIT"}), "OK");
  std::string rest;
  EXPECT_EQ(resp.tls().Receive(rest), test::Stream::Got::kEnd) << resp.tls().problem();
  for (const ListenerId listener : {ListenerId::kApi, ListenerId::kGateway}) {
    TlsHttpClient client(At(service_, listener));
    client.Send("GET /openapi.json HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
    EXPECT_EQ(client.Read().status, 200);
    EXPECT_EQ(client.WaitForEnd(), HttpClient::End::kClosed) << listener << client.tls().problem();
  }
}

TEST_F(TlsBytesTest, AnswersRequestsSentBeforeCloseNotify) {
  TlsRespClient resp(At(service_, ListenerId::kResp));
  resp.Send(test::RespCommand({"PING"}) + test::RespCommand({"TG.DECIDE", "per-key", "a"}) +
            "*1\r\n$4\r\nPI");
  resp.EndSending();
  EXPECT_EQ(resp.Read(), "PONG");
  EXPECT_THAT(resp.Read(), StartsWith("[0,3,2,"));
  EXPECT_EQ(resp.Read(), "(end)");
  TlsHttpClient api(At(service_, ListenerId::kApi));
  api.Send(Post("/v1/decide", ByRule("per-key", "a")) + Get("/openapi.json"));
  api.EndSending();
  EXPECT_EQ(api.Read().status, 200);
  EXPECT_EQ(api.Read().status, 200);
  EXPECT_EQ(api.WaitForEnd(), HttpClient::End::kClosed);
  EXPECT_TRUE(AllGone());
}

TEST_F(TlsBytesTest, ClosesConnectionAfterAbruptDisconnect) {
  const auto leave = [&](ListenerId listener, std::string_view half) {
    TlsStream stream(At(service_, listener));
    stream.Send(half);  // The destructor closes the socket without close_notify.
  };
  leave(ListenerId::kApi, "POST /v1/decide HTTP/1.1\r\nHost: te");
  leave(ListenerId::kGateway, "POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 10\r\n\r\n12345");
  leave(ListenerId::kResp, "*2\r\n$4\r\nEC");
  leave(ListenerId::kApi, "");
  leave(ListenerId::kGateway, "");
  leave(ListenerId::kResp, "");
  EXPECT_TRUE(AllGone());
}

TEST_F(TlsBytesTest, DrainSendsCloseNotifyToIdleConnections) {
  TlsRespClient resp(At(service_, ListenerId::kResp));
  TlsHttpClient api(At(service_, ListenerId::kApi));
  EXPECT_EQ(resp.Ask({"PING"}), "PONG");
  EXPECT_EQ(api.Ask("/v1/peek", ByRule("per-key", "a")).status, 200);
  std::atomic<bool> drained = false;
  service_.server().Drain([&] { drained = true; });
  EXPECT_EQ(resp.Read(), "(end)");
  EXPECT_EQ(api.WaitForEnd(), HttpClient::End::kClosed) << api.tls().problem();
  EXPECT_TRUE(test::WaitUntil([&] { return drained.load(); }));
}

}  // namespace
}  // namespace tidegate::service
