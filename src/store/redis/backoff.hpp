// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace tidegate::redis {

/// How long to wait before the next attempt: capped, exponential, with full jitter, so that a fleet
/// whose connections were all cut at once comes back spread over time.
class Backoff {
 public:
  using Duration = std::chrono::microseconds;
  static constexpr Duration kFirst = std::chrono::milliseconds{20};
  static constexpr Duration kCap = std::chrono::milliseconds{500};

  explicit Backoff(std::uint64_t seed) noexcept : random_(seed | 1) {}

  /// Somewhere between nothing and 20 ms, 40 ms, ... 500 ms.
  [[nodiscard]] Duration Next() noexcept {
    const Duration most = std::min(kCap, kFirst * (std::int64_t{1} << std::min(attempts_, 10)));
    ++attempts_;
    return Duration{static_cast<std::int64_t>(Random() % static_cast<std::uint64_t>(most.count()))};
  }
  void Reset() noexcept { attempts_ = 0; }
  [[nodiscard]] int attempts() const noexcept { return attempts_; }

  [[nodiscard]] std::uint64_t Random() noexcept {
    random_ ^= random_ >> 12;
    random_ ^= random_ << 25;
    random_ ^= random_ >> 27;
    return random_ * 0x2545F4914F6CDD1Du;
  }

 private:
  std::uint64_t random_;
  int attempts_ = 0;
};

}  // namespace tidegate::redis
