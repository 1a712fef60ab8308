// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "cli/admin_client.hpp"

namespace tidegate::cli {

struct DecideOptions {
  AskOptions ask = {};  ///< The API, not admin.
  std::string rule = {};
  std::string identity = {};
  std::int64_t cost = 0;  ///< 0: the rule's own.
  bool peek = false;
};

/// `tidegate decide`: asks a running server. Returns an exit code: 0 allowed, 1 denied, 2 a
/// question without sense, 3 no answer.
[[nodiscard]] int Decide(const DecideOptions& options, const Console& console);

}  // namespace tidegate::cli
