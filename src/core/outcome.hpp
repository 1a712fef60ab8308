// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tidegate/clock.hpp"

namespace tidegate {

/// What a step does to the stored state.
enum class Effect : std::uint8_t {
  kNone,      ///< Nothing: a denial or a look.
  kCharged,   ///< Something was admitted, debited or given back.
  kRepaired,  ///< A stored time was impossibly far ahead: written even with a denial.
};

/// What a step found out. `count` identical requests were asked for; the first
/// `admitted` of them pass, exactly as that many single steps would.
struct Outcome {
  std::int64_t admitted = 0;
  std::int64_t remaining = 0;  ///< Whole units left after the admitted ones.
  /// Until one more such request passes. Set when not all were admitted, and
  /// for a look (count 0); zero if it would pass at once.
  Micros retry_after{0};
  Micros more_after{0};   ///< Until `remaining` is larger; zero when fully recovered.
  Micros reset_after{0};  ///< Until fully recovered.
  bool never = false;     ///< The cost is above the capacity.
  Effect effect = Effect::kNone;

  friend bool operator==(const Outcome&, const Outcome&) = default;
};

/// A step's answer and the state after it. REQUIRES of every step:
/// 1 <= cost <= kMaxCost, 0 <= count <= kMaxCount, a quota of its algorithm.
template <class State>
struct Stepped {
  State next;
  Outcome outcome;
};

}  // namespace tidegate
