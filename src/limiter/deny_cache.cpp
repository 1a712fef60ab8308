// SPDX-License-Identifier: Apache-2.0
#include "limiter/deny_cache.hpp"

#include <algorithm>
#include <functional>

#include "store/charge_check.hpp"
#include "store/redis/key_names.hpp"

namespace tidegate {
namespace {

std::uint64_t Mix(std::uint64_t a, std::uint64_t b) noexcept {
  __extension__ typedef unsigned __int128 Wide;
  const Wide product = static_cast<Wide>(a ^ 0x9E3779B97F4A7C15u) * (b ^ 0xD6E8FEB86659FD93u);
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

}  // namespace

std::optional<Error> Identify(const Fingerprinter& fingerprinter, Call& call) {
  std::array<Fingerprint, kMaxCharges> keys;
  std::uint64_t low = 0;
  std::uint64_t high = call.charges.size();
  for (std::size_t i = 0; i < call.charges.size(); ++i) {
    const Charge& charge = call.charges[i];
    const Quota& quota = *charge.quota;
    keys[i] = fingerprinter.Key(quota.algorithm(), charge.rule, charge.identity);
    for (std::size_t j = 0; j < i; ++j) {
      if (keys[j] == keys[i]) return RepeatedKey(charge);
    }
    // With another slot tag, it is another key in Redis and therefore another request.
    const Fingerprint key = fingerprinter.WithSlotTag(keys[i], charge);
    // The fingerprints are keyed by a secret: no client can find two requests with the same key.
    const auto cost =
        static_cast<std::uint64_t>(charge.cost) << 1 | (charge.mode == Mode::kShadow ? 1u : 0u);
    const std::uint64_t shape = Mix(static_cast<std::uint64_t>(quota.limit()),
                                    static_cast<std::uint64_t>(quota.period().count())) +
                                static_cast<std::uint64_t>(quota.capacity());
    low = Mix(low ^ key.low, cost ^ shape);
    high = Mix(high + key.high, key.low ^ Mix(shape, cost));
    if (!charge.lease.empty() && quota.algorithm() == Algorithm::kConcurrency) {
      const Fingerprint lease = fingerprinter.Id(key, charge.lease);
      low = Mix(low, lease.low);
      high = Mix(high, lease.high);
    }
  }
  call.record.request = {low, high};
  return std::nullopt;
}

std::span<DenyCache::Entry> DenyCache::SetOf(const std::array<std::uint64_t, 2>& request) noexcept {
  const std::size_t sets = entries_.size() / kWays;
  return std::span(entries_).subspan(request[0] % sets * kWays, kWays);
}

bool DenyCache::IsCurrent(const Entry& entry) const noexcept {
  for (std::size_t i = 0; i < entry.count; ++i) {
    if (generations_[entry.denials[i].place] != entry.denials[i].generation) return false;
  }
  return true;
}

bool DenyCache::Find(Call& call, TimePoint now) noexcept {
  if (!MayKeep(call)) return false;
  for (Entry& entry : SetOf(call.record.request)) {
    if (entry.until <= now || entry.request != call.record.request) continue;
    if (entry.count != call.charges.size() || !IsCurrent(entry)) {
      entry.until = {};
      return false;
    }
    const auto elapsed = std::chrono::duration_cast<Micros>(now - entry.since);
    for (std::size_t i = 0; i < entry.count; ++i) {
      const Denial& denial = entry.denials[i];
      Decision& decision = call.decisions[i];
      decision = {.allowed = denial.allowed,
                  .never = denial.never,
                  .decided_by = DecidedBy::kCache,
                  .limit = call.charges[i].quota->capacity(),
                  .remaining = denial.remaining,
                  .retry_after = std::max(denial.retry_after - elapsed, Micros{0}),
                  .more_after = denial.more_after - elapsed,
                  .reset_after = std::max(denial.reset_after - elapsed, Micros{0}),
                  .rule = call.charges[i].rule};
      // This charge would pass by now; another charge of the request still does not.
      if (!denial.never && decision.retry_after == Micros{0}) decision.allowed = true;
      // More than `remaining` units may be left by now; only Redis knows how many.
      if (decision.more_after <= Micros{0}) decision.more_after = decision.retry_after;
    }
    call.allowed = false;
    call.applied = Applied::kNo;
    call.error.reset();
    return true;
  }
  return false;
}

void DenyCache::Insert(const Call& call, TimePoint sent) {
  if (!MayKeep(call)) return;
  Micros longest{0};
  bool never = false;
  for (std::size_t i = 0; i < call.charges.size(); ++i) {
    if (call.charges[i].mode == Mode::kShadow) continue;
    never = never || call.decisions[i].never;
    longest = std::max(longest, call.decisions[i].retry_after);
  }
  // Clocks that are kept by NTP differ in rate by less than 50 millionths; even then, a denial must
  // not outlast its cause. A larger margin would call Redis in vain shortly before every refill.
  std::chrono::nanoseconds holds = longest - longest / 20'000;
  if (never || holds > kCap) holds = kCap;

  const std::span<Entry> set = SetOf(call.record.request);
  Entry* place = set.data();
  for (Entry& entry : set) {
    if (entry.request == call.record.request) {
      place = &entry;
      break;
    }
    if (entry.until < place->until) place = &entry;
  }
  place->request = call.record.request;
  place->since = sent;
  place->until = {};
  place->count = call.charges.size();
  for (std::size_t i = 0; i < place->count; ++i) {
    const Decision& decision = call.decisions[i];
    const auto subject = PlaceOf(SubjectOf(call.charges[i].rule, call.charges[i].identity));
    place->denials[i] = {.remaining = decision.remaining,
                         .retry_after = decision.retry_after,
                         .more_after = decision.more_after,
                         .reset_after = decision.reset_after,
                         .generation = generations_[subject],
                         .place = subject,
                         .allowed = decision.allowed,
                         .never = decision.never};
  }
  place->until = sent + holds;
}

std::uint32_t DenyCache::PlaceOf(std::string_view subject) noexcept {
  return static_cast<std::uint32_t>(std::hash<std::string_view>{}(subject) % kGenerations);
}

std::string_view DenyCache::SubjectOf(std::string_view rule, std::string_view identity) {
  subject_.clear();
  redis::KeyNames::AppendSubject(subject_, rule, identity);
  return subject_;
}

bool DenyCache::MayKeep(const Call& call) noexcept {
  if (call.kind != Call::Kind::kApply || call.charges.size() > kMostCharges) return false;
  return std::ranges::none_of(call.charges, [](const Charge& charge) {
    return charge.quota->algorithm() == Algorithm::kConcurrency;
  });
}

}  // namespace tidegate
