// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <random>

namespace tidegate::cli {

/// Which of n asks next: all as likely, or by Zipf's law, where the k-th is drawn in proportion to
/// 1 / k^exponent. Needs no table, however large n is: rejection-inversion of Hoermann and
/// Derflinger (1996), which tries 1.1 times per draw or less.
class Draw {
 public:
  /// `exponent` 0: all as likely. REQUIRES: count >= 1, exponent >= 0.
  Draw(std::uint64_t count, double exponent, std::uint64_t seed);
  /// 0 to count - 1; 0 is the most frequent.
  [[nodiscard]] std::uint64_t Next();

 private:
  [[nodiscard]] double Area(double x) const;    ///< The integral of Height.
  [[nodiscard]] double Height(double x) const;  ///< x^-exponent
  [[nodiscard]] double AreaInverse(double area) const;

  std::uint64_t count_;
  double exponent_;
  double area_first_ = 0;
  double area_last_ = 0;
  double shortcut_ = 0;  ///< So close to a whole number nothing is rejected.
  std::mt19937_64 random_;
};

}  // namespace tidegate::cli
