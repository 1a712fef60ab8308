// SPDX-License-Identifier: Apache-2.0
// Tests the allow-list of system calls and the privileges of a process. Each test case runs in a
// child process, which gives the privileges up.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netdb.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <fstream>
#include <functional>
#include <string>
#include <thread>

#include "server/process_hardening.hpp"
#include "server/seccomp_filter.hpp"

namespace tidegate {
namespace {

using Seccomp = Config::Process::Seccomp;

constexpr int kAllowed = 10;
constexpr int kDenied = 11;  ///< The call failed with EPERM.
constexpr int kBroken = 12;

/// Installs the allow-list, makes the call, and ends the child process with the outcome as exit
/// code.
[[noreturn]] void CallUnderFilter(Seccomp mode, const std::function<long()>& call) {
  if (!InstallAllowList(mode, FilteredThreads::kAll)) _exit(kBroken);
  errno = 0;
  const long result = call();
  _exit(result < 0 && errno == EPERM ? kDenied : kAllowed);
}

struct NamedCall {
  std::string_view name;
  std::function<long()> call;
};

const std::vector<NamedCall>& DangerousCalls() {
  static const std::vector<NamedCall> calls = {
    {"execve", [] { return syscall(SYS_execve, nullptr, nullptr, nullptr); }},
    {"execveat", [] { return syscall(SYS_execveat, -1, nullptr, nullptr, nullptr, 0); }},
    {"ptrace", [] { return syscall(SYS_ptrace, PTRACE_TRACEME, 0, 0, 0); }},
    {"process_vm_readv", [] { return syscall(SYS_process_vm_readv, 1, 0, 0, 0, 0, 0); }},
    {"fork", [] { return syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0); }},
    {"mount", [] { return syscall(SYS_mount, 0, 0, 0, 0, 0); }},
    {"unshare", [] { return syscall(SYS_unshare, 0); }},
    {"setuid", [] { return syscall(SYS_setuid, getuid()); }},
    {"setresuid", [] { return syscall(SYS_setresuid, -1, -1, -1); }},
    {"setgroups", [] { return syscall(SYS_setgroups, 0, 0); }},
    {"capset", [] { return syscall(SYS_capset, 0, 0); }},
    {"bpf", [] { return syscall(SYS_bpf, 0, 0, 0); }},
    {"io_uring_setup", [] { return syscall(SYS_io_uring_setup, 0, 0); }},
    {"userfaultfd", [] { return syscall(SYS_userfaultfd, 0); }},
    {"keyctl", [] { return syscall(SYS_keyctl, 0, 0, 0, 0, 0); }},
    {"unlinkat", [] { return syscall(SYS_unlinkat, -1, "", 0); }},
    {"renameat2", [] { return syscall(SYS_renameat2, -1, "", -1, "", 0); }},
    {"fchmodat", [] { return syscall(SYS_fchmodat, -1, "", 0); }},
    {"kill", [] { return syscall(SYS_kill, getpid(), 0); }},
    {"tgkill of another process", [] { return syscall(SYS_tgkill, getppid(), getppid(), 0); }},
    {"listen", [] { return syscall(SYS_listen, -1, 0); }},
    {"packet socket", [] { return static_cast<long>(socket(AF_PACKET, SOCK_RAW, 0)); }},
    {"vsock socket", [] { return static_cast<long>(socket(AF_VSOCK, SOCK_STREAM, 0)); }},
    {"ioctl TIOCSTI", [] { return syscall(SYS_ioctl, 0, 0x5412, ""); }},
    {"prctl PR_SET_DUMPABLE", [] { return syscall(SYS_prctl, PR_SET_DUMPABLE, 1, 0, 0, 0); }},
    {"raising a limit",
     [] {
       rlimit limit{};
       return syscall(SYS_prlimit64, 0, RLIMIT_CORE, &limit, nullptr);
     }},
    {"memory that is writable and executable",
     [] {
       return syscall(SYS_mmap, nullptr, 4096, PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
                      -1, 0);
     }},
    {"memory that becomes executable",
     [] { return syscall(SYS_mprotect, nullptr, 4096, PROT_READ | PROT_EXEC); }},
#if defined(__x86_64__)
    {"a call of the x32 interface", [] { return syscall(0x40000000 | 39); }},
#endif
  };
  return calls;
}

TEST(SeccompTest, KillsTheProcessOnDangerousCalls) {
  for (const NamedCall& each : DangerousCalls()) {
    EXPECT_EXIT(CallUnderFilter(Seccomp::kKill, each.call), testing::KilledBySignal(SIGSYS), "")
        << each.name;
  }
}

TEST(SeccompTest, DeniesDangerousCalls) {
  for (const NamedCall& each : DangerousCalls()) {
    EXPECT_EXIT(CallUnderFilter(Seccomp::kDeny, each.call), testing::ExitedWithCode(kDenied), "")
        << each.name;
  }
}

TEST(SeccompTest, LogModeAllowsDangerousCalls) {
  EXPECT_EXIT(CallUnderFilter(Seccomp::kLog, [] { return syscall(SYS_unshare, 0); }),
              testing::ExitedWithCode(kAllowed), "");
}

TEST(SeccompTest, OffModeInstallsNoFilter) {
  EXPECT_EXIT(CallUnderFilter(Seccomp::kOff, [] { return syscall(SYS_kill, getpid(), 0); }),
              testing::ExitedWithCode(kAllowed), "");
}

TEST(SeccompTest, KillsTheProcessOnDangerousCallOfAnyThread) {
  EXPECT_EXIT(CallUnderFilter(Seccomp::kKill,
                              [] {
                                std::thread([] { (void)syscall(SYS_unshare, 0); }).join();
                                return 0L;
                              }),
              testing::KilledBySignal(SIGSYS), "");
}

/// Makes the system calls that a server makes after its start.
long ServerWork() {
  std::thread([] {
    const std::vector<char> memory(64u << 20, 'x');
    std::ifstream("/proc/self/stat").get();
    addrinfo* list = nullptr;
    if (getaddrinfo("localhost", "80", nullptr, &list) == 0) freeaddrinfo(list);
    std::this_thread::sleep_for(std::chrono::microseconds{1});
  }).join();
  for (const int family : {AF_INET, AF_INET6, AF_UNIX}) {
    close(socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  }
  return 0;
}

TEST(SeccompTest, AllowsCallsOfServers) {
  EXPECT_EXIT(CallUnderFilter(Seccomp::kKill, ServerWork), testing::ExitedWithCode(kAllowed), "");
}

TEST(SeccompTest, AbortStillEndsTheProcess) {
  EXPECT_EXIT(CallUnderFilter(Seccomp::kKill, []() -> long { std::abort(); }),
              testing::KilledBySignal(SIGABRT), "");
}

/// Calls that are allowed only with some arguments, here with those that are allowed.
TEST(SeccompTest, AllowsCheckedCallsWithTheirArguments) {
  constexpr long kUpperHalf = 1L << 32;  // The kernel ignores it in arguments of type int.
  const std::vector<NamedCall> calls = {
      {"memory that is writable",
       [] {
         return syscall(SYS_mmap, nullptr, 4096, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
       }},
      {"memory that is executable",
       [] {
         return syscall(SYS_mmap, nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
                        -1, 0);
       }},
      {"memory that becomes writable",
       [] { return syscall(SYS_mprotect, nullptr, 0, PROT_READ | PROT_WRITE); }},
      {"netlink socket", [] { return static_cast<long>(socket(AF_NETLINK, SOCK_RAW, 0)); }},
      {"socket with bits in the upper half",
       [] { return syscall(SYS_socket, kUpperHalf | AF_INET, SOCK_STREAM, 0); }},
      {"ioctl FIONREAD",
       [] {
         int ends[2];
         int size = 0;
         return pipe2(ends, 0) != 0 ? -1
                                    : syscall(SYS_ioctl, ends[0], kUpperHalf | FIONREAD, &size);
       }},
      {"prctl PR_SET_NAME", [] { return syscall(SYS_prctl, PR_SET_NAME, "test", 0, 0, 0); }},
      {"reading a limit",
       [] {
         rlimit limit{};
         return syscall(SYS_prlimit64, 0, RLIMIT_CORE, nullptr, &limit);
       }},
      {"tgkill of this process", [] { return syscall(SYS_tgkill, getpid(), gettid(), 0); }},
  };
  for (const NamedCall& each : calls) {
    const auto succeeds = [&] {
      if (each.call() < 0) _exit(kBroken);
      return 0L;
    };
    EXPECT_EXIT(CallUnderFilter(Seccomp::kKill, succeeds), testing::ExitedWithCode(kAllowed), "")
        << each.name;
  }
}

TEST(SeccompTest, ComparesAllBitsOfPointersAndProcesses) {
  constexpr long kUpperHalf = 1L << 32;
  EXPECT_EXIT(
      CallUnderFilter(Seccomp::kKill,
                      [] { return syscall(SYS_prlimit64, 0, RLIMIT_CORE, kUpperHalf, nullptr); }),
      testing::KilledBySignal(SIGSYS), "");
  EXPECT_EXIT(
      CallUnderFilter(Seccomp::kKill,
                      [] { return syscall(SYS_tgkill, kUpperHalf | getpid(), gettid(), 0); }),
      testing::KilledBySignal(SIGSYS), "");
}

TEST(SeccompTest, Clone3LooksUnimplemented) {
  for (const Seccomp mode : {Seccomp::kLog, Seccomp::kDeny, Seccomp::kKill}) {
    const auto clone3 = [] {
      if (syscall(SYS_clone3, nullptr, 0) >= 0 || errno != ENOSYS) _exit(kBroken);
      return 0L;
    };
    EXPECT_EXIT(CallUnderFilter(mode, clone3), testing::ExitedWithCode(kAllowed), "");
  }
}

TEST(SeccompTest, FilterOfOneThreadLeavesOtherThreadsAlone) {
  EXPECT_EXIT(
      {
        std::thread([] {
          if (!InstallAllowList(Seccomp::kDeny, FilteredThreads::kCalling)) _exit(kBroken);
          if (syscall(SYS_unshare, 0) == 0 || errno != EPERM) _exit(kBroken);
        }).join();
        _exit(syscall(SYS_unshare, 0) == 0 ? kAllowed : kDenied);
      },
      testing::ExitedWithCode(kAllowed), "");
}

// --- Privileges ----------------------------------------------------------------

std::string StatusLine(std::string_view name) {
  std::ifstream in("/proc/thread-self/status");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with(std::string(name) + ":")) return line.substr(name.size() + 2);
  }
  return {};
}

/// Ends the child process with kAllowed if `holds`.
[[noreturn]] void ExitWith(bool holds) { _exit(holds ? kAllowed : kBroken); }

TEST(HardenProcessTest, EmptiesAllCapabilities) {
  EXPECT_EXIT(
      {
        const bool bounded = geteuid() == 0;
        bool empty = HardenProcess({.dumpable = true}).has_value();
        for (const std::string_view set : {"CapInh", "CapPrm", "CapEff", "CapAmb"}) {
          empty = empty && StatusLine(set) == "0000000000000000";
        }
        ExitWith(empty && (!bounded || StatusLine("CapBnd") == "0000000000000000"));
      },
      testing::ExitedWithCode(kAllowed), "");
}

TEST(HardenProcessTest, MakesTheProcessUndumpableUnlessConfigured) {
  EXPECT_EXIT(ExitWith(HardenProcess({}) && prctl(PR_GET_DUMPABLE) == 0),
              testing::ExitedWithCode(kAllowed), "");
  EXPECT_EXIT(ExitWith(HardenProcess({.dumpable = true}) && prctl(PR_GET_DUMPABLE) == 1),
              testing::ExitedWithCode(kAllowed), "");
}

TEST(HardenProcessTest, SwitchesToTheUserPermanently) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can switch to another user";
  const auto user = FindSystemUser("nobody").value();
  const auto switched = [&](const SystemUser& to) {
    if (const auto hardened = HardenProcess({.user = to}); !hardened) {
      (void)!write(STDERR_FILENO, hardened.error().message.data(), hardened.error().message.size());
      _exit(kBroken);
    }
    const auto four = [](unsigned id) {
      const std::string text = std::to_string(id);
      return text + "\t" + text + "\t" + text + "\t" + text;
    };
    ExitWith(StatusLine("Uid") == four(to.uid) && StatusLine("Gid") == four(to.gid) &&
             setuid(0) != 0 && setgid(0) != 0 && StatusLine("CapPrm") == "0000000000000000");
  };
  EXPECT_EXIT(switched(user), testing::ExitedWithCode(kAllowed), "");
  EXPECT_EXIT(switched(FindSystemUser("nobody:daemon").value()), testing::ExitedWithCode(kAllowed),
              "");
  EXPECT_EXIT(switched(FindSystemUser("4242:4343").value()), testing::ExitedWithCode(kAllowed), "");
}

TEST(HardenProcessTest, OnlyRootCanSwitchUsers) {
  const auto nobody = FindSystemUser("nobody").value();
  const auto daemon = FindSystemUser("daemon").value();
  const auto as_nobody = [&](const SystemUser& to) {
    if (geteuid() == 0 && (setgid(nobody.gid) != 0 || setuid(nobody.uid) != 0)) _exit(kBroken);
    const auto hardened = HardenProcess({.user = to});
    if (hardened) _exit(kAllowed);
    (void)!write(STDERR_FILENO, hardened.error().message.data(), hardened.error().message.size());
    _exit(kDenied);
  };
  EXPECT_EXIT(as_nobody(daemon), testing::ExitedWithCode(kDenied),
              "cannot switch to process.user `daemon`: only root can");
  if (geteuid() != 0) return;
  EXPECT_EXIT(as_nobody(nobody), testing::ExitedWithCode(kAllowed), "");
}

}  // namespace
}  // namespace tidegate
