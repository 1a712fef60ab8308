// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "net/resolver.hpp"

namespace tidegate {

/// One address of an upstream and how it fares. Shared by all reactors; counters are exact, since
/// one machine's cap on requests would not be one if each reactor had its own.
struct Member {
  using Clock = std::chrono::steady_clock;

  net::SocketAddress address;
  std::string text;       ///< `10.0.0.7:8080`, for people.
  std::string host;       ///< The target's: a name or an address.
  std::string authority;  ///< The Host field that fits it: `api.internal:8080`.
  bool tls = false;
  int weight = 1;

  std::atomic<std::uint32_t> active{0};     ///< Requests under way.
  std::atomic<bool> healthy{true};          ///< What the active checks say; without any, true.
  std::atomic<std::uint32_t> failures{0};   ///< In a row.
  std::atomic<std::uint32_t> ejections{0};  ///< Since it last did well.
  /// On the steady clock, in nanoseconds; 0: it is not.
  std::atomic<std::int64_t> ejected_until{0};

  [[nodiscard]] bool Ejected(Clock::time_point now) const noexcept {
    const std::int64_t until = ejected_until.load(std::memory_order_relaxed);
    return until != 0 && now.time_since_epoch() < std::chrono::nanoseconds{until};
  }
  [[nodiscard]] bool Up(Clock::time_point now) const noexcept {
    return healthy.load(std::memory_order_relaxed) && !Ejected(now);
  }
};

using Members = std::vector<std::shared_ptr<Member>>;

}  // namespace tidegate
