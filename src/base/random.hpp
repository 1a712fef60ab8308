// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>

namespace tidegate {

/// Returns 64 bits of the system's randomness.
[[nodiscard]] inline std::uint64_t RandomSeed() {
  std::random_device random;
  return (std::uint64_t{random()} << 32) | random();
}

/// Returns `digits` random hexadecimal digits, each with four random bits. Fit for a secret.
[[nodiscard]] inline std::string RandomHex(std::size_t digits) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::random_device random;
  std::string text(digits, '\0');
  for (char& c : text) c = kDigits[random() % 16];
  return text;
}

/// Fast random numbers that need not be secret: xorshift64*, as in Vigna, "An experimental
/// exploration of Marsaglia's xorshift generators". Not thread-safe.
class Random {
 public:
  explicit Random(std::uint64_t seed = RandomSeed()) noexcept : state_(seed | 1) {}

  [[nodiscard]] std::uint64_t Next() noexcept {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return state_ * 0x2545F4914F6CDD1Du;
  }

 private:
  std::uint64_t state_;
};

}  // namespace tidegate
