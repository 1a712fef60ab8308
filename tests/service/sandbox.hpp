// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <cstdlib>
#include <expected>
#include <functional>

#include "server/seccomp_filter.hpp"

namespace tidegate::service {

/// Returns a function that a Server in a test calls on each of its threads. If TIDEGATE_SECCOMP is
/// set, as in the release stage of `./dev test`, the function installs the allow-list of system
/// calls on that thread, and ends the program if this fails. The threads of the test itself are not
/// restricted.
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
