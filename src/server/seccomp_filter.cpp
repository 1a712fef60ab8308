// SPDX-License-Identifier: Apache-2.0
#include "server/seccomp_filter.hpp"

#include <asm/termbits.h>
#include <linux/sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>

#include "base/failure.hpp"

#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#endif

namespace tidegate {
namespace {

// Calls that are allowed with any arguments. libseccomp ignores those that the architecture does
// not have.
constexpr std::array kAllowedCalls = std::to_array<int>(
    {// Sockets and the event loop.
     SCMP_SYS(read), SCMP_SYS(write), SCMP_SYS(epoll_pwait), SCMP_SYS(epoll_pwait2),
     SCMP_SYS(epoll_ctl), SCMP_SYS(recvfrom), SCMP_SYS(sendto), SCMP_SYS(accept4), SCMP_SYS(close),
     SCMP_SYS(futex), SCMP_SYS(clock_gettime), SCMP_SYS(recvmsg), SCMP_SYS(sendmsg),
     SCMP_SYS(readv), SCMP_SYS(writev), SCMP_SYS(connect), SCMP_SYS(bind), SCMP_SYS(shutdown),
     SCMP_SYS(getsockname), SCMP_SYS(getpeername), SCMP_SYS(getsockopt), SCMP_SYS(setsockopt),
     SCMP_SYS(sendmmsg), SCMP_SYS(recvmmsg), SCMP_SYS(ppoll), SCMP_SYS(epoll_create1),
     SCMP_SYS(eventfd2), SCMP_SYS(timerfd_create), SCMP_SYS(timerfd_settime),
     SCMP_SYS(timerfd_gettime), SCMP_SYS(pipe2),
     // Files: configuration, secrets, the access log, /proc and /etc.
     SCMP_SYS(openat), SCMP_SYS(fstat), SCMP_SYS(newfstatat), SCMP_SYS(statx), SCMP_SYS(fcntl),
     SCMP_SYS(lseek), SCMP_SYS(pread64), SCMP_SYS(getdents64), SCMP_SYS(readlinkat),
     SCMP_SYS(faccessat), SCMP_SYS(faccessat2), SCMP_SYS(getcwd), SCMP_SYS(inotify_init1),
     SCMP_SYS(inotify_add_watch), SCMP_SYS(inotify_rm_watch),
     // Memory.
     SCMP_SYS(munmap), SCMP_SYS(mremap), SCMP_SYS(madvise), SCMP_SYS(brk),
     // Threads, signals and time.
     SCMP_SYS(set_robust_list), SCMP_SYS(rseq), SCMP_SYS(gettid), SCMP_SYS(getpid),
     SCMP_SYS(sched_yield), SCMP_SYS(sched_getaffinity), SCMP_SYS(sched_setaffinity),
     SCMP_SYS(getcpu), SCMP_SYS(membarrier), SCMP_SYS(rt_sigaction), SCMP_SYS(rt_sigprocmask),
     SCMP_SYS(rt_sigreturn), SCMP_SYS(sigaltstack), SCMP_SYS(restart_syscall), SCMP_SYS(nanosleep),
     SCMP_SYS(clock_nanosleep), SCMP_SYS(clock_getres), SCMP_SYS(gettimeofday), SCMP_SYS(exit),
     SCMP_SYS(exit_group),
     // Information about the process and the machine.
     SCMP_SYS(getrandom), SCMP_SYS(getrusage), SCMP_SYS(sysinfo), SCMP_SYS(uname), SCMP_SYS(getuid),
     SCMP_SYS(geteuid), SCMP_SYS(getgid), SCMP_SYS(getegid),
     // Older calls, which newer architectures do not have.
     SCMP_SYS(epoll_wait), SCMP_SYS(poll), SCMP_SYS(open), SCMP_SYS(stat), SCMP_SYS(lstat),
     SCMP_SYS(access), SCMP_SYS(readlink), SCMP_SYS(time), SCMP_SYS(getrlimit)});

/// Returns the check that `(argument & mask) == value`.
constexpr scmp_arg_cmp Masked(unsigned argument, scmp_datum_t mask, scmp_datum_t value) noexcept {
  return {argument, SCMP_CMP_MASKED_EQ, mask, value};
}

/// A system call that is allowed if the check of an argument holds. Of several entries for one
/// call, one must hold.
struct CheckedCall {
  int number;
  scmp_arg_cmp check;
};
constexpr scmp_datum_t kInt = 0xffffffff;  // The kernel ignores the upper half of such arguments.
constexpr scmp_datum_t kPointer = ~scmp_datum_t{0};

constexpr std::array kCheckedCalls = std::to_array<CheckedCall>({
    // Memory must not be both writable and executable, because code that an attacker wrote must not
    // run. Libraries of the resolver are mapped from files, read-only and executable.
    {SCMP_SYS(mmap), Masked(2, PROT_EXEC, 0)},
    {SCMP_SYS(mmap), Masked(2, PROT_WRITE, 0)},
    {SCMP_SYS(mprotect), Masked(2, PROT_EXEC, 0)},
    {SCMP_SYS(socket), Masked(0, kInt, AF_INET)},
    {SCMP_SYS(socket), Masked(0, kInt, AF_INET6)},
    {SCMP_SYS(socket), Masked(0, kInt, AF_UNIX)},
    {SCMP_SYS(socket), Masked(0, kInt, AF_NETLINK)},
    {SCMP_SYS(clone), Masked(0, CLONE_THREAD, CLONE_THREAD)},
    {SCMP_SYS(ioctl), Masked(1, kInt, FIONBIO)},
    {SCMP_SYS(ioctl), Masked(1, kInt, FIONREAD)},
    {SCMP_SYS(ioctl), Masked(1, kInt, TCGETS)},
    {SCMP_SYS(ioctl), Masked(1, kInt, TIOCGWINSZ)},
    {SCMP_SYS(prctl), Masked(0, kInt, PR_SET_NAME)},
    {SCMP_SYS(prctl), Masked(0, kInt, PR_SET_VMA)},
    {SCMP_SYS(prlimit64), Masked(2, kPointer, 0)},  // Limits may be read, not set.
});

/// Returns the action for calls that are not allowed. REQUIRES: `mode` is not kOff.
std::uint32_t ActionOf(Config::Process::Seccomp mode) noexcept {
  if (mode == Config::Process::Seccomp::kLog) return SCMP_ACT_LOG;
  if (mode == Config::Process::Seccomp::kDeny) return SCMP_ACT_ERRNO(EPERM);
  return SCMP_ACT_KILL_PROCESS;
}

/// Builds the filter and installs it. Returns 0 or a negative errno.
int Install(std::uint32_t denied, FilteredThreads threads) {
  const std::unique_ptr<void, decltype(&seccomp_release)> filter(seccomp_init(denied),
                                                                 &seccomp_release);
  if (filter == nullptr) return -EINVAL;  // The kernel does not have the action.
  int result = 0;
  const auto set = [&](scmp_filter_attr attribute, std::uint32_t value) {
    if (result == 0) result = seccomp_attr_set(filter.get(), attribute, value);
  };
  const auto add = [&](std::uint32_t action, int number, std::span<const scmp_arg_cmp> checks) {
    if (result == 0) {
      result = seccomp_rule_add_array(filter.get(), action, number,
                                      static_cast<unsigned>(checks.size()), checks.data());
    }
  };
  set(SCMP_FLTATR_ACT_BADARCH, denied);  // 32-bit calls, and those of the x32 interface.
  set(SCMP_FLTATR_CTL_TSYNC, threads == FilteredThreads::kAll ? 1 : 0);
  set(SCMP_FLTATR_CTL_OPTIMIZE, 2);  // A binary search instead of one comparison per call.
  set(SCMP_FLTATR_API_SYSRAWRC, 1);  // Return the kernel's errno.
  for (const int number : kAllowedCalls) add(SCMP_ACT_ALLOW, number, {});
  for (const CheckedCall& call : kCheckedCalls) add(SCMP_ACT_ALLOW, call.number, {&call.check, 1});
  const scmp_arg_cmp own_process = Masked(0, kPointer, static_cast<scmp_datum_t>(getpid()));
  add(SCMP_ACT_ALLOW, SCMP_SYS(tgkill), {&own_process, 1});
  add(SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), {});
  return result == 0 ? seccomp_load(filter.get()) : result;
}

}  // namespace

Result<void> InstallAllowList(Config::Process::Seccomp mode, FilteredThreads threads) {
  if (mode == Config::Process::Seccomp::kOff) return {};
  const int result = Install(ActionOf(mode), threads);
  if (result == 0) return {};
  return Failure(ErrorCode::kBadConfig,
                 std::string("cannot install the allow-list of process.seccomp; write `seccomp: "
                             "off` if the kernel has no seccomp: ") +
                     std::strerror(-result));
}

}  // namespace tidegate
