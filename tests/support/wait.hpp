// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <thread>

namespace tidegate::test {

/// The longest time that a test waits for an event that must happen. The machine may be busy, so
/// this time is long; a test that waits for all of it has failed.
inline constexpr std::chrono::seconds kPatience{10};

/// Polls until `condition` returns true. Returns false if that does not happen within `patience`.
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
