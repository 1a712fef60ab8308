// SPDX-License-Identifier: Apache-2.0
// What a newcomer meets first: the demo and the example configurations, started as they are.
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

namespace tidegate::service {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

/// A socket that listens on a port of loopback, so that no other process can.
class TakenPort {
 public:
  /// 0: any. If another process listens there, the port is taken as well.
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
  StartTest() : folder_(MakeTestFolder()) {}
  ~StartTest() override { fs::remove_all(folder_); }

  std::unique_ptr<Tidegate> Demo(std::vector<std::string> options) {
    options.insert(options.begin(), {"serve", "--demo", "--threads", "1"});
    return std::make_unique<Tidegate>(NewLog(), std::move(options));
  }
  /// Runs a demo that does not start. Returns its exit code.
  int Fail(std::vector<std::string> options) {
    const auto demo = Demo(std::move(options));
    const int code = demo->Wait();
    said_ = demo->Said();
    return code;
  }
  /// Every process has a log of its own, so that no test reads what another one wrote.
  fs::path NewLog() { return folder_ / ("log" + std::to_string(++logs_)); }
  static void ExpectNoWarning(const Tidegate& server) {
    EXPECT_THAT(server.Said(), Not(HasSubstr(" warning: ")));
    EXPECT_THAT(server.Said(), Not(HasSubstr(" error: ")));
  }
  /// Until the demo has printed everything.
  static std::string Printed(const Tidegate& demo) {
    EXPECT_TRUE(Soon([&] { return demo.Count("Below: one line of JSON") == 1; })) << demo.Said();
    return demo.Said();
  }

  fs::path folder_;
  std::string said_;
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
  // The lines to try have the ports that the demo really uses.
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
  for (int i = 0; i < 4; ++i) ports.push_back(TakenPort().port());  // Free again at once.
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

TEST_F(StartTest, DemoRefusesAGivenPortThatIsTaken) {
  const TakenPort taken;
  EXPECT_EQ(Fail({"--port", taken.port()}), 1);
  EXPECT_THAT(said_, HasSubstr("error: cannot listen on 127.0.0.1:" + taken.port() +
                               ": Address already in use; name another port with --port, or leave "
                               "the option out to use a free one\n"));
  EXPECT_EQ(Fail({"--admin-port", taken.port()}), 1);
  EXPECT_THAT(said_, HasSubstr("name another port with --admin-port"));
}

TEST_F(StartTest, DemoRefusesPortsThatMakeNoSense) {
  const std::string free = TakenPort().port();
  EXPECT_EQ(Fail({"--port", free, "--api-port", free}), 2);
  EXPECT_THAT(said_, HasSubstr("--port and --api-port are both " + free + ": name two ports"));
  for (const char* const port : {"65536", "-1", "http", ""}) {
    EXPECT_EQ(Fail({"--port", port}), 2) << port;
    EXPECT_THAT(said_, HasSubstr("is not a port: name one from 1 to 65535")) << port;
  }
  Tidegate with_config(folder_ / "other", {"serve", "--config", "x.yaml", "--port", free});
  EXPECT_EQ(with_config.Wait(), 2);
  EXPECT_THAT(with_config.Said(), HasSubstr("--port requires --demo"));
}

}  // namespace
}  // namespace tidegate::service
