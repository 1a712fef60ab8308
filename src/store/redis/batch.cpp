// SPDX-License-Identifier: Apache-2.0
#include "store/redis/batch.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "store/redis/msgpack.hpp"

namespace tidegate::redis {
namespace {

constexpr std::int64_t kFormat = 2;

/// As the script numbers them.
std::int64_t OpOf(Call::Kind kind) noexcept {
  switch (kind) {
    case Call::Kind::kApply:
      return 1;
    case Call::Kind::kPeek:
      return 2;
    case Call::Kind::kDebit:
      return 3;
    case Call::Kind::kRefund:
      return 4;
    case Call::Kind::kReset:
      return 5;
    case Call::Kind::kRenew:
      return 6;
    case Call::Kind::kRelease:
      return 7;
  }
  return 0;
}

void AppendSize(std::string& out, char kind, std::size_t size) {
  std::array<char, 24> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), size).ptr;
  out.push_back(kind);
  out.append(digits.data(), end);
  out.append("\r\n");
}

void AppendText(std::string& out, std::string_view text) {
  AppendSize(out, '$', text.size());
  out.append(text);
  out.append("\r\n");
}

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

Batch::Entry& Batch::AddEntry(const Call& call, Call::Kind kind) {
  if (used_ == entries_.size()) entries_.emplace_back();
  Entry& entry = entries_[used_++];
  entry.request = call.record.request;
  entry.kind = kind;
  entry.items = static_cast<std::uint32_t>(items_.size());
  entry.item_count = 0;
  entry.of_call = 0;
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
  if (call.kind == Call::Kind::kApply) {
    const auto& request = call.record.request;
    const std::uint32_t known = entry_places_.Find(request[0], used_, [&](std::uint32_t number) {
      return entries_[number].request == request && entries_[number].kind == Call::Kind::kApply;
    });
    if (known != kNone) {
      Join(entries_[known], known, call);
      ++waiting_;
      return true;
    }
    if (!HasRoomFor(call)) return false;
    Entry& entry = AddEntry(call, call.kind);
    for (const Charge& charge : call.charges) AddItem(entry, charge);
    entry_places_.Add(static_cast<std::uint32_t>(used_ - 1),
                      [&](std::uint32_t number) { return entries_[number].request[0]; });
    Join(entry, static_cast<std::uint32_t>(used_ - 1), call);
    call.record.open = 1;
    ++waiting_;
    return true;
  }
  if (!HasRoomFor(call)) return false;
  // The first entry is the one that the call remembers; the others follow it.
  const auto first = static_cast<std::uint32_t>(used_);
  for (std::uint32_t i = 0; i < call.charges.size(); ++i) {
    Entry& entry = AddEntry(call, call.kind);
    AddItem(entry, call.charges[i]);
    entry.of_call = i;
    if (call.kind == Call::Kind::kRefund) {
      entry.charged_kind = call.refund.age ? 1 : call.refund.charged_at ? 2 : 0;
      entry.charged_value = call.refund.age ? call.refund.age->count()
                            : call.refund.charged_at
                                ? call.refund.charged_at->time_since_epoch().count()
                                : 0;
      entry.refund_key = kNone;
    }
    if (call.kind == Call::Kind::kRefund && !call.refund.id.empty()) {
      entry.refund_key = static_cast<std::uint32_t>(keys_.size());
      const auto begin = static_cast<std::uint32_t>(texts_.size());
      names_.AppendRefund(texts_, call.charges[i], call.refund.id);
      // Of a list algorithm, as far as the reply goes: no state is told of it.
      keys_.push_back(
          {{}, Algorithm::kSlidingLog, begin, static_cast<std::uint32_t>(texts_.size() - begin)});
    }
    Join(entry, first, call);
  }
  call.record.open = static_cast<std::uint32_t>(call.charges.size());
  ++waiting_;
  return true;
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
  const auto begin = static_cast<std::uint32_t>(texts_.size());
  names_.AppendKey(texts_, charge);
  keys_.push_back(
      {fingerprint, algorithm, begin, static_cast<std::uint32_t>(texts_.size() - begin)});
  const auto number = static_cast<std::uint32_t>(keys_.size() - 1);
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
                   weighed ? quota.slice().count() : quota.grains_per_tick(),
                   weighed ? quota.slices() : quota.grains_per_unit(), quota.saturation(),
                   static_cast<std::int64_t>(quota.origin())});
}

void Batch::PackEntry(const Entry& entry) {
  constexpr std::int64_t kLeases = 2;  // They stand in ARGV behind the two others.
  numbers_.push_back(OpOf(entry.kind));
  numbers_.push_back(static_cast<std::int64_t>(entry.waiters.size()));
  numbers_.push_back(entry.item_count);
  for (std::uint32_t i = 0; i < entry.item_count; ++i) {
    const Item& item = items_[entry.items + i];
    numbers_.push_back(item.key + 1);
    numbers_.push_back(item.quota + 1);
    numbers_.push_back(item.cost);
    numbers_.push_back(item.mode == Mode::kShadow ? 1 : 0);
    if (quotas_[item.quota].algorithm() == Algorithm::kConcurrency) {
      numbers_.push_back(item.lease == 0 ? 0 : item.lease + kLeases);
    }
  }
  if (entry.kind == Call::Kind::kDebit) {
    numbers_.push_back(quotas_[items_[entry.items].quota].max_debt());
  } else if (entry.kind == Call::Kind::kRefund) {
    numbers_.push_back(entry.refund_key == kNone ? 0 : entry.refund_key + 1);
    numbers_.push_back(entry.charged_kind);
    numbers_.push_back(entry.charged_value);
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
  AppendText(out, form == Form::kSha ? "EVALSHA" : "EVAL");
  AppendText(out, script);
  AppendText(out, std::to_string(keys_.size()));
  for (const Key& key : keys_) AppendText(out, std::string_view(texts_).substr(key.text, key.size));
  AppendText(out, packed_);
  AppendText(out, channel);
  for (std::size_t i = 0; i < lease_count_; ++i) AppendText(out, leases_[i]);
}

}  // namespace tidegate::redis
