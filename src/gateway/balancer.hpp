// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gateway/member.hpp"
#include "rules/gateway_spec.hpp"

namespace tidegate {

/// Chooses among the members of an upstream, for one reactor. No I/O.
class Balancer {
 public:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  /// Why there was none.
  enum class Lack : std::uint8_t { kDown, kFull };
  struct Picked {
    std::size_t index = kNone;
    Lack lack = Lack::kDown;
  };

  Balancer(UpstreamSpec::Balance balance, std::size_t max_requests) noexcept
      : balance_(balance), max_requests_(max_requests) {}

  /// Others from now on; those that stay keep their place in the round.
  void Use(const Members& members);

  /// The next one that is up and has room, its `active` counted up already. Those in `tried` only
  /// if there is no other.
  [[nodiscard]] Picked Pick(std::span<const Member* const> tried, Member::Clock::time_point now);

 private:
  struct Seat {
    std::shared_ptr<Member> member;
    std::int64_t credit = 0;  ///< Of the weighted round.
  };
  [[nodiscard]] std::size_t Next(std::span<const Member* const> avoided,
                                 Member::Clock::time_point now, bool& full);
  [[nodiscard]] bool Claim(Member& member) const noexcept;

  const UpstreamSpec::Balance balance_;
  const std::size_t max_requests_;
  std::size_t turn_ = 0;
  std::vector<Seat> seats_;
};

}  // namespace tidegate
