// SPDX-License-Identifier: Apache-2.0
// The commands against a fake server that responds as docs/admin.md documents: the requests that
// they send, their output and their exit codes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "cli/command_case.hpp"
#include "cli/commands.hpp"
#include "cli/console.hpp"
#include "cli/fake_admin.hpp"

namespace tidegate::cli {
namespace {

using cli_test::FakeAdmin;
using cli_test::ReceivedRequest;
using cli_test::Reply;
using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
namespace json = boost::json;

class CommandsTest : public cli_test::CommandCase {};

TEST_F(CommandsTest, InspectPrintsQuotaAndState) {
  EXPECT_EQ(Inspect({To(fake_), {.rule = "per-key", .identity = "abc"}}, console_), kOk);
  EXPECT_EQ(Out(),
            "rule       per-key\n"
            "key        header:x-api-key=~k3Jx0\n"
            "stored as  tg:tb:x\n"
            "quota      100/s, burst 200 (token_bucket)\n"
            "now        allowed, 150 of 200 left, full in 500 ms\n"
            "state      tokens 150\n"
            "           last_refill 17\n"
            "override   none\n");
  const ReceivedRequest request = fake_.Requests().at(0);
  EXPECT_EQ(request.method + request.target + request.body,
            R"(POST/v1/inspect{"rule":"per-key","identity":"abc"})");
  EXPECT_THAT(request.head, HasSubstr("Content-Type: application/json\r\n"));
  EXPECT_THAT(request.head, HasSubstr("Host: " + fake_.address() + "\r\n"));
  EXPECT_THAT(request.head, Not(HasSubstr("Authorization")));
}

TEST_F(CommandsTest, InspectPrintsOverrideBeforeState) {
  const auto now = [&](const std::string& kind) {
    FakeAdmin server([&](const ReceivedRequest&) {
      return Reply{200, R"({"rule":"r","allowed":true,"remaining":5,"capacity":5,"tracked":true,)"
                        R"("override":{"kind":")" +
                            kind + R"(","limit":"1/s"}})"};
    });
    out_.str("");
    EXPECT_EQ(Inspect({To(server), {.rule = "r", .identity = "a"}}, console_), kOk);
    return Out();
  };
  EXPECT_THAT(now("ban"), HasSubstr("now       banned, 5 of 5 left\n"));
  EXPECT_THAT(now("allow"), HasSubstr("now       allowed without being counted, 5 of 5 left\n"));
  EXPECT_THAT(now("quota"), HasSubstr("now       allowed, 5 of 5 left\n"));
}

TEST_F(CommandsTest, ExplainPrintsOutcomeAndEachRule) {
  EXPECT_EQ(Explain({.client = To(fake_), .path = "/v1/x"}, console_), kOk);
  EXPECT_EQ(Out(),
            "would be denied (429): rule per-key decides\n"
            "request: GET api.example.com/v1/x from 203.0.113.7\n"
            "\n"
            "per-key  denies: 0 of 200 left, try again in 10 ms\n"
            "  quota       100/s, burst 200 (token_bucket), cost 1\n"
            "  mode        enforce, on failure local\n"
            "  match       /v1/** x-tier: gold\n"
            "  per         header:x-api-key | client_ip\n"
            "  counted by  header:x-api-key\n"
            "  key         header:x-api-key=~k3Jx0\n"
            "  stored as   tg:tb:per-key:{header:x-api-key=~k3Jx0}\n"
            "  override    quota 100/s, burst 200 by alice: partner; 1 h left\n"
            "\n"
            "logins  does not match: its method is POST, the request's is GET\n");
}

TEST_F(CommandsTest, EachChangeCommandPrintsKeyAndExpiry) {
  for (const Change change : {Change::kReset, Change::kGrant, Change::kRefund, Change::kBan,
                              Change::kAllow, Change::kOverride, Change::kLift}) {
    out_.str("");
    EXPECT_EQ(ChangeKey({.change = change,
                         .client = To(fake_),
                         .selector = {.rule = "per-key", .identity = "abc"},
                         .amount = "1",
                         .id = "i",
                         .limit = "1/s"},
                        console_),
              kOk)
        << Err();
    EXPECT_THAT(Out(),
                HasSubstr(": per-key header:x-api-key=~k3Jx0, until 2023-11-14 22:13:20Z\n"));
    EXPECT_EQ(fake_.Requests().back().target, "/v1/" + std::string(Name(change)));
  }
}

TEST_F(CommandsTest, ChangeSucceedsWhenThereIsNothingToChange) {
  FakeAdmin server([](const ReceivedRequest&) {
    return Reply{200, R"({"applied":false,"rule":"r"})"};
  });
  EXPECT_EQ(ChangeKey({.change = Change::kLift,
                       .client = To(server),
                       .selector = {.rule = "r", .identity = "abc"}},
                      console_),
            kOk);
  EXPECT_THAT(Out(), StartsWith("nothing to lift"));
}

TEST_F(CommandsTest, ListCommandsPrintTables) {
  EXPECT_EQ(ListOverrides(To(fake_), console_), kOk);
  EXPECT_EQ(
      Out(),
      "RULE     KEY                      KIND                 SINCE                        LEFT  "
      "BY        REASON\n"
      "per-key  header:x-api-key=~k3Jx0  ban                  2023-11-14 22:13:20Z  59 min 59 s  "
      "alice     scraping\n"
      "gone     client_ip=192.0.2.1      quota 5/s, burst 10  2023-11-14 22:13:20Z            -  "
      "loopback  not in force: there is no rule 'gone'\n");
  out_.str("");
  EXPECT_EQ(ListHot({.client = To(fake_), .by = "denials", .limit = 7}, console_), kOk);
  EXPECT_EQ(Out(),
            "by denials in the last 14 s, of 100 in all\n"
            "COUNT  AT LEAST  SHARE  RULE     KEY\n"
            "   60        60  60.0%  per-key  header:x-api-key=~denied\n");
  EXPECT_EQ(fake_.Requests().back().target, "/v1/hot?limit=7");
  out_.str("");
  EXPECT_EQ(ListAudit({.client = To(fake_), .limit = 5}, console_), kOk);
  EXPECT_THAT(Out(),
              HasSubstr("2023-11-14 22:13:20Z  alice      127.0.0.1    ban          per-key"));
  EXPECT_THAT(Out(), HasSubstr("2023-11-14 22:13:20Z  (unknown)  203.0.113.7  auth_failed "));
  EXPECT_THAT(Out(), HasSubstr("12 failures: api wrong 12"));
  EXPECT_EQ(fake_.Requests().back().target, "/v1/audit?limit=5");
  out_.str("");
  EXPECT_EQ(ListRules(To(fake_), console_), kOk);
  EXPECT_THAT(Out(), HasSubstr("header:x-api-key | client_ip  GET api.example.com /v1/** x-a: b* "
                               "from 10.0.0.0/8\n"));
  EXPECT_THAT(Out(), HasSubstr("client_ip                     everything\n"));
}

TEST_F(CommandsTest, ListsAlternativesAndExceptionsOfRules) {
  FakeAdmin server([](const ReceivedRequest&) {
    return Reply{200, R"({"rules":[{"rule":"r","per":"const","match":{"path":["/v1/**"],)"
                      R"("any":[{"path":["/a"]},{"method":["POST"],"host":["x"]}],)"
                      R"("not":[{"path":["/v1/health"]}]}}]})"};
  });
  EXPECT_EQ(ListRules(To(server), console_), kOk);
  EXPECT_THAT(Out(), HasSubstr("/v1/** any (/a | POST x) not (/v1/health)\n"));
}

TEST_F(CommandsTest, NamesIncludedFileOfProblem) {
  FakeAdmin server([](const ReceivedRequest&) {
    return Reply{
        200,
        R"({"applied":true,"rules":1,"needs_restart":[],"left_out":0,"problems":[)"
        R"({"severity":"warning","file":"rules/a.yaml","line":3,"column":5,"in":"rules[1]",)"
        R"("message":"m"},{"severity":"warning","line":2,"column":1,"in":"","message":"n"}]})"};
  });
  EXPECT_EQ(Reload(To(server), console_), kOk);
  EXPECT_THAT(Out(), StartsWith("rules/a.yaml:3:5: warning: rules[1]: m\n2:1: warning: n\n"));
}

TEST_F(CommandsTest, StatusPrintsStoreDecisionsAndLatency) {
  EXPECT_EQ(cli::Status(To(fake_), console_), kOk);
  EXPECT_THAT(Out(), StartsWith("server      tidegate 0.1.0, node k3Jx0aB1, up 1 s, 2 threads\n"
                                "store       redis single redis://127.0.0.1:6379\n"
                                "            connected 2 of 2, breaker closed, waiting 0\n"));
  EXPECT_THAT(Out(),
              HasSubstr("\n            1,000 batches, 9,000 calls, 4,000 entries, 17 denials"));
  EXPECT_THAT(Out(), HasSubstr("requests    allowed 40, denied 10\n"));
  EXPECT_THAT(Out(), HasSubstr("decisions   allowed 80, denied 20\n"));
  EXPECT_THAT(Out(), HasSubstr("decided by  store 85, cache 15\n"));
  EXPECT_THAT(Out(), HasSubstr("latency     p50 2.0 us, p99 > 2.0 us of 100\n"));
  EXPECT_THAT(Out(), HasSubstr("\napi                 4         9     1,020        0     0\n"));
}

TEST_F(CommandsTest, PrintsJsonAsReceived) {
  EXPECT_EQ(ListHot({.client = To(fake_, true)}, console_), kOk);
  EXPECT_EQ(Out(), cli_test::Documented({.method = "GET", .target = "/v1/hot"}, 0).body + "\n");
}

TEST_F(CommandsTest, EscapesTextFromServer) {
  FakeAdmin server([](const ReceivedRequest&) {
    return Reply{200,
                 "{\"entries\":[{\"by\":\"a\\u001b]0;title\\u0007\\nb\\u009b2J\"}],"
                 "\"x\":\"raw \u009b\x7f\"}"};
  });
  EXPECT_EQ(ListAudit({.client = To(server)}, console_), kOk);
  EXPECT_EQ(ListAudit({.client = To(server, true)}, console_), kOk);
  EXPECT_THAT(Out(), HasSubstr("a\\x1b]0;title\\x07\\nb\\u{9b}2J"));
  EXPECT_THAT(Out(), HasSubstr("raw \\u009b\\u007f"));
  EXPECT_THAT(Out(), Not(HasSubstr("\x1b")));
  EXPECT_THAT(Out(), Not(HasSubstr("\u009b")));
}

TEST_F(CommandsTest, MapsProblemsToExitCodes) {
  struct Case {
    int status;
    const char* body;
    int exit;
    const char* output;
  };
  for (const Case& c : {
           Case{400, R"({"detail":"bad limit","pointer":"/limit"})", kUsage,
                "tidegate reset: bad limit (at /limit)\n"},
           Case{404, R"({"detail":"there is no rule 'r'"})", kUsage, "no rule 'r'"},
           Case{401, R"({"detail":"who are you?"})", kUsage,
                "who are you?; name a token's file with "
                "--token-file, or set TIDEGATE_TOKEN"},
           Case{403, R"({"detail":"not you"})", kUsage, "not you\n"},
           Case{503, R"({"detail":"Redis does not answer"})", kNoAnswer, "Redis does not answer"},
           Case{418, R"({})", kUsage, "rejected the request with status 418"},
           Case{200, "<html>", kNoAnswer, "does not respond like a tidegate server"},
           Case{200, "[]", kNoAnswer, "does not respond like a tidegate server"},
           Case{400, "{\"detail\":\"a\\u001bb\"}", kUsage, "a\\x1bb"},
       }) {
    FakeAdmin server([&](const ReceivedRequest&) { return Reply{c.status, c.body}; });
    err_.str("");
    out_.str("");
    EXPECT_EQ(
        ChangeKey({.client = To(server), .selector = {.rule = "r", .identity = "a"}}, console_),
        c.exit)
        << c.status;
    EXPECT_THAT(Err(), HasSubstr(c.output));
    EXPECT_EQ(Out(), "");
  }
}

TEST_F(CommandsTest, PrintsProblemsAsJson) {
  FakeAdmin server([](const ReceivedRequest&) { return Reply{400, R"({"detail":"no"})"}; });
  EXPECT_EQ(cli::Status(To(server, true), console_), kUsage);
  EXPECT_EQ(Out(), "{\"detail\":\"no\"}\n");
  EXPECT_EQ(Err(), "tidegate status: no\n");
}

TEST_F(CommandsTest, ReportsThatNoServerListens) {
  fake_.End();
  EXPECT_EQ(cli::Status(To(fake_), console_), kNoAnswer);
  EXPECT_THAT(Err(),
              HasSubstr(fake_.address() + ": no server listens there: start it with `tidegate "
                                          "serve`, or name another with --admin\n"));
}

TEST_F(CommandsTest, ReportsTimeoutOfSilentServer) {
  fake_.KeepSilent(true);
  ClientOptions options = To(fake_);
  options.timeout = 30ms;
  EXPECT_EQ(cli::Status(options, console_), kNoAnswer);
  EXPECT_THAT(Err(), HasSubstr("no answer within 30 ms; wait longer with --timeout"));
}

TEST_F(CommandsTest, ResolvesHostNames) {
  ClientOptions options = To(fake_);
  options.server = "http://localhost:" + options.server.substr(options.server.find(':') + 1) + "/";
  EXPECT_EQ(cli::Status(options, console_), kOk) << Err();
  options.server = "no-such-host.invalid:1";
  EXPECT_EQ(cli::Status(options, console_), kNoAnswer);
  EXPECT_THAT(Err(), HasSubstr("no-such-host.invalid"));
}

TEST_F(CommandsTest, SendsTokenAndNeverPrintsIt) {
  const auto file =
      std::filesystem::temp_directory_path() / ("tidegate-token-" + std::to_string(getpid()));
  std::ofstream(file) << "  from-the-file-0123456789 \n";
  setenv("TIDEGATE_TOKEN", "from-the-environment", 1);
  EXPECT_EQ(cli::Status(To(fake_), console_), kOk);
  EXPECT_THAT(fake_.Requests().back().head,
              HasSubstr("Authorization: Bearer from-the-environment\r\n"));
  ClientOptions options = To(fake_);
  options.token_file = file.string();
  EXPECT_EQ(cli::Status(options, console_), kOk);
  EXPECT_THAT(fake_.Requests().back().head,
              HasSubstr("Authorization: Bearer from-the-file-0123456789\r\n"));
  const std::size_t before = fake_.Requests().size();
  for (const char* bad : {"", " \n", "secret two-words", "secret\nsecond-line", "secret\x01"}) {
    std::ofstream(file) << bad;
    EXPECT_EQ(cli::Status(options, console_), kUsage) << bad;
  }
  std::ofstream(file) << "secret" << std::string(5000, 'x');
  EXPECT_EQ(cli::Status(options, console_), kUsage);
  EXPECT_EQ(fake_.Requests().size(), before) << "a request was sent";
  EXPECT_THAT(Err(), Not(HasSubstr("secret")));
  EXPECT_THAT(Out() + Err(), Not(HasSubstr("from-the-")));
  std::filesystem::remove(file);
  unsetenv("TIDEGATE_TOKEN");
}

TEST_F(CommandsTest, ReloadPrintsWarningsAndSettingsThatNeedRestart) {
  FakeAdmin good([](const ReceivedRequest&) {
    return Reply{200, R"({"applied":true,"rules":3,"needs_restart":["listen","store"],"problems":[)"
                      R"({"severity":"warning","line":12,"column":10,"in":"rules[2].per",)"
                      R"("message":"any\u001bbody"}],"left_out":1234})"};
  });
  EXPECT_EQ(Reload(To(good), console_), kOk);
  EXPECT_EQ(Out(),
            "12:10: warning: rules[2].per: any\\x1bbody\n"
            "and 1,234 more\n"
            "reloaded: 3 rules in force\n"
            "needs a restart: listen\n"
            "needs a restart: store\n");
  const ReceivedRequest request = good.Requests().at(0);
  EXPECT_EQ(request.method + request.target + request.body, "POST/v1/reload{}");
}

TEST_F(CommandsTest, ReloadPrintsProblemsOfBadFile) {
  const std::string problem =
      R"({"title":"Unprocessable Content","status":422,"detail":"the new configuration has 1 error",)"
      R"("problems":[{"severity":"error","line":0,"column":0,"in":"","message":"no such file"}],)"
      R"("left_out":0})";
  FakeAdmin bad([&](const ReceivedRequest&) { return Reply{422, problem}; });
  EXPECT_EQ(Reload(To(bad), console_), kUsage);
  EXPECT_EQ(Out(), "");
  EXPECT_EQ(Err(),
            "error: no such file\n"
            "tidegate reload: the new configuration has 1 error\n");
  EXPECT_EQ(Reload(To(bad, true), console_), kUsage);
  EXPECT_EQ(Out(), problem + "\n");
}

TEST_F(CommandsTest, ExplainsGatewayRequest) {
  FakeAdmin server([](const ReceivedRequest&) {
    return Reply{200,
                 R"({"allowed":true,"status":404,"outcome":"uncounted","route":null,"rules":[]})"};
  });
  ExplainOptions options{.client = To(server), .path = "/x", .gateway = true};
  EXPECT_EQ(Explain(options, console_), kOk);
  EXPECT_THAT(Out(), StartsWith("would pass the rules, but no route matches the request (404): "));
  EXPECT_EQ(server.Requests().at(0).body, R"({"request":{"path":"/x"},"listener":"gateway"})");
  options = {.client = To(server), .selector = {.rule = "r", .identity = "a"}, .gateway = true};
  EXPECT_EQ(Explain(options, console_), kUsage);
  EXPECT_THAT(Err(), HasSubstr("--gateway explains a request"));
}

TEST_F(CommandsTest, WarnsOnceAboutUnencryptedToken) {
  setenv("TIDEGATE_TOKEN", "0123456789abcdef", 1);
  EXPECT_EQ(Top({.client = To(fake_), .every = 10ms, .once = true}, console_), kOk);
  EXPECT_EQ(Err(), "") << "loopback";
  // This address leads to loopback as well, but the client cannot tell that from its text.
  ClientOptions options = To(fake_);
  options.server = "0.0.0.0" + options.server.substr(options.server.find(':'));
  const std::string warning = ": warning: the token is sent unencrypted to " + options.server;
  EXPECT_EQ(Top({.client = options, .every = 10ms, .once = true}, console_), kOk) << Err();
  EXPECT_THAT(Err(), StartsWith("tidegate top" + warning))
      << "not exactly one warning for six requests";
  EXPECT_EQ(std::ranges::count(Err(), '\n'), 1);
  EXPECT_THAT(Err(), Not(HasSubstr("0123456789abcdef")));
  err_.str("");
  EXPECT_EQ(cli::Status(options, console_), kOk);
  EXPECT_THAT(Err(), StartsWith("tidegate status" + warning));
  err_.str("");
  EXPECT_EQ(Decide({.client = options, .rule = "r", .identity = "a"}, console_), kUsage);
  EXPECT_THAT(Err(), StartsWith("tidegate decide" + warning));
  err_.str("");
  unsetenv("TIDEGATE_TOKEN");
  EXPECT_EQ(cli::Status(options, console_), kOk);
  EXPECT_EQ(Err(), "") << "a warning although there is no token";
}

TEST_F(CommandsTest, TreatsNameAsLoopbackIfAllItsAddressesAreLoopback) {
  setenv("TIDEGATE_TOKEN", "0123456789abcdef", 1);
  const auto warning = [&](const char* server) {
    err_.str("");
    WarnAboutToken("status", *AdminClient::Make({.server = server}), console_);
    return Err();
  };
  for (const char* here : {"127.0.0.1", "127.1.2.3:1", "[::1]:1", "localhost:1"}) {
    EXPECT_EQ(warning(here), "") << here;
  }
  for (const char* there : {"192.0.2.1", "[2001:db8::1]:1"}) {
    EXPECT_THAT(warning(there), HasSubstr("unencrypted")) << there;
  }
  EXPECT_EQ(warning("https://192.0.2.1"), "");
  unsetenv("TIDEGATE_TOKEN");
}

TEST_F(CommandsTest, DecidePrintsOutcomeAndSetsExitCode) {
  FakeAdmin server([](const ReceivedRequest& request) {
    if (request.body.find("\"bob\"") != std::string::npos) {
      return Reply{429, R"({"allowed":false,"rule":"r","limit":5,"remaining":0,)"
                        R"("retry_after_ms":1500,"decided_by":"store","reason":"quota"})"};
    }
    if (request.body.find("\"carol\"") != std::string::npos) {
      return Reply{503, R"({"allowed":false,"rule":"r","retry_after_ms":1000,)"
                        R"("decided_by":"closed","reason":"rediserror"})"};
    }
    return Reply{200, R"({"allowed":true,"rule":"r","limit":5,"remaining":4,)"
                      R"("decided_by":"store","reason":"quota"})"};
  });
  EXPECT_EQ(Decide({.client = To(server), .rule = "r", .identity = "alice", .cost = 2}, console_),
            kOk);
  EXPECT_EQ(Out(), "allowed, 4 of 5 left\n");
  EXPECT_EQ(server.Requests().back().body, R"({"rule":"r","identity":"alice","cost":2})");
  out_.str("");
  EXPECT_EQ(Decide({.client = To(server), .rule = "r", .identity = "bob", .peek = true}, console_),
            kRuntime);
  EXPECT_EQ(Out(), "denied, 0 of 5 left, try again in 1.5 s\n");
  EXPECT_EQ(server.Requests().back().target, "/v1/peek");
  out_.str("");
  EXPECT_EQ(Decide({.client = To(server), .rule = "r", .identity = "carol"}, console_), kRuntime);
  EXPECT_EQ(Out(),
            "denied without being counted: the store does not answer (rediserror), try again in "
            "1 s\n");
}

TEST_F(CommandsTest, TopPrintsOneViewWithoutTerminal) {
  EXPECT_EQ(Top({.client = To(fake_), .every = 10ms, .once = true}, console_), kOk);
  EXPECT_THAT(Out(), StartsWith("tidegate 0.1.0  node k3Jx0aB1 of 3  up 2 s"));
  EXPECT_THAT(Out(), HasSubstr("HOT KEYS by requests"));
  EXPECT_THAT(Out(), Not(HasSubstr("since its start")))
      << "rates since the start instead of rates between two samples";
  out_.str("");
  EXPECT_EQ(Top({.client = To(fake_, true), .every = 10ms, .once = true}, console_), kOk);
  const auto object = json::parse(Out()).as_object();
  EXPECT_GT(object.at("decisions_per_s").to_number<double>(), 0);
  fake_.End();
  EXPECT_EQ(Top({.client = To(fake_), .once = true}, console_), kNoAnswer);
  EXPECT_THAT(Err(), HasSubstr("tidegate top: "));
}

}  // namespace
}  // namespace tidegate::cli
