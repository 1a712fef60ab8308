// SPDX-License-Identifier: Apache-2.0
#include "rules/live_overrides.hpp"

#include <optional>
#include <utility>

namespace tidegate {
namespace {

/// An end further away than this (100 years) was not written by Tidegate. Such an entry never ends;
/// its end may not even fit into Time.
constexpr std::chrono::milliseconds kMaxTimeLeft = std::chrono::days{36600};

/// Parses a register's entry about `key`. Empty: it is not an override of that key.
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
  if (registered.expires_ms) {
    const std::int64_t left = *registered.expires_ms - now_ms;
    if (left < kMaxTimeLeft.count()) entry.until = now + std::chrono::milliseconds{left};
  }
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
      // The entry that was there before is replaced as well.
      ++update.invalid;
      changes.removed.push_back(*std::move(key));
    }
  }
  table_ = table_->With(std::move(changes));
  update.table = table_;
  return update;
}

}  // namespace tidegate
