// SPDX-License-Identifier: Apache-2.0
#include "gateway/balancer.hpp"

#include <algorithm>
#include <utility>

namespace tidegate {

void Balancer::Use(const Members& members) {
  std::vector<Seat> seats;
  for (const auto& member : members) {
    const auto known = std::ranges::find(seats_, member, &Seat::member);
    seats.push_back({member, known == seats_.end() ? 0 : known->credit});
  }
  seats_ = std::move(seats);
}

bool Balancer::Claim(Member& member) const noexcept {
  const std::uint32_t before = member.active.fetch_add(1, std::memory_order_relaxed);
  if (max_requests_ == 0 || before < max_requests_) return true;
  member.active.fetch_sub(1, std::memory_order_relaxed);
  return false;
}

/// Round robin: every seat earns its weight, the richest pays the sum of all that took part, so
/// that turns of a heavy one lie apart. Least requests: the one with the fewest for its weight,
/// ties in turn.
std::size_t Balancer::Next(std::span<const Member* const> avoided, Member::Clock::time_point now,
                           bool& full) {
  std::size_t best = kNone;
  std::int64_t total = 0;
  std::uint64_t fewest = 0;
  for (std::size_t i = 0; i < seats_.size(); ++i) {
    const std::size_t place =
        balance_ == UpstreamSpec::Balance::kLeastRequests ? (turn_ + i) % seats_.size() : i;
    Seat& seat = seats_[place];
    const Member& member = *seat.member;
    if (!member.Up(now) || std::ranges::find(avoided, &member) != avoided.end()) continue;
    const std::uint64_t active = member.active.load(std::memory_order_relaxed);
    if (max_requests_ != 0 && active >= max_requests_) {
      full = true;
      continue;
    }
    if (balance_ == UpstreamSpec::Balance::kLeastRequests) {
      // As fractions with the same denominator: (active + 1) / weight.
      const std::uint64_t load =
          (active + 1) * 1'000'000 / static_cast<std::uint64_t>(member.weight);
      if (best == kNone || load < fewest) {
        best = place;
        fewest = load;
      }
      continue;
    }
    seat.credit += member.weight;
    total += member.weight;
    if (best == kNone || seat.credit > seats_[best].credit) best = place;
  }
  if (best == kNone) return kNone;
  if (balance_ == UpstreamSpec::Balance::kRoundRobin) seats_[best].credit -= total;
  turn_ = best + 1;
  return best;
}

Balancer::Picked Balancer::Pick(std::span<const Member* const> tried,
                                Member::Clock::time_point now) {
  bool full = false;
  for (const auto avoided : {tried, std::span<const Member* const>{}}) {
    // Another reactor may have taken the last place of one: then the next.
    for (std::size_t i = 0; i < seats_.size(); ++i) {
      const std::size_t index = Next(avoided, now, full);
      if (index == kNone) break;
      if (Claim(*seats_[index].member)) return {index, {}};
      full = true;
    }
    if (tried.empty()) break;
  }
  return {kNone, full ? Lack::kFull : Lack::kDown};
}

}  // namespace tidegate
