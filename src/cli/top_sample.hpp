// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/json.hpp>
#include <chrono>

#include "cli/admin_client.hpp"

namespace tidegate::cli {

/// What a server told about itself at one time.
struct TopSample {
  std::chrono::steady_clock::time_point at = {};
  std::chrono::milliseconds wall = {};  ///< Since the epoch.
  boost::json::object status = {};
  boost::json::object rules = {};
  boost::json::object hot = {};
};

/// Asks for all three, one after the other.
[[nodiscard]] Asked<TopSample> TakeSample(const AdminClient& client);

}  // namespace tidegate::cli
