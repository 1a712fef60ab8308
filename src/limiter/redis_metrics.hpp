// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "limiter/guard.hpp"
#include "store/redis/heartbeat.hpp"
#include "telemetry/metric_family.hpp"

namespace tidegate {

/// Metrics of the connections of all reactors to Redis, and of the fleet.
[[nodiscard]] std::vector<MetricFamily> RedisMetrics(std::span<const Guard* const> guards,
                                                     const redis::Fleet& fleet);

/// Decisions that failure policies made instead of the store, by policy and reason.
[[nodiscard]] std::vector<MetricFamily> FailureMetrics(std::span<const Guard* const> guards);

}  // namespace tidegate
