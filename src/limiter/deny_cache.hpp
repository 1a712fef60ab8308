// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <string_view>
#include <vector>

#include "tidegate/call.hpp"

namespace tidegate {

/// Denials that still hold, so that a flood on a denied key costs no I/O.
///
/// Only the refill adds tokens, so the same request (its whole list of keys, quotas and costs) is
/// denied until its retry_after has passed since the moment at which the question *left*: Redis
/// looked at the key later than that. What gives something back otherwise (a refund, a reset)
/// invalidates the key. Leases are never kept: they are given back at any time.
///
/// Fixed size, no clock of its own. One reactor's.
class DenyCache {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  /// What may have been missed is made good after so long: an entry gets no older.
  static constexpr std::chrono::seconds kCap{3};
  static constexpr std::size_t kMostCharges = 4;  ///< Requests with more are not kept.

  explicit DenyCache(std::size_t entries = 8192);

  /// True: the call is denied, and its decisions say for how long still.
  [[nodiscard]] bool Find(Call& call, TimePoint now) noexcept;

  /// Keeps the denial that `call` carries. `keys`: hashes of its charges' keys, as Invalidate knows
  /// them. REQUIRES: as many as charges.
  void Insert(const Call& call, std::span<const std::uint64_t> keys, TimePoint sent) noexcept;

  void Invalidate(std::uint64_t key) noexcept { ++generations_[key % generations_.size()]; }
  void Clear() noexcept;

  [[nodiscard]] static std::uint64_t HashOf(std::string_view key) noexcept;
  [[nodiscard]] static bool MayKeep(const Call& call) noexcept;

 private:
  static constexpr std::size_t kWays = 4;

  struct Kept {  ///< Of one charge, as of the moment at which the question left.
    std::int64_t remaining;
    std::int64_t retry_after;
    std::int64_t more_after;
    std::int64_t reset_after;
    std::uint32_t generation;
    std::uint32_t key;
    bool allowed;
    bool never;
  };
  struct Entry {
    std::array<std::uint64_t, 2> request{};
    TimePoint since{};
    TimePoint until{};
    std::size_t count = 0;
    std::array<Kept, kMostCharges> kept{};
  };

  [[nodiscard]] std::span<Entry> SetOf(const std::array<std::uint64_t, 2>& request) noexcept;
  [[nodiscard]] bool IsCurrent(const Entry& entry) const noexcept;

  std::vector<Entry> entries_;
  /// How often keys were invalidated; keys that share a place cost each other a question to Redis.
  std::array<std::uint32_t, 4096> generations_{};
};

}  // namespace tidegate
