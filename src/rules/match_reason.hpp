// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "rules/match_spec.hpp"
#include "rules/request_view.hpp"

namespace tidegate {

/// Why `spec` does not apply to `request`, in words for people; empty: it does. One condition after
/// the other, slow and obvious: what MatchIndex must agree with. Values of headers stay unsaid,
/// since some of them are secrets.
[[nodiscard]] std::string WhyNot(const MatchSpec& spec, const RequestView& request);

/// A header's pattern as it may be shown: of any but a few well-known ones it may be of a key.
[[nodiscard]] std::string ShownPattern(const MatchSpec::Header& header);

}  // namespace tidegate
