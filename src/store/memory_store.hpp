// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <memory>

#include "store/fingerprint.hpp"
#include "store/list_budget.hpp"
#include "store/memory_cell.hpp"
#include "store/memory_shard.hpp"
#include "store/zeroed_memory.hpp"
#include "tidegate/store.hpp"

namespace tidegate {

/// The embedded store: see NewMemoryStore in tidegate/store.hpp.
///
/// A key lives in one entry of one shard. Known keys are decided under their
/// entry's lock alone; several are locked in the order of their addresses. A new
/// key that finds no place is counted in its rule's overflow bucket, in a shard
/// of its own that has room for 65,536 rules.
class MemoryStore final : public Store {
 public:
  explicit MemoryStore(const MemoryOptions& options);
  ~MemoryStore() override;
  MemoryStore(const MemoryStore&) = delete;
  MemoryStore& operator=(const MemoryStore&) = delete;

  Result<std::int64_t> Apply(std::span<const Charge> charges, std::int64_t count,
                             std::span<Decision> decisions) override;
  Result<Decision> Apply(const Charge& charge) override;
  Result<Decision> Peek(const Charge& charge) override;
  Result<Decision> Debit(const Charge& charge) override;
  Result<Done> Refund(const Charge& charge, const tidegate::Refund& refund) override;
  Result<Done> Reset(const Charge& charge) override;
  Result<Inspection> Inspect(const Charge& charge) override;
  Result<Done> Renew(const Charge& charge) override;
  Result<Done> Release(const Charge& charge) override;
  StoreStats Stats() const override;

 private:
  template <std::size_t kMost>
  class Request;  // Several charges at once.

  /// An entry, locked, that counts for a key: its own or its rule's overflow.
  struct Held {
    LockedEntry locked;
    Spend spend = Spend::kBudget;
  };

  [[nodiscard]] MemoryShard& ShardOf(const Fingerprint& f) noexcept {
    return shards_[f.high & shard_mask_];
  }
  [[nodiscard]] Fingerprint KeyOf(const Charge& charge) const noexcept;
  [[nodiscard]] concurrency::LeaseId LeaseOf(const Charge& charge) const noexcept;
  [[nodiscard]] MemoryCell CellOf(const Held& held, const Charge& charge) noexcept {
    return {held.locked, *charge.quota, budget_, held.spend};
  }
  /// The key's entry, or its overflow bucket; added where missing, never null,
  /// and holding a state.
  [[nodiscard]] Held Hold(const Charge& charge, const Fingerprint& key, Time now) noexcept;
  [[nodiscard]] Held HoldOverflow(const Charge& charge, Time now) noexcept;
  [[nodiscard]] Held LastResort(Algorithm algorithm) noexcept;
  enum class Detail : bool { kDecision, kState };
  [[nodiscard]] Inspection InspectEntry(const Charge& charge, Detail detail);
  void Note(const Outcome& outcome) noexcept;
  template <class Operation>
  Result<Done> OnLease(const Charge& charge, Operation operation);
  static void DisposeEntry(void* store, Entry& entry, Meta meta) noexcept;

  const RealClock real_clock_;
  const Clock* const clock_;
  const Fingerprinter fingerprinter_;
  ListBudget budget_;
  ZeroedMemory memory_;
  std::unique_ptr<MemoryShard[]> shards_;
  std::uint64_t shard_mask_ = 0;
  MemoryShard overflow_;
  /// What all rules of an algorithm share when even the overflow shard is full.
  std::array<Group, 2> last_resort_{};
  static_assert(kAlgorithms <= 2 * Group::kEntries);
  std::atomic<std::uint64_t> overflowed_{0};
  std::atomic<std::uint64_t> repaired_{0};
};

}  // namespace tidegate
