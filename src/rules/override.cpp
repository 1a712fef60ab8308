// SPDX-License-Identifier: Apache-2.0
#include "rules/override.hpp"

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <cmath>
#include <tuple>
#include <utility>

#include "base/hash.hpp"

namespace tidegate {
namespace {

namespace json = boost::json;

constexpr std::array<std::string_view, kOverrideKinds> kNames = {"ban", "allow", "quota"};

/// Returns the text of a member; nothing if it is missing or not a string.
std::optional<std::string> TextOf(const json::object& object, std::string_view name) {
  const json::value* const value = object.if_contains(name);
  if (value == nullptr || !value->is_string()) return std::nullopt;
  return std::string(value->get_string());
}

std::optional<Override::Kind> KindOf(std::string_view name) {
  const auto* const found = std::ranges::find(kNames, name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<Override::Kind>(found - kNames.begin());
}

bool ReadQuota(const json::object& object, Override& to) {
  const auto limit = TextOf(object, "limit");
  const auto algorithm = ParseAlgorithm(TextOf(object, "algorithm").value_or(""));
  const json::value* const burst = object.if_contains("burst");
  if (!limit || !algorithm || (burst != nullptr && !burst->is_int64())) return false;
  const auto parsed = LimitText::Parse(*limit);
  if (!parsed) return false;
  to.limit = *parsed;
  to.algorithm = *algorithm;
  to.burst = burst == nullptr ? 0 : burst->get_int64();
  return to.MakeQuota().has_value();
}

/// If an entry ends more than this time (100 years) from now, Tidegate did not write it. Treat such
/// an entry as endless, because its end may not fit into Time.
constexpr std::chrono::milliseconds kMaxTimeLeft = std::chrono::days{36600};

/// Returns the time `expires_ms` of the register's clock, by the node's clock.
Time EndOf(std::int64_t expires_ms, std::int64_t now_ms, Time now) {
  const std::int64_t left = expires_ms - now_ms;
  return left < kMaxTimeLeft.count() ? now + std::chrono::milliseconds{left} : Time::max();
}

/// Parses a register's entry for `key`. Returns nullopt if it is not a valid override of that key.
std::optional<OverrideTable::Entry> ParseOverride(const SharedOverrides::Entry& registered,
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

std::string_view Name(Override::Kind kind) noexcept {
  return kNames[static_cast<std::size_t>(kind)];
}

std::string Override::Field(std::string_view rule, std::string_view identity) {
  std::string field;
  field.reserve(rule.size() + 1 + identity.size());
  return field.append(rule).append(" ").append(identity);
}

std::optional<OverrideKey> Override::ParseField(std::string_view field) {
  const std::size_t space = field.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  return OverrideKey{std::string(field.substr(0, space)), std::string(field.substr(space + 1))};
}

std::string Override::Text() const {
  json::object object{{"kind", Name(kind)}, {"rule", rule}, {"key", identity}};
  if (kind == Kind::kQuota) {
    object["algorithm"] = tidegate::Name(algorithm);
    object["limit"] = limit.Text();
    if (burst != 0) object["burst"] = burst;
  }
  object["by"] = by;
  object["reason"] = reason;
  return json::serialize(object);
}

std::optional<Override> Override::Parse(std::string_view text) {
  boost::system::error_code error;
  const json::value root = json::parse(text, error);
  if (error || !root.is_object()) return std::nullopt;
  const json::object& object = root.get_object();
  const auto kind = KindOf(TextOf(object, "kind").value_or(""));
  auto rule = TextOf(object, "rule");
  auto identity = TextOf(object, "key");
  if (!kind || !rule || !identity) return std::nullopt;
  Override made{.kind = *kind,
                .rule = *std::move(rule),
                .identity = *std::move(identity),
                .limit = {},
                .reason = TextOf(object, "reason").value_or(""),
                .by = TextOf(object, "by").value_or("")};
  if (*kind == Kind::kQuota && !ReadQuota(object, made)) return std::nullopt;
  return made;
}

Result<Quota> Override::MakeQuota() const {
  return Quota::Make(
      {.algorithm = algorithm, .limit = limit.count, .period = limit.period, .burst = burst});
}

OverrideTable::OverrideTable(std::shared_ptr<const Index> base, Index delta, std::size_t size,
                             std::uint64_t version, const Clock& clock) noexcept
    : base_(std::move(base)),
      delta_(std::move(delta)),
      size_(size),
      version_(version),
      clock_(clock) {}

OverrideTable::Key OverrideTable::MakeKey(std::string_view rule,
                                          std::string_view identity) noexcept {
  return {rule, identity, Hash(identity, Hash(rule))};
}

void OverrideTable::Put(Index& index, std::shared_ptr<const Entry> entry) {
  const Key key = MakeKey(entry->what.rule, entry->what.identity);
  // The key of a replaced entry points into that entry, so the key must be replaced as well.
  index.erase(key);
  index.emplace(key, std::move(entry));
}

std::size_t OverrideTable::MaxDelta(std::size_t base) noexcept {
  // With() copies D/2 pointers of the delta on average, and a merge copies n pointers once in D
  // changes: D/2 + n/D is smallest at D = sqrt(2n). With 1,000 entries, a ban copies 45 pointers.
  // Below 16 changes a merge would cost more in allocations than the copies that it saves.
  return std::max<std::size_t>(
      16, static_cast<std::size_t>(std::sqrt(2.0 * static_cast<double>(base))));
}

std::shared_ptr<const OverrideTable> OverrideTable::Make(std::vector<Entry> entries,
                                                         const Clock& clock) {
  auto base = std::make_shared<Index>();
  base->reserve(entries.size());
  for (Entry& entry : entries) Put(*base, std::make_shared<const Entry>(std::move(entry)));
  const std::size_t size = base->size();
  return std::shared_ptr<const OverrideTable>(
      new OverrideTable(std::move(base), {}, size, 1, clock));
}

std::shared_ptr<const OverrideTable> OverrideTable::With(Changes changes) const {
  Index delta = delta_;
  std::size_t size = size_;
  bool changed = false;
  const auto is_present = [&](const Key& key) {
    const auto in_delta = delta.find(key);
    return in_delta != delta.end() ? in_delta->second != nullptr : base_->contains(key);
  };
  for (const OverrideKey& removed : changes.removed) {
    const Key key = MakeKey(removed.rule, removed.identity);
    if (!is_present(key)) continue;
    delta.erase(key);
    if (const auto in_base = base_->find(key); in_base != base_->end()) {
      delta.emplace(in_base->first, nullptr);
    }
    --size;
    changed = true;
  }
  for (Entry& put : changes.put) {
    auto entry = std::make_shared<const Entry>(std::move(put));
    if (!is_present(MakeKey(entry->what.rule, entry->what.identity))) ++size;
    Put(delta, std::move(entry));
    changed = true;
  }
  if (!changed) return shared_from_this();

  std::shared_ptr<const Index> base = base_;
  if (size == 0 || delta.size() > MaxDelta(base_->size())) {
    auto merged = std::make_shared<Index>();
    merged->reserve(size);
    for (const auto& [key, entry] : *base_) {
      if (!delta.contains(key)) merged->emplace(key, entry);
    }
    for (const auto& [key, entry] : delta) {
      if (entry != nullptr) merged->emplace(key, entry);
    }
    base = std::move(merged);
    delta.clear();
  }
  return std::shared_ptr<const OverrideTable>(
      new OverrideTable(std::move(base), std::move(delta), size, version_ + 1, clock_));
}

const OverrideTable::Entry* OverrideTable::Find(std::string_view rule,
                                                std::string_view identity) const noexcept {
  const Key key = MakeKey(rule, identity);
  const Entry* entry = nullptr;
  if (const auto changed = delta_.find(key); changed != delta_.end()) {
    entry = changed->second.get();
  } else if (const auto found = base_->find(key); found != base_->end()) {
    entry = found->second.get();
  }
  if (entry == nullptr) return nullptr;
  return entry->until == Time::max() || clock_.Now() < entry->until ? entry : nullptr;
}

std::optional<Micros> OverrideTable::Left(const Entry& entry) const noexcept {
  if (entry.until == Time::max()) return std::nullopt;
  const Micros left = entry.until - clock_.Now();
  return left > Micros{0} ? left : Micros{0};
}

std::vector<const OverrideTable::Entry*> OverrideTable::Sorted() const {
  std::vector<const Entry*> entries;
  entries.reserve(size_);
  ForEach([&](const Entry& entry) { entries.push_back(&entry); });
  std::ranges::sort(entries, {}, [](const Entry* entry) {
    return std::tie(entry->what.rule, entry->what.identity);
  });
  return entries;
}

LiveOverrides::LiveOverrides(const Clock& clock)
    : clock_(clock), table_(OverrideTable::Make({}, clock)) {}

LiveOverrides::Update LiveOverrides::Apply(const SharedOverrides::Delta& delta) {
  const Time now = clock_.Now();
  Update update;
  OverrideTable::Changes changes;
  for (const std::string& field : delta.removed) {
    auto key = Override::ParseField(field);
    if (!key) continue;
    update.keys.push_back(*key);
    changes.removed.push_back(*std::move(key));
  }
  for (const SharedOverrides::Entry& registered : delta.changed) {
    auto key = Override::ParseField(registered.field);
    if (!key) {
      ++update.invalid;
      continue;
    }
    update.keys.push_back(*key);
    if (auto entry = ParseOverride(registered, *key, delta.now_ms, now)) {
      changes.put.push_back(*std::move(entry));
    } else {
      // Remove the key's earlier override, because the invalid entry replaced it.
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
