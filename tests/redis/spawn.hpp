// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

namespace tidegate::redis_test {

struct SpawnOptions {
  std::vector<std::string> environment = {};  ///< `NAME=value`, added.
  int core = -1;                              ///< Runs there only, if not negative.
};
/// Starts a program, found as a shell does, that dies with this process. What it says is added to
/// the file.
[[nodiscard]] pid_t Spawn(std::vector<std::string> arguments, const std::filesystem::path& said,
                          SpawnOptions options = {});
/// SIGKILL, and waits until it is gone.
void KillAndWait(pid_t pid);

}  // namespace tidegate::redis_test
