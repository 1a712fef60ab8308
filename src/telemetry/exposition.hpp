// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "telemetry/decision_counters.hpp"
#include "telemetry/metric_family.hpp"
#include "tidegate/store.hpp"

namespace tidegate {

/// Everything that `/metrics` tells, gathered at one moment.
struct MetricsReport {
  std::string version;
  std::vector<std::string> rule_names;                 ///< By slot.
  std::span<const DecisionCounters* const> decisions;  ///< One per reactor.
  StoreStats store;
  std::uint64_t store_max_entries = 0;
  std::uint64_t store_max_list_bytes = 0;
  std::uint64_t reactors = 0;
  std::uint64_t rules = 0;
  std::uint64_t reloads = 0;
  std::uint64_t failed_reloads = 0;
  double last_reload_seconds = 0;  ///< Since the epoch.
  bool last_reload_refused = false;
  static constexpr std::array<std::string_view, 3> kShedReasons = {"connections", "address",
                                                                   "descriptors"};
  struct Door {
    std::string name;
    std::uint64_t accepted = 0;
    std::uint64_t open = 0;
    /// Connections closed right after they were accepted, by kShedReasons.
    std::array<std::uint64_t, 3> shed{};
    std::uint64_t requests = 0;
    std::uint64_t refused = 0;
    /// Answers by class of status, 1xx to 5xx, where the door has such.
    std::optional<std::array<std::uint64_t, 5>> responses = {};
  };
  std::vector<Door> doors;
  std::vector<MetricFamily> more;
};

/// The Prometheus text format, version 0.0.4.
[[nodiscard]] std::string Expose(const MetricsReport& report);

}  // namespace tidegate
