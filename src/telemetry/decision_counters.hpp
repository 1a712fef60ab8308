// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tidegate/charge.hpp"
#include "tidegate/decision.hpp"

namespace tidegate {

/// Numbers for rules' names that stay the same over reloads, so that counters go on. Thread-safe.
class RuleSlots {
 public:
  static constexpr std::uint32_t kMost = 1u << 16;
  /// Shared by inline quotas, and by all rules once kMost names have been seen.
  static constexpr std::uint32_t kOther = 0;

  [[nodiscard]] std::uint32_t SlotOf(std::string_view rule);
  /// The names by their slots; slot 0 is `(other)`.
  [[nodiscard]] std::vector<std::string> Names() const;

 private:
  mutable std::mutex mutex_;
  std::unordered_map<std::string, std::uint32_t> slots_;
  std::vector<std::string> names_{"(other)"};
};

/// Decisions of one reactor by rule, outcome and rung. One thread counts, any may read.
class DecisionCounters {
 public:
  /// Allowed, denied, both of shadow rules; then what operators decided and no rung was asked for,
  /// which is counted in the first rung's cell.
  static constexpr std::size_t kOutcomes = 6;
  static constexpr std::size_t kBanned = 4;
  static constexpr std::size_t kExempted = 5;
  static constexpr std::size_t kRungs = 5;
  using Row = std::array<std::atomic<std::uint64_t>, kOutcomes * kRungs>;

  [[nodiscard]] static std::string_view OutcomeName(std::size_t outcome) noexcept;

  DecisionCounters() = default;
  ~DecisionCounters();
  DecisionCounters(const DecisionCounters&) = delete;
  DecisionCounters& operator=(const DecisionCounters&) = delete;

  void Count(std::uint32_t slot, Mode mode, const Decision& decision) {
    const std::size_t outcome = (mode == Mode::kShadow ? 2u : 0u) + (decision.allowed ? 0u : 1u);
    Add(slot, outcome * kRungs + static_cast<std::size_t>(decision.rung));
  }
  void CountBanned(std::uint32_t slot) { Add(slot, kBanned * kRungs); }
  void CountExempted(std::uint32_t slot) { Add(slot, kExempted * kRungs); }

  /// nullptr: nothing has been counted there.
  [[nodiscard]] const Row* Find(std::uint32_t slot) const noexcept {
    const Chunk* const chunk = chunks_[slot / kChunk].load(std::memory_order_acquire);
    return chunk == nullptr ? nullptr : &(*chunk)[slot % kChunk];
  }

 private:
  static constexpr std::uint32_t kChunk = 64;
  using Chunk = std::array<Row, kChunk>;

  void Add(std::uint32_t slot, std::size_t cell) {
    auto& counter = RowOf(slot)[cell];
    counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  Row& RowOf(std::uint32_t slot) {
    Chunk* const chunk = chunks_[slot / kChunk].load(std::memory_order_relaxed);
    return chunk == nullptr ? AddRow(slot) : (*chunk)[slot % kChunk];
  }
  Row& AddRow(std::uint32_t slot);

  std::array<std::atomic<Chunk*>, RuleSlots::kMost / kChunk> chunks_{};
};

}  // namespace tidegate
