// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

namespace tidegate::redis_test {

/// The value of `decided_by` in a response; kNone: the response has none.
enum class DecidedBy : std::uint8_t { kNone, kStore, kCache, kLocal, kOpen, kClosed };

/// The kind of request.
enum class Op : std::uint8_t { kDecide, kAcquire, kRelease };

/// One request and its response, as the client saw it: Redis decided at some moment between
/// `sent_us` and `received_us()`. The struct is small because a run has millions of records.
struct Record {
  std::int64_t sent_us = 0;  ///< Send time in microseconds of the steady clock.
  std::uint32_t took_us = 0;
  std::uint32_t key = 0;
  /// Number of the connection, unique over all nodes; a connection has one request in flight at a
  /// time.
  std::uint32_t connection = 0;
  std::uint16_t status = 0;  ///< HTTP status; 0: the connection ended without a response.
  std::uint16_t cost = 1;
  DecidedBy decided_by = DecidedBy::kNone;
  Op op = Op::kDecide;
  std::uint8_t node = 0;

  [[nodiscard]] std::int64_t received_us() const noexcept { return sent_us + took_us; }
  [[nodiscard]] bool admitted() const noexcept { return status == 200; }
};

using Records = std::vector<Record>;

/// Returns the current time on the clock of the records, in microseconds.
[[nodiscard]] inline std::int64_t SteadyMicros() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace tidegate::redis_test
