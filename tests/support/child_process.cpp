// SPDX-License-Identifier: Apache-2.0
#include "support/child_process.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <utility>

#include "support/wait.hpp"

namespace tidegate::test {
namespace {

namespace fs = std::filesystem;

/// Calls `visit` for each entry of /proc/PID/`what`; for none if the process has ended.
template <class Visit>
void EachEntry(pid_t pid, const char* what, const Visit& visit) {
  std::error_code gone;
  fs::directory_iterator entry("/proc/" + std::to_string(pid) + "/" + what, gone);
  for (; !gone && entry != fs::directory_iterator(); entry.increment(gone)) visit(entry->path());
}

}  // namespace

ChildProcess::ChildProcess(std::vector<std::string> arguments, const Options& options) {
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  pid_ = fork();
  if (pid_ != 0) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::signal(SIGPIPE, SIG_DFL);
  if (options.core >= 0) PinTo(options.core);
  for (const std::string& variable : options.environment) putenv(strdup(variable.c_str()));
  const int output = open(options.output.c_str(), O_CREAT | O_WRONLY | O_APPEND, 0600);
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  if (options.prepare) options.prepare();
  execvp(argv[0], argv.data());
  _exit(127);
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), status_(other.status_) {}

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  Kill();
  pid_ = std::exchange(other.pid_, -1);
  status_ = other.status_;
  return *this;
}

bool ChildProcess::alive() {
  if (pid_ <= 0) return false;
  if (waitpid(pid_, &status_, WNOHANG) == 0) return true;
  pid_ = -1;
  return false;
}

int ChildProcess::killed_by() const noexcept {
  return WIFSIGNALED(status_) ? WTERMSIG(status_) : 0;
}

void ChildProcess::Signal(int signal) const {
  if (pid_ > 0) kill(pid_, signal);
}

void ChildProcess::Pause() const {
  if (pid_ <= 0) return;
  kill(pid_, SIGSTOP);
  waitpid(pid_, nullptr, WUNTRACED);
}

void ChildProcess::Kill() {
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, &status_, 0);
  pid_ = -1;
}

int ChildProcess::Wait(std::chrono::milliseconds patience) {
  if (!WaitUntil([this] { return !alive(); }, patience)) return -1;
  return WIFEXITED(status_) ? WEXITSTATUS(status_) : -1;
}

std::chrono::nanoseconds ChildProcess::CpuTime() const {
  // The first number of schedstat is the thread's time on a core, in nanoseconds.
  std::chrono::nanoseconds sum{0};
  EachEntry(pid_, "task", [&](const fs::path& task) {
    std::int64_t nanoseconds = 0;
    std::ifstream(task / "schedstat") >> nanoseconds;
    sum += std::chrono::nanoseconds{nanoseconds};
  });
  return sum;
}

std::int64_t ChildProcess::ResidentBytes() const {
  std::int64_t pages = 0;
  std::int64_t resident = 0;
  std::ifstream("/proc/" + std::to_string(pid_) + "/statm") >> pages >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

int ChildProcess::Descriptors() const {
  int count = 0;
  EachEntry(pid_, "fd", [&](const fs::path&) { ++count; });
  return count;
}

void PinTo(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(core), &set);
  sched_setaffinity(0, sizeof set, &set);
}

}  // namespace tidegate::test
