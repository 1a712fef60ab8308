// SPDX-License-Identifier: Apache-2.0
#include "store/shared_overrides.hpp"

#include <algorithm>
#include <expected>
#include <functional>
#include <iterator>
#include <utility>

namespace tidegate {

std::vector<SharedOverrides::Record> SharedOverrides::Merge(std::vector<Record> a,
                                                            const std::vector<Record>& b,
                                                            std::size_t most) {
  const auto middle = static_cast<std::ptrdiff_t>(a.size());
  std::ranges::copy(b, std::back_inserter(a));
  std::ranges::inplace_merge(a, a.begin() + middle, std::ranges::greater{}, &Record::time_ms);
  if (a.size() > most) a.resize(most);
  return a;
}

std::int64_t LocalOverrides::NowMs() const {
  return std::chrono::floor<std::chrono::milliseconds>(clock_.Now()).time_since_epoch().count();
}

SharedOverrides::Delta LocalOverrides::RemoveExpired(std::int64_t now) {
  Delta delta{.now_ms = now, .changed = {}, .removed = {}};
  std::erase_if(entries_, [&](const auto& each) {
    const bool expired = each.second.expires_ms && *each.second.expires_ms <= now;
    if (expired) delta.removed.push_back(each.first);
    return expired;
  });
  return delta;
}

void LocalOverrides::Put(const std::string& field, const std::string& value,
                         std::optional<std::chrono::milliseconds> ttl, const std::string& record,
                         Done<Change> done) {
  const std::int64_t now = NowMs();
  Delta delta = RemoveExpired(now);
  if (entries_.size() >= most_ && !entries_.contains(field)) {
    Report(delta);
    return done(std::unexpected(
        Error{ErrorCode::kExhausted, "the table of overrides is full; remove some first"}));
  }
  Entry entry{field, value, now, std::nullopt};
  if (ttl) entry.expires_ms = now + ttl->count();
  const Change change{true, entry.expires_ms};
  std::erase(delta.removed, field);
  if (const auto known = entries_.find(field); known == entries_.end() || known->second != entry) {
    delta.changed.push_back(entry);
    entries_.insert_or_assign(field, std::move(entry));
  }
  WriteDown(record, true);
  Report(delta);
  done(change);
}

void LocalOverrides::Remove(const std::string& field, const std::string& record,
                            Done<Change> done) {
  Delta delta = RemoveExpired(NowMs());
  const bool applied = entries_.erase(field) > 0;
  if (applied) delta.removed.push_back(field);
  WriteDown(record, applied);
  Report(delta);
  done(Change{applied, std::nullopt});
}

void LocalOverrides::WriteDown(const std::string& record, bool applied) {
  changes_.Add({NowMs(), applied, record}, kRecords);
}

void LocalOverrides::NoteFailure(const std::string& record, Done<Change> done) {
  failures_.Add({NowMs(), false, record}, kFailureRecords);
  done(Change{false, std::nullopt});
}

void LocalOverrides::Records(std::size_t most, Done<Audit> done) {
  done(Audit{Merge({changes_.records.begin(), changes_.records.end()},
                   {failures_.records.begin(), failures_.records.end()}, most),
             {.since_ms = since_ms_,
              .lost_ms = std::nullopt,
              .missing_changes = changes_.dropped,
              .missing_failures = failures_.dropped}});
}

}  // namespace tidegate
