// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "redis/record.hpp"

namespace tidegate::redis_test {

/// Tells when this machine had no time: a thread that wakes every millisecond and notes when it
/// came late. What was on its way meanwhile says nothing about Tidegate's own delays: tests may
/// run beside a compiler.
class Canary {
 public:
  Canary();
  ~Canary();
  Canary(const Canary&) = delete;
  Canary& operator=(const Canary&) = delete;

  void Stop();
  /// Those that were not on their way while it was late. Stop it first.
  [[nodiscard]] Records Undisturbed(const Records& records) const;

 private:
  struct Late {
    std::int64_t from_us;
    std::int64_t to_us;
  };
  std::atomic<bool> stop_{false};
  std::vector<Late> late_;
  std::thread thread_;
};

}  // namespace tidegate::redis_test
