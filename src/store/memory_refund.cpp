// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>

#include "store/charge_check.hpp"
#include "store/memory_store.hpp"

namespace tidegate {
namespace {

/// Whether anything is left to give back. What is pinned had recovered.
bool HasCharges(Meta meta, Time now) noexcept {
  return meta.kind() != Meta::kBlank && !meta.pinned() && meta.recovered() > now;
}

/// Locks two entries in the order of their addresses, as everybody does. False, with
/// nothing locked, if one of them is not its key's any more.
bool LockBoth(LockedEntry& a, const Fingerprint& fa, LockedEntry& b,
              const Fingerprint& fb) noexcept {
  // The other may have been given this one's place since it was found.
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

/// A refund's id is remembered as an entry of its own beside the keys, until the
/// key must have recovered. Without room for it the refund is refused: applying
/// it twice would be worse than not at all.
Result<Done> MemoryStore::Refund(const Charge& charge, const tidegate::Refund& refund) {
  if (auto bad = CheckCharge(charge, Operation::kRefund)) return std::unexpected(*std::move(bad));
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
    // A key without an entry of its own is full, or shares an overflow bucket
    // that is not this caller's to refill.
    now = std::max(now, clock_->Now());
    entry = ShardOf(key).LockKnown(key);
    if (!entry) return Done::kNothing;
    entry.ref.entry().Unlock(entry.meta);
    if (!HasCharges(entry.meta, now)) return Done::kNothing;
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
  // An id that was not used is not remembered.
  mark.ref.entry().Unlock(mark.meta.pinned() ? Meta{} : mark.meta);
  if (outcome.admitted > 0) ShardOf(key).Wake();
  return outcome.admitted > 0 ? Done::kApplied : Done::kNothing;
}

}  // namespace tidegate
