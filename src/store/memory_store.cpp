// SPDX-License-Identifier: Apache-2.0
#include "store/memory_store.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <expected>
#include <new>
#include <stdexcept>

#include "store/charge_check.hpp"

namespace tidegate {
namespace {

/// The most shards: enough that two cores rarely add keys to the same shard at the same time; few
/// enough that each shard needs little spare room for an uneven distribution of keys.
constexpr std::size_t kMostShards = 64;
constexpr std::size_t kKeysPerShard = 4096;
/// The number of rules with an overflow bucket of their own; further rules share one per algorithm.
constexpr std::size_t kOverflowRules = 65'536;

/// The groups that have an entry for each algorithm.
constexpr std::size_t kLastResortGroups = 2;
static_assert(kAlgorithms <= kLastResortGroups * Group::kEntries);

std::size_t ShardCount(std::size_t max_keys) noexcept {
  return std::clamp<std::size_t>(std::bit_floor(max_keys / kKeysPerShard + 1), 1, kMostShards);
}

/// Returns how many keys a shard has room for. Keys fall on shards at random; five standard
/// deviations above the mean, a shard of a full store runs out of room once in 3.5 million.
std::size_t KeysPerShard(std::size_t max_keys, std::size_t shards) noexcept {
  const double mean = static_cast<double>(max_keys) / static_cast<double>(shards);
  const double spare = shards == 1 ? 0 : 5 * std::sqrt(mean);
  return static_cast<std::size_t>(std::ceil(mean + spare));
}

/// More keys than any machine can hold, but few enough that sizes in bytes do not overflow.
constexpr std::size_t kMostKeys = std::size_t{1} << 32;

struct Layout {
  std::size_t shards;
  std::size_t keys_per_shard;
  std::size_t groups_per_shard;
  std::size_t overflow_groups;

  explicit Layout(std::size_t max_keys) noexcept
      : shards(ShardCount(max_keys)),
        keys_per_shard(KeysPerShard(max_keys, shards)),
        groups_per_shard(MemoryShard::GroupsFor(keys_per_shard)),
        overflow_groups(MemoryShard::GroupsFor(kOverflowRules)) {}

  [[nodiscard]] std::size_t bytes() const noexcept {
    return (shards * groups_per_shard + overflow_groups + kLastResortGroups) * sizeof(Group);
  }
};

}  // namespace

MemoryStore::MemoryStore(const MemoryOptions& options, Pages pages)
    : clock_(options.clock != nullptr ? options.clock : &real_clock_),
      budget_(options.max_list_bytes),
      memory_(Layout(std::min(options.max_keys, kMostKeys)).bytes(), pages) {
  if (options.max_keys > kMostKeys) throw std::length_error("max_keys is beyond 2^32");
  const Layout layout(options.max_keys);
  shards_ = std::make_unique<MemoryShard[]>(layout.shards);
  shard_mask_ = layout.shards - 1;
  auto* groups = static_cast<Group*>(memory_.data());
  for (std::size_t i = 0; i < layout.shards; ++i) {
    shards_[i].Init(groups, layout.groups_per_shard, layout.keys_per_shard, *clock_, DisposeEntry,
                    this);
    groups += layout.groups_per_shard;
  }
  overflow_begin_ = groups;
  last_resort_ = groups + layout.overflow_groups;
  overflow_.Init(groups, layout.overflow_groups, kOverflowRules, *clock_, DisposeEntry, this);
  for (const Algorithm list : {Algorithm::kSlidingLog, Algorithm::kConcurrency}) {
    const LockedEntry last = LastResort(list);
    const Quota quota = Quota::Make({.algorithm = list, .limit = 4}).value();
    MemoryCell cell{last, quota, budget_, Spend::kReserve};
    if (!cell.Open(clock_->Now())) throw std::bad_alloc();
    last.ref.entry().Unlock(cell.meta());
  }
}

MemoryStore::~MemoryStore() {
  const auto dispose = [this](const EntryRef& ref, Meta meta) {
    MemoryCell::Dispose(budget_, ref.entry(), meta);
  };
  for (const Algorithm list : {Algorithm::kSlidingLog, Algorithm::kConcurrency}) {
    const LockedEntry last = LastResort(list);
    dispose(last.ref, last.meta);
  }
  // Only lists own memory: if there are none, do not touch the whole table's pages.
  if (budget_.used() == 0) return;
  for (std::size_t i = 0; i <= shard_mask_; ++i) shards_[i].ForEach(dispose);
  overflow_.ForEach(dispose);
}

concurrency::LeaseId MemoryStore::LeaseOf(const Charge& charge,
                                          const Fingerprint& key) const noexcept {
  if (charge.quota->algorithm() != Algorithm::kConcurrency) return {};
  const Fingerprint f = fingerprinter_.Id(key, charge.lease);
  return {f.high, f.low};
}

LockedEntry MemoryStore::Open(LockedEntry locked, const Charge& charge, Time& now) noexcept {
  now = std::max(now, clock_->Now());
  MemoryCell cell = CellOf(locked, charge);
  if (cell.Open(now)) return {locked.ref, cell.meta()};
  // There is no memory for its list: leave a blank entry, which may be reclaimed.
  locked.ref.entry().Unlock(Meta{});
  return {};
}

LockedEntry MemoryStore::HoldNew(const Charge& charge, Fingerprint key, Time& now) noexcept {
  MemoryShard& shard = ShardOf(key);
  if (const LockedEntry added = shard.LockOrAdd(key)) {
    if (const LockedEntry open = Open(added, charge, now)) return open;
    shard.Sweep();  // Frees the lists of recovered entries.
  }
  overflowed_.fetch_add(1, std::memory_order_relaxed);
  return HoldOverflow(charge, now);
}

LockedEntry MemoryStore::HoldOverflow(const Charge& charge, Time& now) noexcept {
  const Quota& quota = *charge.quota;
  if (const LockedEntry added =
          overflow_.LockOrAdd(fingerprinter_.Overflow(quota, charge.mode, charge.rule))) {
    if (const LockedEntry open = Open(added, charge, now)) return open;
  }
  // Open cannot fail here: the lists of these entries were made in the constructor.
  return Open(LastResort(quota.algorithm()), charge, now);
}

LockedEntry MemoryStore::LastResort(Algorithm algorithm) noexcept {
  const auto i = static_cast<unsigned>(algorithm);
  const EntryRef ref{last_resort_ + i / Group::kEntries, i % Group::kEntries};
  return {ref, ref.entry().Lock()};
}

Result<Decision> MemoryStore::Apply(const Charge& charge) {
  if (auto bad = CheckCharge(charge)) return std::unexpected(*std::move(bad));
  const Fingerprint key = KeyOf(charge);
  ShardOf(key).Prefetch(key);
  // Read the clock after the prefetch and before the lock: the cache miss and the clock, some 20 ns
  // each, overlap, and no lock is held meanwhile.
  Time now = clock_->Now();
  const LockedEntry locked = Hold(charge, key, now);
  MemoryCell cell = CellOf(locked, charge);
  const Outcome outcome = cell.Apply({charge.cost, 1, LeaseOf(charge, key)}, now);
  locked.ref.entry().Unlock(cell.meta());
  Note(outcome);
  return DecisionOf(charge, outcome, outcome.admitted == 1);
}

Result<Decision> MemoryStore::Peek(const Charge& charge) {
  // A peek without a lease id is about a new lease: no lease has the empty id.
  if (auto bad = CheckCharge(charge, Call::Kind::kPeek)) return std::unexpected(*std::move(bad));
  return InspectEntry(charge, Detail::kDecision).decision;
}

Result<Inspection> MemoryStore::Inspect(const Charge& charge) {
  if (auto bad = CheckCharge(charge, Call::Kind::kPeek)) return std::unexpected(*std::move(bad));
  return InspectEntry(charge, Detail::kState);
}

Inspection MemoryStore::InspectEntry(const Charge& charge, Detail detail) {
  const Fingerprint key = KeyOf(charge);
  const Time now = clock_->Now();
  MemoryShard& shard = ShardOf(key);
  Inspection inspection;
  LockedEntry locked = LockState(shard, key);
  inspection.tracked = static_cast<bool>(locked);
  if (!locked && (shard.full() || !MemoryCell::HasRoom(*charge.quota, budget_))) {
    locked = LockState(overflow_, fingerprinter_.Overflow(*charge.quota, charge.mode, charge.rule));
  }
  if (!locked) {
    // The key counts as fresh. Make its state outside the table, which must not change.
    Group spare{};
    MemoryCell cell{{EntryRef{&spare, 0}, Meta{}}, *charge.quota, budget_, Spend::kReserve};
    if (cell.Open(now)) inspection.decision = cell.Peek(charge, LeaseOf(charge, key), now);
    MemoryCell::Dispose(budget_, spare.entries[0], cell.meta());
    return inspection;
  }
  MemoryCell cell = CellOf(locked, charge);
  inspection.decision = cell.Peek(charge, LeaseOf(charge, key), now);
  try {
    if (inspection.tracked && detail == Detail::kState) inspection.state = cell.Describe();
  } catch (...) {  // There is no memory for the text: the entry must not stay locked.
    locked.ref.entry().Unlock(cell.meta());
    throw;
  }
  locked.ref.entry().Unlock(cell.meta());
  return inspection;
}

LockedEntry MemoryStore::LockState(MemoryShard& shard, Fingerprint f) noexcept {
  const LockedEntry locked = shard.LockKnown(f);
  if (!locked || locked.meta.kind() != Meta::kBlank) return locked;
  locked.ref.entry().Unlock(locked.meta);
  return {};
}

Result<Decision> MemoryStore::Debit(const Charge& charge) {
  if (auto bad = CheckCharge(charge, Call::Kind::kDebit)) return std::unexpected(*std::move(bad));
  Time now = clock_->Now();
  const LockedEntry locked = Hold(charge, KeyOf(charge), now);
  MemoryCell cell = CellOf(locked, charge);
  const Outcome outcome = cell.Debit(charge.cost, now);
  locked.ref.entry().Unlock(cell.meta());
  Note(outcome);
  Decision decision = DecisionOf(charge, outcome, outcome.remaining > 0);
  if (!decision.allowed) decision.retry_after = outcome.more_after;
  return decision;
}

Result<Applied> MemoryStore::Reset(const Charge& charge) {
  if (auto bad = CheckCharge(charge, Call::Kind::kReset)) return std::unexpected(*std::move(bad));
  const Fingerprint key = KeyOf(charge);
  const LockedEntry locked = ShardOf(key).LockKnown(key);
  if (!locked) return Applied::kNo;
  MemoryCell::Dispose(budget_, locked.ref.entry(), locked.meta);
  locked.ref.entry().Unlock(Meta{});
  ShardOf(key).Wake();
  return locked.meta.kind() == Meta::kBlank ? Applied::kNo : Applied::kYes;
}

Result<Applied> MemoryStore::OnLease(const Charge& charge, LeaseOperation operation) {
  if (auto bad = CheckCharge(charge, Call::Kind::kRenew)) return std::unexpected(*std::move(bad));
  const Fingerprint key = KeyOf(charge);
  const concurrency::LeaseId lease = LeaseOf(charge, key);
  const Time now = clock_->Now();
  const auto applies_to = [&](const LockedEntry& locked) {
    if (!locked) return false;
    MemoryCell cell = CellOf(locked, charge);
    const bool found = (cell.*operation)(lease, now).admitted > 0;
    locked.ref.entry().Unlock(cell.meta());
    return found;
  };
  // A lease is in its key's own entry, unless there was no room for that entry.
  const Fingerprint overflow = fingerprinter_.Overflow(*charge.quota, charge.mode, charge.rule);
  const bool found = applies_to(LockState(ShardOf(key), key)) ||
                     applies_to(LockState(overflow_, overflow)) ||
                     applies_to(LastResort(Algorithm::kConcurrency));
  return found ? Applied::kYes : Applied::kNo;
}

Result<Applied> MemoryStore::Renew(const Charge& charge) {
  return OnLease(charge, &MemoryCell::Renew);
}

Result<Applied> MemoryStore::Release(const Charge& charge) {
  auto released = OnLease(charge, &MemoryCell::Release);
  if (released == Applied::kYes) {
    ShardOf(KeyOf(charge)).Wake();
    overflow_.Wake();
  }
  return released;
}

StoreStats MemoryStore::Stats() const {
  StoreStats stats;
  for (std::size_t i = 0; i <= shard_mask_; ++i) {
    stats.tracked += shards_[i].used();
    stats.reclaimed += shards_[i].reclaimed();
  }
  stats.overflowed = overflowed_.load(std::memory_order_relaxed);
  stats.repaired = repaired_.load(std::memory_order_relaxed);
  stats.list_bytes = budget_.used();
  return stats;
}

std::unique_ptr<Store> NewMemoryStore(const MemoryOptions& options, Pages pages) {
  return std::make_unique<MemoryStore>(options, pages);
}

}  // namespace tidegate
