// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tidegate/clock.hpp"

namespace tidegate {

/// What a step does to the stored state.
enum class Effect : std::uint8_t {
  kNone,      ///< Nothing is written, because the step is a denial or a peek.
  kCharged,   ///< Something was admitted, debited or given back.
  kRepaired,  ///< A stored time was impossibly far in the future; even a denial corrects it.
};

/// The result of a step on `count` identical requests: the first `admitted` of them pass, exactly
/// as if each request were a step of its own.
struct Outcome {
  std::int64_t admitted = 0;
  std::int64_t remaining = 0;  ///< Whole units left after the admitted ones.
  /// The time until one more such request passes. Set if not all requests were admitted, and for a
  /// peek (count 0); zero if the request would pass at once.
  Micros retry_after{0};
  Micros more_after{0};   ///< The time until `remaining` grows; zero when fully recovered.
  Micros reset_after{0};  ///< The time until fully recovered.
  bool never = false;     ///< The cost is above the capacity.
  Effect effect = Effect::kNone;

  friend bool operator==(const Outcome&, const Outcome&) = default;
};

/// The outcome of a step and the state after it. REQUIRES for every step:
/// 1 <= cost <= kMaxCost, 0 <= count <= kMaxCount, and the quota has the step's algorithm.
template <class State>
struct Stepped {
  State next;
  Outcome outcome;
};

}  // namespace tidegate
