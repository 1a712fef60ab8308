// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <ostream>

#include "tidegate/clock.hpp"
#include "tidegate/error.hpp"
#include "tidegate/quota.hpp"

namespace tidegate::cli {

inline constexpr std::int64_t kMaxDemoRequests = 10'000;

/// `tidegate demo`: one caller that asks again and again, at twice or more the
/// pace that its quota allows. The defaults make the six algorithms differ
/// within twelve requests.
struct DemoOptions {
  std::optional<Algorithm> algorithm = std::nullopt;  ///< None: all six, one after the other.
  std::int64_t limit = 3;
  Micros period = std::chrono::seconds{1};
  std::int64_t burst = 0;                         ///< Of the two buckets; 0: the limit.
  Micros every = std::chrono::milliseconds{100};  ///< Between two; 0 to 366 days.
  std::int64_t requests = 12;                     ///< 1 to kMaxDemoRequests.
};

/// Writes one table per algorithm. Runs in virtual time: it waits for nothing,
/// and the same options write the same text. Checks every quota before it
/// writes the first line; an Error is always a mistake in the options.
[[nodiscard]] Result<void> RunDemo(const DemoOptions& options, std::ostream& out);

}  // namespace tidegate::cli
