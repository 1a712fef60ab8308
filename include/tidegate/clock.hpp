// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>

namespace tidegate {

/// All durations are whole microseconds, all times microseconds since the Unix
/// epoch. One microsecond is the tick of every promise that Tidegate makes.
using Micros = std::chrono::microseconds;
using Time = std::chrono::sys_time<Micros>;

/// Where a store learns the time. Implementations are thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual Time Now() const noexcept = 0;
};

/// The wall clock as it stood at construction, carried on by the machine's
/// monotonic clock: it never steps, whatever happens to the wall clock later.
class RealClock final : public Clock {
 public:
  RealClock() noexcept;
  [[nodiscard]] Time Now() const noexcept override;

 private:
  Micros wall_minus_monotonic_;
};

/// A clock for tests: it moves only when told to, in either direction.
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
