// SPDX-License-Identifier: Apache-2.0
#include "rules/override_table.hpp"

#include <utility>

#include "rules/hash.hpp"

namespace tidegate {

std::size_t OverrideTable::KeyHash::operator()(const Key& key) const noexcept {
  return Hash(key.identity, Hash(key.rule));
}

OverrideTable::OverrideTable(std::vector<Entry> entries, const Clock& clock)
    : entries_(std::move(entries)), clock_(clock) {
  by_key_.reserve(entries_.size());
  for (const Entry& entry : entries_) {
    by_key_.emplace(Key{entry.what.rule, entry.what.identity}, &entry);
  }
}

std::shared_ptr<const OverrideTable> OverrideTable::Make(std::vector<Entry> entries,
                                                         const Clock& clock) {
  return std::shared_ptr<const OverrideTable>(new OverrideTable(std::move(entries), clock));
}

const OverrideTable::Entry* OverrideTable::Find(std::string_view rule,
                                                std::string_view identity) const noexcept {
  const auto found = by_key_.find({rule, identity});
  if (found == by_key_.end()) return nullptr;
  const Entry& entry = *found->second;
  return entry.until == Time::max() || clock_.Now() < entry.until ? &entry : nullptr;
}

std::optional<Micros> OverrideTable::Left(const Entry& entry) const noexcept {
  if (entry.until == Time::max()) return std::nullopt;
  const Micros left = entry.until - clock_.Now();
  return left > Micros{0} ? left : Micros{0};
}

}  // namespace tidegate
