// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/admin_client.hpp"
#include "cli/whom.hpp"

namespace tidegate::cli {

struct InspectOptions {
  AskOptions ask = {};
  Whom whom = {};
};

/// `tidegate inspect`: what is stored for a key. Returns an exit code.
[[nodiscard]] int Inspect(const InspectOptions& options, const Console& console);

}  // namespace tidegate::cli
