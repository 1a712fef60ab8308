// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace tidegate::bench {

/// Returns the identities `client_ip=10.0.0.0`, `client_ip=10.0.0.1` and so on.
[[nodiscard]] std::vector<std::string> Identities(std::uint32_t count);

/// An endless sequence of keys for requests. The keys are drawn in advance, so that drawing takes
/// no time during the measurement and all compared sides get the same keys. A copy continues from
/// the current position.
class Draws {
 public:
  /// Returns a sequence with every key in turn.
  [[nodiscard]] static Draws Each(std::uint32_t keys);
  [[nodiscard]] static Draws Uniform(std::uint32_t keys);
  /// Returns a sequence in which the k-th key has a probability in proportion to 1 / k^exponent.
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
