// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "gateway/gateway.hpp"
#include "limiter/guard.hpp"
#include "store/redis/heartbeat.hpp"
#include "telemetry/exposition.hpp"

namespace tidegate {

/// What all reactors' ways to Redis have done, and what is known of the fleet.
[[nodiscard]] std::vector<MetricFamily> RedisMetrics(std::span<const Guard* const> guards,
                                                     const redis::Fleet& fleet);

/// Decisions that failure policies made instead of the store, by policy and reason.
[[nodiscard]] std::vector<MetricFamily> FailureMetrics(std::span<const Guard* const> guards);

/// What the gateways of all reactors have counted, and the state of the upstreams' members.
[[nodiscard]] std::vector<MetricFamily> GatewayMetrics(std::span<const Gateway* const> gateways,
                                                       const std::vector<std::string>& routes,
                                                       const std::vector<std::string>& upstreams,
                                                       const Upstreams& members,
                                                       const AccessLog* log);

}  // namespace tidegate
