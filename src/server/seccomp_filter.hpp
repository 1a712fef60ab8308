// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "config/config.hpp"
#include "tidegate/error.hpp"

namespace tidegate {

/// The threads that a filter applies to; threads that they create later inherit it.
enum class FilteredThreads : bool { kCalling, kAll };

/// Returns the BPF program that allows the system calls `allowed` and treats all others as `mode`
/// says. It also allows these calls, but only with some arguments:
/// - `socket` for IPv4, IPv6, local and netlink sockets; getaddrinfo uses netlink sockets;
/// - `clone` for threads, not for processes; `clone3`, whose arguments a filter cannot see, fails
///   with ENOSYS, and the C library then uses `clone`;
/// - `mmap` and `mprotect` as long as no memory becomes both writable and executable;
/// - `ioctl`, `prctl`, `prlimit64` and `tgkill` for what the C library needs within this process.
///
/// The filter cannot be removed. Sets `no_new_privs`, which the kernel requires.
[[nodiscard]] Result<void> InstallAllowList(Config::Process::Seccomp mode, FilteredThreads threads);

}  // namespace tidegate
