// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tidegate {

/// Values of one name, for what only some servers have.
struct MetricFamily {
  enum class Type : std::uint8_t { kCounter, kGauge, kHistogram };
  struct Value {
    double value = 0;
    std::vector<std::pair<std::string_view, std::string>> labels = {};
    std::string_view suffix = {};  ///< `_bucket`, `_sum` or `_count` of a histogram.
  };
  std::string_view name;
  std::string_view help;
  Type type = Type::kCounter;
  std::vector<Value> values;
};

}  // namespace tidegate
