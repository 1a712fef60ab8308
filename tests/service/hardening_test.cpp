// SPDX-License-Identifier: Apache-2.0
// Processes that have dropped their privileges. They must still serve, reload, resolve names, use
// Redis over TLS, reopen their log and stop.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "config/config.hpp"
#include "redis/redis_server.hpp"
#include "redis/tls_files.hpp"
#include "service/fixture.hpp"
#include "service/tidegate_process.hpp"
#include "support/resp_client.hpp"

namespace tidegate::service {
namespace {

namespace fs = std::filesystem;
using redis_test::RedisServer;
using redis_test::TlsFiles;
using testing::HasSubstr;
using testing::Not;

constexpr std::string_view kAnyPort = "\"127.0.0.1:0\"";

/// Returns a configuration with all listeners on free ports and one rule.
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

/// The folder and the configuration file of a server process, which must exist before the process
/// starts.
class ServerFiles {
 protected:
  ServerFiles(const std::string& yaml, uid_t owner) : config_(folder_ / "tidegate.yaml") {
    Write(yaml);
    EXPECT_EQ(chown(folder_.path().c_str(), owner, static_cast<gid_t>(-1)), 0);
  }
  void Write(const std::string& yaml) const { test::WriteFile(config_, yaml); }

  test::TemporaryFolder folder_;
  const fs::path config_;
};

/// A `tidegate serve` process with its configuration and its log in its own folder. It has one
/// thread, so that a single response shows that Redis is reachable again.
class ServerProcess : public ServerFiles, public Tidegate {
 public:
  /// `owner` is the user that owns the folder.
  explicit ServerProcess(const std::string& yaml, std::vector<std::string> environment = {},
                         uid_t owner = geteuid())
      : ServerFiles(yaml, owner),
        Tidegate({"serve", "--threads", "1", "--config", config_.string()},
                 {.output = folder_ / "log", .environment = std::move(environment)}) {}

  using ServerFiles::Write;
  [[nodiscard]] bool LogsSoon(const std::string& text) const {
    return test::WaitUntil([&] { return CountInOutput(text) != 0; });
  }
  [[nodiscard]] const fs::path& folder() const { return folder_.path(); }
};

HttpResponse GetFrom(const net::Endpoint& at, std::string_view path) {
  HttpClient client(at);
  client.Send(Get(path));
  return client.Read();
}

/// Uses every listener, reloads by a file change and by SIGHUP, rotates the access log, and stops
/// the server.
void ExpectFullService(ServerProcess& server, const std::string& yaml) {
  const fs::path log = server.folder() / "access.log";
  EXPECT_EQ(HttpClient(server.Api()).Ask("/v1/decide", ByRule("all", "x")).status, 200);
  EXPECT_THAT(test::RespClient(server.Resp()).Ask({"TG.DECIDE", "all", "x"}),
              HasSubstr("[0,1000,"));
  EXPECT_EQ(GetFrom(server.Gateway(), "/openapi.json").status, 200) << server.Output();
  const std::string metrics = GetFrom(server.Admin(), "/metrics").body;
  EXPECT_THAT(metrics, testing::ContainsRegex("\nprocess_open_fds [1-9]"));
  EXPECT_THAT(metrics, testing::ContainsRegex("\nprocess_resident_memory_bytes [1-9]"));
  EXPECT_THAT(metrics, testing::ContainsRegex("\nprocess_start_time_seconds [1-9]"));
  EXPECT_TRUE(test::WaitUntil([&] { return !test::ReadFile(log).empty(); }));

  server.Write(yaml + "# A change.\n");
  EXPECT_TRUE(server.LogsSoon("why=\"a file changed\"")) << server.Output();
  fs::rename(log, log.string() + ".1");
  server.Signal(SIGHUP);
  EXPECT_TRUE(server.LogsSoon("why=SIGHUP")) << server.Output();
  EXPECT_TRUE(test::WaitUntil([&] { return fs::exists(log); })) << server.Output();
  EXPECT_EQ(GetFrom(server.Gateway(), "/openapi.json").status, 200) << server.Output();
  EXPECT_TRUE(test::WaitUntil([&] { return !test::ReadFile(log).empty(); }));

  server.Signal(SIGTERM);
  EXPECT_EQ(server.Wait(), 0) << server.Output();
}

class HardeningTest : public testing::Test {
 protected:
  /// A server in this process that the gateway forwards to.
  Service upstream_{"rules: []\n"};
  std::string upstream_url_ = "http://localhost:" + std::to_string(upstream_.api().port());
};

TEST_F(HardeningTest, ServesUnderSeccompWithRedisOverTls) {
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
  // After Redis restarts, the server resolves the name again and reconnects.
  redis.Kill();
  redis.Start();
  EXPECT_TRUE(test::WaitUntil([&] {
    return HttpClient(server.Api()).Ask("/v1/decide", ByRule("all", "x")).status == 200;
  })) << server.Output();
  ExpectFullService(server, yaml);
}

TEST_F(HardeningTest, ServesAsAnotherUserUnderSeccomp) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can switch to another user";
  const SystemUser user = FindSystemUser("nobody").value();
  const std::string yaml =
      AllListeners("process: { user: nobody, seccomp: kill }\n" +
                   std::string("access_log: access.log\n") + RouteTo(upstream_url_));
  ServerProcess server(yaml, {}, user.uid);
  (void)server.Admin();
  const fs::path log = server.folder() / "access.log";
  EXPECT_THAT(server.Output(), Not(HasSubstr("runs as root")));
  EXPECT_THAT(server.Output(), HasSubstr("cannot open the access log again"));
  // Gives the log to the new user, as an operator does after the warning.
  ASSERT_EQ(chown(log.c_str(), user.uid, user.gid), 0);
  for (const auto& task :
       fs::directory_iterator("/proc/" + std::to_string(server.pid()) + "/task")) {
    const std::string status = test::ReadFile(task.path() / "status");
    EXPECT_THAT(status, testing::ContainsRegex("Uid:(\t" + std::to_string(user.uid) + "){4}\n"));
    for (const std::string_view set : {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"}) {
      EXPECT_THAT(status, HasSubstr(std::string(set) + ":\t0000000000000000\n"));
    }
    EXPECT_THAT(status, HasSubstr("NoNewPrivs:\t1\n"));
    EXPECT_THAT(status, HasSubstr("Seccomp:\t2\n"));
  }
  // The /proc files of an undumpable process belong to root.
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
  // The folder belongs to root and has mode 0700.
  EXPECT_TRUE(server.LogsSoon("cannot read a file of its configuration again")) << server.Output();
}

TEST_F(HardeningTest, DropsCapabilitiesOfEveryThreadByDefault) {
  ServerProcess server(AllListeners("access_log: access.log\n" + RouteTo(upstream_url_)),
                       {"TIDEGATE_SECCOMP="});
  (void)server.Admin();
  for (const auto& task :
       fs::directory_iterator("/proc/" + std::to_string(server.pid()) + "/task")) {
    const std::string status = test::ReadFile(task.path() / "status");
    EXPECT_THAT(status, HasSubstr("CapPrm:\t0000000000000000\n"));
    EXPECT_THAT(status, HasSubstr("CapEff:\t0000000000000000\n"));
    EXPECT_THAT(status, HasSubstr("NoNewPrivs:\t1\n"));
    EXPECT_THAT(status, HasSubstr("Seccomp:\t0\n"));
  }
  if (geteuid() != 0) return;
  EXPECT_TRUE(server.LogsSoon("the process runs as root: set `process.user`")) << server.Output();
}

TEST_F(HardeningTest, EnvironmentOverridesSeccompSetting) {
  const std::string yaml = AllListeners("access_log: off\n" + RouteTo(upstream_url_));
  ServerProcess server(yaml + "process: { seccomp: off }\n", {"TIDEGATE_SECCOMP=kill"});
  (void)server.Admin();
  const std::string status = test::ReadFile("/proc/" + std::to_string(server.pid()) + "/status");
  EXPECT_THAT(status, HasSubstr("Seccomp:\t2\n"));
  server.Signal(SIGHUP);
  EXPECT_TRUE(server.LogsSoon("why=SIGHUP")) << server.Output();
  EXPECT_THAT(server.Output(), Not(HasSubstr("restart required")));
  ServerProcess wrong(yaml, {"TIDEGATE_SECCOMP=on"});
  EXPECT_EQ(wrong.Wait(), 2);
  EXPECT_THAT(wrong.Output(), HasSubstr("should be off, log, deny or kill  value=on"));
}

/// Returns the number of threads of this process with a system call filter.
long FilteredThreadCount() {
  const auto tasks = fs::directory_iterator("/proc/self/task");
  return std::count_if(begin(tasks), end(tasks), [](const fs::directory_entry& task) {
    return test::ReadFile(task.path() / "status").find("Seccomp:\t2\n") != std::string::npos;
  });
}

TEST(SandboxTest, FiltersReactorThreadsOfServersInTests) {
  const char* const before = std::getenv("TIDEGATE_SECCOMP");
  const std::string restored = before == nullptr ? "" : before;
  ASSERT_EQ(setenv("TIDEGATE_SECCOMP", "kill", 1), 0);
  {
    Service service("rules: []\napi: { inline_quotas: true }\n", 2);
    EXPECT_EQ(service.Decide(R"({"key":"k","limit":"1/s"})").status, 200);
    EXPECT_TRUE(test::WaitUntil([] { return FilteredThreadCount() == 2; }))
        << FilteredThreadCount();
  }
  ASSERT_EQ(setenv("TIDEGATE_SECCOMP", "", 1), 0);
  {
    Service service("rules: []\napi: { inline_quotas: true }\n", 2);
    EXPECT_EQ(service.Decide(R"({"key":"k","limit":"1/s"})").status, 200);
    EXPECT_EQ(FilteredThreadCount(), 0);
  }
  ASSERT_EQ(setenv("TIDEGATE_SECCOMP", restored.c_str(), 1), 0);
}

TEST_F(HardeningTest, ReportsThatProcessSettingsNeedARestart) {
  const std::string yaml = AllListeners("access_log: off\n" + RouteTo(upstream_url_));
  ServerProcess server(yaml);
  (void)server.Admin();
  server.Write(yaml + "process: { dumpable: true }\n");
  EXPECT_TRUE(server.LogsSoon("restart required: `process` changed")) << server.Output();
}

}  // namespace
}  // namespace tidegate::service
