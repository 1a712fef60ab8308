// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "gateway/gateway.hpp"
#include "telemetry/metric_family.hpp"

namespace tidegate {

/// Metrics of the gateways of all reactors, and the state of the upstreams' members.
[[nodiscard]] std::vector<MetricFamily> GatewayMetrics(std::span<const Gateway* const> gateways,
                                                       const std::vector<std::string>& routes,
                                                       const std::vector<std::string>& upstreams,
                                                       const Upstreams& members,
                                                       const AccessLog* log);

}  // namespace tidegate
