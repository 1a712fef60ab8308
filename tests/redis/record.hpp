// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

namespace tidegate::redis_test {

/// Who answered: `decided_by` of the Decision.
enum class DecidedBy : std::uint8_t { kNone, kStore, kCache, kLocal, kOpen, kClosed };

/// The kind of request.
enum class Op : std::uint8_t { kDecide, kAcquire, kRelease };

/// One request and its answer, as the client saw it: Redis decided at some moment between
/// `sent_us` and `received_us()`. Small, since a run has millions of them.
struct Record {
  std::int64_t sent_us = 0;  ///< Steady clock.
  std::uint32_t took_us = 0;
  std::uint32_t key = 0;
  std::uint32_t connection = 0;  ///< One asks one question at a time; unique over all nodes.
  std::uint16_t status = 0;      ///< 0: the connection ended without an answer.
  std::uint16_t cost = 1;
  DecidedBy decided_by = DecidedBy::kNone;
  Op op = Op::kDecide;
  std::uint8_t node = 0;

  [[nodiscard]] std::int64_t received_us() const noexcept { return sent_us + took_us; }
  [[nodiscard]] bool admitted() const noexcept { return status == 200; }
};

using Records = std::vector<Record>;

/// Now, on the clock of the records.
[[nodiscard]] inline std::int64_t SteadyMicros() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace tidegate::redis_test
