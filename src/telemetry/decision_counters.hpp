// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "telemetry/slot_table.hpp"
#include "tidegate/charge.hpp"
#include "tidegate/decision.hpp"

namespace tidegate {

/// Decisions of one reactor by rule, outcome and rung. One thread counts, any may read.
class DecisionCounters {
 public:
  /// The first four are for the rungs to answer; the others operators decided, and no rung was
  /// asked.
  enum class Outcome : std::uint8_t {
    kAllowed,
    kDenied,
    kShadowAllowed,
    kShadowDenied,
    kBanned,
    kExempted,
  };
  static constexpr std::size_t kOutcomes = 6;
  static constexpr std::size_t kRungs = 5;

  [[nodiscard]] static std::string_view Name(Outcome outcome) noexcept;
  [[nodiscard]] static constexpr bool HasRung(Outcome outcome) noexcept {
    return outcome < Outcome::kBanned;
  }
  [[nodiscard]] static constexpr Outcome OutcomeOf(Mode mode, const Decision& decision) noexcept {
    return static_cast<Outcome>((mode == Mode::kShadow ? 2u : 0u) + (decision.allowed ? 0u : 1u));
  }

  void Count(std::uint32_t slot, Outcome outcome, Rung rung) {
    table_.Add(slot, Cell(outcome, rung));
  }
  /// REQUIRES: !HasRung(outcome).
  void Count(std::uint32_t slot, Outcome outcome) { table_.Add(slot, Cell(outcome, {})); }

  /// Calls `see(outcome, rung, count)` for all of a rule's that are not 0; the rung means nothing
  /// where the outcome has none.
  template <class See>
  void Each(std::uint32_t slot, See&& see) const {
    for (std::size_t i = 0; i < kOutcomes; ++i) {
      const auto outcome = static_cast<Outcome>(i);
      for (std::size_t j = 0; j < (HasRung(outcome) ? kRungs : 1); ++j) {
        const auto rung = static_cast<Rung>(j);
        if (const std::uint64_t count = table_.Get(slot, Cell(outcome, rung))) {
          see(outcome, rung, count);
        }
      }
    }
  }

 private:
  static constexpr std::size_t kWithRung = 4;  ///< Outcomes.

  /// Those of one rung side by side: most have the first rung, and share a cache line.
  [[nodiscard]] static constexpr std::size_t Cell(Outcome outcome, Rung rung) noexcept {
    const auto number = static_cast<std::size_t>(outcome);
    return HasRung(outcome) ? static_cast<std::size_t>(rung) * kWithRung + number
                            : kRungs * kWithRung + (number - kWithRung);
  }

  SlotTable<kRungs * kWithRung + (kOutcomes - kWithRung)> table_;
};

}  // namespace tidegate
