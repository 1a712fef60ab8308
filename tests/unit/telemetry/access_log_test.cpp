// SPDX-License-Identifier: Apache-2.0
#include "telemetry/access_log.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

namespace tidegate {
namespace {

namespace fs = std::filesystem;

class AccessLogTest : public ::testing::Test {
 protected:
  AccessLogTest() {
    std::string name = (fs::temp_directory_path() / "access-log-XXXXXX").string();
    folder_ = mkdtemp(name.data());
  }
  ~AccessLogTest() override { fs::remove_all(folder_); }
  static std::string Content(const fs::path& file) {
    std::ifstream in(file);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
  }
  fs::path folder_;
};

TEST_F(AccessLogTest, WritesAllLinesInOrder) {
  const fs::path file = folder_ / "log";
  std::string expected;
  {
    auto log = AccessLog::Open(file.string()).value();
    log->Start();
    for (int i = 0; i < 1000; ++i) {
      const std::string line = "line " + std::to_string(i) + "\n";
      log->Write(line);
      expected += line;
    }
  }
  EXPECT_EQ(Content(file), expected);
  {
    auto log = AccessLog::Open(file.string()).value();
    log->Start();
    log->Write("more\n");
  }
  EXPECT_EQ(Content(file), expected + "more\n");  // The log appends to an existing file.
}

TEST_F(AccessLogTest, ReopensFileThatWasMoved) {
  const fs::path file = folder_ / "log";
  auto log = AccessLog::Open(file.string()).value();
  log->Start();
  log->Write("old\n");
  for (int i = 0; i < 5000 && Content(file).empty(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  fs::rename(file, folder_ / "log.1");
  log->Reopen();
  log->Write("new\n");
  log.reset();
  EXPECT_EQ(Content(folder_ / "log.1"), "old\n");
  EXPECT_EQ(Content(file), "new\n");
}

TEST_F(AccessLogTest, DropsLinesInsteadOfBlocking) {
  const fs::path pipe = folder_ / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  // This end of the pipe never reads.
  const net::Descriptor reader(::open(pipe.c_str(), O_RDONLY | O_NONBLOCK));
  auto log = AccessLog::Open(pipe.string()).value();
  log->Start();
  const std::string lines(1 << 20, 'x');
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 40; ++i) log->Write(lines);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds{5});
  EXPECT_GT(log->dropped_bytes(), 20u << 20);
  // Reading the pipe unblocks the log's thread, so that the log can be destroyed.
  std::string drain(1 << 16, ' ');
  std::thread ending([&log] { log.reset(); });
  while (::read(reader.get(), drain.data(), drain.size()) != 0) {
  }
  ending.join();
}

TEST_F(AccessLogTest, ReportsWhyFileCannotBeOpened) {
  const auto log = AccessLog::Open((folder_ / "none" / "log").string());
  ASSERT_FALSE(log);
  EXPECT_NE(log.error().message.find("No such file"), std::string::npos);
}

}  // namespace
}  // namespace tidegate
