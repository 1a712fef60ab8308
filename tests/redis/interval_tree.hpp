// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

namespace tidegate::redis_test {

/// An array of numbers with two operations: add to all numbers from a place on, and find the
/// largest number from a place on. Both take logarithmic time, so that every interval of a million
/// admissions is checked in a second.
template <typename Number>
class IntervalTree {
 public:
  explicit IntervalTree(const std::vector<Number>& numbers)
      : leaves_(std::bit_ceil(std::max<std::size_t>(1, numbers.size()))),
        most_(2 * leaves_, std::numeric_limits<Number>::lowest()),
        added_(2 * leaves_, Number{}) {
    std::copy(numbers.begin(), numbers.end(), most_.begin() + static_cast<std::ptrdiff_t>(leaves_));
    for (std::size_t node = leaves_ - 1; node >= 1; --node) Gather(node);
  }

  /// Adds `amount` to the number at `place` and to all numbers after it.
  void Add(std::size_t place, Number amount) {
    std::size_t node = leaves_ + place;
    AddTo(node, amount);
    for (; node > 1; node /= 2) {
      if (node % 2 == 0) AddTo(node + 1, amount);
      Gather(node / 2);
    }
  }

  /// Returns the largest number at `place` or after it, and its place.
  [[nodiscard]] std::pair<Number, std::size_t> MostFrom(std::size_t place) const {
    std::size_t node = leaves_ + place;
    Number most = most_[node];
    std::size_t found = node;
    for (; node > 1; node /= 2) {
      if (node % 2 == 0 && most_[node + 1] > most) {
        most = most_[node + 1];
        found = node + 1;
      }
      most += added_[node / 2];
    }
    while (found < leaves_)
      found = most_[2 * found] >= most_[2 * found + 1] ? 2 * found : 2 * found + 1;
    return {most, found - leaves_};
  }

  [[nodiscard]] Number At(std::size_t place) const {
    std::size_t node = leaves_ + place;
    Number value = most_[node];
    while ((node /= 2) >= 1) value += added_[node];
    return value;
  }

 private:
  void AddTo(std::size_t node, Number amount) {
    most_[node] += amount;
    if (node < leaves_) added_[node] += amount;
  }
  /// Recomputes the maximum of a node. `added_` of a node applies to all leaves below it and is
  /// already part of its own `most_`.
  void Gather(std::size_t node) {
    most_[node] = std::max(most_[2 * node], most_[2 * node + 1]) + added_[node];
  }

  std::size_t leaves_;
  std::vector<Number> most_;
  std::vector<Number> added_;
};

}  // namespace tidegate::redis_test
