// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rules/config.hpp"

namespace tidegate {

/// Whether every request that `narrow` matches is surely matched by `wide` too. Patterns of headers
/// are compared as text: a `no` may be a `yes` that is hard to see.
[[nodiscard]] bool Covers(const MatchSpec& wide, const MatchSpec& narrow);

/// Whether one request could match both. Headers are taken to agree: a `yes` may be a `no`.
[[nodiscard]] bool Overlap(const MatchSpec& a, const MatchSpec& b);

}  // namespace tidegate
