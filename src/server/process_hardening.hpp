// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "config/config.hpp"
#include "tidegate/error.hpp"

namespace tidegate {

/// Prevents the process, and all processes that it starts, from gaining privileges by executing a
/// file. Must be called before there are threads, because each inherits the setting.
void ForbidNewPrivileges() noexcept;

/// Gives up privileges that a server does not need once it listens: switches to `process.user`,
/// empties all sets of capabilities, makes the process undumpable unless `process.dumpable` is set,
/// and installs the allow-list of system calls.
///
/// REQUIRES: only the calling thread exists, because capabilities belong to threads. The change of
/// the user and the allow-list apply to all threads.
[[nodiscard]] Result<void> HardenProcess(const Config::Process& process);

/// Returns the files of `seen` that the process cannot read. A reload would fail on them.
[[nodiscard]] std::vector<std::string> UnreadableFiles(const std::vector<WatchedFile>& seen);

/// Returns whether the process could open the file for writing, and create it if it were moved.
[[nodiscard]] bool CanOpenForAppending(const std::string& path);

/// Returns whether the process runs as root.
[[nodiscard]] bool RunsAsRoot() noexcept;

}  // namespace tidegate
