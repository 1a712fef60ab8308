// SPDX-License-Identifier: Apache-2.0
#include "limiter/deny_cache.hpp"

#include <algorithm>
#include <functional>

namespace tidegate {
namespace {

using std::chrono::duration_cast;
using std::chrono::nanoseconds;

}  // namespace

DenyCache::DenyCache(std::size_t entries) : entries_(std::max(entries, kWays)) {}

std::span<DenyCache::Entry> DenyCache::SetOf(const std::array<std::uint64_t, 2>& request) noexcept {
  const std::size_t sets = entries_.size() / kWays;
  return std::span(entries_).subspan(request[0] % sets * kWays, kWays);
}

bool DenyCache::IsCurrent(const Entry& entry) const noexcept {
  for (std::size_t i = 0; i < entry.count; ++i) {
    if (generations_[entry.kept[i].key] != entry.kept[i].generation) return false;
  }
  return true;
}

bool DenyCache::Find(Call& call, TimePoint now) noexcept {
  for (Entry& entry : SetOf(call.record.request)) {
    if (entry.until <= now || entry.request != call.record.request) continue;
    if (entry.count != call.charges.size() || !IsCurrent(entry)) {
      entry.until = {};
      return false;
    }
    const auto elapsed = duration_cast<Micros>(now - entry.since);
    for (std::size_t i = 0; i < entry.count; ++i) {
      const Kept& kept = entry.kept[i];
      Decision& decision = call.decisions[i];
      decision = {.allowed = kept.allowed,
                  .never = kept.never,
                  .decided_by = DecidedBy::kCache,
                  .limit = call.charges[i].quota->capacity(),
                  .remaining = kept.remaining,
                  .retry_after = std::max(Micros{kept.retry_after} - elapsed, Micros{0}),
                  .more_after = Micros{kept.more_after} - elapsed,
                  .reset_after = std::max(Micros{kept.reset_after} - elapsed, Micros{0}),
                  .rule = call.charges[i].rule};
      // This one would pass by now; another of them still does not.
      if (!kept.never && decision.retry_after == Micros{0}) decision.allowed = true;
      // More than `remaining` may be there by now, how much only Redis knows.
      if (decision.more_after <= Micros{0}) decision.more_after = decision.retry_after;
    }
    call.allowed = false;
    call.done = Done::kNothing;
    call.error.reset();
    return true;
  }
  return false;
}

void DenyCache::Insert(const Call& call, std::span<const std::uint64_t> keys,
                       TimePoint sent) noexcept {
  Micros longest{0};
  bool never = false;
  for (std::size_t i = 0; i < call.charges.size(); ++i) {
    if (call.charges[i].mode == Mode::kShadow) continue;
    never = never || call.decisions[i].never;
    longest = std::max(longest, call.decisions[i].retry_after);
  }
  // Clocks that are kept by NTP differ by less than 50 millionths; a denial must not outlast its
  // cause even so. A larger margin would ask Redis in vain shortly before every refill.
  nanoseconds holds = longest - longest / 20'000;
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
  place->until = sent + holds;
  place->count = call.charges.size();
  for (std::size_t i = 0; i < place->count; ++i) {
    const Decision& decision = call.decisions[i];
    const auto key = static_cast<std::uint32_t>(keys[i] % generations_.size());
    place->kept[i] = {.remaining = decision.remaining,
                      .retry_after = decision.retry_after.count(),
                      .more_after = decision.more_after.count(),
                      .reset_after = decision.reset_after.count(),
                      .generation = generations_[key],
                      .key = key,
                      .allowed = decision.allowed,
                      .never = decision.never};
  }
}

void DenyCache::Clear() noexcept {
  for (Entry& entry : entries_) entry.until = {};
}

std::uint64_t DenyCache::HashOf(std::string_view key) noexcept {
  return std::hash<std::string_view>{}(key);
}

bool DenyCache::MayKeep(const Call& call) noexcept {
  if (call.kind != Call::Kind::kApply || call.charges.size() > kMostCharges) return false;
  return std::ranges::none_of(call.charges, [](const Charge& charge) {
    return charge.quota->algorithm() == Algorithm::kConcurrency;
  });
}

}  // namespace tidegate
