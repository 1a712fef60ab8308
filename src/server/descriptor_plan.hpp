// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "rules/config.hpp"

namespace tidegate {

/// How the file descriptors of a process are divided, so that clients cannot take those that health
/// checks, the store and log files need. The system always gives the lowest free number, so the
/// number of a new descriptor tells how many are in use.
struct DescriptorPlan {
  std::uint64_t limit = 0;  ///< Descriptors that the process may open; 0: unknown.
  int clients = 0;          ///< Clients of all listeners but admin get descriptors below this.
  int upstreams = 0;        ///< Connections to upstreams get descriptors below this.
  /// Clients of the admin listener get descriptors below this; when they have all of them, a new
  /// one replaces the oldest idle one.
  int admin = 0;

  /// Descriptors that clients of other listeners and connections to upstreams leave alone.
  [[nodiscard]] std::uint64_t reserved() const noexcept {
    return limit == 0 ? 0 : limit - static_cast<std::uint64_t>(upstreams);
  }
};

/// Reserves an eighth of `limit`, at least 16 and at most 256 descriptors: half of them for the
/// admin listener, half for the store and files. With a gateway a quarter of `limit` is for
/// connections to upstreams. A limit of 0 is unknown: nothing is reserved.
[[nodiscard]] DescriptorPlan PlanDescriptors(std::uint64_t limit, const Config& config) noexcept;

/// Returns the number of descriptors that the configured limits may need: one for each connection
/// of each listener, one to an upstream for each connection of the gateway, and the reserve.
[[nodiscard]] std::uint64_t DescriptorsNeeded(const Config& config) noexcept;

}  // namespace tidegate
