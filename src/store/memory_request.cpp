// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <functional>
#include <optional>

#include "store/charge_check.hpp"
#include "store/memory_store.hpp"

namespace tidegate {

/// One request with several charges, all or nothing: finds their entries, locks
/// them in the order of their addresses, asks each what it would admit, and
/// charges the least of those answers to all.
template <std::size_t kMost>
class MemoryStore::Request {
 public:
  Request(MemoryStore& store, std::span<const Charge> charges) noexcept
      : store_(store), charges_(charges) {
    for (std::size_t i = 0; i < charges.size(); ++i) {
      items_[i].key = store.KeyOf(charges[i]);
      items_[i].wish = {charges[i].cost, 1, store.LeaseOf(charges[i], items_[i].key)};
      store.ShardOf(items_[i].key).Prefetch(items_[i].key);
    }
  }

  Result<std::int64_t> Apply(std::int64_t count, std::span<Decision> decisions) {
    if (auto twice = FindRepeated()) return std::unexpected(*std::move(twice));
    do {
      now_ = std::max(now_, store_.clock_->Now());  // Pins last from now on.
      Resolve();
    } while (!LockAll());
    Merge();
    const std::int64_t admitted = Admit(count);
    if (admitted > 0) Charge(admitted, decisions);
    if (admitted < count) Describe(decisions);
    UnlockAll();
    return admitted;
  }

 private:
  struct Item {
    Fingerprint key;     ///< Of the charge.
    EntryRef ref;        ///< Where it is counted...
    Fingerprint holder;  ///< ... and whose entry that is: its own or an overflow's.
    Wish wish;
    std::optional<MemoryCell> cell;  ///< Of the first item on each entry.
    std::size_t owner = 0;           ///< The item that holds this one's cell.
    bool merged = false;             ///< Its cost is part of an earlier item's...
    std::int64_t together = 0;       ///< ... which asks for so much in all.
  };

  std::optional<Error> FindRepeated() const {
    for (std::size_t i = 1; i < charges_.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (items_[i].key == items_[j].key) {
          return Error{ErrorCode::kBadCharge,
                       "two charges of one request name the same key of rule '" +
                           std::string(charges_[i].rule) + "'; give each a rule of its own"};
        }
      }
    }
    return std::nullopt;
  }

  /// Finds or adds every entry, and pins it for the moment until it is locked.
  void Resolve() noexcept {
    for (std::size_t i = 0; i < charges_.size(); ++i) {
      const LockedEntry locked = store_.Hold(charges_[i], items_[i].key, now_);
      const Meta meta = locked.meta;
      Item& item = items_[i];
      item.holder = locked.ref.fingerprint();
      item.ref = locked.ref;
      locked.ref.entry().Unlock(meta.recovered() > now_ ? meta : meta.PinnedUntil(now_ + kPin));
    }
  }

  /// False, with nothing locked, if an entry was given to another key meanwhile.
  bool LockAll() noexcept {
    std::array<std::size_t, kMost> order;
    const std::size_t n = charges_.size();
    const auto address = [&](std::size_t i) { return &items_[i].ref.entry(); };
    for (std::size_t i = 0; i < n; ++i) {
      std::size_t at = i;
      for (; at > 0 && std::less<>{}(address(i), address(order[at - 1])); --at) {
        order[at] = order[at - 1];
      }
      order[at] = i;
    }
    for (std::size_t at = 0; at < n; ++at) {
      Item& item = items_[order[at]];
      if (at > 0 && address(order[at - 1]) == address(order[at])) {
        item.owner = items_[order[at - 1]].owner;
        if (item.holder == items_[item.owner].holder) continue;
        UnlockAll();
        return false;
      }
      const LockedEntry locked{item.ref, item.ref.entry().Lock()};
      item.cell = store_.CellOf(locked, charges_[order[at]]);
      item.owner = order[at];
      // Given to another key, or reset to a blank, since it was found.
      if (item.ref.fingerprint() != item.holder || locked.meta.kind() == Meta::kBlank) {
        UnlockAll();
        return false;
      }
    }
    return true;
  }

  void UnlockAll() noexcept {
    for (std::size_t i = 0; i < charges_.size(); ++i) {
      Item& item = items_[i];
      if (!item.cell) continue;
      // Still pinned: not charged since, by us or anybody, so still recovered.
      const Meta meta = item.cell->meta();
      item.ref.entry().Unlock(meta.pinned() ? Meta{meta.kind(), now_} : meta);
      item.cell.reset();
    }
  }

  MemoryCell& CellOf(std::size_t i) noexcept { return *items_[items_[i].owner].cell; }
  bool Enforces(std::size_t i) const noexcept { return charges_[i].mode == Mode::kEnforce; }
  bool IsLease(std::size_t i) const noexcept {
    return charges_[i].quota->algorithm() == Algorithm::kConcurrency;
  }

  /// Enforcing charges that fell to one overflow bucket are asked for as one, and,
  /// but for leases, charged as one.
  void Merge() noexcept {
    for (std::size_t i = 0; i < charges_.size(); ++i) {
      items_[i].together = items_[i].wish.cost;
      for (std::size_t j = 0; j < i && Enforces(i); ++j) {
        if (items_[j].owner != items_[i].owner || !Enforces(j) || items_[j].merged) continue;
        items_[j].together += items_[i].wish.cost;
        if (IsLease(i)) items_[j].together -= CellOf(i).HeldBy(items_[i].wish.lease, now_);
        items_[i].merged = true;
        break;
      }
    }
  }

  std::int64_t Admit(std::int64_t count) noexcept {
    std::int64_t admitted = count;
    for (std::size_t i = 0; i < charges_.size() && admitted > 0; ++i) {
      if (!Enforces(i) || items_[i].merged) continue;
      Wish wish = items_[i].wish;
      wish.cost = items_[i].together;
      wish.count = count;
      admitted = std::min(admitted, CellOf(i).Look(wish, now_).admitted);
    }
    return admitted;
  }

  void Charge(std::int64_t admitted, std::span<Decision> decisions) noexcept {
    // The enforcing ones first: a shadow on the same bucket sees what they left.
    for (const Mode mode : {Mode::kEnforce, Mode::kShadow}) {
      for (std::size_t i = 0; i < charges_.size(); ++i) {
        if (charges_[i].mode != mode) continue;
        Wish wish = items_[i].wish;
        wish.count = admitted;
        if (!IsLease(i)) {
          wish.cost = items_[i].together;
          if (items_[i].merged) wish.count = 0;
        }
        const Outcome outcome = CellOf(i).Apply(wish, now_);
        store_.Note(outcome);
        decisions[i] =
            DecisionOf(charges_[i], outcome, items_[i].merged || outcome.admitted == admitted);
      }
    }
  }

  void Describe(std::span<Decision> decisions) noexcept {
    for (std::size_t i = 0; i < charges_.size(); ++i) {
      Wish look = items_[i].wish;
      look.cost = items_[i].together;
      look.count = 0;  // Writes nothing but a repair.
      const Outcome outcome = CellOf(i).Apply(look, now_);
      store_.Note(outcome);
      decisions[i] = DecisionOfLook(charges_[i], outcome);
    }
  }

  MemoryStore& store_;
  const std::span<const tidegate::Charge> charges_;
  std::array<Item, kMost> items_;
  Time now_ = Time::min();  ///< One for all charges; read before each attempt.
};

Result<std::int64_t> MemoryStore::Apply(std::span<const Charge> charges, std::int64_t count,
                                        std::span<Decision> decisions) {
  if (auto bad = CheckRequest(charges, count, decisions)) return std::unexpected(*std::move(bad));
  // Most requests have few charges: do not clear room for the most.
  if (charges.size() <= 4) return Request<4>(*this, charges).Apply(count, decisions);
  return Request<kMaxCharges>(*this, charges).Apply(count, decisions);
}

}  // namespace tidegate
