// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <cstdlib>
#include <expected>
#include <functional>

#include "server/seccomp_filter.hpp"

namespace tidegate::service {

/// Returns what a Server in a test calls on each of its threads: if TIDEGATE_SECCOMP is set, as in
/// the release stage of `./dev test`, it installs the allow-list of system calls there. The threads
/// of the test itself stay free. Ends the program if that fails.
inline std::function<void()> SandboxedThread() {
  const char* const word = std::getenv("TIDEGATE_SECCOMP");
  if (word == nullptr || *word == '\0') return {};
  return [word] {
    const auto mode = SeccompOf(word);
    const auto installed =
        mode ? InstallAllowList(*mode, FilteredThreads::kCalling)
             : Result<void>(std::unexpected(Error{ErrorCode::kBadConfig, "unknown word"}));
    if (installed) return;
    (void)std::fprintf(stderr, "TIDEGATE_SECCOMP=%s: %s\n", word,
                       installed.error().message.c_str());
    std::abort();
  };
}

}  // namespace tidegate::service
