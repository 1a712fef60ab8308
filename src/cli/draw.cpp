// SPDX-License-Identifier: Apache-2.0
#include "cli/draw.hpp"

#include <algorithm>
#include <cmath>

namespace tidegate::cli {
namespace {

/// log(1 + x) / x and (e^x - 1) / x, also where x is next to 0: an exponent near 1.
double LogRatio(double x) { return std::abs(x) > 1e-8 ? std::log1p(x) / x : 1 - x / 2; }
double ExpRatio(double x) { return std::abs(x) > 1e-8 ? std::expm1(x) / x : 1 + x / 2; }

}  // namespace

Draw::Draw(std::uint64_t count, double exponent, std::uint64_t seed)
    : count_(count), exponent_(exponent), random_(seed) {
  if (exponent_ <= 0) return;
  area_first_ = Area(1.5) - 1;
  area_last_ = Area(static_cast<double>(count_) + 0.5);
  shortcut_ = 2 - AreaInverse(Area(2.5) - Height(2));
}

double Draw::Height(double x) const { return std::exp(-exponent_ * std::log(x)); }

double Draw::Area(double x) const {
  const double log = std::log(x);
  return ExpRatio((1 - exponent_) * log) * log;
}

double Draw::AreaInverse(double area) const {
  // Rounding may carry it just beyond where the logarithm ends.
  return std::exp(LogRatio(std::max(area * (1 - exponent_), -1.0)) * area);
}

std::uint64_t Draw::Next() {
  if (exponent_ <= 0) return random_() % count_;
  std::uniform_real_distribution<double> share(0, 1);
  for (;;) {
    const double area = area_last_ + share(random_) * (area_first_ - area_last_);
    const double x = AreaInverse(area);
    const double k = std::clamp(std::floor(x + 0.5), 1.0, static_cast<double>(count_));
    if (k - x <= shortcut_ || area >= Area(k + 0.5) - Height(k)) {
      return static_cast<std::uint64_t>(k) - 1;
    }
  }
}

}  // namespace tidegate::cli
