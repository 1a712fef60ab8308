// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gateway/member.hpp"
#include "rules/gateway_spec.hpp"

namespace tidegate {

/// What an attempt at a member came to, as far as the member is to blame.
enum class AttemptResult : std::uint8_t { kGood, kBad };

/// Notes it, and ejects the member that has failed too often in a row, for longer each time, as
/// long as enough others are left. True: it was ejected now.
bool NoteAttempt(Member& member, AttemptResult result, const UpstreamSpec::Ejection& ejection,
                 const Members& all, Member::Clock::time_point now) noexcept;

}  // namespace tidegate
