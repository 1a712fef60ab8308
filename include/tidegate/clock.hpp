// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>

namespace tidegate {

/// All durations are whole microseconds, all times microseconds since the Unix epoch. Tidegate is
/// exact to one microsecond.
using Micros = std::chrono::microseconds;
using Time = std::chrono::sys_time<Micros>;

/// The source of time of a store. Implementations are thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual Time Now() const noexcept = 0;
};

/// Reads the wall clock once, at construction, and advances that time by the machine's monotonic
/// clock. So it never steps, even if the wall clock is changed later.
class RealClock final : public Clock {
 public:
  RealClock() noexcept;
  [[nodiscard]] Time Now() const noexcept override;

 private:
  Micros wall_minus_monotonic_;
};

/// A clock for tests. Its time changes only through its methods, in either direction.
class ManualClock final : public Clock {
 public:
  explicit ManualClock(Time start = Time{std::chrono::hours{24 * 365 * 50}}) noexcept
      : now_(start.time_since_epoch().count()) {}

  [[nodiscard]] Time Now() const noexcept override {
    return Time{Micros{now_.load(std::memory_order_relaxed)}};
  }
  void Advance(Micros by) noexcept { now_.fetch_add(by.count(), std::memory_order_relaxed); }
  void Set(Time now) noexcept {
    now_.store(now.time_since_epoch().count(), std::memory_order_relaxed);
  }

 private:
  std::atomic<Micros::rep> now_;
};

}  // namespace tidegate
