// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/members.hpp"

namespace tidegate::cli {

/// `ban`, `allow` or `5,000/s, burst 200`: what an operator gave a key.
[[nodiscard]] std::string OverrideKind(const Members& entry);
/// All of it on one line: `ban by alice: scraping; 59 min 59 s left`.
[[nodiscard]] std::string OverrideText(const Members& entry);

}  // namespace tidegate::cli
