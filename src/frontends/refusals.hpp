// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "net/http_exchange.hpp"

namespace tidegate {

/// Counts and logs the callers that a listener rejected for their token or their rights. Logs at
/// most one line a second, so that a caller that tries tokens is noticed but cannot fill the log.
/// Never logs the token. Thread-safe.
class Refusals {
 public:
  using Clock = std::chrono::steady_clock;
  enum class Why : std::uint8_t {
    kUnknown,  ///< The caller has no token, or an unknown one.
    kRights,   ///< The caller does not have the rights that the operation needs.
  };
  static constexpr std::size_t kReasons = 2;
  static constexpr std::chrono::seconds kEvery{1};

  explicit Refusals(std::string door) : door_(std::move(door)) {}

  /// Records one rejected caller. `what` is the path or the command that it used.
  void Note(const net::Peer& peer, std::string_view what, Why why,
            Clock::time_point now = Clock::now()) noexcept;

  [[nodiscard]] static std::string_view Name(Why why) noexcept;
  [[nodiscard]] const std::string& door() const noexcept { return door_; }
  [[nodiscard]] std::uint64_t count(Why why) const noexcept {
    return counts_[static_cast<std::size_t>(why)].load(std::memory_order_relaxed);
  }

 private:
  const std::string door_;
  std::array<std::atomic<std::uint64_t>, kReasons> counts_{};
  std::atomic<std::uint64_t> untold_{0};
  std::atomic<Clock::rep> next_{Clock::time_point::min().time_since_epoch().count()};
};

}  // namespace tidegate
