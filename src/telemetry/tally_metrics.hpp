// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "telemetry/exposition.hpp"
#include "telemetry/tally.hpp"

namespace tidegate {

/// What `/metrics` tells of all reactors' tallies beside their counters: how long decisions took,
/// and how hot the hottest keys are. By rank: a key's name is never a label, since their number has
/// no bound.
[[nodiscard]] std::vector<MetricFamily> TallyMetrics(std::span<const Tally* const> tallies);

}  // namespace tidegate
