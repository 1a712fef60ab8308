// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <vector>

#include "core/concurrency.hpp"
#include "core/outcome.hpp"
#include "core/sliding_log.hpp"
#include "store/charge_check.hpp"
#include "store/memory_entry.hpp"
#include "store/store.hpp"
#include "tidegate/quota.hpp"

namespace tidegate {

/// Selects whether the budget limits a list. It does not limit lists of overflow buckets: these
/// lists are needed when the budget is spent, and there are few of them.
enum class Spend : bool { kBudget, kReserve };

/// Allocates logs and leases, up to a number of bytes. A block is a List header (sliding_log::Log
/// or concurrency::Leases) with its items behind it.
class ListBudget {
 public:
  explicit ListBudget(std::size_t most) noexcept : most_(most) {}

  /// Returns true if New would stay within the budget.
  template <class List>
  [[nodiscard]] bool Has(std::uint32_t capacity, Spend spend) const noexcept {
    return spend == Spend::kReserve || used() + Bytes<List>(capacity) <= most_;
  }

  /// Returns a new list; null if the budget is spent or the machine has no more memory.
  template <class List>
  [[nodiscard]] List* New(std::uint32_t capacity, Spend spend) noexcept {
    using Item = typename List::Item;
    static_assert(sizeof(List) % alignof(Item) == 0);
    const std::size_t bytes = Bytes<List>(capacity);
    if (used_.fetch_add(bytes, std::memory_order_relaxed) + bytes > most_ &&
        spend == Spend::kBudget) {
      used_.fetch_sub(bytes, std::memory_order_relaxed);
      return nullptr;
    }
    void* memory = std::malloc(bytes);
    if (memory == nullptr) {
      used_.fetch_sub(bytes, std::memory_order_relaxed);
      return nullptr;
    }
    auto* items = reinterpret_cast<Item*>(static_cast<std::byte*>(memory) + sizeof(List));
    return new (memory) List(items, capacity);
  }

  template <class List>
  void Delete(List* list) noexcept {
    if (list == nullptr) return;
    used_.fetch_sub(Bytes<List>(list->capacity()), std::memory_order_relaxed);
    std::free(list);
  }

  [[nodiscard]] std::size_t used() const noexcept { return used_.load(std::memory_order_relaxed); }

 private:
  template <class List>
  static std::size_t Bytes(std::uint32_t capacity) noexcept {
    return sizeof(List) + std::size_t{capacity} * sizeof(typename List::Item);
  }

  const std::size_t most_;
  std::atomic<std::size_t> used_{0};
};

/// The charge that a request wants to make to one key.
struct Wish {
  std::int64_t cost = 1;
  std::int64_t count = 1;  ///< The number of identical requests; 0 is a dry run.
  concurrency::LeaseId lease{};
};

/// Applies the steps of src/core to a locked entry under one quota. Steps never allocate; this
/// class grows the lists of logs and leases, within the budget.
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

  /// Gives a blank entry a fresh state. Returns false if its list finds no memory.
  [[nodiscard]] bool Open(Time now) noexcept;

  /// Does a dry run: returns the outcome that Apply would have. Writes no state, but makes room for
  /// a lease, so that an Apply under the same lock admits the requests that Look admits.
  [[nodiscard]] Outcome Look(const Wish& wish, Time now) noexcept;
  Outcome Apply(const Wish& wish, Time now) noexcept;
  /// Returns the decision on `charge` without charging it.
  [[nodiscard]] Decision Peek(const Charge& charge, concurrency::LeaseId lease, Time now) noexcept {
    return DecisionOfLook(charge, Look({charge.cost, 0, lease}, now));
  }

  Outcome Debit(std::int64_t units, Time now) noexcept;
  Outcome Refund(std::int64_t units, Time charged_at, Time now) noexcept;
  Outcome Renew(concurrency::LeaseId lease, Time now) noexcept;
  Outcome Release(concurrency::LeaseId lease, Time now) noexcept;

  /// Returns the units that a lease holds; 0 if it has expired.
  [[nodiscard]] std::int64_t HeldBy(concurrency::LeaseId lease, Time now) const noexcept;

  /// Returns true if Open would find memory for the list of `quota`, or if `quota` needs no list.
  static bool HasRoom(const Quota& quota, const ListBudget& budget) noexcept;

  /// Returns the fields of the state, for people to read.
  [[nodiscard]] std::vector<Inspection::Field> Describe() const;

  /// Returns the Meta with which to unlock the entry.
  [[nodiscard]] Meta meta() const noexcept { return meta_; }

  /// Frees the list that an entry owns, if it has one.
  static void Dispose(ListBudget& budget, Entry& entry, Meta meta) noexcept;

  static Meta::Kind KindOf(Algorithm algorithm) noexcept {
    return static_cast<Meta::Kind>(static_cast<int>(algorithm) + 1);
  }

 private:
  [[nodiscard]] sliding_log::Log* log() const noexcept { return entry_->Load<sliding_log::Log*>(); }
  [[nodiscard]] concurrency::Leases* leases() const noexcept {
    return entry_->Load<concurrency::Leases*>();
  }
  /// Called after a step: saves the new state if there is one, and updates the Meta.
  template <class Save>
  void Finish(const Outcome& outcome, Time now, Save save) noexcept;
  /// Called after a step that wrote a state. Returns its outcome.
  Outcome Written(const Outcome& outcome, Time now) noexcept {
    meta_ = Meta{meta_.kind(), now + outcome.reset_after};
    return outcome;
  }
  /// Called after a step that wrote nothing. If this quota is slower than the one that wrote the
  /// state, the state recovers later than its Meta says. (A pin says nothing about
  /// recovery: an entry that is pinned had recovered before.)
  void NotWritten(const Outcome& outcome, Time now) noexcept {
    const Time known = meta_.pinned() ? now : meta_.recovered();
    if (now + outcome.reset_after > known) Written(outcome, now);
  }
  void Commit(const sliding_log::Change& change) noexcept;
  /// Plans an acquisition and makes room for its lease; without room, the plan is a refusal.
  [[nodiscard]] concurrency::Plan PlanLease(const Wish& wish, Time now) noexcept;
  /// Allocates memory for one more lease, or only checks for it if `count` is 0. Returns false if
  /// there is no memory.
  [[nodiscard]] bool MakeLeaseRoom(std::int64_t count) noexcept;

  Entry* entry_;
  Meta meta_;
  const Quota* quota_;
  ListBudget* budget_;
  Spend spend_;
};

}  // namespace tidegate
