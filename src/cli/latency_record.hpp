// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstdint>

namespace tidegate::cli {

/// Many durations in little memory: each is known to 1/32 of itself, the longest exactly.
class LatencyRecord {
 public:
  using Duration = std::chrono::nanoseconds;

  void Add(Duration duration) noexcept;
  void Merge(const LatencyRecord& other) noexcept;

  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  [[nodiscard]] Duration max() const noexcept { return max_; }
  /// Never too short, by at most 1/32 too long; 0 of nothing.
  [[nodiscard]] Duration Quantile(double q) const noexcept;

 private:
  static constexpr unsigned kBits = 5;  ///< Of each power of two, 32 parts.
  static constexpr unsigned kPowers = 44;
  [[nodiscard]] static std::size_t IndexOf(std::uint64_t ns) noexcept;
  [[nodiscard]] static std::uint64_t EndOf(std::size_t index) noexcept;

  std::array<std::uint64_t, (kPowers + 1) << kBits> counts_{};
  std::uint64_t count_ = 0;
  Duration max_{0};
};

}  // namespace tidegate::cli
