// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/members.hpp"

namespace tidegate::cli {

/// Returns the quota of a rule, a key or an override as the server describes it: `100/s, burst 200`
/// or `2 at once, lease 30s`. Older servers report only its limit.
[[nodiscard]] inline std::string QuotaOf(const Members& entry) {
  return entry.Text(entry.Has("quota") ? "quota" : "limit");
}

}  // namespace tidegate::cli
