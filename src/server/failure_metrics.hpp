// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "limiter/guard.hpp"
#include "telemetry/metric_family.hpp"

namespace tidegate {

/// What failure policies decided, and why. There from the start, with zeros, and without guards
/// too: an alert on something that is not there would never tell.
[[nodiscard]] std::vector<MetricFamily> FailureMetrics(std::span<const Guard* const> guards);

}  // namespace tidegate
