// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace tidegate {

/// Gives each rule name a number (slot) that stays the same over reloads, so that its counters
/// continue. Thread-safe.
class RuleSlots {
 public:
  static constexpr std::uint32_t kMost = 1u << 16;
  /// The slot that inline quotas use, and every further rule once kMost names have been seen.
  static constexpr std::uint32_t kOther = 0;

  [[nodiscard]] std::uint32_t SlotOf(const std::string& rule) {
    const std::lock_guard lock(mutex_);
    if (const auto found = slots_.find(rule); found != slots_.end()) return found->second;
    if (names_.size() == kMost) return kOther;
    const auto slot = static_cast<std::uint32_t>(names_.size());
    names_.push_back(rule);
    slots_.emplace(rule, slot);
    return slot;
  }
  /// Returns the names by slot; slot 0 is `(other)`.
  [[nodiscard]] std::vector<std::string> Names() const {
    const std::lock_guard lock(mutex_);
    return names_;
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<std::string, std::uint32_t> slots_;
  std::vector<std::string> names_{"(other)"};
};

/// Counters of one reactor by slot and column. One thread counts; any thread may read.
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
