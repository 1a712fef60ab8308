// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <random>
#include <string>
#include <vector>

namespace tidegate::bench {

/// Number and length of the rounds in which the sides are measured in turns. Many short rounds,
/// since a shared machine is slower for moments, and a ratio should not span such a change.
struct Rounds {
  int count;
  double seconds;  ///< Duration of each side in each round.
};

/// The numbers below `count` in another order for each round; the orders are the same in every run.
/// A side that always followed the same one would inherit its effects, such as the state of a core.
class Turns {
 public:
  explicit Turns(std::size_t count);
  const std::vector<std::size_t>& Next();

 private:
  std::vector<std::size_t> order_;
  std::mt19937 random_{1};
};

void ShowProgress(const std::string& label, int round, int rounds);

[[nodiscard]] double MedianOf(std::vector<double> values);
/// Returns the median of the ratios of the rounds: both sides of a ratio are measured within the
/// same seconds.
[[nodiscard]] double MedianRatio(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace tidegate::bench
