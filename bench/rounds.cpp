// SPDX-License-Identifier: Apache-2.0
#include "rounds.hpp"

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <utility>

namespace tidegate::bench {

Turns::Turns(std::size_t count) : order_(count) { std::iota(order_.begin(), order_.end(), 0); }

const std::vector<std::size_t>& Turns::Next() {
  std::ranges::shuffle(order_, random_);
  return order_;
}

void ShowProgress(const std::string& label, int round, int rounds) {
  std::fprintf(stderr, "%s: round %d of %d%s", label.c_str(), round + 1, rounds,
               round + 1 == rounds ? "\n" : "\r");
}

double MedianOf(std::vector<double> values) {
  std::ranges::sort(values);
  return values.at(values.size() / 2);
}

double MedianRatio(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < a.size(); ++i) ratios.push_back(a[i] / b.at(i));
  return MedianOf(std::move(ratios));
}

}  // namespace tidegate::bench
