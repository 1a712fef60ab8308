// SPDX-License-Identifier: Apache-2.0
#include "redis_draws.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

namespace tidegate::bench {
namespace {

constexpr std::size_t kDrawn = 1u << 20;

}  // namespace

std::vector<std::string> Identities(std::uint32_t count) {
  std::vector<std::string> identities;
  identities.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    std::string address = "10";
    for (const unsigned shift : {16u, 8u, 0u}) {
      address.append(".").append(std::to_string(i >> shift & 255u));
    }
    identities.push_back("client_ip=" + address);
  }
  return identities;
}

Draws Draws::Each(std::uint32_t keys) {
  std::vector<std::uint32_t> order(keys);
  std::iota(order.begin(), order.end(), 0u);
  return Draws(std::move(order));
}

Draws Draws::Uniform(std::uint32_t keys) {
  std::vector<std::uint32_t> order(kDrawn);
  std::mt19937 random(1);
  std::uniform_int_distribution<std::uint32_t> which(0, keys - 1);
  for (std::uint32_t& key : order) key = which(random);
  return Draws(std::move(order));
}

Draws Draws::Zipf(std::uint32_t keys, double exponent) {
  std::vector<double> up_to(keys);
  double sum = 0;
  for (std::uint32_t k = 0; k < keys; ++k) {
    sum += std::pow(k + 1.0, -exponent);
    up_to[k] = sum;
  }
  std::vector<std::uint32_t> order(kDrawn);
  std::mt19937 random(1);
  std::uniform_real_distribution<double> where(0, sum);
  for (std::uint32_t& key : order) {
    const auto found = std::ranges::lower_bound(up_to, where(random));
    key = std::min(static_cast<std::uint32_t>(found - up_to.begin()), keys - 1);
  }
  return Draws(std::move(order));
}

}  // namespace tidegate::bench
