// SPDX-License-Identifier: Apache-2.0
#include "gateway/ejection.hpp"

#include <algorithm>

namespace tidegate {
namespace {

/// A member that keeps failing is tried again after five minutes at the latest.
constexpr std::chrono::minutes kLongest{5};

/// Whether one more may go: at most the share that the configuration allows, and never the last.
bool MayEject(const UpstreamSpec::Ejection& ejection, const Members& all,
              Member::Clock::time_point now) noexcept {
  const auto ejected = static_cast<std::size_t>(std::ranges::count_if(
      all, [now](const std::shared_ptr<Member>& member) { return member->Ejected(now); }));
  const auto down = static_cast<std::size_t>(std::ranges::count_if(
      all, [now](const std::shared_ptr<Member>& member) { return !member->Up(now); }));
  if (down + 1 >= all.size()) return false;
  return (ejected + 1) * 100 <= all.size() * static_cast<std::size_t>(ejection.percent);
}

}  // namespace

bool NoteAttempt(Member& member, AttemptResult result, const UpstreamSpec::Ejection& ejection,
                 const Members& all, Member::Clock::time_point now) noexcept {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  if (ejection.failures == 0) return false;
  if (result == AttemptResult::kGood) {
    // Usually both are zero: then nothing is written, and no cache line travels.
    if (member.failures.load(kRelaxed) != 0) member.failures.store(0, kRelaxed);
    if (member.ejections.load(kRelaxed) != 0 && !member.Ejected(now)) {
      member.ejections.store(0, kRelaxed);
    }
    return false;
  }
  const auto threshold = static_cast<std::uint32_t>(ejection.failures);
  if (member.failures.fetch_add(1, kRelaxed) + 1 < threshold) return false;
  if (member.Ejected(now) || !MayEject(ejection, all, now)) return false;
  const std::uint32_t times = member.ejections.fetch_add(1, kRelaxed) + 1;
  const auto time = std::min<std::chrono::nanoseconds>(ejection.time * times, kLongest);
  member.ejected_until.store((now + time).time_since_epoch().count(), kRelaxed);
  // Back again it is on probation: one failure is enough.
  member.failures.store(threshold - 1, kRelaxed);
  return true;
}

}  // namespace tidegate
