// SPDX-License-Identifier: Apache-2.0
// Tests the listener for the Redis protocol, as its clients see it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "service/admin_case.hpp"
#include "service/fixture.hpp"
#include "support/resp_client.hpp"

namespace tidegate::service {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::StartsWith;

constexpr std::string_view kConfig = R"(
rules:
  - { id: per-key, match: { path: /never }, per: header:x-api-key | client_ip, limit: 3/s, burst: 3 }
  - { id: pair, match: { path: /never }, per: [client_ip, path], limit: 5/s }
  - { id: jobs, match: { path: /never }, per: client_ip, limit: 2/10s, algorithm: concurrency }
  - { id: all, match: { path: /never }, per: const, limit: 2/s }
)";

Config MakeConfig(std::string_view yaml = kConfig) {
  Config config = Service::ConfigOf(yaml);
  config.listen.resp = "127.0.0.1:0";
  return config;
}

class RespTest : public testing::Test {
 protected:
  std::string Ask(std::initializer_list<std::string_view> words) { return client_.Ask(words); }

  Service service_{MakeConfig()};
  test::RespClient client_{service_.server().resp()};
};

// --- TG commands ------------------------------------------------------------------------

TEST_F(RespTest, DecideCountsRemainingDown) {
  EXPECT_EQ(Ask({"TG.DECIDE", "per-key", "a"}), "[0,3,2,-1,334,\"store\",\"quota\"]");
  EXPECT_EQ(Ask({"tg.decide", "per-key", "a", "COST", "2"}), "[0,3,0,-1,1000,\"store\",\"quota\"]");
  EXPECT_EQ(Ask({"TG.DECIDE", "per-key", "a"}), "[1,3,0,334,1000,\"store\",\"quota\"]");
  EXPECT_EQ(Ask({"TG.DECIDE", "per-key", "a", "COST", "4"}), "[1,3,0,-1,1000,\"store\",\"quota\"]");
  EXPECT_EQ(Ask({"TG.DECIDE", "per-key", "b"}), "[0,3,2,-1,334,\"store\",\"quota\"]");
}

/// A client that destructures the reply must get the same values in both protocol versions: ioredis
/// 6 uses version 3 by default, ioredis 5 version 2.
TEST_F(RespTest, RepliesAreEqualInProtocolVersions2And3) {
  const auto answers = [this](std::string_view key) {
    std::vector<std::string> all;
    for (const std::string_view command : {"TG.DECIDE", "TG.PEEK", "TG.DECIDE", "TG.DEBIT"}) {
      all.push_back(Ask({command, "per-key", key, "COST", "2"}));
    }
    all.push_back(Ask({"TG.DECIDE", "per-key", key, "COST", "9"}));
    all.push_back(Ask({"TG.REFUND", "per-key", key, "ID", key}));
    all.push_back(Ask({"TG.REFUND", "per-key", key, "ID", key}));
    all.push_back(Ask({"TG.RESET", "per-key", key}));
    all.push_back(Ask({"TG.RESET", "per-key", key}));
    for (const std::string_view command : {"TG.ACQUIRE", "TG.RENEW", "TG.RELEASE", "TG.RELEASE"}) {
      all.push_back(Ask({command, "jobs", "192.0.2.1", key}));
    }
    all.push_back(Ask({"TG.DECIDE", "nope", key}));
    all.push_back(Ask({"CL.THROTTLE", key, "1", "1", "60"}));
    return all;
  };
  const std::vector<std::string> two = answers("two");
  (void)Ask({"HELLO", "3"});
  EXPECT_EQ(answers("three"), two);
  EXPECT_EQ(two[0], "[0,3,1,-1,667,\"store\",\"quota\"]");
}

TEST_F(RespTest, RepliesWithMapWhenMapOptionIsGiven) {
  const std::string flat =
      R"(["allowed",1,"rule","per-key","limit",3,"remaining",3,"reset_after_ms",0,)"
      R"("decided_by","store","reason","quota"])";
  EXPECT_EQ(Ask({"TG.PEEK", "per-key", "a", "MAP"}), flat);
  EXPECT_EQ(Ask({"TG.PEEK", "per-key", "a", "map", "COST", "2"}), flat);
  (void)Ask({"HELLO", "3"});
  EXPECT_EQ(Ask({"TG.DECIDE", "per-key", "a", "COST", "3", "MAP"}),
            R"({"allowed":1,"rule":"per-key","limit":3,"remaining":0,)"
            R"("reset_after_ms":1000,"decided_by":"store","reason":"quota"})");
  EXPECT_EQ(Ask({"TG.DECIDE", "per-key", "a", "MAP"}),
            R"({"allowed":0,"rule":"per-key","limit":3,"remaining":0,)"
            R"("retry_after_ms":334,"reset_after_ms":1000,"decided_by":"store","reason":"quota"})");
  EXPECT_EQ(Ask({"TG.DECIDE", "per-key", "a", "COST", "9", "MAP"}),
            R"({"allowed":0,"rule":"per-key","limit":3,"remaining":0,)"
            R"("never":1,"reset_after_ms":1000,"decided_by":"store","reason":"quota"})");
  EXPECT_THAT(Ask({"TG.DEBIT", "per-key", "b", "COST", "1", "MAP"}), StartsWith("{\"allowed\":1,"));
  EXPECT_THAT(Ask({"TG.ACQUIRE", "jobs", "192.0.2.1", "MAP", "MAP"}),
              StartsWith("{\"allowed\":1,\"rule\":\"jobs\","));
  EXPECT_EQ(Ask({"TG.RELEASE", "jobs", "192.0.2.1", "MAP"}), "1")
      << "the lease named MAP was not held";
  EXPECT_THAT(Ask({"TG.RESET", "per-key", "a", "MAP"}), StartsWith("-ERR unknown option \"MAP\""));
  EXPECT_THAT(Ask({"TG.PEEK", "per-key", "a", "MAP", "MAP"}),
              StartsWith("-ERR unknown option \"MAP\""));
}

TEST_F(RespTest, ReportsBanInProtocolVersions2And3) {
  const auto ban = [this](std::string_view more) {
    const std::string body = ByRule("per-key", "a", more);
    ASSERT_EQ(AskAdmin(service_, "/v1/ban", body).status, 200);
  };
  for (const std::string_view version : {"2", "3"}) {
    (void)Ask({"HELLO", version});
    ban(R"(,"ttl":"10s")");
    EXPECT_THAT(Ask({"TG.DECIDE", "per-key", "a"}),
                MatchesRegex(R"(\[1,-1,-1,(10000|9[0-9]{3}),-1,"operator","banned"\])"));
    ban("");
    EXPECT_EQ(Ask({"TG.DECIDE", "per-key", "a"}), R"([1,-1,-1,-1,-1,"operator","banned"])");
  }
  EXPECT_EQ(Ask({"TG.DECIDE", "per-key", "a", "MAP"}),
            R"({"allowed":0,"rule":"per-key","decided_by":"operator","reason":"banned"})");
}

TEST_F(RespTest, PeekChargesNothing) {
  EXPECT_EQ(Ask({"TG.PEEK", "per-key", "a", "COST", "2"}), "[0,3,3,-1,0,\"store\",\"quota\"]");
  EXPECT_EQ(Ask({"TG.PEEK", "per-key", "a"}), "[0,3,3,-1,0,\"store\",\"quota\"]");
}

TEST_F(RespTest, DebitsBlockAKeyForABoundedTime) {
  for (int i = 0; i < 2; ++i) {  // 30 units of debt and one unit to spend, at 3 units per second.
    EXPECT_EQ(Ask({"TG.DEBIT", "per-key", "a", "COST", "2147483647"}),
              "[1,3,0,10334,11000,\"store\",\"quota\"]");
  }
}

TEST_F(RespTest, DebitRefundAndResetChangeRemaining) {
  EXPECT_EQ(Ask({"TG.DEBIT", "per-key", "a", "COST", "5"}),
            "[1,3,0,1000,1667,\"store\",\"quota\"]");
  EXPECT_EQ(Ask({"TG.REFUND", "per-key", "a", "ID", "x", "COST", "4"}), "1");
  EXPECT_EQ(Ask({"TG.REFUND", "per-key", "a", "ID", "x", "COST", "4"}), "0")
      << "the refund was applied twice";
  EXPECT_EQ(Ask({"TG.PEEK", "per-key", "a"}), "[0,3,2,-1,334,\"store\",\"quota\"]");
  EXPECT_EQ(Ask({"TG.RESET", "per-key", "a"}), "1");
  EXPECT_EQ(Ask({"TG.PEEK", "per-key", "a"}), "[0,3,3,-1,0,\"store\",\"quota\"]");
  EXPECT_EQ(Ask({"TG.RESET", "per-key", "unused"}), "0");
  (void)Ask({"TG.DECIDE", "per-key", "a"});
  EXPECT_EQ(Ask({"TG.REFUND", "per-key", "a", "AGE", "10", "ID", "y"}), "1");
}

TEST_F(RespTest, AcquiresRenewsAndReleasesLeases) {
  EXPECT_EQ(Ask({"TG.ACQUIRE", "jobs", "192.0.2.1", "one"}),
            "[0,2,1,-1,10000,\"store\",\"quota\"]");
  EXPECT_EQ(Ask({"TG.ACQUIRE", "jobs", "192.0.2.1", "one"}),
            "[0,2,1,-1,10000,\"store\",\"quota\"]");
  EXPECT_EQ(Ask({"TG.ACQUIRE", "jobs", "192.0.2.1", "two"}),
            "[0,2,0,-1,10000,\"store\",\"quota\"]");
  EXPECT_THAT(Ask({"TG.ACQUIRE", "jobs", "192.0.2.1", "three"}), StartsWith("[1,2,0,10000,"));
  EXPECT_EQ(Ask({"TG.RENEW", "jobs", "192.0.2.1", "one"}), "1");
  EXPECT_EQ(Ask({"TG.RELEASE", "jobs", "192.0.2.1", "one"}), "1");
  EXPECT_EQ(Ask({"TG.RELEASE", "jobs", "192.0.2.1", "one"}), "0");
  EXPECT_EQ(Ask({"TG.RENEW", "jobs", "192.0.2.1", "one"}), "0");
  EXPECT_THAT(Ask({"TG.DECIDE", "jobs", "192.0.2.1"}), HasSubstr("TG.ACQUIRE"));
}

TEST_F(RespTest, AcceptsFurtherSourcesByWithOption) {
  EXPECT_EQ(Ask({"TG.DECIDE", "per-key", "", "WITH", "client_ip", "192.0.2.1"}),
            "[0,3,2,-1,334,\"store\",\"quota\"]");
  EXPECT_EQ(Ask({"TG.DECIDE", "pair", "192.0.2.1", "WITH", "path", "/a", "COST", "2"}),
            "[0,5,3,-1,400,\"store\",\"quota\"]");
  EXPECT_EQ(Ask({"TG.DECIDE", "pair", "192.0.2.1"}), "-ERR the identity has no value for path")
      << "every request has a path, so no request would share this bucket";
  EXPECT_EQ(Ask({"TG.DECIDE", "all", ""}), "[0,2,1,-1,500,\"store\",\"quota\"]");
}

TEST_F(RespTest, SharesBucketsWithTheHttpApi) {
  (void)Ask({"TG.DECIDE", "per-key", "a", "COST", "2"});
  EXPECT_EQ(service_.Decide(ByRule("per-key", "a")).Json().at("remaining"), 0);
  EXPECT_THAT(Ask({"TG.DECIDE", "per-key", "a"}), StartsWith("[1,3,0,"));
  EXPECT_EQ(service_.Metric(
                R"(tidegate_decisions_total{rule="per-key",outcome="denied",decided_by="store"})"),
            1);
}

struct Bad {
  const char* name;
  std::vector<std::string> words;
  std::string_view message;
};
class BadRespTest : public testing::TestWithParam<Bad> {};

TEST_P(BadRespTest, RepliesWithErrorAndChargesNothing) {
  Service service(MakeConfig());
  test::RespClient client(service.server().resp());
  std::string bytes = "*" + std::to_string(GetParam().words.size()) + "\r\n";
  for (const std::string& word : GetParam().words) {
    bytes += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
  }
  client.Send(bytes);
  const std::string answer = client.Read();
  EXPECT_THAT(answer, StartsWith("-ERR "));
  EXPECT_THAT(answer, HasSubstr(GetParam().message));
  EXPECT_EQ(client.Ask({"TG.PEEK", "per-key", "a"}), "[0,3,3,-1,0,\"store\",\"quota\"]")
      << "the connection must stay usable";
}

INSTANTIATE_TEST_SUITE_P(
    Table, BadRespTest,
    testing::Values(
        Bad{"UnknownRule", {"TG.DECIDE", "per-kez", "a"}, "did you mean"},
        Bad{"NoIdentity", {"TG.DECIDE", "per-key"}, "takes: rule identity"},
        Bad{"EmptyIdentity", {"TG.DECIDE", "per-key", ""}, "is empty"},
        Bad{"LongIdentity", {"TG.DECIDE", "per-key", std::string(9000, 'x')}, "9000 bytes"},
        Bad{"CostZero", {"TG.DECIDE", "per-key", "a", "COST", "0"}, "between 1 and 2147483647"},
        Bad{"CostNegative", {"TG.DECIDE", "per-key", "a", "COST", "-1"}, "between 1 and"},
        Bad{"Cost2To53", {"TG.DECIDE", "per-key", "a", "COST", "9007199254740993"}, "between"},
        Bad{"Cost2To63", {"TG.DECIDE", "per-key", "a", "COST", "9223372036854775808"}, "integer"},
        Bad{"CostNan", {"TG.DECIDE", "per-key", "a", "COST", "nan"}, "integer"},
        Bad{"CostFloat", {"TG.DECIDE", "per-key", "a", "COST", "1e309"}, "integer"},
        Bad{"CostTwice", {"TG.DECIDE", "per-key", "a", "COST", "1", "COST", "1"}, "twice"},
        Bad{"CostWithoutValue", {"TG.DECIDE", "per-key", "a", "COST"}, "needs a value"},
        Bad{"UnknownOption", {"TG.DECIDE", "per-key", "a", "PRICE", "1"}, "unknown option"},
        Bad{"LeaseOfOtherAlgorithm", {"TG.ACQUIRE", "per-key", "a", "l"}, "concurrency"},
        Bad{"EmptyLease", {"TG.ACQUIRE", "jobs", "192.0.2.1", ""}, "empty"},
        Bad{"LongLease", {"TG.ACQUIRE", "jobs", "192.0.2.1", std::string(257, 'x')}, "256 bytes"},
        Bad{"RefundWithoutId", {"TG.REFUND", "per-key", "a", "COST", "1"}, "ID id"},
        Bad{"RefundEmptyId", {"TG.REFUND", "per-key", "a", "ID", ""}, "empty"},
        Bad{"RefundOldAge", {"TG.REFUND", "per-key", "a", "ID", "i", "AGE", "-1"}, "age_ms"},
        Bad{"DebitWithoutCost", {"TG.DEBIT", "per-key", "a", "WITH", "x"}, "WITH"},
        Bad{"NotAnAddress", {"TG.DECIDE", "jobs", "unknown"}, "not an IP address"},
        Bad{"UnknownSource", {"TG.DECIDE", "per-key", "a", "WITH", "cookie:x", "y"}, "count by"},
        Bad{"UnknownCommand", {"GETT", "a\r\n+OK", "b"}, "unknown command 'GETT'"},
        Bad{"NoSuchDatabase", {"SELECT", "1"}, "DB index"}),
    [](const auto& of) { return std::string(of.param.name); });

TEST_F(RespTest, AcceptsAnyBytesAsIdentity) {
  for (const std::string_view odd :
       {std::string_view("a\0b", 3), std::string_view("\r\n"), std::string_view("{}"),
        std::string_view("}{"), std::string_view("\xff\xfe"),
        std::string_view("tg:tb:per-key:{a}")}) {
    EXPECT_EQ(Ask({"TG.DECIDE", "per-key", odd}), "[0,3,2,-1,334,\"store\",\"quota\"]");
    EXPECT_EQ(Ask({"TG.DECIDE", "per-key", odd}), "[0,3,1,-1,667,\"store\",\"quota\"]");
    EXPECT_EQ(Ask({"CL.THROTTLE", odd, "2", "3", "1"}), "[0,3,2,-1,1]");
  }
}

// --- Connections ------------------------------------------------------------------------

TEST_F(RespTest, AnswersConnectionCommandsOfClients) {
  EXPECT_EQ(Ask({"PING"}), "PONG");
  EXPECT_EQ(Ask({"PING", "a b"}), "\"a b\"");
  EXPECT_EQ(Ask({"ECHO", "x"}), "\"x\"");
  EXPECT_EQ(Ask({"CLIENT", "SETINFO", "LIB-NAME", "x"}), "OK");
  EXPECT_EQ(Ask({"CLIENT", "GETNAME"}), "null");
  EXPECT_EQ(Ask({"CLIENT", "SETNAME", "me"}), "OK");
  EXPECT_EQ(Ask({"CLIENT", "GETNAME"}), "\"me\"");
  EXPECT_THAT(Ask({"CLIENT", "SETNAME", "a b"}), StartsWith("-ERR"));
  EXPECT_EQ(Ask({"SELECT", "0"}), "OK");
  EXPECT_THAT(Ask({"INFO"}), HasSubstr("redis_version:"));
  EXPECT_THAT(Ask({"INFO", "server"}), HasSubstr("loading:0"));
  EXPECT_THAT(Ask({"COMMAND", "DOCS"}), HasSubstr("\"cl.throttle\",[\"summary\""));
  EXPECT_THAT(Ask({"COMMAND"}), HasSubstr("[\"tg.decide\",-3,"));
  EXPECT_EQ(Ask({"COMMAND", "INFO", "nope"}), "[null]");
  EXPECT_EQ(Ask({"CONFIG", "GET", "save"}), "[\"save\",\"\"]");
  EXPECT_THAT(Ask({"CLUSTER", "SLOTS"}), StartsWith("-ERR This instance has cluster"));
  EXPECT_EQ(Ask({"QUIT"}), "OK");
  EXPECT_EQ(client_.Read(), "(end)");
}

TEST_F(RespTest, HelloSelectsTheProtocolVersion) {
  EXPECT_THAT(Ask({"HELLO"}), HasSubstr("\"proto\",2"));
  EXPECT_THAT(Ask({"HELLO", "3", "SETNAME", "me"}), HasSubstr("\"proto\":3"));
  EXPECT_EQ(Ask({"CLIENT", "GETNAME"}), "\"me\"");
  EXPECT_EQ(Ask({"HELLO", "4"}), "-NOPROTO unsupported protocol version");
  EXPECT_THAT(Ask({"HELLO", "x"}), StartsWith("-ERR"));
  EXPECT_THAT(Ask({"HELLO", "2", "WHAT"}), StartsWith("-ERR Syntax error"));
  EXPECT_EQ(Ask({"CLIENT", "GETNAME"}), "\"me\"")
      << "the failed HELLO must not change the connection";
  EXPECT_EQ(Ask({"RESET"}), "RESET");
  EXPECT_EQ(Ask({"CLIENT", "GETNAME"}), "null");
  EXPECT_THAT(Ask({"AUTH", "x"}), HasSubstr("without any password"));
}

TEST_F(RespTest, AcceptsInlineCommands) {
  client_.Send("PING\r\n\r\nPING\ntg.decide per-key \"a b\" COST 2\r\n");
  EXPECT_EQ(client_.Read(), "PONG");
  EXPECT_EQ(client_.Read(), "PONG");
  EXPECT_EQ(client_.Read(), "[0,3,1,-1,667,\"store\",\"quota\"]");
  EXPECT_EQ(Ask({"TG.PEEK", "per-key", "a b"}), "[0,3,1,-1,667,\"store\",\"quota\"]");
}

TEST_F(RespTest, AnswersPipelineInOrderAndInOneWrite) {
  std::string bytes;
  for (int i = 0; i < 100; ++i) {
    bytes += test::RespCommand({"ECHO", std::to_string(i)});
    bytes += test::RespCommand({"CL.THROTTLE", "k", "999", "1", "1"});
  }
  client_.Send(bytes);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(client_.Read(), "\"" + std::to_string(i) + "\"");
    EXPECT_THAT(client_.Read(), StartsWith("[0,1000," + std::to_string(999 - i) + ","));
  }
  EXPECT_LE(client_.reads(), 2) << "reads; the pipeline may arrive in two parts";
}

TEST_F(RespTest, RepliesToInvalidCommandsOfPipelineInOrder) {
  client_.Send(test::RespCommand({"TG.DECIDE", "per-key", "a"}) +
               test::RespCommand({"TG.DECIDE", "x", "a"}) + test::RespCommand({"NOPE"}) +
               test::RespCommand({"TG.DECIDE", "per-key", "a"}));
  EXPECT_THAT(client_.Read(), StartsWith("[0,3,2,"));
  EXPECT_THAT(client_.Read(), StartsWith("-ERR there is no rule"));
  EXPECT_THAT(client_.Read(), StartsWith("-ERR unknown command"));
  EXPECT_THAT(client_.Read(), StartsWith("[0,3,1,"));
}

TEST_F(RespTest, AcceptsCommandsByteByByte) {
  for (const char c : test::RespCommand({"TG.DECIDE", "per-key", "a"})) client_.Send({&c, 1});
  EXPECT_THAT(client_.Read(), StartsWith("[0,3,2,"));
}

TEST_F(RespTest, AnswersCommandsSentBeforeHalfClose) {
  client_.Send(test::RespCommand({"PING"}) + test::RespCommand({"TG.DECIDE", "per-key", "a"}) +
               "*1\r\n$4\r\nPI");
  client_.EndSending();
  EXPECT_EQ(client_.Read(), "PONG");
  EXPECT_THAT(client_.Read(), StartsWith("[0,3,2,"));
  EXPECT_EQ(client_.Read(), "(end)");
}

TEST_F(RespTest, ClosesConnectionOnMalformedInput) {
  for (const std::string_view bad :
       {"*x\r\n", "*1000000000\r\n", "*1\r\n:1\r\n", "*1\r\n$-5\r\n", "*1\r\n$99999999999999\r\n",
        "*1\r\n$4\r\nPINGxx", "\"open\r\n"}) {
    test::RespClient client(service_.server().resp());
    client.Send(test::RespCommand({"PING"}) + std::string(bad));
    EXPECT_EQ(client.Read(), "PONG");
    EXPECT_THAT(client.Read(), StartsWith("-ERR Protocol error")) << bad;
    EXPECT_EQ(client.Read(), "(end)");
  }
  EXPECT_EQ(service_.Metric(R"(tidegate_requests_refused_total{listener="resp"})"), 7);
}

TEST_F(RespTest, IgnoresEmptyCommands) {
  client_.Send("*0\r\n*-1\r\n\r\n" + test::RespCommand({"PING"}));
  EXPECT_EQ(client_.Read(), "PONG");
}

TEST_F(RespTest, AnswersHttpRequestsWith400) {
  client_.Send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  const std::string answer = client_.ReadRest();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(answer, HasSubstr("Redis protocol"));
  // A web page that makes a browser send commands in a request body has no effect.
  test::RespClient browser(service_.server().resp());
  browser.Send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 40\r\n\r\ntg.decide per-key a\r\n");
  EXPECT_THAT(browser.ReadRest(), StartsWith("HTTP/1.1 400 "));
  EXPECT_EQ(test::RespClient(service_.server().resp()).Ask({"TG.PEEK", "per-key", "a"}),
            "[0,3,3,-1,0,\"store\",\"quota\"]");
}

TEST_F(RespTest, StopsReadingWhenTheClientDoesNotRead) {
  test::RespClient lazy(service_.server().resp(), 4096);
  std::string bytes;
  for (int i = 0; i < 3'000; ++i) bytes += test::RespCommand({"COMMAND"});
  std::thread sender([&] { lazy.Send(bytes); });  // Blocks, because the server has stopped reading.
  EXPECT_EQ(Ask({"PING"}), "PONG") << "the server must serve other clients";
  for (int i = 0; i < 3'000; ++i) {
    if (!lazy.Read().starts_with("[")) {
      ADD_FAILURE() << "at " << i;
      break;
    }
  }
  sender.join();
}

TEST_F(RespTest, DrainClosesIdleConnections) {
  EXPECT_EQ(Ask({"PING"}), "PONG");
  std::atomic<bool> drained = false;
  service_.server().Drain([&] { drained = true; });
  EXPECT_EQ(client_.Read(), "(end)");
  const auto latest = std::chrono::steady_clock::now() + kPatience;
  while (!drained && std::chrono::steady_clock::now() < latest) std::this_thread::yield();
  EXPECT_TRUE(drained);
}

TEST(RespThrottleTest, ThrottleCanBeDisabled) {
  Config config = MakeConfig();
  config.resp.throttle = false;
  Service service(config);
  test::RespClient client(service.server().resp());
  EXPECT_THAT(client.Ask({"CL.THROTTLE", "k", "4", "1", "1"}),
              HasSubstr("CL.THROTTLE is disabled"));
  EXPECT_THAT(client.Ask({"TG.DECIDE", "per-key", "a"}), StartsWith("[0,3,2,"));
}

TEST(RespReloadTest, NewRulesApplyToOpenConnections) {
  Service service(MakeConfig());
  test::RespClient client(service.server().resp());
  EXPECT_THAT(client.Ask({"TG.DECIDE", "new", "a"}), StartsWith("-ERR there is no rule"));
  ASSERT_TRUE(
      service.Reload("rules: [ { id: new, match: {path: /n}, per: header:x, limit: 4/s } ]"));
  std::string answer;
  for (int i = 0; i < 100 && !answer.starts_with("["); ++i) {
    answer = client.Ask({"TG.DECIDE", "new", "a"});
  }
  EXPECT_THAT(answer, StartsWith("[0,4,3,"));
}

}  // namespace
}  // namespace tidegate::service
