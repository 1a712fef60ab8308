// SPDX-License-Identifier: Apache-2.0
// Tests which callers may use which commands of the Redis protocol, and what callers may do before
// they authenticate.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "service/secure/callers.hpp"

namespace tidegate::service {
namespace {

using namespace std::chrono_literals;
using Auth = ListenSpec::Auth;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// --- All listener configurations, all callers ---------------------------------------

struct Command {
  std::string_view bytes;  ///< The command as inline text.
  Operation operation;
  bool changes;
};
constexpr std::array kCommands{
    Command{"PING", Operation::kDecide, false},
    Command{"TG.DECIDE per-key a", Operation::kDecide, true},
    Command{"TG.PEEK per-key a", Operation::kDecide, false},
    Command{"TG.DEBIT per-key a COST 1", Operation::kGiveBack, true},
    Command{"TG.ACQUIRE jobs a two", Operation::kDecide, true},
    Command{"TG.RENEW jobs a one", Operation::kGiveBack, false},
    Command{"TG.RELEASE jobs a one", Operation::kGiveBack, true},
    Command{"TG.REFUND per-key a COST 1 ID ONCE", Operation::kGiveBack, true},
    Command{"TG.RESET per-key a", Operation::kGiveBack, true},
};

class RespAccessTest : public testing::TestWithParam<Place> {
 protected:
  static Config MakeConfig() {
    Config config = AllListeners();
    GetParam().Apply(config, ListenerId::kResp);
    return config;
  }
  std::string State() {
    return service_.Ask("/v1/peek", ByRule("per-key", "a")).body +
           service_.Ask("/v1/peek", ByRule("jobs", "a")).body;
  }
  /// Takes one unit and one lease.
  void Prepare() {
    service_.Advance(1h);
    service_.Decide(ByRule("per-key", "a"));
    service_.Ask("/v1/acquire", ByRule("jobs", "a", R"(,"lease":"one")"));
  }
  static std::string BytesOf(const Command& command) {
    static int ids = 0;
    std::string bytes(command.bytes);
    if (const std::size_t at = bytes.find("ONCE"); at != std::string::npos) {
      bytes.replace(at, 4, std::to_string(++ids));
    }
    return bytes + "\r\n";
  }

  Service service_{MakeConfig()};
};

TEST_P(RespAccessTest, ExecutesCommandsByTheRightsOfTheCaller) {
  for (const Caller caller : kCallers) {
    if (caller == Caller::kCertificate && !GetParam().certificates) continue;
    test::RespClient client(GetParam().Connect(service_, ListenerId::kResp, caller));
    // A wrong token is rejected, and the caller keeps its former rights.
    Caller is = caller == Caller::kWrong ? Caller::kNone : caller;
    if (const std::string_view token = TokenOf(caller); !token.empty()) {
      const std::string answer = client.Ask({"AUTH", token});
      EXPECT_THAT(answer, StartsWith(!GetParam().tokens         ? "-ERR AUTH"
                                     : caller == Caller::kWrong ? "-WRONGPASS"
                                                                : "OK"));
    }
    for (const Command& command : kCommands) {
      Prepare();
      const std::string before = State();
      client.Send(BytesOf(command));
      const std::string answer = client.Read();
      const Outcome outcome = Expected(GetParam(), is, command.operation);
      if (outcome == Outcome::kServed) {
        EXPECT_THAT(answer, Not(StartsWith("-"))) << command.bytes << " of " << caller;
      } else {
        EXPECT_THAT(answer, StartsWith(outcome == Outcome::kUnknown ? "-NOAUTH " : "-NOPERM "))
            << command.bytes << " of " << caller;
      }
      EXPECT_EQ(State() != before, outcome == Outcome::kServed && command.changes)
          << command.bytes << " of " << caller;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Places, RespAccessTest, testing::ValuesIn(Place::All()));

// --- Authentication -----------------------------------------------------------------

class RespAuthTest : public testing::Test {
 protected:
  explicit RespAuthTest(std::string_view yaml = {}) : service_(MakeConfig(yaml)) {}
  static Config MakeConfig(std::string_view yaml) {
    Config config = AllListeners("http://127.0.0.1:9", yaml);
    config.listen.resp.auth = Auth::kRequired;
    config.access.tokens = BothTokens();
    return config;
  }
  test::RespClient Connect() { return test::RespClient(At(service_, ListenerId::kResp)); }

  Service service_;
};

TEST_F(RespAuthTest, AcceptsTokenWithOrWithoutName) {
  for (const std::string_view name : {"", "default", "ops"}) {
    test::RespClient client = Connect();
    EXPECT_EQ(
        name.empty() ? client.Ask({"AUTH", kAllToken}) : client.Ask({"AUTH", name, kAllToken}),
        "OK");
    EXPECT_EQ(client.Ask({"TG.RESET", "per-key", "a"}), "0");
  }
  for (const std::string_view name : {"shop", "Ops", "unknown", ""}) {
    test::RespClient client = Connect();
    EXPECT_THAT(client.Ask({"AUTH", name, kAllToken}), StartsWith("-WRONGPASS")) << name;
    EXPECT_THAT(client.Ask({"PING"}), StartsWith("-NOAUTH"));
  }
}

TEST_F(RespAuthTest, AcceptsTokenInHello) {
  test::RespClient three = Connect();
  EXPECT_THAT(three.Ask({"HELLO", "3", "AUTH", "default", kAllToken}), HasSubstr("\"proto\":3"));
  EXPECT_EQ(three.Ask({"TG.RESET", "per-key", "a"}), "0");
  test::RespClient two = Connect();
  EXPECT_THAT(two.Ask({"HELLO", "2", "AUTH", "shop", kAskToken, "SETNAME", "me"}),
              HasSubstr("\"proto\",2"));
  EXPECT_EQ(two.Ask({"CLIENT", "GETNAME"}), "\"me\"");
  EXPECT_THAT(two.Ask({"TG.RESET", "per-key", "a"}), StartsWith("-NOPERM"));
  test::RespClient wrong = Connect();
  EXPECT_THAT(wrong.Ask({"HELLO", "3", "AUTH", "default", kWrongToken}), StartsWith("-WRONGPASS"));
  EXPECT_THAT(wrong.Ask({"HELLO", "3", "AUTH", "ops", kAskToken}), StartsWith("-WRONGPASS"));
  EXPECT_THAT(wrong.Ask({"PING"}), StartsWith("-NOAUTH"));
  EXPECT_THAT(wrong.Ask({"HELLO", "3"}), StartsWith("-NOAUTH"));
  EXPECT_EQ(wrong.Ask({"AUTH", kAllToken}), "OK");
}

TEST_F(RespAuthTest, RejectsCommandsBeforeAuthentication) {
  test::RespClient client = Connect();
  for (const std::string_view line : {"PING",
                                      "ECHO x",
                                      "COMMAND",
                                      "COMMAND DOCS",
                                      "INFO",
                                      "CLIENT GETNAME",
                                      "CLIENT SETNAME x",
                                      "SELECT 0",
                                      "CONFIG GET save",
                                      "CLUSTER SLOTS",
                                      "NOPE",
                                      "NOPE a b",
                                      "TG.DECIDE",
                                      "TG.DECIDE per-key a",
                                      "TG.PEEK per-key a",
                                      "TG.RESET per-key a",
                                      "TG.DECIDE none a",
                                      "CL.THROTTLE k 1 1 1",
                                      "CL.THROTTLE k x x x",
                                      "GET k"}) {
    client.Send(std::string(line) + "\r\n");
    EXPECT_THAT(client.Read(), StartsWith("-NOAUTH ")) << line;
  }
  EXPECT_EQ(client.Ask({"RESET"}), "RESET");
  EXPECT_THAT(client.Ask({"AUTH"}), StartsWith("-ERR wrong number"));
  EXPECT_EQ(client.Ask({"QUIT"}), "OK");
  EXPECT_EQ(client.Read(), "(end)");
  EXPECT_EQ(service_.Ask("/v1/peek", ByRule("per-key", "a")).Json().at("remaining"), 3);
}

TEST_F(RespAuthTest, AuthAppliesFromTheNextCommandOfAPipeline) {
  test::RespClient client = Connect();
  client.Send(
      test::RespCommand({"TG.DECIDE", "per-key", "a"}) + test::RespCommand({"AUTH", kAskToken}) +
      test::RespCommand({"TG.DECIDE", "per-key", "a"}) +
      test::RespCommand({"TG.RESET", "per-key", "a"}) + test::RespCommand({"AUTH", kAllToken}) +
      test::RespCommand({"TG.RESET", "per-key", "a"}) + test::RespCommand({"RESET"}) +
      test::RespCommand({"TG.PEEK", "per-key", "a"}));
  EXPECT_THAT(client.Read(), StartsWith("-NOAUTH"));
  EXPECT_EQ(client.Read(), "OK");
  EXPECT_THAT(client.Read(), StartsWith("[0,3,2,"));
  EXPECT_THAT(client.Read(), StartsWith("-NOPERM"));
  EXPECT_EQ(client.Read(), "OK");
  EXPECT_EQ(client.Read(), "1");
  EXPECT_EQ(client.Read(), "RESET");
  EXPECT_THAT(client.Read(), StartsWith("-NOAUTH")) << "RESET ends the authentication";
}

// --- Long commands and idle connections before authentication -----------------------

std::string Long(std::size_t elements) {
  std::string bytes = "*" + std::to_string(elements) + "\r\n$7\r\nCOMMAND\r\n$4\r\nINFO\r\n";
  for (std::size_t i = 2; i < elements; ++i) bytes += "$1\r\nx\r\n";
  return bytes;
}

TEST_F(RespAuthTest, RejectsLongCommandsBeforeAuthentication) {
  const std::string most(512, 'x');
  test::RespClient allowed = Connect();
  allowed.Send(Long(10));
  EXPECT_THAT(allowed.Read(), StartsWith("-NOAUTH"));
  EXPECT_THAT(allowed.Ask({"AUTH", most}), StartsWith("-WRONGPASS"));
  for (const std::string& bytes :
       {std::string("*11\r\n"), std::string("*1000000\r\n"),
        std::string("*2\r\n$4\r\nAUTH\r\n$513\r\n"), "AUTH " + std::string(70'000, 'x')}) {
    test::RespClient client = Connect();
    client.Send(bytes);
    EXPECT_THAT(client.Read(), StartsWith("-ERR Protocol error")) << bytes.substr(0, 40);
    EXPECT_EQ(client.Read(), "(end)");
  }
}

TEST_F(RespAuthTest, AcceptsLongCommandsAfterAuthentication) {
  test::RespClient client = Connect();
  client.Send(test::RespCommand({"AUTH", kAskToken}) + Long(60) +
              test::RespCommand({"ECHO", std::string(20'000, 'y')}));
  EXPECT_EQ(client.Read(), "OK");
  EXPECT_THAT(client.Read(), StartsWith("["));
  EXPECT_THAT(client.Read(), StartsWith("\"yyy"));
}

class RespIdleTest : public RespAuthTest {
 protected:
  RespIdleTest() : RespAuthTest("limits: {idle_timeout: 200ms, body_timeout: 200ms}\n") {}
};

TEST_F(RespIdleTest, ClosesIdleUnauthenticatedConnections) {
  test::RespClient known = Connect();
  EXPECT_EQ(known.Ask({"AUTH", kAskToken}), "OK");
  test::RespClient silent = Connect();
  test::RespClient refused = Connect();
  EXPECT_THAT(refused.Ask({"AUTH", kWrongToken}), StartsWith("-WRONGPASS"));
  test::RespClient half = Connect();
  half.Send("*2\r\n$4\r\nAU");
  EXPECT_EQ(silent.ReadRest(), "");
  EXPECT_EQ(refused.ReadRest(), "");
  half.ReadRest();
  EXPECT_FALSE(half.Send("x") && half.Send("x") && half.Ask({"PING"}) != "(end)");
  EXPECT_EQ(known.Ask({"PING"}), "PONG") << "an authenticated connection may be idle";
}

}  // namespace
}  // namespace tidegate::service
