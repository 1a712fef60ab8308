// SPDX-License-Identifier: Apache-2.0
#include "rules/live_overrides.hpp"

#include <optional>
#include <utility>

namespace tidegate {
namespace {

/// An entry whose end is further away than this (100 years) was not written by Tidegate. It never
/// ends, because its end may not fit into Time.
constexpr std::chrono::milliseconds kMaxTimeLeft = std::chrono::days{36600};

/// The end `expires_ms` of the register's clock, by the node's clock.
Time EndOf(std::int64_t expires_ms, std::int64_t now_ms, Time now) {
  const std::int64_t left = expires_ms - now_ms;
  return left < kMaxTimeLeft.count() ? now + std::chrono::milliseconds{left} : Time::max();
}

/// Parses a register's entry for `key`. Returns nullopt if it is not a valid override of that key.
std::optional<OverrideTable::Entry> ParseOverride(const FleetRegister::Entry& registered,
                                                  const OverrideKey& key, std::int64_t now_ms,
                                                  Time now) {
  auto what = Override::Parse(registered.value);
  if (!what || what->rule != key.rule || what->identity != key.identity) return std::nullopt;
  OverrideTable::Entry entry{.what = *std::move(what),
                             .quota = std::nullopt,
                             .since_ms = registered.since_ms,
                             .expires_ms = registered.expires_ms};
  if (entry.what.kind == Override::Kind::kQuota) entry.quota = *entry.what.MakeQuota();
  if (registered.expires_ms) entry.until = EndOf(*registered.expires_ms, now_ms, now);
  return entry;
}

}  // namespace

LiveOverrides::LiveOverrides(const Clock& clock)
    : clock_(clock), table_(OverrideTable::Make({}, clock)) {}

LiveOverrides::Update LiveOverrides::Apply(const FleetRegister::Delta& delta) {
  const Time now = clock_.Now();
  Update update;
  OverrideTable::Changes changes;
  for (const std::string& field : delta.removed) {
    auto key = Override::ParseField(field);
    if (!key) continue;
    update.keys.push_back(*key);
    changes.removed.push_back(*std::move(key));
  }
  for (const FleetRegister::Entry& registered : delta.changed) {
    auto key = Override::ParseField(registered.field);
    if (!key) {
      ++update.invalid;
      continue;
    }
    update.keys.push_back(*key);
    if (auto entry = ParseOverride(registered, *key, delta.now_ms, now)) {
      changes.put.push_back(*std::move(entry));
    } else {
      // The invalid entry replaced the key's earlier override.
      ++update.invalid;
      changes.removed.push_back(*std::move(key));
    }
  }
  table_ = table_->With(std::move(changes));
  FollowClock(delta.now_ms, now);
  update.table = table_;
  return update;
}

void LiveOverrides::FollowClock(std::int64_t now_ms, Time now) {
  constexpr std::chrono::seconds kStep{1};
  const Micros offset = std::chrono::milliseconds{now_ms} - now.time_since_epoch();
  const bool stepped = std::chrono::abs(offset - offset_) > kStep;
  offset_ = offset;
  if (!stepped) return;
  OverrideTable::Changes moved;
  table_->ForEach([&](const OverrideTable::Entry& entry) {
    if (!entry.expires_ms) return;
    moved.put.push_back(entry);
    moved.put.back().until = EndOf(*entry.expires_ms, now_ms, now);
  });
  table_ = table_->With(std::move(moved));
}

}  // namespace tidegate
