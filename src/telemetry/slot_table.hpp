// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "telemetry/rule_slots.hpp"

namespace tidegate {

/// Counters of one reactor by slot (a name that lasts over reloads) and column. One thread counts,
/// any may read.
template <std::size_t Columns>
class SlotTable {
 public:
  using Row = std::array<std::atomic<std::uint64_t>, Columns>;

  SlotTable() = default;
  ~SlotTable() {
    for (auto& chunk : chunks_) delete chunk.load(std::memory_order_relaxed);
  }
  SlotTable(const SlotTable&) = delete;
  SlotTable& operator=(const SlotTable&) = delete;

  void Add(std::uint32_t slot, std::size_t column, std::uint64_t n = 1) {
    Chunk* chunk = chunks_[slot / kChunk].load(std::memory_order_relaxed);
    if (chunk == nullptr) [[unlikely]]
      chunk = AddChunk(slot);
    auto& counter = (*chunk)[slot % kChunk][column];
    counter.store(counter.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }

  /// 0 where nothing has been counted.
  [[nodiscard]] std::uint64_t Get(std::uint32_t slot, std::size_t column) const noexcept {
    const Chunk* const chunk = chunks_[slot / kChunk].load(std::memory_order_acquire);
    return chunk == nullptr ? 0 : (*chunk)[slot % kChunk][column].load(std::memory_order_relaxed);
  }

 private:
  static constexpr std::uint32_t kChunk = 64;
  using Chunk = std::array<Row, kChunk>;

  [[gnu::cold, gnu::noinline]] Chunk* AddChunk(std::uint32_t slot) {
    auto* const chunk = new Chunk{};
    chunks_[slot / kChunk].store(chunk, std::memory_order_release);
    return chunk;
  }

  std::array<std::atomic<Chunk*>, RuleSlots::kMost / kChunk> chunks_{};
};

}  // namespace tidegate
