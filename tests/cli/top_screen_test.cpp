// SPDX-License-Identifier: Apache-2.0
// `tidegate top` in a real terminal: the content of the screen, the keys, and the restored terminal
// after the end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <iostream>
#include <sstream>

#include "cli/fake_admin.hpp"
#include "cli/tmux.hpp"
#include "redis/fleet.hpp"
#include "support/child_process.hpp"
#include "support/files.hpp"
#include "support/wait.hpp"

namespace tidegate::cli_test {
namespace {

using testing::HasSubstr;
using testing::Not;

class TopScreenTest : public testing::Test {
 protected:
  /// Starts `tidegate top`. After it ends, the shell prints `code=N` with the exit code.
  void StartTop(const std::string& admin, const std::string& more = "") {
    terminal_.Type("clear; echo before-it; " TIDEGATE_BINARY " top --admin " + admin + more +
                   "; echo code=$?");
    ASSERT_TRUE(test::WaitUntil([&] { return terminal_.Variable("alternate_on") == "1"; }))
        << terminal_.Screen();
  }
  /// Expects that the shell's own screen is restored, with its cursor, its previous text and echo.
  void ExpectRestored(const std::string& code) {
    EXPECT_TRUE(terminal_.Shows("code=" + code + "\n")) << terminal_.Screen();
    EXPECT_THAT(terminal_.Screen(), HasSubstr("before-it\n"));
    EXPECT_THAT(terminal_.Screen(), Not(HasSubstr("HOT KEYS")));
    EXPECT_EQ(terminal_.Variable("alternate_on"), "0");
    EXPECT_EQ(terminal_.Variable("cursor_flag"), "1");
    EXPECT_EQ(terminal_.Variable("wrap_flag"), "1");
    terminal_.Type("stty -a | grep -o ' -*echo ' | tr -d '\\n'; echo; echo typed-$((40+2))");
    EXPECT_TRUE(terminal_.Shows("typed-42")) << terminal_.Screen();
    EXPECT_THAT(terminal_.Screen(), HasSubstr("\n echo\n"))
        << "the terminal does not echo typed text";
  }

  Tmux terminal_{100, 30};
};

TEST_F(TopScreenTest, DrawsAndSwitchesListsAndRestoresTerminal) {
  FakeAdmin fake;
  StartTop(fake.address(), " --every 50ms");
  EXPECT_TRUE(terminal_.Shows("HOT KEYS by requests")) << terminal_.Screen();
  EXPECT_TRUE(terminal_.Shows("requests/s  denied")) << terminal_.Screen();
  EXPECT_TRUE(terminal_.Shows("redis single  connected 2 of 2  breaker closed  waiting 0"));
  EXPECT_TRUE(terminal_.Shows("q quit  p pause"));
  EXPECT_EQ(terminal_.Variable("cursor_flag"), "0");
  terminal_.Press("d");
  EXPECT_TRUE(terminal_.Shows("HOT KEYS by denials")) << terminal_.Screen();
  EXPECT_TRUE(terminal_.Shows("header:x-api-key=~denied"));
  terminal_.Press("c");
  EXPECT_TRUE(terminal_.Shows("HOT KEYS by cost"));
  // The escape sequence of this key ends in a letter, which must not be taken for a command.
  terminal_.Press("Left");
  terminal_.Press("r");
  EXPECT_TRUE(terminal_.Shows("HOT KEYS by requests"));
  terminal_.Press("p");
  EXPECT_TRUE(terminal_.Shows("paused"));
  terminal_.Press("q");
  ExpectRestored("0");
}

TEST_F(TopScreenTest, AdaptsToSizeOfTerminal) {
  FakeAdmin fake;
  StartTop(fake.address(), " --every 50ms");
  ASSERT_TRUE(terminal_.Shows("q quit"));
  terminal_.Resize(40, 12);
  EXPECT_TRUE(test::WaitUntil([&] {
    const std::string screen = terminal_.Screen();
    return screen.find("\nq quit  p pause  r d c hot keys by req..\n") != std::string::npos;
  })) << terminal_.Screen();
  terminal_.Resize(120, 40);
  EXPECT_TRUE(terminal_.Shows("by requests, denials, cost\n")) << terminal_.Screen();
  terminal_.Press("q");
  ExpectRestored("0");
}

TEST_F(TopScreenTest, RestoresTerminalAfterCtrlC) {
  FakeAdmin fake;
  StartTop(fake.address());
  ASSERT_TRUE(terminal_.Shows("HOT KEYS"));
  terminal_.Press("C-c");
  ExpectRestored("0");
}

TEST_F(TopScreenTest, RestoresTerminalAfterSignalsAndCrashes) {
  FakeAdmin fake;
  for (const int signal : {SIGTERM, SIGHUP, SIGSEGV, SIGABRT}) {
    StartTop(fake.address());
    ASSERT_TRUE(terminal_.Shows("HOT KEYS"));
    const std::string shell = terminal_.Variable("pane_pid");
    std::ifstream children(
        std::string("/proc/").append(shell).append("/task/").append(shell).append("/children"));
    pid_t top = 0;
    ASSERT_TRUE(children >> top);
    kill(top, signal);
    // The exit code with which the shell reports a death by this signal.
    ExpectRestored(std::to_string(128 + signal));
  }
}

TEST_F(TopScreenTest, KeepsPollingServerThatStopped) {
  FakeAdmin fake;
  StartTop(fake.address(), " --every 50ms --timeout 100ms");
  ASSERT_TRUE(terminal_.Shows("HOT KEYS"));
  fake.KeepSilent(true);
  EXPECT_TRUE(terminal_.Shows("no answer for 1 s: " + fake.address())) << terminal_.Screen();
  EXPECT_THAT(terminal_.Screen(), HasSubstr("HOT KEYS"));
  fake.KeepSilent(false);
  EXPECT_TRUE(
      test::WaitUntil([&] { return terminal_.Screen().find("no answer") == std::string::npos; }));
  fake.End();
  EXPECT_TRUE(terminal_.Shows("no server listens there")) << terminal_.Screen();
  terminal_.Press("q");
  ExpectRestored("0");
}

TEST_F(TopScreenTest, QuitsWhileServerDoesNotAnswer) {
  FakeAdmin fake;
  fake.KeepSilent(true);
  StartTop(fake.address(), " --timeout 1h");
  terminal_.Press("q");
  ExpectRestored("0");
}

TEST_F(TopScreenTest, EndsWhenServerRejectsCaller) {
  FakeAdmin fake([](const ReceivedRequest&) { return Reply{401, R"({"detail":"who are you?"})"}; });
  terminal_.Type("clear; echo before-it; " TIDEGATE_BINARY " top --admin " + fake.address() +
                 "; echo code=$?");
  EXPECT_TRUE(terminal_.Shows("tidegate top: who are you?; name a token's file with"))
      << terminal_.Screen();
  ExpectRestored("2");
}

TEST_F(TopScreenTest, ShowsRealServerUnderLoad) {
  test::TemporaryFolder folder;
  redis_test::Node node(folder.path(), "node",
                        "rules:\n"
                        "  - {id: busy, per: header:x-api-key, limit: 10/s}\n"
                        "  - {id: idle, per: client_ip, limit: 5/m}\n",
                        1);
  const std::string admin = "127.0.0.1:" + std::to_string(node.admin());
  StartTop(admin, " --every 200ms");
  const test::ChildProcess load(
      {TIDEGATE_BINARY, "bench", "--server", "127.0.0.1:" + std::to_string(node.api()), "--rule",
       "busy", "--identities", "5", "--connections", "2", "--rate", "500/s", "--for", "60s"},
      {.output = folder / "bench.log"});
  EXPECT_TRUE(test::WaitUntil([&] {
    // Find the line of the rule with both rates: nearly all its requests are denied.
    std::istringstream screen(terminal_.Screen());
    for (std::string line; std::getline(screen, line);) {
      std::istringstream words(line);
      std::string rule;
      double allowed = 0;
      double denied = 0;
      if (words >> rule >> allowed >> denied && rule == "busy" && allowed > 0 && denied > 100) {
        return true;
      }
    }
    return false;
  })) << terminal_.Screen();
  terminal_.Press("d");
  EXPECT_TRUE(terminal_.Shows("HOT KEYS by denials")) << terminal_.Screen();
  EXPECT_TRUE(terminal_.Shows("busy  header:x-api-key=")) << terminal_.Screen();
  if (getenv("TIDEGATE_SHOW") != nullptr) std::cout << terminal_.Screen();
  terminal_.Press("q");
  ExpectRestored("0");
}

}  // namespace
}  // namespace tidegate::cli_test
