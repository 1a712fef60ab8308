// SPDX-License-Identifier: Apache-2.0
// Real processes that dropped their privileges: they still serve, reload, resolve names, use Redis
// over TLS, rotate their log and stop.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "redis/redis_server.hpp"
#include "redis/soon.hpp"
#include "redis/spawn.hpp"
#include "redis/tls_files.hpp"
#include "rules/system_user.hpp"
#include "service/fixture.hpp"
#include "service/resp_client.hpp"

namespace tidegate::service {
namespace {

namespace fs = std::filesystem;
using redis_test::RedisServer;
using redis_test::Soon;
using redis_test::TemporaryFolder;
using redis_test::TlsFiles;
using testing::HasSubstr;
using testing::Not;

std::string ContentOf(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

constexpr std::string_view kAnyPort = "\"127.0.0.1:0\"";

/// All listeners on free ports, and one rule.
std::string AllListeners(std::string_view more) {
  std::string yaml = "listen: {";
  for (const std::string_view name : {"api", "admin", "gateway", "resp"}) {
    yaml.append(name).append(": ").append(kAnyPort).append(", ");
  }
  return yaml + "}\nrules: [{ id: all, limit: 1000/s, per: const }]\n" + std::string(more);
}

std::string RouteTo(std::string_view url) {
  return "routes: [{ match: { path: /** }, upstream: u }]\nupstreams: { u: { targets: [\"" +
         std::string(url) + "\"] } }\n";
}

/// A `tidegate serve` process with its configuration and its log in a folder of its own.
class ServerProcess {
 public:
  /// `owner`: the user that owns the folder.
  explicit ServerProcess(const std::string& yaml, std::vector<std::string> environment = {},
                         uid_t owner = geteuid())
      : config_(folder_.path() / "tidegate.yaml") {
    Write(yaml);
    EXPECT_EQ(chown(folder_.path().c_str(), owner, static_cast<gid_t>(-1)), 0);
    // One thread that answers: then one answer tells that Redis is reachable again.
    pid_ = redis_test::Spawn(
        {TIDEGATE_BINARY, "serve", "--threads", "1", "--config", config_.string()},
        folder_.path() / "said", {.environment = std::move(environment)});
  }
  ~ServerProcess() { redis_test::KillAndWait(pid_); }
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  void Write(const std::string& yaml) const {
    const fs::path temporary = config_.string() + ".new";
    std::ofstream(temporary) << yaml;
    fs::rename(temporary, config_);
  }
  void Signal(int signal) const { kill(pid_, signal); }
  [[nodiscard]] std::string Said() const { return ContentOf(folder_.path() / "said"); }
  [[nodiscard]] bool SaysSoon(const std::string& text) const {
    return Soon([&] { return Said().find(text) != std::string::npos; });
  }
  [[nodiscard]] fs::path folder() const { return folder_.path(); }
  [[nodiscard]] pid_t pid() const { return pid_; }

  /// The address in the log's line about `what`.
  [[nodiscard]] net::Endpoint At(const std::string& what) const {
    std::string address;
    EXPECT_TRUE(Soon([&] {
      const std::string said = Said();
      const std::size_t line = said.find(" info: " + what);
      const std::size_t begin = said.find("127.0.0.1:", line);
      const std::size_t end = said.find_first_of(" \n", begin);
      if (line == std::string::npos || end == std::string::npos) return false;
      address = said.substr(begin, end - begin);
      return true;
    })) << what
        << "\n"
        << Said();
    return net::Endpoint::Parse(address).value();
  }
  [[nodiscard]] net::Endpoint Api() const { return At("HTTP API"); }
  [[nodiscard]] net::Endpoint Admin() const { return At("admin: "); }
  [[nodiscard]] net::Endpoint Gateway() const { return At("gateway"); }
  [[nodiscard]] net::Endpoint Resp() const { return At("Redis protocol"); }

  /// Returns the wait status after the end of the process; -1 if it does not end.
  int Wait() {
    int status = -1;
    if (Soon([&] { return waitpid(pid_, &status, WNOHANG) == pid_; })) pid_ = -1;
    return status;
  }

 private:
  TemporaryFolder folder_;
  fs::path config_;
  pid_t pid_ = -1;
};

HttpAnswer GetFrom(const net::Endpoint& at, std::string_view path) {
  HttpClient client(at);
  client.Send(Get(path));
  return client.Read();
}

/// Uses every listener, reloads in both ways, rotates the access log and stops.
void ExpectFullService(ServerProcess& server, const std::string& yaml) {
  const fs::path log = server.folder() / "access.log";
  EXPECT_EQ(HttpClient(server.Api()).Ask("/v1/decide", ByRule("all", "x")).status, 200);
  EXPECT_THAT(RespClient(server.Resp()).Ask({"TG.DECIDE", "all", "x"}), HasSubstr("[0,1000,"));
  EXPECT_EQ(GetFrom(server.Gateway(), "/openapi.json").status, 200) << server.Said();
  const std::string metrics = GetFrom(server.Admin(), "/metrics").body;
  EXPECT_THAT(metrics, testing::ContainsRegex("\nprocess_open_fds [1-9]"));
  EXPECT_THAT(metrics, testing::ContainsRegex("\nprocess_resident_memory_bytes [1-9]"));
  EXPECT_THAT(metrics, testing::ContainsRegex("\nprocess_start_time_seconds [1-9]"));
  EXPECT_TRUE(Soon([&] { return !ContentOf(log).empty(); }));

  server.Write(yaml + "# A change.\n");
  EXPECT_TRUE(server.SaysSoon("why=\"a file changed\"")) << server.Said();
  fs::rename(log, log.string() + ".1");
  server.Signal(SIGHUP);
  EXPECT_TRUE(server.SaysSoon("why=SIGHUP")) << server.Said();
  EXPECT_TRUE(Soon([&] { return fs::exists(log); })) << server.Said();
  EXPECT_EQ(GetFrom(server.Gateway(), "/openapi.json").status, 200) << server.Said();
  EXPECT_TRUE(Soon([&] { return !ContentOf(log).empty(); }));

  server.Signal(SIGTERM);
  const int status = server.Wait();
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status << "\n" << server.Said();
}

class HardeningTest : public testing::Test {
 protected:
  /// A server in this process that the gateway forwards to.
  Service upstream_{"rules: []\n"};
  std::string upstream_url_ = "http://localhost:" + std::to_string(upstream_.api().port());
};

TEST_F(HardeningTest, ServesUnderTheAllowListWithRedisOverTls) {
  TlsFiles files;
  RedisServer redis({.arguments = files.Arguments(files.Issue("DNS:localhost")),
                     .wire = RedisServer::Wire::kTls});
  const std::string yaml = AllListeners(
      "process: { seccomp: kill }\naccess_log: access.log\nstore: { url: "
      "\"rediss://localhost:" +
      std::to_string(redis.port()) + "\", on_failure: closed, deadline: 5s, " + files.StoreTls() +
      " }\n" + RouteTo(upstream_url_));
  ServerProcess server(yaml);
  (void)server.Admin();
  // A connection that breaks is made again, with a name that is resolved again.
  redis.Kill();
  redis.Start();
  EXPECT_TRUE(Soon([&] {
    return HttpClient(server.Api()).Ask("/v1/decide", ByRule("all", "x")).status == 200;
  })) << server.Said();
  ExpectFullService(server, yaml);
}

TEST_F(HardeningTest, ServesAsAnotherUserUnderTheAllowList) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can switch to another user";
  const SystemUser user = FindSystemUser("nobody").value();
  const std::string yaml =
      AllListeners("process: { user: nobody, seccomp: kill }\n" +
                   std::string("access_log: access.log\n") + RouteTo(upstream_url_));
  ServerProcess server(yaml, {}, user.uid);
  (void)server.Admin();
  const fs::path log = server.folder() / "access.log";
  EXPECT_THAT(server.Said(), Not(HasSubstr("runs as root")));
  EXPECT_THAT(server.Said(), HasSubstr("cannot open the access log again"));
  // As the operator would do who reads the warning.
  ASSERT_EQ(chown(log.c_str(), user.uid, user.gid), 0);
  for (const auto& task :
       fs::directory_iterator("/proc/" + std::to_string(server.pid()) + "/task")) {
    const std::string status = ContentOf(task.path() / "status");
    EXPECT_THAT(status, testing::ContainsRegex("Uid:(\t" + std::to_string(user.uid) + "){4}\n"));
    for (const std::string_view set : {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"}) {
      EXPECT_THAT(status, HasSubstr(std::string(set) + ":\t0000000000000000\n"));
    }
    EXPECT_THAT(status, HasSubstr("NoNewPrivs:\t1\n"));
    EXPECT_THAT(status, HasSubstr("Seccomp:\t2\n"));
  }
  // Files of an undumpable process belong to root.
  struct stat about {};
  ASSERT_EQ(stat(("/proc/" + std::to_string(server.pid()) + "/maps").c_str(), &about), 0);
  EXPECT_EQ(about.st_uid, 0u);
  ExpectFullService(server, yaml);
}

TEST_F(HardeningTest, DumpableProcessBelongsToItsUser) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can switch to another user";
  const SystemUser user = FindSystemUser("nobody").value();
  ServerProcess server(AllListeners("access_log: off\nprocess: { user: nobody, dumpable: true }\n" +
                                    RouteTo(upstream_url_)));
  (void)server.Admin();
  struct stat about {};
  ASSERT_EQ(stat(("/proc/" + std::to_string(server.pid()) + "/maps").c_str(), &about), 0);
  EXPECT_EQ(about.st_uid, user.uid);
}

TEST_F(HardeningTest, WarnsAboutFilesThatAReloadCannotRead) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can switch to another user";
  ServerProcess server(
      AllListeners("access_log: off\nprocess: { user: nobody }\n" + RouteTo(upstream_url_)));
  (void)server.Admin();
  // Its folder is root's, with mode 0700.
  EXPECT_TRUE(server.SaysSoon("cannot read a file of its configuration again")) << server.Said();
}

TEST_F(HardeningTest, RestrictsEveryThreadWithoutConfiguration) {
  ServerProcess server(AllListeners("access_log: access.log\n" + RouteTo(upstream_url_)),
                       {"TIDEGATE_SECCOMP="});
  (void)server.Admin();
  for (const auto& task :
       fs::directory_iterator("/proc/" + std::to_string(server.pid()) + "/task")) {
    const std::string status = ContentOf(task.path() / "status");
    EXPECT_THAT(status, HasSubstr("CapPrm:\t0000000000000000\n"));
    EXPECT_THAT(status, HasSubstr("CapEff:\t0000000000000000\n"));
    EXPECT_THAT(status, HasSubstr("NoNewPrivs:\t1\n"));
    EXPECT_THAT(status, HasSubstr("Seccomp:\t0\n"));
  }
  if (geteuid() != 0) return;
  EXPECT_TRUE(server.SaysSoon("the process runs as root: set `process.user`")) << server.Said();
}

TEST_F(HardeningTest, EnvironmentOverridesTheAllowList) {
  const std::string yaml = AllListeners("access_log: off\n" + RouteTo(upstream_url_));
  ServerProcess server(yaml + "process: { seccomp: off }\n", {"TIDEGATE_SECCOMP=kill"});
  (void)server.Admin();
  const std::string status = ContentOf("/proc/" + std::to_string(server.pid()) + "/status");
  EXPECT_THAT(status, HasSubstr("Seccomp:\t2\n"));
  server.Signal(SIGHUP);
  EXPECT_TRUE(server.SaysSoon("why=SIGHUP")) << server.Said();
  EXPECT_THAT(server.Said(), Not(HasSubstr("restart required")));
  ServerProcess wrong(yaml, {"TIDEGATE_SECCOMP=on"});
  const int ended = wrong.Wait();
  EXPECT_TRUE(WIFEXITED(ended) && WEXITSTATUS(ended) == 2) << ended;
  EXPECT_THAT(wrong.Said(), HasSubstr("should be off, log, deny or kill  value=on"));
}

/// The number of threads of this process that have an allow-list.
long FilteredThreadCount() {
  const auto tasks = fs::directory_iterator("/proc/self/task");
  return std::count_if(begin(tasks), end(tasks), [](const fs::directory_entry& task) {
    return ContentOf(task.path() / "status").find("Seccomp:\t2\n") != std::string::npos;
  });
}

TEST(SandboxTest, AppliesToReactorsOfServersInTests) {
  const char* const before = std::getenv("TIDEGATE_SECCOMP");
  const std::string restored = before == nullptr ? "" : before;
  ASSERT_EQ(setenv("TIDEGATE_SECCOMP", "kill", 1), 0);
  {
    Service service("rules: []\napi: { inline_quotas: true }\n", 2);
    EXPECT_EQ(service.Decide(R"({"key":"k","limit":"1/s"})").status, 200);
    EXPECT_TRUE(Soon([] { return FilteredThreadCount() == 2; })) << FilteredThreadCount();
  }
  ASSERT_EQ(setenv("TIDEGATE_SECCOMP", "", 1), 0);
  {
    Service service("rules: []\napi: { inline_quotas: true }\n", 2);
    EXPECT_EQ(service.Decide(R"({"key":"k","limit":"1/s"})").status, 200);
    EXPECT_EQ(FilteredThreadCount(), 0);
  }
  ASSERT_EQ(setenv("TIDEGATE_SECCOMP", restored.c_str(), 1), 0);
}

TEST_F(HardeningTest, ReloadReportsThatProcessNeedsARestart) {
  const std::string yaml = AllListeners("access_log: off\n" + RouteTo(upstream_url_));
  ServerProcess server(yaml);
  (void)server.Admin();
  server.Write(yaml + "process: { dumpable: true }\n");
  EXPECT_TRUE(server.SaysSoon("restart required: `process` changed")) << server.Said();
}

}  // namespace
}  // namespace tidegate::service
