// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/json.hpp>

#include "rules/match_spec.hpp"

namespace tidegate {

/// Returns the conditions of a rule, or of an entry of `deny` or `exempt`, as the configuration has
/// them. Patterns of headers that carry credentials are not shown.
[[nodiscard]] boost::json::object MatchJson(const MatchSpec& match);

}  // namespace tidegate
