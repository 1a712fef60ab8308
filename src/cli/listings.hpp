// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "cli/admin_client.hpp"

namespace tidegate::cli {

/// The commands that only list what a server tells. Each returns an exit code.

struct HotOptions {
  AskOptions ask = {};
  std::string by = "requests";  ///< Or `denials`, or `cost`.
  std::int64_t limit = 20;
};
struct AuditOptions {
  AskOptions ask = {};
  std::int64_t limit = 100;
};

[[nodiscard]] int ListRules(const AskOptions& options, const Console& console);
[[nodiscard]] int ListOverrides(const AskOptions& options, const Console& console);
[[nodiscard]] int ListHot(const HotOptions& options, const Console& console);
[[nodiscard]] int ListAudit(const AuditOptions& options, const Console& console);

}  // namespace tidegate::cli
