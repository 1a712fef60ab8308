// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include "rules/address.hpp"

namespace tidegate {

/// Limits how often an address may present wrong credentials: kBurst times at once, then once every
/// kInterval. IPv6 addresses share the limit of their /64, because a client can choose the rest.
///
/// Only failures are limited. A right credential is always accepted, even from an address beyond
/// its limit: tokens have 16 characters or more, so guessing is hopeless anyway, and otherwise one
/// client could lock out all others behind the same NAT or proxy.
///
/// The table has a fixed size. When it is full, the entries that are next to expire are replaced,
/// so an attacker with many addresses gains kBurst attempts for each. Thread-safe.
class FailureThrottle {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr int kBurst = 10;
  static constexpr std::chrono::seconds kInterval{1};
  static constexpr std::size_t kEntries = 4096;

  /// `seed` decides which addresses share a part of the table; it must be unpredictable.
  explicit FailureThrottle(std::uint64_t seed);

  /// Counts one failure. Returns nullopt if the address is within its limit; otherwise the time
  /// after which the next failure is within it.
  [[nodiscard]] std::optional<Clock::duration> Add(const Address& address,
                                                   Clock::time_point now) noexcept;

 private:
  /// Entries that one address may be in. A search reads 8 * 24 bytes.
  static constexpr std::size_t kWays = 8;

  struct Entry {
    Address address;
    /// The time at which all failures are forgiven: each failure moves it on by kInterval.
    Clock::time_point clear_at = Clock::time_point::min();
  };

  const std::uint64_t seed_;
  std::mutex mutex_;
  const std::unique_ptr<std::array<Entry, kEntries>> entries_;
};

}  // namespace tidegate
