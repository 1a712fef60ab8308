// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <unistd.h>

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <filesystem>
#include <fstream>
#include <future>

#include "server/config_watch.hpp"
#include "server/server.hpp"
#include "service/late_support.hpp"

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

// For ThreadSanitizer: everything at once.
TEST(Server, ReloadDrainAndStopUnderLoad) {
  Problems problems;
  auto server =
      Server::Make(ConfigOf(10), {.threads = 3, .clock = nullptr, .version = "x"}, problems);
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
          if (!client.Send(i == 0 ? "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"
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
    Client between(api);  // So that requests and reloads really alternate.
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

// A folder that goes and comes back (a package update, a volume mounted again) is lost for good.
TEST(Watch, AFolderThatIsMadeAnewIsWatchedAgain) {
  Folder folder;
  const fs::path conf = folder.path / "conf";
  fs::create_directories(conf);
  Folder::Write(conf / "t.yaml", "a");
  boost::asio::io_context context;
  int changes = 0;
  ConfigWatch watch(context, (conf / "t.yaml").string(), "a", [&] { ++changes; });
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

// Other files of the folder that change all the time put the reload off for ever.
TEST(Watch, ABusyFolderDoesNotPutTheReloadOff) {
  Folder folder;
  const fs::path file = folder.path / "t.yaml";
  Folder::Write(file, "a");
  boost::asio::io_context context;
  int changes = 0;
  ConfigWatch watch(context, file.string(), "a", [&] { ++changes; });
  context.run_for(50ms);
  Folder::Write(file, "b");
  for (int i = 0; i < 40; ++i) {
    Folder::Write(folder.path / "access.log", "x");
    context.run_for(50ms);
  }
  EXPECT_EQ(changes, 1) << "in two seconds";
}

// The watch takes for known what it finds, not what the server was started with.
TEST(Watch, AChangeBetweenLoadingAndWatchingIsSeen) {
  Folder folder;
  const fs::path file = folder.path / "t.yaml";
  Folder::Write(file, "a");
  const std::string loaded = "a";  // LoadConfig, Server::Make, Start ...
  Folder::Write(file, "b");        // ... meanwhile somebody saves ...
  boost::asio::io_context context;
  int changes = 0;
  ConfigWatch watch(context, file.string(), loaded, [&] { ++changes; });  // ... Control::Run
  context.run_for(500ms);
  EXPECT_EQ(changes, 1);
}

TEST(Watch, ASymlinkSwapIsSeen) {
  Folder folder;
  fs::create_directories(folder.path / "v1");
  fs::create_directories(folder.path / "v2");
  Folder::Write(folder.path / "v1" / "t.yaml", "a");
  Folder::Write(folder.path / "v2" / "t.yaml", "b");
  fs::create_directory_symlink("v1", folder.path / "..data");
  fs::create_symlink("..data/t.yaml", folder.path / "t.yaml");
  boost::asio::io_context context;
  int changes = 0;
  ConfigWatch watch(context, (folder.path / "t.yaml").string(), "a", [&] { ++changes; });
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

}  // namespace
}  // namespace tidegate::service
