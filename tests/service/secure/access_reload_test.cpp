// SPDX-License-Identifier: Apache-2.0
// Tests tokens that a reload adds or removes, and that their secrets appear nowhere.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gateway/behaviour/log_file.hpp"
#include "service/secure/callers.hpp"
#include "support/wait.hpp"

namespace tidegate::service {
namespace {

using namespace std::chrono_literals;
using Auth = ListenSpec::Auth;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr std::string_view kNewToken = "token-that-came-later";

TokenSpec MayAll(std::string name, std::string_view secret) {
  return {.name = std::move(name), .secret = std::string(secret)};
}
TokenSpec MayAsk(std::string name, std::string_view secret) {
  return {.name = std::move(name), .secret = std::string(secret), .may = TokenSpec::May::kAsk};
}

class TokenReloadTest : public testing::TestWithParam<Auth> {
 protected:
  static Config With(std::vector<TokenSpec> tokens) {
    Config config = AllListeners("http://127.0.0.1:9", "limits: {idle_timeout: 300ms}\n");
    for (const ListenerId listener : {ListenerId::kApi, ListenerId::kResp})
      SpecOf(config, listener).auth = GetParam();
    config.listen.admin.auth = Auth::kRequired;
    config.access.tokens = std::move(tokens);
    return config;
  }
  bool Reload(std::vector<TokenSpec> tokens) {
    Problems problems;
    const Config config = With(std::move(tokens));
    EXPECT_THAT(service_.server().NeedsRestart(config), testing::IsEmpty());
    return service_.server().Reload(config, problems);
  }
  static int Refund(HttpClient& client, std::string_view token) {
    std::string line = "X-Tidegate-Token: ";
    line.append(token).append("\r\n");
    client.Send(Post("/v1/refund", ByRule("per-key", "a", R"(,"cost":1,"id":"i")"), line));
    return client.Read().status;
  }
  int Metrics(std::string_view token) {
    HttpClient client(At(service_, ListenerId::kAdmin));
    std::string text = "GET /metrics HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer ";
    client.Send(text.append(token).append("\r\n\r\n"));
    return client.Read().status;
  }

  Service service_{With({MayAll("ops", kAllToken)}), 2};
};

TEST_P(TokenReloadTest, RevokesOldTokenAndAcceptsNewToken) {
  test::RespClient resp(At(service_, ListenerId::kResp));
  HttpClient http(service_.api());
  EXPECT_EQ(resp.Ask({"AUTH", kAllToken}), "OK");
  EXPECT_EQ(resp.Ask({"TG.RESET", "per-key", "a"}), "0");
  EXPECT_EQ(Refund(http, kAllToken), 200);
  EXPECT_EQ(Refund(http, kNewToken), 401);
  EXPECT_EQ(Metrics(kAllToken), 200);
  ASSERT_TRUE(Reload({MayAll("ops2", kNewToken)}));
  EXPECT_TRUE(test::WaitUntil([&] { return Refund(http, kAllToken) == 401; }));
  EXPECT_TRUE(test::WaitUntil([&] { return Refund(http, kNewToken) == 200; }));
  EXPECT_TRUE(test::WaitUntil([&] { return Metrics(kAllToken) == 401; }));
  EXPECT_EQ(Metrics(kNewToken), 200);
  EXPECT_TRUE(test::WaitUntil([&] {
    return resp.Ask({"TG.RESET", "per-key", "a"}).starts_with("-NOAUTH");
  }));
  EXPECT_THAT(resp.Ask({"PING"}), StartsWith("-NOAUTH"));
  EXPECT_THAT(resp.Ask({"AUTH", kAllToken}), StartsWith("-WRONGPASS"));
  EXPECT_EQ(resp.Ask({"AUTH", kNewToken}), "OK");
  EXPECT_EQ(resp.Ask({"TG.RESET", "per-key", "a"}), "0");
}

TEST_P(TokenReloadTest, ReducesRightsOfOpenConnections) {
  test::RespClient resp(At(service_, ListenerId::kResp));
  HttpClient http(service_.api());
  EXPECT_EQ(resp.Ask({"AUTH", "ops", kAllToken}), "OK");
  ASSERT_TRUE(Reload({MayAsk("ops", kAllToken)}));
  EXPECT_TRUE(test::WaitUntil([&] {
    return resp.Ask({"TG.RESET", "per-key", "a"}).starts_with("-NOPERM");
  }));
  EXPECT_THAT(resp.Ask({"TG.PEEK", "per-key", "a"}), StartsWith("["));
  EXPECT_TRUE(test::WaitUntil([&] { return Refund(http, kAllToken) == 403; }));
  ASSERT_TRUE(Reload({MayAll("ops", kAllToken)}));
  EXPECT_TRUE(test::WaitUntil([&] { return resp.Ask({"TG.RESET", "per-key", "a"}) == "0"; }));
}

TEST_P(TokenReloadTest, RenamedTokenKeepsItsRights) {
  test::RespClient resp(At(service_, ListenerId::kResp));
  EXPECT_EQ(resp.Ask({"AUTH", kAllToken}), "OK");
  ASSERT_TRUE(Reload({MayAll("first", kNewToken), MayAll("renamed", kAllToken)}));
  EXPECT_TRUE(test::WaitUntil([&] {
    return test::RespClient(At(service_, ListenerId::kResp)).Ask({"AUTH", kNewToken}) == "OK";
  }));
  EXPECT_EQ(resp.Ask({"TG.RESET", "per-key", "a"}), "0");
}

/// After its token was removed, a client gets no more time than an unauthenticated client.
TEST_P(TokenReloadTest, ClosesIdleConnectionOfRevokedToken) {
  test::RespClient resp(At(service_, ListenerId::kResp));
  EXPECT_EQ(resp.Ask({"AUTH", kAllToken}), "OK");
  ASSERT_TRUE(Reload({MayAll("ops2", kNewToken)}));
  EXPECT_TRUE(test::WaitUntil([&] { return resp.Ask({"PING"}).starts_with("-NOAUTH"); }));
  EXPECT_EQ(resp.Read(), "(end)");
}

INSTANTIATE_TEST_SUITE_P(Auth, TokenReloadTest, testing::Values(Auth::kRequired, Auth::kByAddress),
                         [](const auto& of) {
                           return of.param == Auth::kRequired ? "Required" : "ByAddress";
                         });

/// A reload removes the last token: listeners with `auth: required` still require authentication.
TEST(LastTokenTest, RemovingLastTokenKeepsAuthenticationRequired) {
  const auto with = [](std::vector<TokenSpec> tokens) {
    Config config = AllListeners();
    config.listen.api.auth = config.listen.resp.auth = Auth::kRequired;
    config.access.tokens = std::move(tokens);
    return config;
  };
  Service service(with(BothTokens()));
  test::RespClient resp(At(service, ListenerId::kResp));
  EXPECT_EQ(resp.Ask({"AUTH", kAllToken}), "OK");
  Problems problems;
  ASSERT_TRUE(service.server().Reload(with({}), problems));
  EXPECT_TRUE(test::WaitUntil([&] { return resp.Ask({"PING"}).starts_with("-NOAUTH"); }));
  HttpClient http(service.api());
  http.Send(Post("/v1/peek", ByRule("per-key", "a"),
                 "X-Tidegate-Token: " + std::string(kAllToken) + "\r\n"));
  EXPECT_EQ(http.Read().status, 401);
}

TEST(FirstTokenTest, AddingFirstTokenRequiresAuthenticationOnPublicListeners) {
  const auto with = [](std::vector<TokenSpec> tokens) {
    Config config = AllListeners();
    config.listen.api.address = config.listen.resp.address = "0.0.0.0:0";
    config.access.tokens = std::move(tokens);
    return config;
  };
  Service service(with({}));
  test::RespClient resp(At(service, ListenerId::kResp));
  HttpClient http(service.api());
  EXPECT_EQ(resp.Ask({"PING"}), "PONG");
  EXPECT_EQ(http.Ask("/v1/peek", ByRule("per-key", "a")).status, 200);
  Problems problems;
  ASSERT_TRUE(service.server().Reload(with(BothTokens()), problems));
  EXPECT_TRUE(test::WaitUntil([&] { return resp.Ask({"PING"}).starts_with("-NOAUTH"); }));
  EXPECT_TRUE(
      test::WaitUntil([&] { return http.Ask("/v1/peek", ByRule("per-key", "a")).status == 401; }));
  EXPECT_EQ(resp.Ask({"AUTH", kAllToken}), "OK");
}

// --- Secrets ------------------------------------------------------------------------

TEST(SecretTest, NoTokenAppearsInLogsMetricsOrAnswers) {
  testing::internal::CaptureStderr();
  behaviour::LogFile log;
  std::string output;
  {
    behaviour::ScriptedUpstream upstream(behaviour::ScriptedUpstream::Ok());
    Config config = AllListeners(upstream.url(), log.yaml());
    config.log.level = Config::Log::Level::kDebug;
    config.listen.api.auth = config.listen.resp.auth = Auth::kRequired;
    config.access.tokens = BothTokens();
    Service service(config);
    for (const std::string_view token : {kAskToken, kAllToken, kWrongToken}) {
      test::RespClient resp(At(service, ListenerId::kResp));
      output += resp.Ask({"AUTH", token}) + resp.Ask({"HELLO", "3", "AUTH", "default", token}) +
                resp.Ask({"CLIENT", "GETNAME"}) + resp.Ask({"INFO"}) + resp.Ask({"COMMAND"});
      HttpClient http(service.api());
      for (const std::string field : {"X-Tidegate-Token: ", "Authorization: Bearer "}) {
        const std::string line = field + std::string(token) + "\r\n";
        http.Send(Post("/v1/refund", ByRule("per-key", "a", R"(,"id":"i","cost":1)"), line));
        output += http.Read().body;
        http.Send("GET /v1/auth HTTP/1.1\r\nHost: test\r\n" + line + "\r\n");
        output += http.Read().body;
        HttpClient gateway(At(service, ListenerId::kGateway));
        gateway.Send("GET / HTTP/1.1\r\nHost: test\r\n" + line + "\r\n");
        output += gateway.Read().body;
      }
    }
    Problems problems;
    config.access.tokens.pop_back();
    EXPECT_TRUE(service.server().Reload(config, problems));
    output += service.Metrics();
    (void)log.Lines(6);
  }
  output += log.text() + testing::internal::GetCapturedStderr();
  EXPECT_THAT(output, HasSubstr("tidegate_connections"));
  for (const std::string_view token : {kAskToken, kAllToken, kWrongToken}) {
    EXPECT_THAT(output, Not(HasSubstr(std::string(token))));
  }
}

}  // namespace
}  // namespace tidegate::service
