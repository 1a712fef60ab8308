// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <linux/filter.h>

#include <cstdint>
#include <expected>
#include <span>
#include <string_view>
#include <vector>

#include "config/config.hpp"
#include "tidegate/error.hpp"

namespace tidegate {

/// The numbers of the system calls that a running server makes. The filter allows each of them
/// with any arguments. Calls whose arguments are checked are listed at AllowListProgram instead.
[[nodiscard]] std::span<const std::uint32_t> AllowedSystemCalls() noexcept;

/// Returns the BPF program that allows the system calls `allowed` and treats all others as `mode`
/// says. It also allows these calls, but only with some arguments:
/// - `socket` for IPv4, IPv6, local and netlink sockets; getaddrinfo uses the last;
/// - `clone` for threads, not for processes; `clone3`, whose arguments a filter cannot see, fails
///   with ENOSYS, and the C library then uses `clone`;
/// - `mmap` and `mprotect` as long as no memory becomes both writable and executable;
/// - `ioctl`, `prctl`, `prlimit64` and `tgkill` for what the C library needs within this process.
///
/// REQUIRES: `mode` is not kOff.
[[nodiscard]] std::vector<sock_filter> AllowListProgram(std::span<const std::uint32_t> allowed,
                                                        Config::Process::Seccomp mode);

/// The threads that a filter applies to; threads that they create later inherit it.
enum class FilteredThreads : bool { kCalling, kAll };

/// Returns the error of the system call that has just failed: `what`, and the text of errno.
[[nodiscard]] std::unexpected<Error> SystemError(std::string_view what);

/// Installs the allow-list. It cannot be removed. Sets `no_new_privs`, which the kernel requires.
[[nodiscard]] Result<void> InstallAllowList(Config::Process::Seccomp mode, FilteredThreads threads);

}  // namespace tidegate
