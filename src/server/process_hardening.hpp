// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "rules/config.hpp"
#include "tidegate/error.hpp"

namespace tidegate {

/// Forbids that the process, and any that it would start, gains privileges by executing a file.
/// To be called before there are threads: each inherits it.
void ForbidNewPrivileges() noexcept;

/// Gives up what a server does not need once it listens: switches to `process.user`, empties all
/// sets of capabilities, makes the process undumpable unless `process.dumpable` is set, and
/// installs the allow-list of system calls.
///
/// Capabilities belong to threads: REQUIRES that there is only the calling one. The change of the
/// user and the allow-list apply to all threads.
[[nodiscard]] Result<void> HardenProcess(const Config::Process& process);

/// Returns the files of `seen` that the process cannot read. A reload would fail on them.
[[nodiscard]] std::vector<std::string> UnreadableFiles(const std::vector<FileSeen>& seen);

/// Returns whether the process could open the file for writing, and create it if it were moved.
[[nodiscard]] bool CanOpenForAppending(const std::string& path);

/// Returns whether the process runs as root.
[[nodiscard]] bool RunsAsRoot() noexcept;

}  // namespace tidegate
