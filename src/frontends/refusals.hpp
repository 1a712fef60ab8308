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

/// Callers whom a door sent away because of who they are: counted, and told in the log, one a
/// second at most, so that somebody who tries tokens is seen and cannot fill the log. What he
/// showed is never told. Thread-safe.
class Refusals {
 public:
  using Clock = std::chrono::steady_clock;
  enum class Why : std::uint8_t {
    kUnknown,  ///< No token, or none that is known.
    kRights,   ///< A known one that may not do this.
  };
  static constexpr std::size_t kReasons = 2;
  static constexpr std::chrono::seconds kEvery{1};

  explicit Refusals(std::string door) : door_(std::move(door)) {}

  /// `what`: what he asked for, a path or a command.
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
