// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace tidegate::test {

/// The mark of an expectation that a busy machine can miss although the program is right: how long
/// something took, that it came in time at all, or that no call met its deadline and was left to a
/// failure policy. Stream it into the expectation.
///
/// `./dev test` tries a failed test once more only if every failure in it has this mark. So an
/// expectation about what was admitted, charged, counted or stored must never have it.
inline constexpr std::string_view kTiming = "[timing] ";

}  // namespace tidegate::test
