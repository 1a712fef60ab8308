// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <random>
#include <string>
#include <vector>

namespace tidegate::bench {

/// Who is measured takes turns: many and short ones, since a shared machine is slower for moments,
/// which a ratio should not span.
struct Rounds {
  int count;
  double seconds;  ///< Of each side in each.
};

/// The numbers below `count` in another order each time, the same in every run: who always came
/// after the same one would inherit what that leaves, as a core on which others have stayed
/// meanwhile.
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
/// The median of the rounds' ratios: both were measured within the same seconds.
[[nodiscard]] double MedianRatio(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace tidegate::bench
