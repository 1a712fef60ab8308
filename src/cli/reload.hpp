// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/admin_client.hpp"

namespace tidegate::cli {

/// `tidegate reload`: has a server read its configuration again, and waits until it is in force.
/// Returns an exit code: kUsage where it has errors.
[[nodiscard]] int Reload(const AskOptions& options, const Console& console);

}  // namespace tidegate::cli
