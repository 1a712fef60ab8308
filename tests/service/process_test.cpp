// SPDX-License-Identifier: Apache-2.0
// Tests the real binary: signals, files, exit codes, memory. The process uses the real clock, so
// tests poll with a deadline.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <thread>

#include "service/tidegate_process.hpp"
#include "support/files.hpp"
#include "support/wait.hpp"

namespace tidegate::service {
namespace {

using namespace std::chrono_literals;
using SteadyClock = std::chrono::steady_clock;
using testing::HasSubstr;

std::string ConfigText(std::string_view rules, std::string_view api = "127.0.0.1:0") {
  return "listen: {api: \"" + std::string(api) + "\", admin: \"127.0.0.1:0\"}\n" +
         std::string(rules);
}
constexpr std::string_view kA = "rules: [{id: a, per: header:x-api-key, limit: 1000000/s}]\n";
constexpr std::string_view kB =
    "rules: [{id: a, per: header:x-api-key, limit: 1000000/s}, "
    "{id: b, per: client_ip, limit: 5/s}]\n";

class ProcessTest : public testing::Test {
 protected:
  ProcessTest() { file_ = folder_ / "tidegate.yaml"; }

  std::unique_ptr<Tidegate> Serve(const fs::path& file) {
    return std::make_unique<Tidegate>(
        folder_ / ("log" + std::to_string(++served_)),
        std::vector<std::string>{"serve", "--config", file.string(), "--threads", "2"});
  }
  /// Runs a command until it exits and returns its exit code.
  int Run(std::vector<std::string> arguments) {
    Tidegate command(folder_ / "command", std::move(arguments));
    const int code = command.Wait();
    output_ = command.Output();
    return code;
  }
  static int Ask(const net::Endpoint& api, std::string_view rule, std::string_view identity) {
    HttpClient client(api);
    client.Send(Post("/v1/decide", ByRule(rule, identity)));
    const auto answer = client.TryRead();
    return answer ? answer->status : 0;
  }

  test::TemporaryFolder folder_;
  fs::path file_;
  std::string output_;
  int served_ = 0;
};

/// Eight clients; each sends a request, waits for the response, and sends the next request.
class Load {
 public:
  explicit Load(const net::Endpoint& api) {
    for (int i = 0; i < 8; ++i) {
      threads_.emplace_back([this, api] {
        HttpClient client(api);
        const std::string request = Post("/v1/decide", ByRule("a", "alice"));
        while (!stop_) {
          client.Send(request);
          const auto answer = client.TryRead();
          if (!answer || answer->status != 200 || !answer->Json().contains("remaining")) {
            ++failed;
            return;
          }
          ++answered;
          if (answer->Field("Connection") == "close") {
            ++closed;
            return;
          }
        }
      });
    }
  }
  ~Load() { End(); }
  void End() {
    stop_ = true;
    for (std::thread& thread : threads_) {
      if (thread.joinable()) thread.join();
    }
  }
  /// Waits until `more` further requests were answered. Returns false if that takes too long or one
  /// failed.
  bool Progress(int more) {
    const int before = answered;
    return test::WaitUntil([&] { return answered >= before + more || failed != 0; });
  }

  std::atomic<int> answered{0};
  std::atomic<int> failed{0};
  std::atomic<int> closed{0};

 private:
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

TEST_F(ProcessTest, SighupUnderLoadLosesNoRequest) {
  test::WriteFile(file_, ConfigText(kA));
  const auto server = Serve(file_);
  Load load(server->Api());
  for (int i = 1; i <= 20; ++i) {
    const int before = server->CountInOutput("reloaded");
    test::WriteFile(file_, ConfigText(i % 2 == 0 ? kA : kB));
    server->Signal(SIGHUP);
    ASSERT_TRUE(test::WaitUntil([&] { return server->CountInOutput("reloaded") > before; }))
        << server->Output();
    ASSERT_TRUE(load.Progress(100));
  }
  load.End();
  EXPECT_EQ(load.failed, 0);
  EXPECT_EQ(load.closed, 0);
}

TEST_F(ProcessTest, ReloadsForOperatorAndReportsOutcome) {
  test::WriteFile(file_, ConfigText(kA));
  const auto server = Serve(file_);
  const std::string admin = server->Admin().Text();
  const auto api = server->Api();
  // The file changes right before the request, so the file watch either finds nothing new or
  // reloads second.
  test::WriteFile(file_, ConfigText(kB, "127.0.0.1:1"));
  EXPECT_EQ(Run({"reload", "--admin", admin}), 0) << output_;
  EXPECT_THAT(output_, HasSubstr("reloaded: 2 rules in force\n"));
  EXPECT_THAT(output_, HasSubstr("needs a restart: listen\n"));
  EXPECT_EQ(Ask(api, "b", "192.0.2.1"), 200);
  EXPECT_THAT(server->Output(), HasSubstr("why=\"requested by (loopback)\""));
  EXPECT_EQ(Run({"audit", "--admin", admin}), 0);
  EXPECT_THAT(output_, HasSubstr("reload"));
  EXPECT_THAT(output_, HasSubstr("2 rules"));

  test::WriteFile(file_, ConfigText("rules:\n  - {id: a, per: client_ip, limit: 0/s}\n"));
  EXPECT_EQ(Run({"reload", "--admin", admin}), 2);
  EXPECT_THAT(output_, testing::ContainsRegex("3:[0-9]+: error: rules\\[0\\].limit: "));
  EXPECT_THAT(output_, HasSubstr("the new configuration has 1 error: the old one stays in force"));
  EXPECT_EQ(Ask(api, "b", "192.0.2.1"), 200);
  fs::remove(file_);
  EXPECT_EQ(Run({"reload", "--json", "--admin", admin}), 2);
  EXPECT_THAT(output_, HasSubstr(R"("problems":[{"severity":"error","line":0,)"));
  EXPECT_EQ(Ask(api, "b", "192.0.2.1"), 200);
}

TEST_F(ProcessTest, ReloadsChangedFileWithoutSignal) {
  test::WriteFile(file_, ConfigText(kA));
  const auto server = Serve(file_);
  const auto api = server->Api();
  EXPECT_EQ(Ask(api, "b", "1.2.3.4"), 404);
  test::WriteFile(file_, ConfigText(kB));  // Replaces the file by a rename.
  EXPECT_TRUE(test::WaitUntil([&] { return Ask(api, "b", "1.2.3.4") == 200; })) << server->Output();
  std::ofstream(file_) << ConfigText(kA);  // Overwrites the file in place.
  EXPECT_TRUE(test::WaitUntil([&] { return Ask(api, "b", "1.2.3.4") == 404; })) << server->Output();
  fs::remove(file_);  // Removes the file and creates it again, so it is absent for a moment.
  std::ofstream(file_) << ConfigText(kB);
  EXPECT_TRUE(test::WaitUntil([&] { return Ask(api, "b", "1.2.3.4") == 200; })) << server->Output();
}

TEST_F(ProcessTest, ReloadsAfterSymlinkSwap) {
  const auto mount = [&](const std::string& name, std::string_view rules) {
    fs::create_directory(folder_ / name);
    test::WriteFile(folder_ / name / "tidegate.yaml", ConfigText(rules));
    fs::create_directory_symlink(name, folder_ / "..data_tmp");
    fs::rename(folder_ / "..data_tmp", folder_ / "..data");
  };
  mount("..2024_01", kA);
  fs::create_symlink("..data/tidegate.yaml", file_);
  const auto server = Serve(file_);
  const auto api = server->Api();
  EXPECT_EQ(Ask(api, "b", "1.2.3.4"), 404);
  mount("..2024_02", kB);
  fs::remove_all(folder_ / "..2024_01");
  EXPECT_TRUE(test::WaitUntil([&] { return Ask(api, "b", "1.2.3.4") == 200; })) << server->Output();
  mount("..2024_03", kA);  // A second swap works too: the watch now covers the new folders.
  fs::remove_all(folder_ / "..2024_02");
  EXPECT_TRUE(test::WaitUntil([&] { return Ask(api, "b", "1.2.3.4") == 404; })) << server->Output();
}

TEST_F(ProcessTest, KeepsOldRulesAfterBadFile) {
  test::WriteFile(file_, ConfigText(kB));
  const auto server = Serve(file_);
  const auto api = server->Api();
  EXPECT_EQ(Ask(api, "b", "1.2.3.4"), 200);
  int refused = 0;
  for (const std::string_view bad : {"rules: [{id: a, per: unknown, limit: 1/s}]", "rules: [",
                                     "\xFF", "rulez: []", "rules: 7"}) {
    test::WriteFile(file_, ConfigText(bad));
    server->Signal(SIGHUP);
    ++refused;
    ASSERT_TRUE(test::WaitUntil([&] {
      return server->CountInOutput("the old one stays in force") >= refused;
    })) << bad
        << server->Output();
    refused = server->CountInOutput("the old one stays in force");
    EXPECT_EQ(Ask(api, "b", "1.2.3.4" + std::to_string(refused)), 200) << bad;
  }
  EXPECT_THAT(server->Output(), HasSubstr("tidegate.yaml:2:"));
  test::WriteFile(file_, ConfigText(kA));
  EXPECT_TRUE(test::WaitUntil([&] { return Ask(api, "b", "1.2.3.4") == 404; }))
      << "a valid file must be applied";
}

TEST_F(ProcessTest, SigtermUnderLoadAnswersRequestsInProgress) {
  test::WriteFile(file_, ConfigText(kA));
  const auto server = Serve(file_);
  Load load(server->Api());
  ASSERT_TRUE(load.Progress(500));
  server->Signal(SIGTERM);
  EXPECT_EQ(server->Wait(), 0) << server->Output();
  load.End();
  EXPECT_EQ(load.failed, 0);
  EXPECT_EQ(load.closed, 8);  // The last response of each client announced the close.
  EXPECT_THAT(server->Output(), HasSubstr("stopped"));
}

TEST_F(ProcessTest, IdleServerStopsAtOnce) {
  test::WriteFile(file_, ConfigText(kA));
  const auto server = Serve(file_);
  (void)server->Api();
  const auto start = SteadyClock::now();
  server->Signal(SIGINT);
  EXPECT_EQ(server->Wait(), 0);
  EXPECT_LT(SteadyClock::now() - start, 2s);
}

TEST_F(ProcessTest, SecondInstanceOnSamePortFails) {
  test::WriteFile(file_, ConfigText(kA));
  const auto first = Serve(file_);
  const auto api = first->Api();
  test::WriteFile(folder_ / "second.yaml", ConfigText(kA, api.Text()));
  const auto second = Serve(folder_ / "second.yaml");
  EXPECT_EQ(second->Wait(), 1);
  EXPECT_THAT(second->Output(), HasSubstr("cannot listen on " + api.Text()));
  EXPECT_EQ(Ask(api, "a", "alice"), 200);
}

TEST_F(ProcessTest, BadConfigurationEndsWithExitCode2) {
  test::WriteFile(file_, ConfigText("rules: [{id: a}]"));
  EXPECT_EQ(Serve(file_)->Wait(), 2);
  EXPECT_EQ(Serve(folder_ / "nowhere.yaml")->Wait(), 2);
}

TEST_F(ProcessTest, IdleConnectionsUseLittleMemoryAndNoCpuTime) {
  constexpr std::size_t kConnections = 5000;
  constexpr auto kIdleWindow = 1s;
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_max < kConnections + 500) GTEST_SKIP() << "the test has too few descriptors";
  test::WriteFile(file_, ConfigText(kA));
  const auto server = Serve(file_);
  const auto api = server->Api();
  const auto admin = server->Admin();
  std::vector<std::unique_ptr<HttpClient>> clients;
  for (std::size_t i = 0; i < kConnections; ++i) {
    clients.push_back(std::make_unique<HttpClient>(api));
    // All clients use one key: this test measures connections, not keys.
    clients.back()->Send(Post("/v1/peek", ByRule("a", "x")));
  }
  for (const auto& client : clients) ASSERT_EQ(client->Read().status, 200);
  HttpClient metrics(admin);
  metrics.Send(Get("/metrics"));
  EXPECT_THAT(metrics.Read().body, HasSubstr("\ntidegate_connections{listener=\"api\"} 5000\n"));
  EXPECT_LT(server->ResidentBytes(), 60 << 20);
  // An idle process is idle in every window, so the smallest value counts. The kernel may charge to
  // this process some time in which another guest of the machine used the core, but not in every
  // window.
  std::chrono::duration<double> least = kIdleWindow;
  ASSERT_GT(server->CpuTime(), 0ns) << "this kernel does not report CPU time";
  for (int window = 0; window < 8 && least > kIdleWindow / 100.0; ++window) {
    const auto before = server->CpuTime();
    std::this_thread::sleep_for(kIdleWindow);  // Measures the CPU time of this window.
    least = std::min(least, std::chrono::duration<double>(server->CpuTime() - before));
  }
  EXPECT_LE(least, kIdleWindow / 100.0);
  clients[4321]->Send(Post("/v1/decide", ByRule("a", "x")));
  EXPECT_EQ(clients[4321]->Read().status, 200);
}

TEST_F(ProcessTest, DecideCommandReportsDecisionByExitCode) {
  test::WriteFile(file_, ConfigText("rules: [{id: once, per: header:x-api-key, limit: 1/h}]"));
  const auto server = Serve(file_);
  const std::string api = server->Api().Text();
  EXPECT_EQ(Run({"decide", "once", "alice", "--peek", "--server", api}), 0);
  EXPECT_EQ(Run({"decide", "once", "alice", "--server", api}), 0);
  EXPECT_THAT(output_, HasSubstr("allowed"));
  EXPECT_EQ(Run({"decide", "once", "alice", "--server", "http://" + api + "/"}), 1);
  EXPECT_THAT(output_, HasSubstr("denied"));
  EXPECT_EQ(Run({"decide", "once", "alice", "--peek", "--server", api}), 1);
  EXPECT_EQ(Run({"decide", "once", "bob", "--cost", "2", "--server", api}), 1);
  EXPECT_EQ(Run({"decide", "onc", "alice", "--server", api}), 2);
  EXPECT_THAT(output_, HasSubstr("did you mean `once`"));
  EXPECT_EQ(Run({"decide", "once", "", "--server", api}), 2);
  EXPECT_EQ(Run({"decide", "once"}), 2);
  EXPECT_EQ(Run({"decide", "once", "bob", "--json", "--server", api}), 0);
  EXPECT_TRUE(boost::json::parse(output_).as_object().contains("remaining")) << output_;
  server->Signal(SIGTERM);
  EXPECT_EQ(server->Wait(), 0);
  EXPECT_EQ(Run({"decide", "once", "alice", "--server", api}), 3);
  EXPECT_EQ(Run({"decide", "once", "alice", "--server", "nonsense"}), 3);
}

TEST_F(ProcessTest, CheckConfigReportsProblemsWithLineNumbers) {
  test::WriteFile(file_, ConfigText(kB));
  EXPECT_EQ(Run({"check-config", file_.string()}), 0);
  EXPECT_THAT(output_, HasSubstr("2 rules"));
  test::WriteFile(file_, ConfigText("rules:\n  - {id: a, per: client_ip, limit: 0/s}\n"));
  EXPECT_EQ(Run({"check-config", file_.string()}), 2);
  EXPECT_THAT(output_, HasSubstr("tidegate.yaml:3:"));
  EXPECT_THAT(output_, HasSubstr("rules[0].limit"));
  EXPECT_EQ(Run({"check-config", (folder_ / "nowhere.yaml").string()}), 2);
}

TEST_F(ProcessTest, StartsWithTenThousandRulesInOneCpuSecond) {
  std::string rules = "rules:\n";
  for (int i = 0; i < 10'000; ++i) {
    const std::string n = std::to_string(i);
    rules.append("  - { id: rule-").append(n).append(", match: { host: host-");
    rules.append(std::to_string(i % 100)).append(".example.com, path: /v1/things-").append(n);
    rules += "/**, method: [GET, POST] }, per: header:x-api-key | client_ip, limit: 100/s }\n";
  }
  test::WriteFile(file_, ConfigText(rules));
  const auto server = Serve(file_);
  HttpClient client(server->Admin());
  client.Send(Get("/readyz"));
  EXPECT_EQ(client.Read().status, 200);
  // Measures CPU time, because the machine may be busy; alone, the start takes no longer than that.
  EXPECT_LE(server->CpuSeconds(), 1.0);
  EXPECT_EQ(Ask(server->Api(), "rule-9999", "x"), 200);
}

}  // namespace
}  // namespace tidegate::service
