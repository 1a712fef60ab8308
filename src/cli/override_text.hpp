// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/members.hpp"

namespace tidegate::cli {

/// `ban`, `allow` or `quota 5,000/s, burst 200`: what a key was given.
[[nodiscard]] std::string OverrideKind(const Members& entry);
/// `by an operator`, or `by the configuration`.
[[nodiscard]] std::string OverrideGiver(const Members& entry);
/// All of it on one line: `ban by alice: scraping; 59 min 59 s left`; of one that stands in the
/// configuration, `by the configuration: 5000/s, burst 10,000`.
[[nodiscard]] std::string OverrideText(const Members& entry);
/// The same for one that is over: `ban by alice: scraping, until 2024-01-31 09:05:07Z`.
[[nodiscard]] std::string EndedOverrideText(const Members& entry);

}  // namespace tidegate::cli
