// SPDX-License-Identifier: Apache-2.0
#include "store/redis/batch.hpp"

#include <algorithm>
#include <utility>

#include "core/quota_scale.hpp"
#include "store/redis/greeting.hpp"
#include "store/redis/msgpack.hpp"

namespace tidegate::redis {
namespace {

constexpr std::int64_t kFormat = 2;

/// Returns the number of an operation in the script: the kinds in their order, from 1.
std::int64_t OpOf(Call::Kind kind) noexcept { return static_cast<std::int64_t>(kind) + 1; }
static_assert(static_cast<int>(Call::Kind::kRelease) == 6);

}  // namespace

Batch::Batch(const KeyNames& names, const Fingerprinter& fingerprinter)
    : names_(names), fingerprinter_(fingerprinter) {}

void Batch::Clear() noexcept {
  texts_.clear();
  keys_.clear();
  quotas_.clear();
  lease_count_ = 0;
  items_.clear();
  for (std::size_t i = 0; i < used_; ++i) entries_[i].waiters.clear();
  used_ = 0;
  waiting_ = 0;
  attempts_ = 0;
  hops = 0;
  delays = 0;
  asking = false;
  key_places_.Clear();
  entry_places_.Clear();
}

// --- Adding -------------------------------------------------------------------

bool Batch::HasRoomFor(const Call& call) const noexcept {
  const std::size_t charges = call.charges.size();
  const std::size_t entries = call.kind == Call::Kind::kApply ? 1 : charges;
  // One call always fits an empty batch, with a refund's ids too.
  if (single_) return used_ == 0;
  return used_ == 0 || (used_ + entries <= kMostEntries && keys_.size() + 2 * charges <= kMostKeys);
}

Batch::Entry& Batch::AddEntry(const Call& call) {
  if (used_ == entries_.size()) entries_.emplace_back();
  Entry& entry = entries_[used_++];
  entry.request = call.record.request;
  entry.kind = call.kind;
  entry.items = static_cast<std::uint32_t>(items_.size());
  entry.item_count = 0;
  entry.alive = 0;
  return entry;
}

void Batch::Join(Entry& entry, std::uint32_t number, Call& call) {
  call.record.batch = this;
  call.record.renewed = 0;
  call.record.entry = number;
  call.record.place = static_cast<std::uint32_t>(entry.waiters.size());
  entry.waiters.push_back(&call);
  ++entry.alive;
}

bool Batch::Add(Call& call) {
  if (attempts_ > 0) return false;
  const bool apply = call.kind == Call::Kind::kApply;
  const auto& request = call.record.request;
  if (apply) {
    const std::uint32_t known = entry_places_.Find(request[0], used_, [&](std::uint32_t number) {
      return entries_[number].request == request && entries_[number].kind == Call::Kind::kApply;
    });
    if (known != kNone) {
      Join(entries_[known], known, call);
      ++waiting_;
      return true;
    }
  }
  if (!HasRoomFor(call)) return false;
  // The first entry is the one that the call remembers; the others follow it.
  const auto first = static_cast<std::uint32_t>(used_);
  call.record.open = apply ? 1 : static_cast<std::uint32_t>(call.charges.size());
  for (std::uint32_t i = 0; i < call.record.open; ++i) {
    Entry& entry = AddEntry(call);
    entry.of_call = i;
    const auto charges = apply ? call.charges : call.charges.subspan(i, 1);
    for (const Charge& charge : charges) AddItem(entry, charge);
    if (call.kind == Call::Kind::kRefund) AddRefund(entry, charges[0], call.refund);
    Join(entry, first, call);
  }
  if (apply) {
    entry_places_.Add(first, [&](std::uint32_t number) { return entries_[number].request[0]; });
  }
  ++waiting_;
  return true;
}

void Batch::AddRefund(Entry& entry, const Charge& charge, const RefundRequest& refund) {
  entry.charged_kind = refund.age ? 1 : refund.charged_at ? 2 : 0;
  entry.charged_value = refund.age          ? refund.age->count()
                        : refund.charged_at ? refund.charged_at->time_since_epoch().count()
                                            : 0;
  entry.refund_key = kNone;
  if (refund.id.empty()) return;
  const std::size_t begin = texts_.size();
  names_.AppendRefund(texts_, charge, refund.id);
  // Of a list algorithm, as far as the reply goes: it has no state.
  entry.refund_key = AddKey({}, Algorithm::kSlidingLog, begin);
}

std::uint32_t Batch::AddKey(const Fingerprint& fingerprint, Algorithm algorithm,
                            std::size_t begin) {
  keys_.push_back({fingerprint, algorithm, static_cast<std::uint32_t>(begin),
                   static_cast<std::uint32_t>(texts_.size() - begin)});
  return static_cast<std::uint32_t>(keys_.size() - 1);
}

void Batch::AddItem(Entry& entry, const Charge& charge) {
  Item item{.key = KeyOf(charge),
            .quota = QuotaOf(*charge.quota),
            .cost = charge.cost,
            .mode = charge.mode,
            .lease = 0};
  if (charge.quota->algorithm() == Algorithm::kConcurrency && !charge.lease.empty()) {
    if (lease_count_ == leases_.size()) leases_.emplace_back();
    leases_[lease_count_].clear();
    KeyNames::AppendLease(leases_[lease_count_], charge.lease);
    item.lease = static_cast<std::uint32_t>(++lease_count_);
  }
  items_.push_back(item);
  ++entry.item_count;
}

std::uint32_t Batch::KeyOf(const Charge& charge) {
  const Algorithm algorithm = charge.quota->algorithm();
  const Fingerprint fingerprint = fingerprinter_.WithSlotTag(
      fingerprinter_.Key(algorithm, charge.rule, charge.identity), charge);
  const std::uint32_t known = key_places_.Find(
      fingerprint.low, keys_.size(),
      [&](std::uint32_t number) { return keys_[number].fingerprint == fingerprint; });
  if (known != kNone) return known;
  const std::size_t begin = texts_.size();
  names_.AppendKey(texts_, charge);
  const std::uint32_t number = AddKey(fingerprint, algorithm, begin);
  key_places_.Add(number, [&](std::uint32_t each) { return keys_[each].fingerprint.low; });
  return number;
}

std::uint32_t Batch::QuotaOf(const Quota& quota) {
  // A batch has few quotas, and the last one is the likeliest.
  for (std::size_t i = quotas_.size(); i-- > 0;) {
    if (quotas_[i] == quota) return static_cast<std::uint32_t>(i);
  }
  quotas_.push_back(quota);
  return static_cast<std::uint32_t>(quotas_.size() - 1);
}

void Batch::Remove(Call& call) noexcept {
  const std::size_t count = call.kind == Call::Kind::kApply ? 1 : call.charges.size();
  for (std::size_t i = 0; i < count; ++i) {
    Entry& entry = entries_[call.record.entry + i];
    // A call of several entries is the only one in each.
    const std::size_t place = count == 1 ? call.record.place : 0;
    if (place >= entry.waiters.size() || entry.waiters[place] != &call) continue;  // Answered.
    entry.waiters[place] = nullptr;
    --entry.alive;
  }
  call.record.batch = nullptr;
  --waiting_;
}

void Batch::TakeAll(const std::function<void(Call&)>& take) {
  for (std::size_t i = 0; i < used_; ++i) {
    for (std::size_t place = 0; place < entries_[i].waiters.size(); ++place) {
      Call* const call = entries_[i].waiters[place];
      if (call == nullptr) continue;
      Remove(*call);
      take(*call);
    }
  }
}

// --- Sending ------------------------------------------------------------------

void Batch::DropThoseWhoLeft() {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < used_; ++i) {
    Entry& entry = entries_[i];
    if (entry.alive == 0) {
      entry.waiters.clear();
      continue;
    }
    if (entry.alive < entry.waiters.size()) {
      std::erase(entry.waiters, nullptr);
      for (std::uint32_t place = 0; place < entry.waiters.size(); ++place) {
        entry.waiters[place]->record.place = place;
      }
    }
    if (kept != i) {
      for (Call* const call : entry.waiters) {
        // Only the first entry of a call with several counts; the others follow it.
        if (entry.of_call == 0) call->record.entry = static_cast<std::uint32_t>(kept);
      }
      std::swap(entries_[kept], entry);
    }
    ++kept;
  }
  if (std::exchange(used_, kept) != kept) DropUnusedKeys();
}

void Batch::DropUnusedKeys() {
  constexpr std::uint32_t kUnused = UINT32_MAX;
  std::vector<std::uint32_t> places(keys_.size(), kUnused);
  std::vector<Key> used;
  const auto move = [&](std::uint32_t& key) {
    if (places[key] == kUnused) {
      places[key] = static_cast<std::uint32_t>(used.size());
      used.push_back(keys_[key]);
    }
    key = places[key];
  };
  for (std::size_t i = 0; i < used_; ++i) {
    Entry& entry = entries_[i];
    for (Item& item : std::span(items_).subspan(entry.items, entry.item_count)) move(item.key);
    if (entry.kind == Call::Kind::kRefund && entry.refund_key != kNone) move(entry.refund_key);
  }
  keys_ = std::move(used);
}

void Batch::PackQuota(const Quota& quota) {
  const bool weighed = quota.algorithm() == Algorithm::kSlidingWindow;
  numbers_.insert(numbers_.end(),
                  {static_cast<std::int64_t>(quota.algorithm()), quota.limit(),
                   quota.period().count(), quota.capacity(), quota.recovery().count(),
                   weighed ? Slice(quota).count() : GrainsPerTick(quota),
                   weighed ? Slices(quota) : GrainsPerUnit(quota), Saturation(quota),
                   static_cast<std::int64_t>(quota.origin())});
}

void Batch::PackEntry(const Entry& entry) {
  constexpr std::int64_t kLeases = 2;  // They stand in ARGV behind the two others.
  numbers_.insert(
      numbers_.end(),
      {OpOf(entry.kind), static_cast<std::int64_t>(entry.waiters.size()), entry.item_count});
  for (const Item& item : std::span(items_).subspan(entry.items, entry.item_count)) {
    numbers_.insert(numbers_.end(),
                    {item.key + 1, item.quota + 1, item.cost, item.mode == Mode::kShadow ? 1 : 0});
    if (quotas_[item.quota].algorithm() == Algorithm::kConcurrency) {
      numbers_.push_back(item.lease == 0 ? 0 : item.lease + kLeases);
    }
  }
  if (entry.kind == Call::Kind::kDebit) {
    numbers_.push_back(quotas_[items_[entry.items].quota].max_debt());
  } else if (entry.kind == Call::Kind::kRefund) {
    const std::int64_t id = entry.refund_key == kNone ? 0 : entry.refund_key + 1;
    numbers_.insert(numbers_.end(), {id, entry.charged_kind, entry.charged_value});
  }
}

void Batch::Pack() {
  numbers_.clear();
  numbers_.push_back(kFormat);
  numbers_.push_back(static_cast<std::int64_t>(quotas_.size()));
  for (const Quota& quota : quotas_) PackQuota(quota);
  numbers_.push_back(static_cast<std::int64_t>(used_));
  for (std::size_t i = 0; i < used_; ++i) PackEntry(entries_[i]);
  packed_.clear();
  WritePacked(packed_, numbers_);
}

void Batch::Write(std::string& out, Form form, std::string_view script, std::string_view channel) {
  DropThoseWhoLeft();
  Pack();
  ++attempts_;
  AppendSize(out, '*', 5 + keys_.size() + lease_count_);
  AppendWord(out, form == Form::kSha ? "EVALSHA" : "EVAL");
  AppendWord(out, script);
  AppendWord(out, std::to_string(keys_.size()));
  for (const Key& key : keys_) AppendWord(out, std::string_view(texts_).substr(key.text, key.size));
  AppendWord(out, packed_);
  AppendWord(out, channel);
  for (std::size_t i = 0; i < lease_count_; ++i) AppendWord(out, leases_[i]);
}

}  // namespace tidegate::redis
