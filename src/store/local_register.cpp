// SPDX-License-Identifier: Apache-2.0
#include "store/local_register.hpp"

#include <algorithm>

namespace tidegate {

std::int64_t LocalRegister::NowMs() const {
  return std::chrono::floor<std::chrono::milliseconds>(clock_.Now()).time_since_epoch().count();
}

void LocalRegister::Forget(std::int64_t now) {
  std::erase_if(entries_, [now](const auto& each) {
    return each.second.expires_ms && *each.second.expires_ms <= now;
  });
}

void LocalRegister::Tell(std::int64_t now) {
  Table table{now, {}};
  for (const auto& [field, entry] : entries_) table.entries.push_back(entry);
  on_table_(table);
}

void LocalRegister::Put(const std::string& field, const std::string& value,
                        std::optional<std::chrono::milliseconds> ttl, const std::string& record,
                        Done<Change> done) {
  const std::int64_t now = NowMs();
  Forget(now);
  if (entries_.size() >= most_ && !entries_.contains(field)) {
    return done(std::unexpected(Error{ErrorCode::kExhausted, "the table is full"}));
  }
  Entry& entry = entries_[field];
  entry = {field, value, now, std::nullopt};
  if (ttl) entry.expires_ms = now + ttl->count();
  const Change change{true, entry.expires_ms};
  WriteDown(record, true);
  Tell(now);
  done(change);
}

void LocalRegister::Remove(const std::string& field, const std::string& record, Done<Change> done) {
  const std::int64_t now = NowMs();
  Forget(now);
  const bool applied = entries_.erase(field) > 0;
  WriteDown(record, applied);
  Tell(now);
  done(Change{applied, std::nullopt});
}

void LocalRegister::Note(const std::string& record, bool applied, Done<Change> done) {
  WriteDown(record, applied);
  done(Change{applied, std::nullopt});
}

void LocalRegister::WriteDown(const std::string& record, bool applied) {
  records_.push_front({NowMs(), applied, record});
  if (records_.size() > kRecords) records_.pop_back();
}

void LocalRegister::Records(std::size_t most, Done<std::vector<Record>> done) {
  const auto count = static_cast<std::ptrdiff_t>(std::min(most, records_.size()));
  done(std::vector<Record>(records_.begin(), records_.begin() + count));
}

}  // namespace tidegate
