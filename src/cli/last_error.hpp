// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/members.hpp"

namespace tidegate::cli {

/// Why the store last failed: `last error wrongpass 1 s ago: WRONGPASS invalid username...`.
[[nodiscard]] std::string LastErrorText(const Members& error);

}  // namespace tidegate::cli
