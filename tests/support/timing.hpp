// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace tidegate::test {

/// Marks an expectation that can fail on a busy machine although the program is correct: an
/// expectation about a duration, about an arrival in time, or that no call exceeded its deadline
/// and was left to a failure policy. Stream this text into the expectation.
///
/// `./dev test` repeats a failed test once only if every failure in it has this mark. An
/// expectation about what was admitted, charged, counted or stored must never have the mark.
inline constexpr std::string_view kTiming = "[timing] ";

}  // namespace tidegate::test
