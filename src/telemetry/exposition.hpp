// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "telemetry/decision_counters.hpp"
#include "tidegate/store.hpp"

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

/// Everything that `/metrics` tells, gathered at one moment.
struct Snapshot {
  std::string version;
  std::vector<std::string> rule_names;                 ///< By slot.
  std::span<const DecisionCounters* const> decisions;  ///< One per reactor.
  StoreStats store;
  std::uint64_t rules = 0;
  std::uint64_t reloads = 0;
  std::uint64_t failed_reloads = 0;
  double last_reload_seconds = 0;  ///< Since the epoch.
  struct Door {
    std::string name;
    std::uint64_t accepted = 0;
    std::uint64_t open = 0;
    std::uint64_t shed = 0;
    std::uint64_t requests = 0;
    std::uint64_t refused = 0;
  };
  std::vector<Door> doors;
  std::vector<MetricFamily> more;
};

/// The Prometheus text format, version 0.0.4.
[[nodiscard]] std::string Expose(const Snapshot& snapshot);

}  // namespace tidegate
