// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/members.hpp"

namespace tidegate::cli {

/// Returns the conditions of a rule or an entry, as the admin API reports them, in the order in
/// which a request is read: `GET, POST api.example.com /v1/** not (/v1/health)`.
[[nodiscard]] std::string MatchText(const Members& match);

}  // namespace tidegate::cli
