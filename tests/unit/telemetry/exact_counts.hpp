// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "telemetry/hot_keys.hpp"

namespace tidegate {

/// Keys are numbers. These functions return the slot and the name of a key in reports.
inline std::uint32_t SlotOf(std::uint64_t key) { return static_cast<std::uint32_t>(key % 2); }
inline std::string NameOf(std::uint64_t key) { return "client_ip=" + std::to_string(key); }

/// Counts every key exactly, for comparison with reports.
class ExactCounts {
 public:
  void Add(std::uint64_t key, std::uint64_t weight) {
    counts_[key] += weight;
    total_ += weight;
  }

  /// Checks for every key that the list's bounds contain its exact count.
  void ExpectBounds(const HotList& list) const {
    EXPECT_EQ(list.total, total_);
    std::map<std::pair<std::uint32_t, std::string>, const HotKey*> listed;
    for (const HotKey& key : list.keys) {
      EXPECT_TRUE(listed.emplace(std::pair(key.slot, key.identity), &key).second) << "twice";
      EXPECT_LE(key.error, key.count);
    }
    EXPECT_TRUE(std::is_sorted(list.keys.begin(), list.keys.end(),
                               [](const HotKey& a, const HotKey& b) { return a.count > b.count; }));
    for (const auto& [key, count] : counts_) {
      if (count > list.error) {
        ASSERT_TRUE(listed.contains({SlotOf(key), NameOf(key)})) << key << " is missing";
      }
    }
    for (const auto& [name, shown] : listed) {
      const auto number = std::stoull(name.second.substr(name.second.find('=') + 1));
      EXPECT_EQ(name, std::pair(SlotOf(number), NameOf(number)));
      const auto found = counts_.find(number);
      const std::uint64_t count = found == counts_.end() ? 0 : found->second;
      EXPECT_LE(count, shown->count) << number;
      EXPECT_GE(count, shown->count - shown->error) << number;
    }
  }

  /// Returns the names of the `most` heaviest keys, the heaviest first.
  [[nodiscard]] std::vector<std::string> Top(std::size_t most) const {
    std::vector<std::pair<std::uint64_t, std::string>> all;
    for (const auto& [key, count] : counts_) all.emplace_back(count, NameOf(key));
    std::sort(all.rbegin(), all.rend());
    std::vector<std::string> names;
    for (std::size_t i = 0; i < std::min(most, all.size()); ++i) names.push_back(all[i].second);
    return names;
  }

 private:
  std::unordered_map<std::uint64_t, std::uint64_t> counts_;
  std::uint64_t total_ = 0;
};

/// Draws random numbers below `keys`, where k has a probability in proportion to 1 / (k +
/// 1)^exponent.
class ZipfNumbers {
 public:
  ZipfNumbers(std::uint32_t keys, double exponent) : up_to_(keys) {
    double sum = 0;
    for (std::uint32_t k = 0; k < keys; ++k) up_to_[k] = sum += std::pow(k + 1.0, -exponent);
  }
  template <class Random>
  std::uint32_t operator()(Random& random) const {
    const double where = std::uniform_real_distribution<double>(0, up_to_.back())(random);
    const auto found = std::lower_bound(up_to_.begin(), up_to_.end(), where);
    return static_cast<std::uint32_t>(std::min<std::ptrdiff_t>(
        found - up_to_.begin(), static_cast<std::ptrdiff_t>(up_to_.size()) - 1));
  }

 private:
  std::vector<double> up_to_;
};

}  // namespace tidegate
