// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <thread>

namespace tidegate::redis_test {

using Milliseconds = std::chrono::milliseconds;

/// Whether it came true in time. Asked every two milliseconds.
[[nodiscard]] inline bool Soon(const std::function<bool()>& condition,
                               Milliseconds patience = std::chrono::seconds(10)) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

}  // namespace tidegate::redis_test
