// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace tidegate::bench {

/// `client_ip=10.0.0.0` and on.
[[nodiscard]] std::vector<std::string> Identities(std::uint32_t count);

/// The key of each next request, for ever. Drawn beforehand: drawing takes no time from what is
/// measured, and all who are compared get the same keys. Copies go on from where they are.
class Draws {
 public:
  /// Every one in turn.
  [[nodiscard]] static Draws Each(std::uint32_t keys);
  [[nodiscard]] static Draws Uniform(std::uint32_t keys);
  /// The k-th key with a probability in proportion to 1 / k^exponent.
  [[nodiscard]] static Draws Zipf(std::uint32_t keys, double exponent);
  [[nodiscard]] static Draws Only(std::uint32_t key) {
    return Draws(std::vector<std::uint32_t>{key});
  }

  std::uint32_t Next() noexcept {
    if (at_ == order_->size()) at_ = 0;
    return (*order_)[at_++];
  }

 private:
  explicit Draws(std::vector<std::uint32_t> order)
      : order_(std::make_shared<const std::vector<std::uint32_t>>(std::move(order))) {}

  std::shared_ptr<const std::vector<std::uint32_t>> order_;
  std::size_t at_ = 0;
};

}  // namespace tidegate::bench
