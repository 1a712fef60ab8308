// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "rules/match_spec.hpp"
#include "rules/request_view.hpp"

namespace tidegate {

/// Returns why `spec` does not match `request`, in words for people; empty: it matches. Checks one
/// condition after the other, slowly and plainly; MatchIndex must agree with it. Values of headers
/// are left out, because some of them are secrets.
[[nodiscard]] std::string WhyNot(const MatchSpec& spec, const RequestView& request);

/// A header's pattern as it may be shown: of any but a few well-known ones it may be of a key.
[[nodiscard]] std::string ShownPattern(const MatchSpec::Header& header);

}  // namespace tidegate
