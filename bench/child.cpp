// SPDX-License-Identifier: Apache-2.0
#include "child.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

namespace tidegate::bench {
namespace {

sockaddr_in Loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  return address;
}

}  // namespace

Child::Child(std::vector<std::string> arguments, int core) {
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  pid_ = fork();
  if (pid_ != 0) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  PinSelf(core);
  const int null = open("/dev/null", O_RDWR);
  dup2(null, STDOUT_FILENO);
  if (getenv("BENCH_VERBOSE") == nullptr) dup2(null, STDERR_FILENO);
  execvp(argv[0], argv.data());
  _exit(127);
}

Child::~Child() {
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

int Child::Wait() {
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool Child::running() const { return pid_ > 0 && waitpid(pid_, nullptr, WNOHANG) == 0; }

void Child::Signal(int signal) const { kill(pid_, signal); }

double Child::CpuSeconds() const {
  // The first number of schedstat is the thread's time on a core, in nanoseconds.
  double nanoseconds = 0;
  for (const auto& task :
       std::filesystem::directory_iterator("/proc/" + std::to_string(pid_) + "/task")) {
    double thread = 0;
    std::ifstream(task.path() / "schedstat") >> thread;
    nanoseconds += thread;
  }
  return nanoseconds / 1e9;
}

std::uint64_t Child::ResidentBytes() const {
  std::uint64_t pages = 0;
  std::uint64_t resident = 0;
  std::ifstream("/proc/" + std::to_string(pid_) + "/statm") >> pages >> resident;
  return resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

int FreePort() {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof address;
  (void)bind(socket, reinterpret_cast<sockaddr*>(&address), size);
  (void)getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size);
  close(socket);
  return ntohs(address.sin_port);
}

bool WaitForPort(int port) {
  for (int i = 0; i < 500; ++i) {
    const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    const sockaddr_in address = Loopback(port);
    const bool open =
        connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    close(socket);
    if (open) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds{10});
  }
  return false;
}

void PinSelf(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(core), &set);
  sched_setaffinity(0, sizeof set, &set);
}

}  // namespace tidegate::bench
