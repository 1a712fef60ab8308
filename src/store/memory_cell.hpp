// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/concurrency.hpp"
#include "core/outcome.hpp"
#include "core/sliding_log.hpp"
#include "store/charge_check.hpp"
#include "store/list_budget.hpp"
#include "store/memory_entry.hpp"
#include "tidegate/quota.hpp"
#include "tidegate/store.hpp"

namespace tidegate {

/// One request's wish on one key.
struct Wish {
  std::int64_t cost = 1;
  std::int64_t count = 1;  ///< 0: a look.
  concurrency::LeaseId lease{};
};

/// A locked entry seen through its quota: where the pure steps of src/core meet
/// the table's memory. Steps never allocate; lists grow here, within the budget.
class MemoryCell {
 public:
  /// REQUIRES: `locked` stays locked as long as the cell is used.
  MemoryCell(const LockedEntry& locked, const Quota& quota, ListBudget& budget,
             Spend spend) noexcept
      : entry_(&locked.ref.entry()),
        meta_(locked.meta),
        quota_(&quota),
        budget_(&budget),
        spend_(spend) {}

  /// Turns a blank entry into a fresh state. False where its list finds no memory.
  [[nodiscard]] bool Open(Time now) noexcept;

  /// What Apply would answer. Writes nothing, but makes room for a lease: what a
  /// look admits, an Apply under the same lock admits too.
  [[nodiscard]] Outcome Look(const Wish& wish, Time now) noexcept;
  Outcome Apply(const Wish& wish, Time now) noexcept;
  /// A look at a charge, as its caller is told.
  [[nodiscard]] Decision Peek(const Charge& charge, concurrency::LeaseId lease, Time now) noexcept {
    return DecisionOfLook(charge, Look({charge.cost, 0, lease}, now));
  }

  Outcome Debit(std::int64_t units, Time now) noexcept;
  Outcome Refund(std::int64_t units, Time charged_at, Time now) noexcept;
  Outcome Renew(concurrency::LeaseId lease, Time now) noexcept;
  Outcome Release(concurrency::LeaseId lease, Time now) noexcept;

  /// The units held under a lease.
  [[nodiscard]] std::int64_t HeldBy(concurrency::LeaseId lease, Time now) const noexcept;

  /// Whether Open would find memory for the list of a quota that needs one.
  static bool HasRoom(const Quota& quota, const ListBudget& budget) noexcept;

  /// The state as people read it.
  [[nodiscard]] std::vector<Inspection::Field> Describe() const;

  /// What to unlock the entry with.
  [[nodiscard]] Meta meta() const noexcept { return meta_; }

  /// Frees the list of an entry that is given up.
  static void Dispose(ListBudget& budget, Entry& entry, Meta meta) noexcept;

  static Meta::Kind KindOf(Algorithm algorithm) noexcept {
    return static_cast<Meta::Kind>(static_cast<int>(algorithm) + 1);
  }

 private:
  [[nodiscard]] sliding_log::Log* log() const noexcept { return entry_->Load<sliding_log::Log*>(); }
  [[nodiscard]] concurrency::Leases* leases() const noexcept {
    return entry_->Load<concurrency::Leases*>();
  }
  void Written(const Outcome& outcome, Time now) noexcept;
  /// After a step that wrote nothing: under a slower quota than the one it was
  /// written with, the state recovers later than its Meta says. (A pin says nothing
  /// of recovery: what is pinned had recovered.)
  void NotWritten(const Outcome& outcome, Time now) noexcept {
    const Time known = meta_.pinned() ? now : meta_.recovered();
    if (now + outcome.reset_after > known) Written(outcome, now);
  }
  void Commit(const sliding_log::Change& change) noexcept;
  /// With room for the lease that it asks for, or else a refusal.
  [[nodiscard]] concurrency::Plan PlanLease(const Wish& wish, Time now) noexcept;
  /// Memory for one lease more; only looks for it where `count` is 0.
  [[nodiscard]] bool MakeLeaseRoom(std::int64_t count) noexcept;

  Entry* entry_;
  Meta meta_;
  const Quota* quota_;
  ListBudget* budget_;
  Spend spend_;
};

}  // namespace tidegate
