// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <numeric>
#include <random>
#include <string>
#include <string_view>
#include <vector>

/// Identities such as `user-0000012345`, in a random order, stored one after the other. Walking
/// them reads memory sequentially, so only the table of the store causes cache misses, as in a
/// server that has just received the identity in a buffer.
class Keys {
 public:
  /// Stores each of `distinct` identities once per round, shuffled in each round.
  Keys(std::size_t distinct, int rounds) {
    std::vector<std::uint32_t> order(distinct);
    std::iota(order.begin(), order.end(), 0U);
    std::mt19937_64 random(1);
    text_.reserve(distinct * static_cast<std::size_t>(rounds));
    for (int round = 0; round < rounds; ++round) {
      std::shuffle(order.begin(), order.end(), random);
      for (const std::uint32_t id : order) {
        text_.emplace_back();
        std::snprintf(text_.back().data(), kSize + 1, "user-%010u", id);
      }
    }
  }

  [[nodiscard]] std::size_t size() const noexcept { return text_.size(); }
  [[nodiscard]] std::string_view operator[](std::size_t i) const noexcept {
    return {text_[i].data(), kSize};
  }

 private:
  static constexpr std::size_t kSize = 15;
  std::vector<std::array<char, kSize + 1>> text_;
};
