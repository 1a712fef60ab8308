// SPDX-License-Identifier: Apache-2.0
// The real binary as a process, and files for it. Real time passes here, so tests poll with a
// deadline.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "service/fixture.hpp"

namespace tidegate::service {

using namespace std::chrono_literals;
using SteadyClock = std::chrono::steady_clock;
namespace fs = std::filesystem;

/// Returns true if the condition becomes true within kPatience.
inline bool Soon(const std::function<bool()>& condition) {
  const auto deadline = SteadyClock::now() + kPatience;
  while (!condition()) {
    if (SteadyClock::now() > deadline) return false;
    std::this_thread::sleep_for(2ms);
  }
  return true;
}

inline std::string ReadFile(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Replaces the file in one step, as editors and deployments do.
inline void WriteFile(const fs::path& path, std::string_view text) {
  const fs::path temporary = path.string() + ".new";
  std::ofstream(temporary, std::ios::binary) << text;
  fs::rename(temporary, path);
}

/// The binary under test as a process of its own. Its output goes to a file.
class Tidegate {
 public:
  /// `descriptors` is its limit of open file descriptors; 0: that of the test.
  Tidegate(const fs::path& log, std::vector<std::string> arguments, rlim_t descriptors = 0)
      : Tidegate(log, TIDEGATE_BINARY, std::move(arguments), [descriptors] {
          const rlimit limit{descriptors, descriptors};
          if (descriptors != 0) setrlimit(RLIMIT_NOFILE, &limit);
        }) {}
  /// `prepare` is called in the new process, before it becomes that of `binary`.
  Tidegate(const fs::path& log, const fs::path& binary, std::vector<std::string> arguments,
           const std::function<void()>& prepare)
      : log_(log) {
    arguments.insert(arguments.begin(), binary.string());
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    pid_ = fork();
    if (pid_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int out = open(log.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_APPEND, 0600);
    dup2(out, STDOUT_FILENO);
    dup2(out, STDERR_FILENO);
    prepare();
    execv(argv[0], argv.data());
    _exit(127);
  }
  ~Tidegate() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Tidegate(const Tidegate&) = delete;
  Tidegate& operator=(const Tidegate&) = delete;

  void Signal(int signal) const { kill(pid_, signal); }
  [[nodiscard]] std::string Said() const { return ReadFile(log_); }
  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  [[nodiscard]] int Count(std::string_view words) const {
    const std::string said = Said();
    int count = 0;
    for (std::size_t at = 0; (at = said.find(words, at)) != std::string::npos; ++at) ++count;
    return count;
  }
  /// Returns the exit code; -1 if the process does not end or was killed.
  int Wait() {
    int status = 0;
    const bool ended = Soon([&] { return waitpid(pid_, &status, WNOHANG) == pid_; });
    if (!ended) return -1;
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  /// Returns the address that the log names after `what` and `scheme`.
  net::Endpoint Listening(std::string_view what, std::string_view scheme = "http") {
    std::string address;
    const std::string wanted = std::string(what) + "  on=" + std::string(scheme) + "://";
    EXPECT_TRUE(Soon([&] {
      const std::string said = Said();
      const std::size_t at = said.find(wanted);
      if (at == std::string::npos) return false;
      const std::size_t begin = at + wanted.size();
      const std::size_t end = said.find_first_of(" \n", begin);
      if (end == std::string::npos) return false;
      address = said.substr(begin, end - begin);
      return true;
    })) << Said();
    return net::Endpoint::Parse(address).value();
  }
  net::Endpoint Api() { return Listening("HTTP API"); }
  net::Endpoint Admin() { return Listening("/metrics"); }
  net::Endpoint Resp() { return Listening("Redis protocol", "redis"); }
  net::Endpoint Gateway() { return Listening("gateway"); }

  /// User and system time in clock ticks.
  [[nodiscard]] long Ticks() const {
    const std::string stat = ReadFile("/proc/" + std::to_string(pid_) + "/stat");
    std::istringstream rest(stat.substr(stat.rfind(')') + 2));
    std::string skipped;
    for (int i = 0; i < 11; ++i) rest >> skipped;
    long user = 0;
    long system = 0;
    rest >> user >> system;
    return user + system;
  }
  /// The time that its threads have had a core, to the nanosecond.
  [[nodiscard]] std::chrono::nanoseconds OnCpu() const {
    std::chrono::nanoseconds sum{};
    const std::string tasks = "/proc/" + std::to_string(pid_) + "/task";
    for (const auto& task : std::filesystem::directory_iterator(tasks)) {
      long long had = 0;
      std::ifstream(task.path() / "schedstat") >> had;
      sum += std::chrono::nanoseconds(had);
    }
    return sum;
  }
  [[nodiscard]] long ResidentBytes() const {
    long pages = 0;
    long resident = 0;
    std::ifstream("/proc/" + std::to_string(pid_) + "/statm") >> pages >> resident;
    return resident * sysconf(_SC_PAGESIZE);
  }

 private:
  pid_t pid_ = -1;
  fs::path log_;
};

/// Makes a new folder, in memory if possible: each file that is replaced would be flushed to the
/// disk, and that takes seconds on a busy one. The caller deletes it.
inline fs::path MakeTestFolder() {
  std::error_code none;
  const fs::path base =
      fs::is_directory("/dev/shm", none) ? fs::path("/dev/shm") : fs::temp_directory_path();
  std::string name = (base / "tidegate-test-XXXXXX").string();
  return mkdtemp(name.data());
}

}  // namespace tidegate::service
