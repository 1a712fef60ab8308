// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "telemetry/slot_table.hpp"
#include "tidegate/charge.hpp"
#include "tidegate/decision.hpp"

namespace tidegate {

/// Decisions of one reactor by rule, outcome and who decided. One thread counts, any may read.
class DecisionCounters {
 public:
  /// Operators decide the last two, and nobody else does.
  enum class Outcome : std::uint8_t {
    kAllowed,
    kDenied,
    kShadowAllowed,
    kShadowDenied,
    kBanned,
    kExempted,
  };
  static constexpr std::size_t kOutcomes = 6;

  [[nodiscard]] static std::string_view Name(Outcome outcome) noexcept;
  [[nodiscard]] static constexpr Outcome OutcomeOf(Mode mode, const Decision& decision) noexcept {
    if (decision.decided_by == DecidedBy::kOperator) [[unlikely]]
      return decision.allowed ? Outcome::kExempted : Outcome::kBanned;
    return static_cast<Outcome>((mode == Mode::kShadow ? 2u : 0u) + (decision.allowed ? 0u : 1u));
  }

  /// REQUIRES: `outcome` is the OutcomeOf a decision by `decided_by`.
  void Count(std::uint32_t slot, Outcome outcome, DecidedBy decided_by) {
    table_.Add(slot, Cell(outcome, decided_by));
  }

  /// Calls `see(outcome, decided_by, count)` for each of a rule's counters that is not 0.
  template <class See>
  void Each(std::uint32_t slot, See&& see) const {
    for (std::size_t cell = 0; cell < kCells; ++cell) {
      const std::uint64_t count = table_.Get(slot, cell);
      if (count == 0) continue;
      const auto source = static_cast<DecidedBy>(cell / kPerSource);
      const std::size_t column = cell % kPerSource;
      see(static_cast<Outcome>(source == DecidedBy::kOperator ? column + kPerSource : column),
          source, count);
    }
  }

 private:
  /// Outcomes of one source. They are side by side: most decisions are the store's, and share a
  /// cache line.
  static constexpr std::size_t kPerSource = 4;
  static constexpr std::size_t kCells = kDecisionSources * kPerSource;

  [[nodiscard]] static constexpr std::size_t Cell(Outcome outcome, DecidedBy decided_by) noexcept {
    return static_cast<std::size_t>(decided_by) * kPerSource +
           static_cast<std::size_t>(outcome) % kPerSource;
  }

  SlotTable<kCells> table_;
};

}  // namespace tidegate
