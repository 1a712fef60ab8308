// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "base/random.hpp"

namespace tidegate::redis {

/// How long to wait before the next attempt: capped, exponential, with full jitter, so that a fleet
/// whose connections were all cut at once comes back spread over time.
class Backoff {
 public:
  using Duration = std::chrono::microseconds;
  static constexpr Duration kFirst = std::chrono::milliseconds{20};
  static constexpr Duration kCap = std::chrono::milliseconds{500};

  explicit Backoff(std::uint64_t seed) noexcept : random_(seed) {}

  /// Somewhere between nothing and 20 ms, 40 ms, ... 500 ms.
  [[nodiscard]] Duration Next() noexcept {
    const Duration most = std::min(kCap, kFirst * (std::int64_t{1} << std::min(attempts_, 10)));
    ++attempts_;
    return Duration{static_cast<std::int64_t>(Random() % static_cast<std::uint64_t>(most.count()))};
  }
  void Reset() noexcept { attempts_ = 0; }
  [[nodiscard]] int attempts() const noexcept { return attempts_; }

  [[nodiscard]] std::uint64_t Random() noexcept { return random_.Next(); }

 private:
  tidegate::Random random_;
  int attempts_ = 0;
};

/// Whether it makes sense to ask a node at all. Closed: yes. Open: no, it would only make callers
/// wait for their deadline. Half-open: a few may try, and what becomes of them decides. No clock of
/// its own, no I/O.
class Breaker {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  enum class State : std::uint8_t { kClosed, kHalfOpen, kOpen };
  /// One failure may be chance, and with a deadline of 20 ms a stall of 60 ms is none.
  static constexpr int kThreshold = 3;

  explicit Breaker(std::uint64_t seed) noexcept : backoff_(seed) {}

  [[nodiscard]] State state() const noexcept { return state_; }

  /// Whether a batch may be sent now. Half-open lets one through at a time.
  [[nodiscard]] bool Allows(TimePoint now) noexcept {
    if (state_ == State::kOpen && !waits_for_link_ && now >= retry_at_) {
      state_ = State::kHalfOpen;
      probing_ = false;
    }
    if (state_ == State::kHalfOpen) return !probing_;
    return state_ == State::kClosed;
  }
  void OnSent() noexcept {
    if (state_ == State::kHalfOpen) probing_ = true;
  }

  void OnSuccess() noexcept {
    state_ = State::kClosed;
    failures_ = 0;
    waits_for_link_ = false;
    backoff_.Reset();
  }

  void OnFailure(TimePoint now) noexcept {
    ++failures_;
    if (state_ == State::kClosed && failures_ < kThreshold) return;
    Open(now);
  }

  /// The connection is gone: no batch can be sent before there is another.
  void OnLinkDown(TimePoint now) noexcept {
    Open(now);
    waits_for_link_ = true;
  }
  /// It has been greeted and has loaded the script: that was the probe.
  void OnLinkUp() noexcept { OnSuccess(); }

  /// When it is worth asking again.
  [[nodiscard]] TimePoint retry_at() const noexcept { return retry_at_; }

 private:
  void Open(TimePoint now) noexcept {
    state_ = State::kOpen;
    probing_ = false;
    // At least a little, so that callers do not find it half-open again at once.
    retry_at_ = now + std::chrono::milliseconds{5} + backoff_.Next();
  }

  State state_ = State::kClosed;
  int failures_ = 0;
  bool probing_ = false;
  bool waits_for_link_ = false;
  TimePoint retry_at_{};
  Backoff backoff_;
};

}  // namespace tidegate::redis
