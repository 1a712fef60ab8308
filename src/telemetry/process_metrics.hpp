// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "telemetry/metric_family.hpp"

namespace tidegate {

/// What every client library of Prometheus tells of a process, by the names that they all use. What
/// the system does not tell is left out.
[[nodiscard]] std::vector<MetricFamily> ProcessMetrics();

}  // namespace tidegate
