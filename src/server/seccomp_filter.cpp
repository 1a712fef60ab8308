// SPDX-License-Identifier: Apache-2.0
#include "server/seccomp_filter.hpp"

#include <asm/termbits.h>
#include <linux/audit.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <expected>
#include <initializer_list>
#include <string>

#include "base/failure.hpp"

#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#endif

namespace tidegate {
namespace {

#if defined(__x86_64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
constexpr std::uint32_t kArchitecture = 0;  // The allow-list is not available.
#endif

// Calls that every request makes come first, because kernels before 5.11 try the calls one after
// the other. Later kernels look allowed calls up in a bitmap.
constexpr std::array kAllowedCalls = std::to_array<std::uint32_t>({
  // Sockets and the event loop.
  SYS_read, SYS_write, SYS_epoll_pwait, SYS_epoll_pwait2, SYS_epoll_ctl, SYS_recvfrom, SYS_sendto,
      SYS_accept4, SYS_close, SYS_futex, SYS_clock_gettime, SYS_recvmsg, SYS_sendmsg, SYS_readv,
      SYS_writev, SYS_connect, SYS_bind, SYS_shutdown, SYS_getsockname, SYS_getpeername,
      SYS_getsockopt, SYS_setsockopt, SYS_sendmmsg, SYS_recvmmsg, SYS_ppoll, SYS_epoll_create1,
      SYS_eventfd2, SYS_timerfd_create, SYS_timerfd_settime, SYS_timerfd_gettime, SYS_pipe2,
      // Files: configuration, secrets, the access log, /proc and /etc.
      SYS_openat, SYS_fstat, SYS_newfstatat, SYS_statx, SYS_fcntl, SYS_lseek, SYS_pread64,
      SYS_getdents64, SYS_readlinkat, SYS_faccessat, SYS_faccessat2, SYS_getcwd, SYS_inotify_init1,
      SYS_inotify_add_watch, SYS_inotify_rm_watch,
      // Memory.
      SYS_munmap, SYS_mremap, SYS_madvise, SYS_brk,
      // Threads, signals and time.
      SYS_set_robust_list, SYS_rseq, SYS_gettid, SYS_getpid, SYS_sched_yield, SYS_sched_getaffinity,
      SYS_sched_setaffinity, SYS_getcpu, SYS_membarrier, SYS_rt_sigaction, SYS_rt_sigprocmask,
      SYS_rt_sigreturn, SYS_sigaltstack, SYS_restart_syscall, SYS_nanosleep, SYS_clock_nanosleep,
      SYS_clock_getres, SYS_gettimeofday, SYS_exit, SYS_exit_group,
      // Information about the process and the machine.
      SYS_getrandom, SYS_getrusage, SYS_sysinfo, SYS_uname, SYS_getuid, SYS_geteuid, SYS_getgid,
      SYS_getegid,
#if defined(__x86_64__)
      // Older calls, which newer architectures do not have.
      SYS_epoll_wait, SYS_poll, SYS_open, SYS_stat, SYS_lstat, SYS_access, SYS_readlink, SYS_time,
      SYS_getrlimit,
#endif
});

/// A check of the lower half of an argument: `(argument & mask) == value`.
struct ArgumentCheck {
  std::uint32_t mask;
  std::uint32_t value;
};
constexpr std::uint32_t kWhole = 0xffffffff;

/// A system call that is allowed if one of the checks of an argument holds.
struct CheckedCall {
  std::uint32_t number;
  unsigned argument;
  std::span<const ArgumentCheck> checks;
};

constexpr auto kFamilies = std::to_array<ArgumentCheck>(
    {{kWhole, AF_INET}, {kWhole, AF_INET6}, {kWhole, AF_UNIX}, {kWhole, AF_NETLINK}});
constexpr auto kThreadFlag = std::to_array<ArgumentCheck>({{CLONE_THREAD, CLONE_THREAD}});
// Memory must not be both writable and executable, because code that an attacker wrote must not
// run. Libraries of the resolver are mapped from files, read-only and executable.
constexpr auto kMapped = std::to_array<ArgumentCheck>({{PROT_EXEC, 0}, {PROT_WRITE, 0}});
constexpr auto kProtected = std::to_array<ArgumentCheck>({{PROT_EXEC, 0}});
constexpr auto kRequests = std::to_array<ArgumentCheck>(
    {{kWhole, FIONBIO}, {kWhole, FIONREAD}, {kWhole, TCGETS}, {kWhole, TIOCGWINSZ}});
constexpr auto kProcessOptions =
    std::to_array<ArgumentCheck>({{kWhole, PR_SET_NAME}, {kWhole, PR_SET_VMA}});

constexpr std::array kCheckedCalls = std::to_array<CheckedCall>({
    {SYS_mmap, 2, kMapped},
    {SYS_mprotect, 2, kProtected},
    {SYS_socket, 0, kFamilies},
    {SYS_clone, 0, kThreadFlag},
    {SYS_ioctl, 1, kRequests},
    {SYS_prctl, 0, kProcessOptions},
});

constexpr std::uint32_t LowerHalf(unsigned argument) noexcept {
  static_assert(std::endian::native == std::endian::little);
  return static_cast<std::uint32_t>(offsetof(seccomp_data, args) + std::size_t{8} * argument);
}
constexpr std::uint32_t UpperHalf(unsigned argument) noexcept { return LowerHalf(argument) + 4; }

// Instructions of a BPF program. Jumps skip a number of instructions, at most 255.

constexpr sock_filter Instruction(int code, std::uint32_t k, std::size_t if_true = 0,
                                  std::size_t if_false = 0) noexcept {
  return {static_cast<std::uint16_t>(code), static_cast<std::uint8_t>(if_true),
          static_cast<std::uint8_t>(if_false), k};
}
constexpr sock_filter Load(std::uint32_t offset) noexcept {
  return Instruction(BPF_LD | BPF_W | BPF_ABS, offset);
}
constexpr sock_filter Return(std::uint32_t action) noexcept {
  return Instruction(BPF_RET | BPF_K, action);
}
/// Skips the next `skip` instructions unless the loaded value is `value`.
constexpr sock_filter SkipUnlessEqual(std::uint32_t value, std::size_t skip) noexcept {
  return Instruction(BPF_JMP | BPF_JEQ | BPF_K, value, 0, skip);
}

using Program = std::vector<sock_filter>;

void Append(Program& program, std::initializer_list<sock_filter> instructions) {
  program.insert(program.end(), instructions);
}

/// Returns the action for calls that are not allowed. REQUIRES: `mode` is not kOff.
std::uint32_t ActionOf(Config::Process::Seccomp mode) noexcept {
  if (mode == Config::Process::Seccomp::kLog) return SECCOMP_RET_LOG;
  if (mode == Config::Process::Seccomp::kDeny) return SECCOMP_RET_ERRNO | EPERM;
  return SECCOMP_RET_KILL_PROCESS;
}

/// Appends instructions that allow a call if one of the checks of its argument holds. The number of
/// the current call is loaded before them and, if it is another call, after them too.
void AppendChecked(Program& program, const CheckedCall& call, std::uint32_t denied) {
  constexpr std::size_t kPerCheck = 4;
  program.push_back(SkipUnlessEqual(call.number, kPerCheck * call.checks.size() + 1));
  for (const ArgumentCheck& check : call.checks) {
    Append(program,
           {Load(LowerHalf(call.argument)), Instruction(BPF_ALU | BPF_AND | BPF_K, check.mask),
            SkipUnlessEqual(check.value, 1), Return(SECCOMP_RET_ALLOW)});
  }
  program.push_back(Return(denied));
}

/// Appends instructions that allow a call if an argument has this value in all of its 64 bits.
void AppendEqual(Program& program, std::uint32_t number, unsigned argument, std::uint32_t value,
                 std::uint32_t denied) {
  Append(program, {SkipUnlessEqual(number, 6), Load(UpperHalf(argument)), SkipUnlessEqual(0, 3),
                   Load(LowerHalf(argument)), SkipUnlessEqual(value, 1), Return(SECCOMP_RET_ALLOW),
                   Return(denied)});
}

}  // namespace

std::unexpected<Error> SystemError(std::string_view what) {
  return Failure(ErrorCode::kBadConfig, std::string(what) + ": " + std::strerror(errno));
}

std::span<const std::uint32_t> AllowedSystemCalls() noexcept { return kAllowedCalls; }

std::vector<sock_filter> AllowListProgram(std::span<const std::uint32_t> allowed,
                                          Config::Process::Seccomp mode) {
  const std::uint32_t denied = ActionOf(mode);
  Program program = {Load(offsetof(seccomp_data, arch)),
                     Instruction(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 1), Return(denied),
                     Load(offsetof(seccomp_data, nr))};
#if defined(__x86_64__)
  constexpr std::uint32_t kX32 = 0x40000000;  // Calls of the x32 interface have this bit.
  Append(program, {Instruction(BPF_JMP | BPF_JGE | BPF_K, kX32, 0, 1), Return(denied)});
#endif
  for (const std::uint32_t number : allowed) {
    Append(program, {SkipUnlessEqual(number, 1), Return(SECCOMP_RET_ALLOW)});
  }
  for (const CheckedCall& call : kCheckedCalls) AppendChecked(program, call, denied);
  AppendEqual(program, SYS_prlimit64, 2, 0, denied);  // Limits may be read, not set.
  AppendEqual(program, SYS_tgkill, 0, static_cast<std::uint32_t>(getpid()), denied);
  Append(program,
         {SkipUnlessEqual(SYS_clone3, 1), Return(SECCOMP_RET_ERRNO | ENOSYS), Return(denied)});
  return program;
}

Result<void> InstallAllowList(Config::Process::Seccomp mode, FilteredThreads threads) {
  if (mode == Config::Process::Seccomp::kOff) return {};
  if (kArchitecture == 0) {
    return Failure(ErrorCode::kBadConfig,
                   "process.seccomp is not available on this architecture; write `seccomp: off`");
  }
  std::vector<sock_filter> instructions = AllowListProgram(AllowedSystemCalls(), mode);
  const sock_fprog program{static_cast<unsigned short>(instructions.size()), instructions.data()};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    return SystemError("cannot set no_new_privs");
  }
  const unsigned flags = threads == FilteredThreads::kAll ? SECCOMP_FILTER_FLAG_TSYNC : 0;
  const long result = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
  if (result == 0) return {};
  if (result > 0) errno = EBUSY;  // The result is the id of a thread that has another filter.
  return SystemError(
      "cannot install the allow-list of process.seccomp; write `seccomp: off` if the kernel has no "
      "seccomp");
}

}  // namespace tidegate
