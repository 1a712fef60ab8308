// SPDX-License-Identifier: Apache-2.0
// The access log has one line of JSON for each request, whatever its kind and outcome, and contains
// no secrets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>

#include "gateway/behaviour/gateway_fixture.hpp"
#include "gateway/behaviour/log_file.hpp"
#include "service/admin_case.hpp"
#include "support/wait.hpp"

namespace tidegate::behaviour {
namespace {

using testing::HasSubstr;
using testing::Not;
using Connection = ScriptedUpstream::Connection;

std::string Text(const boost::json::object& line, std::string_view key) {
  const boost::json::value* const value = line.if_contains(key);
  return value == nullptr || !value->is_string() ? "" : std::string(value->get_string());
}
std::int64_t Number(const boost::json::object& line, std::string_view key) {
  const boost::json::value* const value = line.if_contains(key);
  return value == nullptr || !value->is_int64() ? -1 : value->get_int64();
}
constexpr std::string_view kRule = "rules: [{id: per-key, per: header:x-key, limit: 100/h}]\n";

// --- Fields of a line ---------------------------------------------------------------

TEST(AccessLogTest, LogsFieldsOfForwardedRequest) {
  LogFile log;
  ScriptedUpstream up(ScriptedUpstream::Ok("hello"));
  Gate gate(Routed(up.url(), {}, std::string(kRule) + log.yaml()));
  Client client(gate.at());
  const std::string request = RequestText("POST", "/a/b", "X-Key: k\r\n", "12345");
  const HttpResponse answer = client.Ask(request);
  EXPECT_EQ(answer.status, 200);
  const boost::json::object line = log.Line();
  EXPECT_EQ(Text(line, "request_id"), answer.Field("X-Request-Id"));
  EXPECT_EQ(Text(line, "request_id"), up.last().Field("X-Request-Id"));
  EXPECT_EQ(Text(line, "client"), "127.0.0.1");
  EXPECT_EQ(Text(line, "method"), "POST");
  EXPECT_EQ(Text(line, "host"), "test");
  EXPECT_EQ(Text(line, "path"), "/a/b");
  EXPECT_EQ(Number(line, "status"), 200);
  EXPECT_EQ(Text(line, "outcome"), "passed");
  EXPECT_EQ(Text(line, "route"), "all");
  EXPECT_EQ(Text(line, "rule"), "per-key");
  EXPECT_EQ(line.at("allowed"), true);
  EXPECT_EQ(Number(line, "remaining"), 99);
  EXPECT_EQ(Text(line, "decided_by"), "store");
  EXPECT_EQ(Text(line, "reason"), "quota");
  EXPECT_EQ(Text(line, "upstream"), "127.0.0.1:" + std::to_string(up.port()));
  EXPECT_GE(Number(line, "decision_us"), 0);
  EXPECT_GE(Number(line, "upstream_us"), 0);
  EXPECT_GE(Number(line, "total_us"), Number(line, "upstream_us"));
  EXPECT_EQ(Number(line, "bytes_in"), static_cast<std::int64_t>(request.size()));
  EXPECT_EQ(Number(line, "bytes_out"),
            static_cast<std::int64_t>(answer.head.size() + answer.body.size()));
  EXPECT_THAT(Text(line, "time"), testing::MatchesRegex("20..-..-..T..:..:..[.]...Z"));
}

TEST(AccessLogTest, CountsBytesOfEachPipelinedRequest) {
  LogFile log;
  ScriptedUpstream up(ScriptedUpstream::Ok("hello"));
  Gate gate(Routed(up.url(), {}, log.yaml()));
  Client client(gate.at());
  const std::string one = GetText("/1");
  const std::string two = RequestText("POST", "/2", {}, "some body");
  const std::string three = GetText("/3", "X-More: 12345\r\n");
  client.Send(one + two + three);
  std::vector<HttpResponse> answers;
  for (int i = 0; i < 3; ++i) answers.push_back(client.Read());
  const auto lines = log.Lines(3);
  std::size_t i = 0;
  for (const std::string& text : {one, two, three}) {
    EXPECT_EQ(Number(lines[i], "bytes_in"), static_cast<std::int64_t>(text.size())) << i;
    EXPECT_EQ(Number(lines[i], "bytes_out"),
              static_cast<std::int64_t>(answers[i].head.size() + answers[i].body.size()))
        << i;
    EXPECT_EQ(Text(lines[i], "path"), "/" + std::to_string(i + 1));
    ++i;
  }
}

TEST(AccessLogTest, LogsHeadOfRequestWithLargeBody) {
  LogFile log;
  ScriptedUpstream up(ScriptedUpstream::Ok("hello"));
  Gate gate(Routed(up.url(), {}, log.yaml()));
  Client client(gate.at());
  const std::string body(3u << 20, 'x');
  const HttpResponse answer = client.Ask(RequestText("PUT", "/some/path", {}, body));
  EXPECT_EQ(answer.status, 200);
  const boost::json::object line = log.Line();
  EXPECT_EQ(Text(line, "method"), "PUT");
  EXPECT_EQ(Text(line, "path"), "/some/path");
  EXPECT_EQ(Text(line, "host"), "test");
  EXPECT_GT(Number(line, "bytes_in"), 3 << 20);
}

TEST(AccessLogTest, CountsBytesOfTunnel) {
  LogFile log;
  ScriptedUpstream up([](Connection& connection) {
    HttpRequest request;
    if (!connection.ReadHead(request)) return;
    connection.Send("HTTP/1.1 101 Go\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n");
    connection.Send(connection.ReadExactly(100'000));
  });
  Gate gate(Routed(up.url(), {}, log.yaml()));
  Client client(gate.at());
  EXPECT_EQ(client.Get("/ws", "Upgrade: x\r\nConnection: Upgrade\r\n").status, 101);
  client.Send(std::string(100'000, 'x'));
  EXPECT_EQ(client.stream().ReadRest().size(), 100'000u);
  client.stream().Close();  // The gateway closes a tunnel when both sides have ended.
  const boost::json::object line = log.Line();
  EXPECT_EQ(Number(line, "status"), 101);
  EXPECT_EQ(Text(line, "outcome"), "passed");
  EXPECT_GT(Number(line, "bytes_in"), 100'000);
  EXPECT_GT(Number(line, "bytes_out"), 100'000);
}

// --- Data that the log omits ------------------------------------------------------------

TEST(AccessLogTest, OmitsQueryIdentityAndHeaderFields) {
  LogFile log;
  ScriptedUpstream up(ScriptedUpstream::Each([](const HttpRequest&) {
    return Http("200 OK", "Set-Cookie: secret-cookie\r\n", "secret-answer");
  }));
  Gate gate(
      Routed(up.url(), {}, "rules: [{id: per-key, per: header:x-key, limit: 2/h}]\n" + log.yaml()));
  Client client(gate.at());
  for (int i = 0; i < 3; ++i) {
    (void)client.Ask(RequestText("POST", "/path?token=secret-query",
                                 "X-Key: secret-identity\r\n"
                                 "Authorization: Bearer secret-token\r\n"
                                 "Cookie: secret-cookie\r\n"
                                 "User-Agent: secret-agent\r\n"
                                 "Referer: http://secret-referer/\r\n",
                                 "secret-body"));
  }
  (void)log.Lines(3);
  EXPECT_THAT(log.text(), Not(HasSubstr("secret")));
}

TEST(AccessLogTest, OmitsSecretsOfRejectedRequests) {
  LogFile log;
  ScriptedUpstream up(ScriptedUpstream::Ok());
  Gate gate(Routed(up.url(), {}, std::string(kRule) + log.yaml()));
  Client client(gate.at());
  (void)client.Get("http://secret-user@test/path?secret");
  Client refused(gate.at());
  refused.Send("GET /?secret HTTP/1.1\r\nHost: a\r\nsecret field\r\n\r\n");
  (void)refused.Read();
  ASSERT_TRUE(test::WaitUntil([&] { return log.text().find("refused") != std::string::npos; }));
  EXPECT_THAT(log.text(), Not(HasSubstr("secret")));
}

/// Strings with bytes that need escaping in JSON; the tests put each into a path and a host.
constexpr std::array<std::string_view, 21> kOdd = {"\"",
                                                   "\\",
                                                   "%0d%0a",
                                                   "%22%5c",
                                                   "%00",
                                                   "\x01",
                                                   "\t",
                                                   "\x7f",
                                                   "\xff\xfe",
                                                   "\xc3",
                                                   "\xc3\xa4",
                                                   "%ff",
                                                   "%c3%a4",
                                                   "\xe2\x80\xa8",
                                                   "\xed\xa0\x80",
                                                   "\r",
                                                   "\n",
                                                   "\",\"status\":200,\"x\":\"",
                                                   "{}",
                                                   "[",
                                                   "<>"};

TEST(AccessLogTest, EscapesControlBytes) {
  LogFile log;
  ScriptedUpstream up(ScriptedUpstream::Ok());
  Gate gate(Routed(up.url(), {}, log.yaml()));
  for (const std::string_view odd : kOdd) {
    const std::string text(odd);
    Client(gate.at()).Ask("GET /a" + text + "b HTTP/1.1\r\nHost: test\r\n\r\n");
    Client(gate.at()).Ask("GET / HTTP/1.1\r\nHost: a" + text + "b\r\n\r\n");
  }
  for (const boost::json::object& line : log.Lines(2 * kOdd.size())) {
    const std::string outcome = Text(line, "outcome");
    EXPECT_TRUE(outcome == "passed" || outcome == "bad_request" || outcome == "refused") << outcome;
  }
  const std::string text = log.text();
  for (const char c : text) {
    EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20) << "a control byte in the log";
    EXPECT_NE(c, '\x7f');
  }
}

TEST(AccessLogTest, KeepsLineEndsInPathsEncodedOrEscaped) {
  LogFile log;
  ScriptedUpstream up(ScriptedUpstream::Ok());
  Gate gate(Routed(up.url(), {}, log.yaml()));
  (void)gate.Get("/a%0d%0a{\"outcome\":\"passed\"}");
  const boost::json::object line = log.Line();
  EXPECT_EQ(Number(line, "status"), up.requests() == 1 ? 200 : 400);
}

// --- Outcomes ---------------------------------------------------------------------------

/// A gateway with one route for each kind of outcome, among them upstreams that fail.
class AccessLogOutcomeTest : public testing::Test {
 protected:
  AccessLogOutcomeTest() {
    gone_.StopListening();
    const auto route = [](std::string_view name) {
      const std::string n(name);
      return "  - {id: " + n + ", match: {path: /" + n + "}, upstream: " + n + "}\n";
    };
    std::string yaml = "routes:\n" + route("ok") + route("gone") + route("hang") + route("reset") +
                       route("garbage") + route("cut") + route("full");
    yaml += "upstreams:\n  ok: {targets: \"" + ok_.url() + "\"}\n";
    yaml += "  gone: {targets: \"" + gone_.url() + "\"}\n";
    for (const std::string_view name : {"hang", "reset", "garbage", "cut"}) {
      yaml += "  " + std::string(name) + ": {targets: \"" + bad_.url() +
              "\", retries: off, response_timeout: 100ms, keep_alive: 0}\n";
    }
    yaml += "  full: {targets: \"http://unknown.invalid:1\"}\n";
    yaml += "rules: [{id: few, match: {path: /limited}, per: const, limit: 1/h}]\n";
    gate_.emplace(yaml + log_.yaml());
  }

  static void Misbehave(Connection& connection) {
    HttpRequest request;
    if (!connection.Read(request)) return;
    if (request.target() == "/reset") return connection.Reset();
    if (request.target() == "/garbage") connection.Send("garbage\r\n\r\n");
    if (request.target() == "/cut") {
      connection.Send("HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n" + std::string(3000, 'x'));
      return;
    }
    (void)connection.WaitForEnd();
  }

  boost::json::object After(std::string_view path) {
    Client client(gate_->at());
    client.Send(GetText(path, "Connection: close\r\n"));
    (void)client.stream().ReadRest();
    return log_.Line();
  }

  LogFile log_;
  ScriptedUpstream ok_{ScriptedUpstream::Ok()};
  ScriptedUpstream gone_{ScriptedUpstream::Ok()};
  ScriptedUpstream bad_{Misbehave};
  std::optional<Gate> gate_;
};

TEST_F(AccessLogOutcomeTest, LogsOutcomePassedForForwardedRequest) {
  EXPECT_EQ(Text(After("/ok"), "outcome"), "passed");
}
TEST_F(AccessLogOutcomeTest, LogsOutcomeNoRouteWhenNoRouteMatches) {
  const auto line = After("/nowhere");
  EXPECT_EQ(Text(line, "outcome"), "no_route");
  EXPECT_EQ(Number(line, "status"), 404);
  EXPECT_FALSE(line.contains("route"));
  EXPECT_FALSE(line.contains("upstream"));
}
TEST_F(AccessLogOutcomeTest, LogsOutcomeBadRequestForInvalidPath) {
  const auto line = After("/../x");
  EXPECT_EQ(Text(line, "outcome"), "bad_request");
  EXPECT_EQ(Number(line, "status"), 400);
}
TEST_F(AccessLogOutcomeTest, LogsOutcomeConnectFailedWhenUpstreamRefuses) {
  const auto line = After("/gone");
  EXPECT_EQ(Text(line, "outcome"), "connect_failed");
  EXPECT_EQ(Number(line, "status"), 502);
  EXPECT_THAT(Text(line, "problem"), HasSubstr("refused"));
  EXPECT_EQ(Number(line, "attempts"), 2);
}
TEST_F(AccessLogOutcomeTest, LogsOutcomeTimeoutWhenUpstreamHangs) {
  const auto line = After("/hang");
  EXPECT_EQ(Text(line, "outcome"), "timeout");
  EXPECT_EQ(Number(line, "status"), 504);
  EXPECT_GE(Number(line, "upstream_us"), 100'000);
}
TEST_F(AccessLogOutcomeTest, LogsOutcomeUpstreamErrorWhenUpstreamResets) {
  const auto line = After("/reset");
  EXPECT_EQ(Text(line, "outcome"), "upstream_error");
  EXPECT_EQ(Number(line, "status"), 502);
  EXPECT_NE(Text(line, "problem"), "");
}
TEST_F(AccessLogOutcomeTest, LogsOutcomeUpstreamErrorOnMalformedResponse) {
  EXPECT_EQ(Text(After("/garbage"), "outcome"), "upstream_error");
}
TEST_F(AccessLogOutcomeTest, LogsOutcomeCutWhenResponseBodyBreaksOff) {
  const auto line = After("/cut");
  EXPECT_EQ(Text(line, "outcome"), "cut");
  EXPECT_EQ(Number(line, "status"), 200);
}
TEST_F(AccessLogOutcomeTest, LogsOutcomeUnavailableWhenUpstreamIsFull) {
  const auto line = After("/full");
  EXPECT_EQ(Text(line, "outcome"), "unavailable");
  EXPECT_EQ(Number(line, "status"), 503);
}
TEST_F(AccessLogOutcomeTest, LogsOutcomeLimitedForRateLimitedRequest) {
  Client client(gate_->at());
  EXPECT_EQ(client.Get("/limited").status, 404);
  EXPECT_EQ(client.Get("/limited").status, 429);
  const auto lines = log_.Lines(2);
  EXPECT_EQ(Text(lines[1], "outcome"), "limited");
  EXPECT_EQ(Number(lines[1], "status"), 429);
  EXPECT_EQ(Text(lines[1], "rule"), "few");
  EXPECT_EQ(lines[1].at("allowed"), false);
  EXPECT_EQ(Number(lines[1], "remaining"), 0);
}
TEST_F(AccessLogOutcomeTest, LogsOutcomeClientGoneWhenClientDisconnects) {
  {
    Client client(gate_->at());
    client.Send(GetText("/hang"));
    ASSERT_TRUE(test::WaitUntil([&] { return bad_.requests() == 1; }));
  }
  const auto line = log_.Line();
  EXPECT_EQ(Text(line, "outcome"), "client_gone");
  EXPECT_EQ(Number(line, "status"), 0);
  EXPECT_EQ(Text(line, "path"), "/hang");
}
TEST_F(AccessLogOutcomeTest, LogsOutcomeRefusedForMalformedRequest) {
  Client client(gate_->at());
  client.Send("GET / HTTP/1.1\r\n\r\n");
  EXPECT_EQ(client.Read().status, 400);
  const auto line = log_.Line();
  EXPECT_EQ(Text(line, "outcome"), "refused");
  EXPECT_EQ(Number(line, "status"), 400);
  EXPECT_EQ(Text(line, "client"), "127.0.0.1");
  EXPECT_NE(Text(line, "why"), "");
}

TEST(AccessLogTest, LogsOutcomeDeniedWhenDenyEntryMatches) {
  LogFile log;
  ScriptedUpstream up(ScriptedUpstream::Ok());
  Gate gate(Routed(up.url(), {}, "deny: [{path: /}]\n" + log.yaml()));
  EXPECT_EQ(gate.Get("/").status, 403);
  const auto line = log.Line();
  EXPECT_EQ(Text(line, "outcome"), "denied");
  EXPECT_EQ(up.requests(), 0);
}

TEST(AccessLogTest, LogsRuleOfBannedClient) {
  LogFile log;
  ScriptedUpstream up(ScriptedUpstream::Ok());
  Gate gate(Routed(up.url(), {}, "rules: [{id: r, per: client_ip, limit: 9/h}]\n" + log.yaml()));
  ASSERT_EQ(
      service::AskAdmin(gate.server().admin(), "/v1/ban", service::ByRule("r", "127.0.0.1")).status,
      200);
  EXPECT_EQ(gate.Get("/").status, 403);
  const auto line = log.Line();
  EXPECT_EQ(Text(line, "outcome"), "banned");
  EXPECT_EQ(Text(line, "rule"), "r");
  EXPECT_EQ(Text(line, "decided_by"), "operator");
  EXPECT_EQ(Text(line, "reason"), "banned");
  EXPECT_EQ(up.requests(), 0);
  EXPECT_EQ(gate.Metric("tidegate_gateway_requests_total{route=\"all\",outcome=\"banned\"}"), 1);
}

// --- The log file -----------------------------------------------------------------------

TEST(AccessLogTest, ReopensMovedFileOnReload) {
  LogFile log;
  ScriptedUpstream up(ScriptedUpstream::Ok());
  const std::string yaml = Routed(up.url(), {}, log.yaml());
  Gate gate(yaml);
  EXPECT_EQ(gate.Get("/before").status, 200);
  EXPECT_EQ(Text(log.Line(), "path"), "/before");
  std::filesystem::rename(log.path(), log.path().string() + ".1");
  EXPECT_TRUE(gate.Reload(yaml));
  ASSERT_TRUE(test::WaitUntil([&] { return std::filesystem::exists(log.path()); }));
  EXPECT_EQ(gate.Get("/after").status, 200);
  EXPECT_EQ(Text(log.Line(), "path"), "/after");
}

TEST(AccessLogTest, WritesAllLinesBeforeExit) {
  LogFile log;
  ScriptedUpstream up(ScriptedUpstream::Ok());
  {
    Gate gate(Routed(up.url(), {}, log.yaml()), 2);
    for (int i = 0; i < 100; ++i) EXPECT_EQ(gate.Get("/").status, 200);
  }
  (void)log.Lines(100);
}

}  // namespace
}  // namespace tidegate::behaviour
