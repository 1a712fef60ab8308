// SPDX-License-Identifier: Apache-2.0
// Tests that the server judges callers by the head of their request: a caller without credentials
// cannot make the server read, wait for, or keep a body.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "service/secure/callers.hpp"
#include "support/wait.hpp"

namespace tidegate::service {
namespace {

using testing::HasSubstr;

struct Framing {
  std::string_view name;
  std::string_view fields;
  std::string_view begin;  ///< The bytes of the body that the client sends; it withholds the rest.
};
constexpr std::array kFramings{
    Framing{"length", "Content-Length: 1048576\r\n", "{\"ru"},
    Framing{"length, nothing sent", "Content-Length: 1048576\r\n", ""},
    Framing{"chunked", "Transfer-Encoding: chunked\r\n", "5\r\n{\"rul"},
    Framing{"length, expects 100", "Content-Length: 1048576\r\nExpect: 100-continue\r\n", ""},
    Framing{"chunked, expects 100", "Transfer-Encoding: chunked\r\nExpect: 100-continue\r\n", ""},
};

struct Row {
  ListenerId listener;
  std::string_view request;  ///< Method and path of the request.
  std::string_view token;
  int status;
};

class CredentialsFirstTest : public testing::Test {
 protected:
  static Config MakeConfig() {
    Config config = AllListeners();
    config.access.tokens = BothTokens();
    for (const ListenerId listener : {ListenerId::kApi, ListenerId::kAdmin, ListenerId::kResp}) {
      SpecOf(config, listener).auth = ListenSpec::Auth::kRequired;
    }
    return config;
  }
  static std::string Head(std::string_view request, std::string_view token,
                          std::string_view framing) {
    std::string head =
        std::string(request) + " HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n";
    if (!token.empty()) head.append("X-Tidegate-Token: ").append(token).append("\r\n");
    return head.append(framing).append("\r\n");
  }
};

// In every row, an earlier version waited for the body and answered Expect with 100.
TEST_F(CredentialsFirstTest, RejectsInsufficientCredentialsBeforeTheBody) {
  const std::vector<Row> rows{
      {ListenerId::kApi, "POST /v1/decide", "", 401},
      {ListenerId::kApi, "POST /v1/decide", kWrongToken, 401},
      {ListenerId::kApi, "POST /v1/decide/batch", "", 401},
      {ListenerId::kApi, "POST /v1/refund", kAskToken, 403},
      {ListenerId::kApi, "POST /v1/release", kAskToken, 403},
      {ListenerId::kApi, "POST /v1/auth", "", 500},
      {ListenerId::kAdmin, "POST /v1/ban", "", 401},
      {ListenerId::kAdmin, "POST /v1/ban", kWrongToken, 401},
      {ListenerId::kAdmin, "POST /v1/ban", kAskToken, 403},
      {ListenerId::kAdmin, "POST /v1/explain", "", 401},
      {ListenerId::kAdmin, "POST /v1/reload", kAskToken, 403},
  };
  for (const Row& row : rows) {
    for (const Framing& framing : kFramings) {
      // Each row uses a new service, so that no row is throttled because of another.
      Service service(MakeConfig());
      HttpClient client(At(service, row.listener));
      client.Send(Head(row.request, row.token, framing.fields) + std::string(framing.begin));
      const HttpResponse answer = client.Read();
      EXPECT_EQ(answer.status, row.status) << row.request << ", " << framing.name;
      EXPECT_EQ(answer.Field("Connection"), "close") << row.request << ", " << framing.name;
      EXPECT_EQ(client.WaitForEnd(), HttpClient::End::kClosed)
          << row.request << ", " << framing.name;
    }
  }
}

TEST_F(CredentialsFirstTest, ReadsTheBodiesOfCallersWithCredentials) {
  Service service(MakeConfig());
  const std::string body = ByRule("per-key", "a");
  const std::string length = "Content-Length: " + std::to_string(body.size()) + "\r\n";
  HttpClient client(At(service, ListenerId::kApi));
  for (int i = 0; i < 3; ++i) {  // Repeats this, because a connection may be reused.
    client.Send(Head("POST /v1/decide", kAskToken, length + "Expect: 100-continue\r\n"));
    EXPECT_EQ(client.Read(HttpClient::Body::kNo).status, 100);
    client.Send(body.substr(0, 5));
    client.Send(body.substr(5));
    EXPECT_EQ(client.Read().status, 200);
  }
  client.Send(Head("POST /v1/decide", kAskToken, "Transfer-Encoding: chunked\r\n"));
  client.Send("5\r\n" + body.substr(0, 5) + "\r\n");
  ASSERT_EQ(body.size(), 5u + 0x1c);
  client.Send("1c\r\n" + body.substr(5) + "\r\n0\r\n\r\n");
  EXPECT_EQ(client.Read().status, 429);  // The fourth request exceeds the limit of 3.
}

TEST_F(CredentialsFirstTest, AnswersBeforeTheBodyArrivesIfTheEndpointNeedsNone) {
  Service service(MakeConfig());
  struct Open {
    ListenerId listener;
    std::string_view request;
    int status;
  };
  for (const Open& row :
       {Open{ListenerId::kAdmin, "GET /healthz", 200}, Open{ListenerId::kAdmin, "GET /readyz", 200},
        Open{ListenerId::kAdmin, "POST /healthz", 405},
        Open{ListenerId::kAdmin, "POST /nothing", 404},
        Open{ListenerId::kApi, "GET /openapi.json", 200},
        Open{ListenerId::kApi, "POST /nothing", 404}}) {
    for (const Framing& framing : kFramings) {
      HttpClient client(At(service, row.listener));
      client.Send(Head(row.request, "", framing.fields) + std::string(framing.begin));
      EXPECT_EQ(client.Read().status, row.status) << row.request << ", " << framing.name;
      EXPECT_EQ(client.WaitForEnd(), HttpClient::End::kClosed)
          << row.request << ", " << framing.name;
    }
    HttpClient whole(At(service, row.listener));  // A body that arrives with its head is read.
    whole.Send(Head(row.request, "", "Content-Length: 3\r\n") + "abc");
    EXPECT_EQ(whole.Read().status, row.status) << row.request;
    whole.Send(Head(row.request, "", ""));
    EXPECT_EQ(whole.Read().status, row.status) << row.request;
  }
}

// In an earlier version, clients without credentials that sent 14 KB of a head each could use up
// the whole budget.
TEST_F(CredentialsFirstTest, HeadsUseAtMostHalfOfTheBufferBudget) {
  Config config = MakeConfig();
  config.limits.buffer_bytes = 1u << 20;
  Service service(config);
  const std::string head = "GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(14'000, 'x');
  std::vector<std::unique_ptr<HttpClient>> clients;
  for (int i = 0; i < 60; ++i) {
    clients.push_back(std::make_unique<HttpClient>(At(service, ListenerId::kApi)));
    clients.back()->Send(head);
  }
  ASSERT_TRUE(test::WaitUntil([&] { return service.server().budget().refused() > 0; }));
  EXPECT_LE(service.server().budget().used(), 512u << 10);
  HttpClient caller(At(service, ListenerId::kApi));
  caller.Send(Head("POST /v1/decide", kAskToken, "Content-Length: 300000\r\n"));
  caller.Send(std::string(300'000 - ByRule("per-key", "a").size(), ' ') + ByRule("per-key", "a"));
  EXPECT_EQ(caller.Read().status, 200);
}

TEST_F(CredentialsFirstTest, BodiesInProgressShareTheBufferBudget) {
  Config config = MakeConfig();
  config.limits.buffer_bytes = 1u << 20;
  Service service(config);
  const std::string head =
      Head("POST /v1/decide", kAskToken, "Content-Length: 800000\r\n") + std::string(600'000, ' ');
  auto first = std::make_unique<HttpClient>(At(service, ListenerId::kApi));
  first->Send(head);
  ASSERT_TRUE(test::WaitUntil([&] { return service.server().budget().used() >= 600'000; }));
  HttpClient second(At(service, ListenerId::kApi));
  second.Send(head);
  const HttpResponse answer = second.Read();
  EXPECT_EQ(answer.status, 503);
  EXPECT_THAT(answer.body, HasSubstr("limits.buffer_bytes"));
  first.reset();
  ASSERT_TRUE(test::WaitUntil([&] { return service.server().budget().used() == 0; }));
  HttpClient third(At(service, ListenerId::kApi));
  third.Send(head + std::string(200'000 - ByRule("per-key", "a").size(), ' ') +
             ByRule("per-key", "a"));
  EXPECT_EQ(third.Read().status, 200);
  EXPECT_TRUE(test::WaitUntil([&] { return service.server().budget().used() == 0; }));
}

TEST_F(CredentialsFirstTest, TimesOutBodiesBelowTheMinimumRate) {
  Config config = MakeConfig();
  config.limits.body_timeout = std::chrono::milliseconds{100};
  config.limits.body_rate = 100'000;
  Service service(config);
  HttpClient slow(At(service, ListenerId::kApi));
  slow.Send(Head("POST /v1/decide", kAskToken, "Content-Length: 100000\r\n"));
  // 9,000 bytes in 100 ms are less than the rate. The old limit was 1,024 bytes.
  slow.Send(std::string(9'000, ' '));
  EXPECT_EQ(slow.Read().status, 408);
}

// --- The Redis protocol -------------------------------------------------------------

TEST_F(CredentialsFirstTest, RespRejectsLongCommandBeforeAuthentication) {
  Service service(MakeConfig());
  for (const std::string_view begin :
       {"*2\r\n$9\r\nTG.DECIDE\r\n$1048576\r\n", "*2\r\n$4\r\nAUTH\r\n$513\r\n", "*1048576\r\n",
        "*3\r\n$4\r\nAUTH\r\n$500\r\n"}) {
    HttpClient client(At(service, ListenerId::kResp));
    client.Send(begin);
    const bool fits = begin.ends_with("$500\r\n");
    if (fits) client.Send(std::string(500, 'x') + "\r\n$512\r\n" + std::string(100, 'x'));
    if (fits) client.Send(std::string(400, 'x'));
    EXPECT_EQ(client.WaitForEnd(), HttpClient::End::kBytes) << begin;
  }
}

// --- Silent connections and connection limits ------------------------------------------

TEST_F(CredentialsFirstTest, SilentConnectionsAreClosedAtTheHeaderTimeout) {
  Config config = AllListeners();
  config.limits.header_timeout = std::chrono::milliseconds{100};
  config.limits.idle_timeout = std::chrono::hours{1};
  Service service(config);
  for (const ListenerId listener : kListenerIds) {
    HttpClient silent(At(service, listener));
    EXPECT_EQ(silent.WaitForEnd(), HttpClient::End::kClosed) << listener;
  }
  // A connection that has already served a request may be idle for longer.
  HttpClient used(At(service, ListenerId::kApi));
  EXPECT_EQ(used.Ask("/v1/decide", ByRule("per-key", "a")).status, 200);
  EXPECT_EQ(used.WaitForEnd(std::chrono::milliseconds{300}), HttpClient::End::kOpen);
  EXPECT_EQ(used.Ask("/v1/decide", ByRule("per-key", "a")).status, 200);
}

TEST_F(CredentialsFirstTest, LimitsConnectionsPerAddress) {
  for (const bool trusted : {false, true}) {
    Config config = AllListeners("http://127.0.0.1:9",
                                 trusted ? "client_ip: {trusted_proxies: [127.0.0.1]}\n" : "");
    config.limits.connections_per_address = 2;
    Service service(config);
    HttpClient first(At(service, ListenerId::kApi));
    EXPECT_EQ(first.Ask("/v1/peek", ByRule("per-key", "a")).status, 200);
    auto second = std::make_unique<HttpClient>(At(service, ListenerId::kApi));
    EXPECT_EQ(second->Ask("/v1/peek", ByRule("per-key", "a")).status, 200);
    HttpClient third(At(service, ListenerId::kApi));
    third.Send(Post("/v1/peek", ByRule("per-key", "a")));
    EXPECT_EQ(third.Read().status, trusted ? 200 : 503);
    if (trusted) continue;
    EXPECT_EQ(service.Metric(R"(tidegate_connections_shed_total{listener="api",reason="address"})"),
              1);
    // Each listener counts separately, and a closed connection makes room.
    EXPECT_TRUE(
        Served(std::make_unique<test::Stream>(At(service, ListenerId::kResp)), ListenerId::kResp));
    second.reset();
    EXPECT_TRUE(test::WaitUntil(
        [&] { return service.Metric(R"(tidegate_connections{listener="api"})") == 1; }));
    HttpClient fourth(At(service, ListenerId::kApi));
    EXPECT_EQ(fourth.Ask("/v1/peek", ByRule("per-key", "a")).status, 200);
  }
}

TEST_F(CredentialsFirstTest, AdminReplacesOldestIdleConnectionWhenFull) {
  Config config = AllListeners();
  config.limits.connections = 2;
  Service service(config);
  HttpClient oldest(At(service, ListenerId::kAdmin));
  HttpClient idle(At(service, ListenerId::kAdmin));
  HttpClient check(At(service, ListenerId::kAdmin));
  check.Send(Get("/healthz"));
  EXPECT_EQ(check.Read().status, 200);
  EXPECT_EQ(oldest.WaitForEnd(), HttpClient::End::kClosed);
  idle.Send(Get("/healthz"));
  EXPECT_EQ(idle.Read().status, 200);
}

TEST_F(CredentialsFirstTest, AdminReplacesOldestIncompleteHeadWhenFull) {
  Config config = AllListeners();
  config.limits.connections = 2;
  Service service(config);
  HttpClient oldest(At(service, ListenerId::kAdmin));
  oldest.Send("G");
  HttpClient next(At(service, ListenerId::kAdmin));
  next.Send("G");
  // When this request is answered, the reactor has also read both bytes.
  EXPECT_EQ(service.Ask("/v1/peek", ByRule("per-key", "a")).status, 200);
  HttpClient check(At(service, ListenerId::kAdmin));
  check.Send(Get("/healthz"));
  EXPECT_EQ(check.Read().status, 200);
}

TEST_F(CredentialsFirstTest, AdminReplacesSilentTlsHandshakeWhenFull) {
  Config config = AllListeners();
  config.limits.connections = 2;
  config.listen.admin.tls = TlsFor();
  Service service(config);
  HttpClient oldest(At(service, ListenerId::kAdmin));
  HttpClient next(At(service, ListenerId::kAdmin));
  TlsHttpClient check(At(service, ListenerId::kAdmin));
  check.Send(Get("/healthz"));
  EXPECT_EQ(check.Read().status, 200);
  EXPECT_EQ(oldest.WaitForEnd(), HttpClient::End::kClosed);
}

}  // namespace
}  // namespace tidegate::service
