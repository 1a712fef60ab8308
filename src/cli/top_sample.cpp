// SPDX-License-Identifier: Apache-2.0
#include "cli/top_sample.hpp"

#include <utility>

namespace tidegate::cli {

Asked<TopSample> TakeSample(const AdminClient& client) {
  TopSample sample;
  auto status = client.Ask({"/v1/status"});
  if (!status) return std::unexpected(status.error());
  // The counts are of now; the other two only follow.
  sample.at = std::chrono::steady_clock::now();
  sample.wall = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::system_clock::now().time_since_epoch());
  auto rules = client.Ask({"/v1/rules"});
  if (!rules) return std::unexpected(rules.error());
  auto hot = client.Ask({"/v1/hot?limit=50"});
  if (!hot) return std::unexpected(hot.error());
  sample.status = std::move(status->object);
  sample.rules = std::move(rules->object);
  sample.hot = std::move(hot->object);
  return sample;
}

}  // namespace tidegate::cli
