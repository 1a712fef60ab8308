// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/admin_client.hpp"

namespace tidegate::cli {

/// `tidegate status`: how a node is, since its start. Returns an exit code.
[[nodiscard]] int Status(const AskOptions& options, const Console& console);

}  // namespace tidegate::cli
