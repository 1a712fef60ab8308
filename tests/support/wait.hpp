// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <thread>

namespace tidegate::test {

/// How long a test waits for an event that must come. The machine may be busy: a test that waits
/// this long has failed.
inline constexpr std::chrono::seconds kPatience{10};

/// Polls until `condition` is true. Returns false if it is not within `patience`.
[[nodiscard]] inline bool WaitUntil(const std::function<bool()>& condition,
                                    std::chrono::milliseconds patience = kPatience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  return true;
}

}  // namespace tidegate::test
