// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <string>

#include "net/timer.hpp"
#include "server/outage_log.hpp"
#include "store/redis/redis_error.hpp"

namespace tidegate {

class Server;

/// Observes the Redis clients of all reactors ten times a second for the OutageLog. A timer of the
/// first reactor; the others only count, which they do anyway.
class OutageWatch final : private net::Timer {
 public:
  static constexpr std::chrono::milliseconds kEvery{100};
  /// For this long after the start, a missing connection is not an outage: it is still being made.
  static constexpr std::chrono::seconds kStart{1};

  /// REQUIRES: the server has a fleet, and outlives this.
  explicit OutageWatch(const Server& server);

  /// Reports an outage that lasts. REQUIRES: the reactors have stopped.
  void Stop();

 private:
  void OnTimer(net::Timer::Clock::time_point now) override;
  [[nodiscard]] OutageLog::State StateNow() const;
  /// Returns the reasons of failures since the last call, such as `timeout, breaker_open`.
  [[nodiscard]] std::string NewReasons();
  [[nodiscard]] OutageLog::ByPolicy Rules() const;

  const Server& server_;
  OutageLog log_;
  std::array<std::uint64_t, redis::kReasons> reasons_{};  ///< Failures at the last NewReasons.
};

}  // namespace tidegate
