// SPDX-License-Identifier: Apache-2.0
#include "cli/latency_record.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace tidegate::cli {

std::size_t LatencyRecord::IndexOf(std::uint64_t ns) noexcept {
  constexpr std::uint64_t kParts = 1u << kBits;
  if (ns < kParts) return ns;
  // 2^power <= ns / 32 < 2^(power + 1): the upper bits say which power, the next five which part.
  const auto power = static_cast<unsigned>(std::bit_width(ns)) - kBits - 1;
  const std::size_t index = ((power + 1) << kBits) + ((ns >> power) - kParts);
  return std::min(index, (static_cast<std::size_t>(kPowers + 1) << kBits) - 1);
}

std::uint64_t LatencyRecord::EndOf(std::size_t index) noexcept {
  constexpr std::uint64_t kParts = 1u << kBits;
  if (index < kParts) return index;
  const std::size_t power = (index >> kBits) - 1;
  return ((kParts + (index & (kParts - 1)) + 1) << power) - 1;
}

void LatencyRecord::Add(Duration duration) noexcept {
  const Duration kept = std::max(duration, Duration{0});
  ++counts_[IndexOf(static_cast<std::uint64_t>(kept.count()))];
  ++count_;
  max_ = std::max(max_, kept);
}

void LatencyRecord::Merge(const LatencyRecord& other) noexcept {
  for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
  count_ += other.count_;
  max_ = std::max(max_, other.max_);
}

LatencyRecord::Duration LatencyRecord::Quantile(double q) const noexcept {
  if (count_ == 0) return Duration{0};
  const auto wanted = std::max<std::uint64_t>(
      1, static_cast<std::uint64_t>(std::ceil(q * static_cast<double>(count_))));
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    seen += counts_[i];
    if (seen >= wanted) return std::min(Duration{EndOf(i)}, max_);
  }
  return max_;
}

}  // namespace tidegate::cli
