// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rules/config.hpp"

namespace tidegate {

/// Returns true if every request that `narrow` matches is certainly matched by `wide` too. False
/// may mean that this is hard to see: patterns of headers are compared as text, and `wide` must
/// cover each alternative of `narrow` with a single one of its own.
[[nodiscard]] bool Covers(const MatchSpec& wide, const MatchSpec& narrow);

/// Returns false if certainly no request matches both. True may mean that this is hard to see:
/// headers are taken to agree, and exceptions (`none`) count only if one excludes everything.
[[nodiscard]] bool Overlap(const MatchSpec& a, const MatchSpec& b);

}  // namespace tidegate
