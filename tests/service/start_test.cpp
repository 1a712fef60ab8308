// SPDX-License-Identifier: Apache-2.0
// Starts the demo and the example configurations unchanged.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <pwd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "service/tidegate_process.hpp"
#include "support/files.hpp"
#include "support/wait.hpp"

namespace tidegate::service {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

/// A socket that listens on a loopback port, so that no other process can.
class TakenPort {
 public:
  /// `port` 0: any free port. If another process already listens on the port, it is taken as well.
  explicit TakenPort(std::uint16_t port = 0) : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    auto* const where = reinterpret_cast<sockaddr*>(&address);
    if (bind(socket_, where, sizeof address) == 0) {
      EXPECT_EQ(listen(socket_, 1), 0);
    }
    socklen_t size = sizeof address;
    EXPECT_EQ(getsockname(socket_, where, &size), 0);
    port_ = port != 0 ? port : ntohs(address.sin_port);
  }
  ~TakenPort() { close(socket_); }
  TakenPort(const TakenPort&) = delete;
  TakenPort& operator=(const TakenPort&) = delete;

  [[nodiscard]] std::string port() const { return std::to_string(port_); }

 private:
  int socket_;
  std::uint16_t port_ = 0;
};

class StartTest : public testing::Test {
 protected:
  std::unique_ptr<Tidegate> Demo(std::vector<std::string> options) {
    options.insert(options.begin(), {"serve", "--demo", "--threads", "1"});
    return std::make_unique<Tidegate>(NewLog(), std::move(options));
  }
  /// Runs a demo that does not start. Returns its exit code.
  int Fail(std::vector<std::string> options) {
    const auto demo = Demo(std::move(options));
    const int code = demo->Wait();
    output_ = demo->Output();
    return code;
  }
  /// Returns the path of a new log: each process has its own, so that no test reads what another
  /// process wrote.
  fs::path NewLog() { return folder_ / ("log" + std::to_string(++logs_)); }
  static void ExpectNoWarning(const Tidegate& server) {
    EXPECT_THAT(server.Output(), Not(HasSubstr(" warning: ")));
    EXPECT_THAT(server.Output(), Not(HasSubstr(" error: ")));
  }
  /// Waits until the demo has printed everything, and returns the output.
  static std::string Printed(const Tidegate& demo) {
    EXPECT_TRUE(test::WaitUntil([&] { return demo.CountInOutput("Below: one line of JSON") == 1; }))
        << demo.Output();
    return demo.Output();
  }

  test::TemporaryFolder folder_;
  std::string output_;
  int logs_ = 0;
};

TEST_F(StartTest, DemoFallsBackToFreePorts) {
  const TakenPort taken[] = {TakenPort(8080), TakenPort(8081), TakenPort(6380), TakenPort(9180)};
  const auto demo = Demo({});
  const std::string printed = Printed(*demo);
  ExpectNoWarning(*demo);
  for (const char* const line :
       {"listener=gateway  taken=127.0.0.1:8080  uses=127.0.0.1:[0-9]+  option=--port\n",
        "listener=api  taken=127.0.0.1:8081  uses=127.0.0.1:[0-9]+  option=--api-port\n",
        "listener=resp  taken=127.0.0.1:6380  uses=127.0.0.1:[0-9]+  option=--resp-port\n",
        "listener=admin  taken=127.0.0.1:9180  uses=127.0.0.1:[0-9]+  option=--admin-port\n"}) {
    EXPECT_THAT(printed, ContainsRegex(line));
  }
  // The suggested commands contain the ports that the demo really uses.
  const std::string lines = printed.substr(printed.find("Try it"));
  EXPECT_THAT(lines, HasSubstr("http://" + demo->Gateway().Text() + "/demo/hello"));
  EXPECT_THAT(lines, HasSubstr("http://" + demo->Api().Text() + "/v1/decide"));
  EXPECT_THAT(lines, HasSubstr("redis-cli -p " + std::to_string(demo->Resp().port())));
  EXPECT_THAT(lines, HasSubstr("tidegate top --admin " + demo->Admin().Text()));
  EXPECT_THAT(lines, HasSubstr("tidegate decide demo alice --server " + demo->Api().Text()));
  for (const TakenPort& port : taken) EXPECT_THAT(lines, Not(HasSubstr(":" + port.port())));
  HttpClient client(demo->Gateway());
  client.Send("GET /demo/hello HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(client.Read().status, 200);
}

TEST_F(StartTest, DemoUsesGivenPorts) {
  std::vector<std::string> ports;
  // The port is free again at once.
  for (int i = 0; i < 4; ++i) ports.push_back(TakenPort().port());
  const auto demo = Demo({"--port", ports[0], "--api-port", ports[1], "--resp-port", ports[2],
                          "--admin-port", ports[3]});
  const std::string printed = Printed(*demo);
  ExpectNoWarning(*demo);
  EXPECT_EQ(std::to_string(demo->Gateway().port()), ports[0]);
  EXPECT_EQ(std::to_string(demo->Api().port()), ports[1]);
  EXPECT_EQ(std::to_string(demo->Resp().port()), ports[2]);
  EXPECT_EQ(std::to_string(demo->Admin().port()), ports[3]);
  EXPECT_THAT(printed, HasSubstr("curl -si http://127.0.0.1:" + ports[0] + "/demo/hello"));
  EXPECT_THAT(printed, Not(HasSubstr("is taken")));
}

TEST_F(StartTest, DemoRejectsGivenPortThatIsTaken) {
  const TakenPort taken;
  EXPECT_EQ(Fail({"--port", taken.port()}), 1);
  EXPECT_THAT(output_,
              HasSubstr("error: cannot listen on 127.0.0.1:" + taken.port() +
                        ": Address already in use; name another port with --port, or leave "
                        "the option out to use a free one\n"));
  EXPECT_EQ(Fail({"--admin-port", taken.port()}), 1);
  EXPECT_THAT(output_, HasSubstr("name another port with --admin-port"));
}

TEST_F(StartTest, DemoRejectsInvalidPorts) {
  const std::string free = TakenPort().port();
  EXPECT_EQ(Fail({"--port", free, "--api-port", free}), 2);
  EXPECT_THAT(output_, HasSubstr("--port and --api-port are both " + free + ": name two ports"));
  for (const char* const port : {"65536", "-1", "http", ""}) {
    EXPECT_EQ(Fail({"--port", port}), 2) << port;
    EXPECT_THAT(output_, HasSubstr("is not a port: name one from 1 to 65535")) << port;
  }
  Tidegate with_config(folder_ / "other", {"serve", "--config", "x.yaml", "--port", free});
  EXPECT_EQ(with_config.Wait(), 2);
  EXPECT_THAT(with_config.Output(), HasSubstr("--port requires --demo"));
}

// --- Warnings -------------------------------------------------------------------------

/// Returns the configuration with port 0 in place of every listening port.
std::string WithFreePorts(const fs::path& file) {
  std::string yaml = test::ReadFile(file);
  for (const char* const usual : {":8080", ":8081", ":9180", ":6380"}) {
    const std::size_t at = yaml.find(std::string("127.0.0.1") + usual);
    if (at != std::string::npos) yaml.replace(at + 9, 5, ":0");
  }
  const std::size_t listen = yaml.find("listen:\n");
  EXPECT_NE(listen, std::string::npos) << file;
  // These listeners open on loopback even if the file does not mention them.
  for (const char* const name : {"api", "admin"}) {
    if (yaml.find("\n  " + std::string(name) + ":") != std::string::npos) continue;
    yaml.insert(listen + 8, "  " + std::string(name) + ": 127.0.0.1:0\n");
  }
  return yaml;
}

/// Sets the descriptor limit that shells have on most distributions, or the hard limit of the test
/// if that is lower.
void UseOrdinaryLimits() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_max = std::min<rlim_t>(limit.rlim_max, 20'000);
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, 1024);
  setrlimit(RLIMIT_NOFILE, &limit);
}

TEST_F(StartTest, ExamplesLogNoWarning) {
  // A folder that every user may enter, so that `nobody` can execute the binary.
  const fs::path folder = fs::temp_directory_path() / ("tidegate-" + std::to_string(getpid()));
  fs::create_directory(folder);
  fs::permissions(folder, fs::perms{0755});
  const fs::path binary = folder / "tidegate";
  fs::copy_file(test::TidegateProcess::Binary(), binary, fs::copy_options::overwrite_existing);
  const passwd* const nobody = getuid() == 0 ? getpwnam("nobody") : nullptr;
  std::vector<const passwd*> users = {nullptr};  // nullptr: the user of the test.
  if (nobody != nullptr) users.push_back(nobody);
  const fs::path root = TIDEGATE_SOURCE;
  for (const fs::path& example :
       {root / "examples/tidegate.yaml", root / "examples/gateway.yaml",
        root / "examples/demo.yaml", root / "docs/recipes/tidegate.yaml"}) {
    const fs::path file = folder / "tidegate.yaml";
    test::WriteFile(file, WithFreePorts(example));
    fs::permissions(file, fs::perms{0644});
    for (const passwd* const user : users) {
      Tidegate server({"serve", "--config", file, "--threads", "1"},
                      {.output = NewLog(),
                       .prepare =
                           [&] {
                             UseOrdinaryLimits();
                             if (user == nullptr) return;
                             if (setgid(user->pw_gid) != 0 || setuid(user->pw_uid) != 0) _exit(126);
                           }},
                      binary);
      SCOPED_TRACE(example.string() + (user == nullptr ? " as this user" : " as nobody"));
      HttpClient client(server.Admin());  // A response shows that the server has started.
      client.Send("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
      EXPECT_EQ(client.Read().status, 200);
      ExpectNoWarning(server);
      EXPECT_THAT(server.Output(), HasSubstr(" info: "));
    }
  }
  fs::remove_all(folder);
}

TEST_F(StartTest, WarnsWhenRootServesPublicAddresses) {
  if (getuid() != 0) GTEST_SKIP() << "only root can run this test";
  for (const bool is_public : {false, true}) {
    const fs::path file = folder_ / "tidegate.yaml";
    test::WriteFile(
        file, std::string("listen: { api: '") + (is_public ? "0.0.0.0" : "127.0.0.1") +
                  ":0', admin: '127.0.0.1:0' }\nrules: [ { id: a, per: const, limit: 1/s } ]\n");
    Tidegate server(NewLog(), {"serve", "--config", file, "--threads", "1"});
    const std::string line =
        std::string(is_public ? " warning" : " info") + ": the process runs as root: set ";
    EXPECT_TRUE(test::WaitUntil([&] { return server.CountInOutput(line) == 1; }))
        << server.Output();
  }
}

TEST_F(StartTest, WarnsOfTooFewDescriptorsForConfiguredConnections) {
  const fs::path file = folder_ / "tidegate.yaml";
  const auto log_with = [&](const char* limits, rlim_t descriptors) {
    test::WriteFile(file, std::string("listen: { api: '127.0.0.1:0', admin: '127.0.0.1:0' }\n") +
                              limits + "rules: [ { id: a, per: const, limit: 1/s } ]\n");
    Tidegate server(NewLog(), {"serve", "--config", file, "--threads", "1"}, descriptors);
    (void)server.Admin();
    return server.Output();
  };
  EXPECT_THAT(log_with("limits: { connections: 9000 }\n", 8000),
              HasSubstr(" warning: too few file descriptors"));
  EXPECT_THAT(log_with("", 8000), HasSubstr(" info: the file descriptors allow fewer connections"));
  EXPECT_THAT(log_with("", 8000), Not(HasSubstr(" warning: ")));
  EXPECT_THAT(log_with("", 1024), HasSubstr(" warning: too few file descriptors"));
}

}  // namespace
}  // namespace tidegate::service
