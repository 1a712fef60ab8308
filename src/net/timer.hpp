// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>
#include <vector>

namespace tidegate::net {

class Timers;

/// A timer that is never early and late by a millisecond at most, for the few things of a reactor
/// that need it so: what thousands of connections need, Deadlines has for less.
class Timer {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Timer(Timers& timers);
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  virtual ~Timer();

  /// Calls OnTimer once, at `due` or soon after; the last call counts.
  void ArmAt(Clock::time_point due) noexcept { due_ = due; }
  void Disarm() noexcept { due_.reset(); }
  [[nodiscard]] bool armed() const noexcept { return due_.has_value(); }

 protected:
  virtual void OnTimer(Clock::time_point now) = 0;

 private:
  friend class Timers;
  Timers& timers_;
  std::optional<Clock::time_point> due_;
};

/// All timers of one reactor: a handful, so a list that is looked through is quickest.
class Timers {
 public:
  [[nodiscard]] std::optional<Timer::Clock::time_point> Next() const noexcept {
    std::optional<Timer::Clock::time_point> next;
    for (const Timer* const timer : all_) {
      if (timer->due_ && (!next || *timer->due_ < *next)) next = timer->due_;
    }
    return next;
  }

  /// Calls all that are due.
  void Run(Timer::Clock::time_point now) {
    // By place: one that is called may add others or take some away.
    for (std::size_t i = 0; i < all_.size(); ++i) {
      Timer& timer = *all_[i];
      if (!timer.due_ || *timer.due_ > now) continue;
      timer.due_.reset();
      timer.OnTimer(now);
    }
  }

 private:
  friend class Timer;
  std::vector<Timer*> all_;
};

inline Timer::Timer(Timers& timers) : timers_(timers) { timers_.all_.push_back(this); }
inline Timer::~Timer() { std::erase(timers_.all_, this); }

}  // namespace tidegate::net
