// SPDX-License-Identifier: Apache-2.0
// Tests the allow-list of system calls and the privileges of a process. Each test case runs in a
// child process, which gives the privileges up.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <linux/seccomp.h>
#include <netdb.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
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

TEST(SeccompTest, FilterListsNoCallTwiceAndJumpsWithinBounds) {
  std::vector<std::uint32_t> calls(AllowedSystemCalls().begin(), AllowedSystemCalls().end());
  std::ranges::sort(calls);
  EXPECT_EQ(std::ranges::adjacent_find(calls), calls.end());
  const std::vector<sock_filter> program = AllowListProgram(AllowedSystemCalls(), Seccomp::kKill);
  EXPECT_LE(program.size(), static_cast<std::size_t>(BPF_MAXINSNS));
  for (std::size_t i = 0; i < program.size(); ++i) {
    EXPECT_LT(i + std::max(program[i].jt, program[i].jf), program.size()) << i;
  }
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
