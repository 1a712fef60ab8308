// SPDX-License-Identifier: Apache-2.0
// Operations that lock several entries: requests of several charges, and refunds.
#include <algorithm>
#include <array>
#include <expected>
#include <functional>
#include <optional>

#include "store/charge_check.hpp"
#include "store/memory_store.hpp"

namespace tidegate {

/// Applies one request with several charges, all or nothing: finds their entries, locks them in the
/// order of their addresses, determines how many requests each entry would admit, and charges the
/// least of these numbers to all.
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
      now_ = std::max(now_, store_.clock_->Now());  // Pins last kPin from this time on.
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
    Fingerprint key;     ///< The key of the charge.
    EntryRef ref;        ///< The entry that counts the charge.
    Fingerprint holder;  ///< The key of that entry: `key` or an overflow bucket's.
    Wish wish;
    std::optional<MemoryCell> cell;  ///< Set only in the first item on each entry.
    std::size_t owner = 0;           ///< The index of the item that holds the cell of this item.
    bool merged = false;             ///< Its cost is part of an earlier item's `together`.
    std::int64_t together = 0;       ///< The cost of this item and of those merged into it.
  };

  std::optional<Error> FindRepeated() const {
    for (std::size_t i = 1; i < charges_.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (items_[i].key == items_[j].key) return RepeatedKey(charges_[i]);
      }
    }
    return std::nullopt;
  }

  /// Finds or adds every entry, and pins it until it is locked.
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

  /// Locks all entries. Returns false, with nothing locked, if one was given to another key
  /// or reset meanwhile.
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
      // The entry was given to another key, or reset to a blank, since it was found.
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
      // If it is still pinned, no request has charged it since, so it is still recovered.
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

  /// Merges enforcing charges that share one overflow bucket: they are checked as one charge and,
  /// except for leases, charged as one.
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
    // Enforcing charges come first: a shadow charge on the same bucket sees the quota that they
    // left.
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
      look.count = 0;  // A dry run writes only a repaired state.
      const Outcome outcome = CellOf(i).Apply(look, now_);
      store_.Note(outcome);
      decisions[i] = DecisionOfLook(charges_[i], outcome);
    }
  }

  MemoryStore& store_;
  const std::span<const tidegate::Charge> charges_;
  std::array<Item, kMost> items_;
  Time now_ = Time::min();  ///< The time of all charges; read before each attempt.
};

Result<std::int64_t> MemoryStore::Apply(std::span<const Charge> charges, std::int64_t count,
                                        std::span<Decision> decisions) {
  if (auto bad = CheckRequest(charges, count, decisions)) return std::unexpected(*std::move(bad));
  // Most requests have few charges: do not clear room for kMaxCharges.
  if (charges.size() <= 4) return Request<4>(*this, charges).Apply(count, decisions);
  return Request<kMaxCharges>(*this, charges).Apply(count, decisions);
}

// --- Refunds --------------------------------------------------------------------

namespace {

/// Returns true if the key has charges to give back. A pinned entry had recovered.
bool HasCharges(Meta meta, Time now) noexcept {
  return meta.kind() != Meta::kBlank && !meta.pinned() && meta.recovered() > now;
}

/// Locks two entries in the order of their addresses, as all code does. Returns false, with nothing
/// locked, if one of them belongs to another key by now.
bool LockBoth(LockedEntry& a, const Fingerprint& fa, LockedEntry& b,
              const Fingerprint& fb) noexcept {
  // One key may have been given the other's entry since that was found.
  if (&a.ref.entry() == &b.ref.entry()) return false;
  const bool a_first = std::less<>{}(&a.ref.entry(), &b.ref.entry());
  LockedEntry& first = a_first ? a : b;
  LockedEntry& second = a_first ? b : a;
  first.meta = first.ref.entry().Lock();
  second.meta = second.ref.entry().Lock();
  if (a.ref.fingerprint() == fa && b.ref.fingerprint() == fb) return true;
  second.ref.entry().Unlock(second.meta);
  first.ref.entry().Unlock(first.meta);
  return false;
}

}  // namespace

/// Remembers the refund's id in an entry of its own beside the keys, until the key must have
/// recovered. If there is no room for the id, the refund is refused: applying it twice would be
/// worse than not at all.
Result<Applied> MemoryStore::Refund(const Charge& charge, const RefundRequest& refund) {
  if (auto bad = CheckCharge(charge, Call::Kind::kRefund)) return std::unexpected(*std::move(bad));
  if (refund.id.empty()) {
    return std::unexpected(
        Error{ErrorCode::kBadCharge, "a refund needs an id, so that it is applied only once"});
  }
  const Fingerprint key = KeyOf(charge);
  const Fingerprint id = fingerprinter_.Id(key, refund.id);
  Time now = Time::min();
  LockedEntry entry;
  LockedEntry mark;
  do {
    // A key without an entry of its own is full or shares an overflow bucket, which must not be
    // refilled for one caller.
    now = std::max(now, clock_->Now());
    entry = ShardOf(key).LockKnown(key);
    if (!entry) return Applied::kNo;
    entry.ref.entry().Unlock(entry.meta);
    if (!HasCharges(entry.meta, now)) return Applied::kNo;
    mark = ShardOf(id).LockOrAdd(id);
    if (!mark) {
      return std::unexpected(Error{ErrorCode::kExhausted,
                                   "no room to remember the refund's id, so it was not applied"});
    }
    mark.ref.entry().Unlock(mark.meta.recovered() > now ? mark.meta
                                                        : Meta{}.PinnedUntil(now + kPin));
  } while (!LockBoth(entry, key, mark, id));

  Outcome outcome;
  const bool known = HasCharges(entry.meta, now);
  const bool again = mark.meta.kind() == Meta::kMark;
  MemoryCell cell = CellOf(entry, charge);
  if (known && !again) {
    const Time charged_at = refund.age ? now - *refund.age : refund.charged_at.value_or(now);
    outcome = cell.Refund(charge.cost, charged_at, now);
    Note(outcome);
  }
  if (outcome.admitted > 0) {
    const Micros keep = std::max(charge.quota->recovery(), outcome.reset_after);
    mark.meta = Meta{Meta::kMark, now + keep};
  }
  entry.ref.entry().Unlock(cell.meta());
  // The id of a refund that was not applied is not remembered.
  mark.ref.entry().Unlock(mark.meta.pinned() ? Meta{} : mark.meta);
  if (outcome.admitted > 0) ShardOf(key).Wake();
  return outcome.admitted > 0 ? Applied::kYes : Applied::kNo;
}

}  // namespace tidegate
