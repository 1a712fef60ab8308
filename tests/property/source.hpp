// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>

namespace tidegate::property {

/// Source of the random choices in a history: a seed, or the bytes of a fuzzer.
class Source {
 public:
  explicit Source(std::uint64_t seed) : rng_(seed) {}
  explicit Source(std::span<const std::uint8_t> bytes) : bytes_(bytes), from_bytes_(true) {}

  /// Returns a number in 0 .. n-1; always 0 once the fuzzer's bytes are used up. REQUIRES: n >= 1.
  std::uint64_t Below(std::uint64_t n) {
    if (!from_bytes_) return rng_() % n;
    std::uint64_t value = 0;
    // Use only as many bytes as the choice needs, so that short inputs make more choices.
    for (std::uint64_t reach = n - 1; reach > 0; reach >>= 8) value = value << 8 | Byte();
    return value % n;
  }
  /// Returns a number in low .. high, both included.
  std::int64_t Between(std::int64_t low, std::int64_t high) {
    const auto width = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
    return low + static_cast<std::int64_t>(Below(width + 1));
  }
  /// Returns a number in 1 .. high, with about equal probability for each order of magnitude.
  std::int64_t Magnitude(std::int64_t high) {
    std::uint64_t bits = 0;
    while (bits < 62 && (std::int64_t{1} << (bits + 1)) <= high) ++bits;
    const std::int64_t top = std::int64_t{2} << Below(bits + 1);
    return Between(1, std::min(high, top));
  }
  template <class T>
  T OneOf(std::initializer_list<T> values) {
    return values.begin()[Below(values.size())];
  }
  [[nodiscard]] bool Exhausted() const { return from_bytes_ && bytes_.empty(); }

 private:
  std::uint8_t Byte() {
    if (bytes_.empty()) return 0;
    const std::uint8_t first = bytes_.front();
    bytes_ = bytes_.subspan(1);
    return first;
  }

  std::mt19937_64 rng_{};
  std::span<const std::uint8_t> bytes_{};
  bool from_bytes_ = false;
};

}  // namespace tidegate::property
