// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "rules/config.hpp"

namespace tidegate::cli {

/// Raises the limit of open file descriptors as far as the system permits, because each connection
/// needs one. Returns the new limit; 0 if it is unknown.
[[nodiscard]] std::uint64_t RaiseDescriptors();

/// Logs that `limit` descriptors are too few for the connections that the configuration permits: as
/// a warning if limits.connections differs from its default or `limit` is below 4,096, otherwise as
/// information.
void ReportFewDescriptors(std::uint64_t limit, const Config& config);

}  // namespace tidegate::cli
