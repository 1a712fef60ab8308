// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "rules/match_spec.hpp"
#include "rules/request_view.hpp"

namespace tidegate {

/// Returns why `spec` does not match `request`, in words for people; empty: it matches. Checks one
/// condition after the other, slowly and plainly; MatchIndex must agree with it. Shows the values
/// of the configuration (header patterns as ShownPattern returns them), and of the request neither
/// headers nor cookies nor the query, because some of them are secrets.
[[nodiscard]] std::string WhyNot(const MatchSpec& spec, const RequestView& request);

/// Returns a header's pattern as the configuration has it: `gold`, or `${VARIABLE}` if the pattern
/// came from the environment. Returns `(not shown)` if the name of the header is that of a
/// credential, such as `authorization` or `x-api-key`.
[[nodiscard]] std::string ShownPattern(const MatchSpec::Header& header);

}  // namespace tidegate
