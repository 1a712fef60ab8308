// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <unistd.h>

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <filesystem>
#include <fstream>
#include <future>

#include "server/config_reloader.hpp"
#include "server/server.hpp"
#include "service/late_support.hpp"
#include "service/sandbox.hpp"

namespace tidegate::service {
namespace {

namespace fs = std::filesystem;

Config ConfigOf(int limit) {
  return *ParseConfig(
              "listen: { api: '127.0.0.1:0', admin: '127.0.0.1:0' }\n"
              "store: { max_keys: 10000 }\n"
              "rules:\n  - { id: r, match: { path: /** }, per: client_ip, limit: " +
              std::to_string(limit) + "/s }\n")
              .config;
}

// For ThreadSanitizer: runs load, reloads, a drain and a stop at the same time.
TEST(ServerTest, ReloadsDrainsAndStopsUnderLoad) {
  Problems problems;
  auto server = Server::Make(
      ConfigOf(10),
      {.threads = 3, .clock = nullptr, .version = "x", .on_thread_start = SandboxedThread()},
      problems);
  ASSERT_TRUE(server);
  (*server)->Start();
  const std::uint16_t api = (*server)->api().port();
  const std::uint16_t admin = (*server)->admin().port();
  std::atomic<bool> end{false};
  std::vector<std::thread> clients;
  for (int i = 0; i < 3; ++i) {
    clients.emplace_back([&, i] {
      while (!end) {
        Client client(i == 0 ? admin : api);
        for (int k = 0; k < 20 && !end; ++k) {
          if (!client.Send(i == 0 ? "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
                                  : Post("/v1/decide", R"({"rule":"r","identity":"192.0.2.1"})"))) {
            break;
          }
          if (client.Receive("\r\n\r\n", 300ms).empty()) break;
        }
      }
    });
  }
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE((*server)->Reload(ConfigOf(10 + i), problems));
    // Sends a request between two reloads, so that requests and reloads alternate.
    Client between(api);
    between.Send(Post("/v1/decide", R"({"rule":"r","identity":"192.0.2.1"})"));
    EXPECT_FALSE(between.Receive("\r\n\r\n").empty());
  }
  std::promise<void> drained;
  auto done = drained.get_future();
  (*server)->Drain([&] { drained.set_value(); });
  EXPECT_EQ(done.wait_for(10s), std::future_status::ready);
  end = true;
  (*server)->Stop();
  for (std::thread& client : clients) client.join();
}

struct Folder {
  fs::path path = fs::temp_directory_path() / ("tidegate_watch_" + std::to_string(::getpid()));
  Folder() { fs::create_directories(path); }
  ~Folder() { fs::remove_all(path); }
  static void Write(const fs::path& file, const std::string& text) { std::ofstream(file) << text; }
};

WatchedFile Seen(const fs::path& file, std::string_view content) {
  return {.path = file.string(), .content = DigestOf(content)};
}

// The watch must not lose a folder that is removed and created again, as by a package update or a
// remounted volume.
TEST(ConfigWatchTest, SeesFolderThatWasRecreated) {
  Folder folder;
  const fs::path conf = folder.path / "conf";
  fs::create_directories(conf);
  Folder::Write(conf / "t.yaml", "a");
  boost::asio::io_context context;
  int changes = 0;
  ConfigWatch watch(context, {Seen(conf / "t.yaml", "a")}, [&] { ++changes; });
  context.run_for(50ms);
  fs::remove_all(conf);
  context.run_for(300ms);
  fs::create_directories(conf);
  Folder::Write(conf / "t.yaml", "b");
  context.run_for(500ms);
  EXPECT_EQ(changes, 1);
  Folder::Write(conf / "t.yaml", "c");
  context.run_for(500ms);
  EXPECT_GE(changes, 2);
}

// Other files of the folder that change all the time must not postpone the reload forever.
TEST(ConfigWatchTest, ReloadsDespiteBusyFolder) {
  Folder folder;
  const fs::path file = folder.path / "t.yaml";
  Folder::Write(file, "a");
  boost::asio::io_context context;
  int changes = 0;
  ConfigWatch watch(context, {Seen(file, "a")}, [&] { ++changes; });
  context.run_for(50ms);
  Folder::Write(file, "b");
  for (int i = 0; i < 40; ++i) {
    Folder::Write(folder.path / "access.log", "x");
    context.run_for(50ms);
  }
  EXPECT_EQ(changes, 1) << "changes within two seconds";
}

// The watch must compare with the content that the server loaded, and not with the content that the
// watch finds when it begins.
TEST(ConfigWatchTest, SeesChangeBeforeWatchBegins) {
  Folder folder;
  const fs::path file = folder.path / "t.yaml";
  Folder::Write(file, "a");
  const std::string loaded = "a";  // The content that LoadConfig has read before the server starts.
  Folder::Write(file, "b");        // The file is saved while the server starts.
  boost::asio::io_context context;
  int changes = 0;
  // The watch begins after the start, in Control::Run.
  ConfigWatch watch(context, {Seen(file, loaded)}, [&] { ++changes; });
  context.run_for(500ms);
  EXPECT_EQ(changes, 1);
}

TEST(ConfigWatchTest, SeesFilesThatMatchAPattern) {
  Folder folder;
  Folder::Write(folder.path / "t.yaml", "include: rules/*.yaml\n");
  boost::asio::io_context context;
  int changes = 0;
  const std::string pattern = (folder.path / "rules" / "*.yaml").string();
  ConfigWatch watch(context, {{.path = pattern, .content = DigestOfNames({}), .is_pattern = true}},
                    [&] { ++changes; });
  context.run_for(300ms);
  EXPECT_EQ(changes, 0);
  fs::create_directories(folder.path / "rules");
  context.run_for(500ms);
  EXPECT_EQ(changes, 0) << "an empty folder has no matching file";
  Folder::Write(folder.path / "rules" / "a.yaml", "a");
  context.run_for(500ms);
  EXPECT_EQ(changes, 1);
  Folder::Write(folder.path / "rules" / "a.txt", "a");
  context.run_for(500ms);
  EXPECT_EQ(changes, 1);
  fs::remove(folder.path / "rules" / "a.yaml");
  context.run_for(500ms);
  EXPECT_EQ(changes, 2);
}

TEST(ConfigWatchTest, SeesSymlinkSwap) {
  Folder folder;
  fs::create_directories(folder.path / "v1");
  fs::create_directories(folder.path / "v2");
  Folder::Write(folder.path / "v1" / "t.yaml", "a");
  Folder::Write(folder.path / "v2" / "t.yaml", "b");
  fs::create_directory_symlink("v1", folder.path / "..data");
  fs::create_symlink("..data/t.yaml", folder.path / "t.yaml");
  boost::asio::io_context context;
  int changes = 0;
  ConfigWatch watch(context, {Seen(folder.path / "t.yaml", "a")}, [&] { ++changes; });
  context.run_for(50ms);
  fs::create_directory_symlink("v2", folder.path / "..tmp");
  fs::rename(folder.path / "..tmp", folder.path / "..data");
  fs::remove_all(folder.path / "v1");
  context.run_for(500ms);
  EXPECT_EQ(changes, 1);
  Folder::Write(folder.path / "v2" / "t.yaml", "c");
  context.run_for(500ms);
  EXPECT_EQ(changes, 2);
}

// A renewal writes the certificate first and its key a moment later. The server refuses the first
// change, and the watch must notice the second one.
TEST(ConfigWatchTest, WatchesEveryFileOfTheConfiguration) {
  Folder folder;
  fs::create_directories(folder.path / "tls");
  const fs::path file = folder.path / "t.yaml";
  const fs::path certificate = folder.path / "tls" / "api.pem";
  const fs::path key = folder.path / "tls" / "api.key";
  for (const fs::path& one : {file, certificate, key}) Folder::Write(one, "a");
  boost::asio::io_context context;
  int changes = 0;
  ConfigWatch watch(context, {Seen(file, "a"), Seen(certificate, "a"), Seen(key, "a")},
                    [&] { ++changes; });
  context.run_for(300ms);
  EXPECT_EQ(changes, 0);
  Folder::Write(certificate, "b");
  context.run_for(300ms);
  EXPECT_EQ(changes, 1);
  Folder::Write(key, "b");
  context.run_for(300ms);
  EXPECT_EQ(changes, 2);
  Folder::Write(key, "b");  // The content is unchanged.
  Folder::Write(folder.path / "tls" / "other.key", "b");
  context.run_for(300ms);
  EXPECT_EQ(changes, 2);
}

// Renews a certificate as certbot does: live/api.pem points to ../archive/api1.pem, then to
// ../archive/api2.pem.
TEST(ConfigWatchTest, SeesRenewedCertificateBehindLink) {
  Folder folder;
  fs::create_directories(folder.path / "live");
  fs::create_directories(folder.path / "archive");
  Folder::Write(folder.path / "t.yaml", "a");
  Folder::Write(folder.path / "archive" / "api1.pem", "a");
  fs::create_symlink("../archive/api1.pem", folder.path / "live" / "api.pem");
  boost::asio::io_context context;
  int changes = 0;
  ConfigWatch watch(
      context, {Seen(folder.path / "t.yaml", "a"), Seen(folder.path / "live" / "api.pem", "a")},
      [&] { ++changes; });
  context.run_for(300ms);
  Folder::Write(folder.path / "archive" / "api2.pem", "b");
  fs::remove(folder.path / "live" / "api.pem");
  fs::create_symlink("../archive/api2.pem", folder.path / "live" / "api.pem");
  context.run_for(500ms);
  EXPECT_EQ(changes, 1);
}

TEST(ConfigWatchTest, FollowsFilesOfTheAppliedConfiguration) {
  Folder folder;
  const fs::path file = folder.path / "t.yaml";
  const fs::path tokens = folder.path / "tokens";
  const fs::path other = folder.path / "other";
  for (const fs::path& one : {file, tokens, other}) Folder::Write(one, "a");
  boost::asio::io_context context;
  int changes = 0;
  ConfigWatch watch(context, {Seen(file, "a"), Seen(tokens, "a")}, [&] { ++changes; });
  context.run_for(300ms);
  // The applied configuration has `other` in place of `tokens`, and `other` changed just after it
  // was read.
  Folder::Write(other, "b");
  watch.Follow({Seen(file, "a"), Seen(other, "a")});
  context.run_for(300ms);
  EXPECT_EQ(changes, 1);
  Folder::Write(tokens, "b");
  context.run_for(300ms);
  EXPECT_EQ(changes, 1);
  // The new configuration was refused, because a file that it names does not exist yet.
  const fs::path late = folder.path / "late";
  watch.FollowAlso({Seen(file, "a"), {.path = late.string()}});
  context.run_for(300ms);
  EXPECT_EQ(changes, 1);
  Folder::Write(late, "a");
  context.run_for(300ms);
  EXPECT_EQ(changes, 2);
  Folder::Write(other, "c");
  context.run_for(300ms);
  EXPECT_EQ(changes, 3);
}

/// Runs as another user than root while it exists, so that file permissions apply: root can read
/// every file.
class NotRoot {
 public:
  NotRoot() { EXPECT_TRUE(!root_ || ::seteuid(65'534) == 0); }
  ~NotRoot() { EXPECT_TRUE(!root_ || ::seteuid(0) == 0); }
  NotRoot(const NotRoot&) = delete;
  NotRoot& operator=(const NotRoot&) = delete;

 private:
  const bool root_ = ::geteuid() == 0;
};

// A key may be written first and made readable afterwards.
TEST(ConfigWatchTest, SeesFileThatBecomesReadable) {
  Folder folder;
  fs::permissions(folder.path, fs::perms{0755});
  const fs::path file = folder.path / "t.yaml";
  Folder::Write(file, "a");
  boost::asio::io_context context;
  int changes = 0;
  ConfigWatch watch(context, {Seen(file, "a")}, [&] { ++changes; });
  const auto run = [&] {
    const NotRoot reader;
    context.run_for(300ms);
  };
  Folder::Write(file, "b");
  fs::permissions(file, fs::perms::none);
  run();
  EXPECT_EQ(changes, 0);
  fs::permissions(file, fs::perms{0444});
  run();
  EXPECT_EQ(changes, 1);
}

}  // namespace
}  // namespace tidegate::service
