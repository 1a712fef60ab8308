// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "store/fingerprint.hpp"
#include "store/memory_cell.hpp"
#include "store/memory_shard.hpp"
#include "store/store.hpp"

namespace tidegate {

/// The embedded store: see NewMemoryStore in store/store.hpp.
///
/// A key lives in one entry of one shard. A known key is decided under its entry's lock alone;
/// several entries are locked in the order of their addresses. A new key that finds no place is
/// counted in its rule's overflow bucket; these are in a separate shard that has room for 65,536
/// rules.
class MemoryStore final : public Store {
 public:
  MemoryStore(const MemoryOptions& options, Pages pages);
  ~MemoryStore() override;

  Result<std::int64_t> Apply(std::span<const Charge> charges, std::int64_t count,
                             std::span<Decision> decisions) override;
  void Prefetch(const Charge& charge) noexcept override {
    const Fingerprint key = KeyOf(charge);
    ShardOf(key).Prefetch(key);
  }
  Result<Decision> Apply(const Charge& charge) override;
  Result<Decision> Peek(const Charge& charge) override;
  Result<Decision> Debit(const Charge& charge) override;
  Result<Applied> Refund(const Charge& charge, const RefundRequest& refund) override;
  Result<Applied> Reset(const Charge& charge) override;
  Result<Inspection> Inspect(const Charge& charge) override;
  Result<Applied> Renew(const Charge& charge) override;
  Result<Applied> Release(const Charge& charge) override;
  StoreStats Stats() const override;

 private:
  template <std::size_t kMost>
  class Request;  // Applies several charges at once.

  /// The time for which an entry without a charge is kept for the request that is about to lock it
  /// together with others.
  static constexpr Micros kPin = std::chrono::seconds{1};

  [[nodiscard]] MemoryShard& ShardOf(Fingerprint f) noexcept {
    return shards_[f.high & shard_mask_];
  }
  [[nodiscard]] Fingerprint KeyOf(const Charge& charge) const noexcept {
    return fingerprinter_.Key(charge.quota->algorithm(), charge.rule, charge.identity);
  }
  [[nodiscard]] concurrency::LeaseId LeaseOf(const Charge& charge,
                                             const Fingerprint& key) const noexcept;
  /// The lists of overflow buckets are not limited by the budget.
  [[nodiscard]] Spend SpendOf(const EntryRef& ref) const noexcept {
    return std::less<>{}(ref.group(), overflow_begin_) ? Spend::kBudget : Spend::kReserve;
  }
  [[nodiscard]] MemoryCell CellOf(const LockedEntry& locked, const Charge& charge) noexcept {
    return {locked, *charge.quota, budget_, SpendOf(locked.ref)};
  }
  /// Returns the key's entry or its overflow bucket: locked, never null, holding a state, and added
  /// if it was missing. If it was added, `now` is read again: an earlier time could lie before the
  /// moment at which the key's last entry recovered.
  [[nodiscard]] LockedEntry Hold(const Charge& charge, Fingerprint key, Time& now) noexcept {
    const LockedEntry known = ShardOf(key).Lock(key);
    if (known && known.meta.kind() != Meta::kBlank) return known;
    if (known) known.ref.entry().Unlock(known.meta);
    return HoldNew(charge, key, now);
  }
  [[nodiscard]] LockedEntry HoldNew(const Charge& charge, Fingerprint key, Time& now) noexcept;
  [[nodiscard]] LockedEntry HoldOverflow(const Charge& charge, Time& now) noexcept;
  /// Gives a locked, blank entry a fresh state. If its list finds no memory, unlocks the entry and
  /// returns null.
  [[nodiscard]] LockedEntry Open(LockedEntry locked, const Charge& charge, Time& now) noexcept;
  [[nodiscard]] LockedEntry LastResort(Algorithm algorithm) noexcept;
  /// Returns the entry of `f`, locked, if it holds a state; otherwise null.
  [[nodiscard]] static LockedEntry LockState(MemoryShard& shard, Fingerprint f) noexcept;
  enum class Detail : bool { kDecision, kState };
  [[nodiscard]] Inspection InspectEntry(const Charge& charge, Detail detail);
  void Note(const Outcome& outcome) noexcept {
    if (outcome.effect == Effect::kRepaired) repaired_.fetch_add(1, std::memory_order_relaxed);
  }
  using LeaseOperation = Outcome (MemoryCell::*)(concurrency::LeaseId lease, Time now) noexcept;
  Result<Applied> OnLease(const Charge& charge, LeaseOperation operation);
  static void DisposeEntry(void* store, Entry& entry, Meta meta) noexcept {
    MemoryCell::Dispose(static_cast<MemoryStore*>(store)->budget_, entry, meta);
  }

  const RealClock real_clock_;
  const Clock* const clock_;
  const Fingerprinter fingerprinter_;
  ListBudget budget_;
  ZeroedMemory memory_;
  std::unique_ptr<MemoryShard[]> shards_;
  std::uint64_t shard_mask_ = 0;
  MemoryShard overflow_;
  /// The groups behind the shards in memory: first those of the overflow buckets, then those of the
  /// buckets that all rules of an algorithm share when even the overflow shard is full.
  Group* overflow_begin_ = nullptr;
  Group* last_resort_ = nullptr;
  std::atomic<std::uint64_t> overflowed_{0};
  std::atomic<std::uint64_t> repaired_{0};
};

}  // namespace tidegate
