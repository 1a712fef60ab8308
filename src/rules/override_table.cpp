// SPDX-License-Identifier: Apache-2.0
#include "rules/override_table.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "rules/hash.hpp"

namespace tidegate {

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
  // The key of a replaced entry points into that entry, so it must go as well.
  index.erase(key);
  index.emplace(key, std::move(entry));
}

std::size_t OverrideTable::MaxDelta(std::size_t base) noexcept {
  // With() copies the delta, D/2 pointers on average if it holds at most D, and a merge copies n
  // pointers once in D changes. The sum D/2 + n/D is smallest at D = sqrt(2n). With 1,000 entries a
  // delta holds up to 44 changes and a ban copies 45 pointers on average, instead of 1,000. Below
  // 16 changes a merge would cost more in allocations than the copies that it saves.
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
  for (const OverrideKey& removed : changes.removed) {
    const Key key = MakeKey(removed.rule, removed.identity);
    const auto in_delta = delta.find(key);
    const auto in_base = base_->find(key);
    const bool present =
        in_delta != delta.end() ? in_delta->second != nullptr : in_base != base_->end();
    if (!present) continue;
    if (in_delta != delta.end()) delta.erase(in_delta);
    if (in_base != base_->end()) delta.emplace(in_base->first, nullptr);
    --size;
    changed = true;
  }
  for (Entry& put : changes.put) {
    auto entry = std::make_shared<const Entry>(std::move(put));
    const Key key = MakeKey(entry->what.rule, entry->what.identity);
    const auto in_delta = delta.find(key);
    const bool present =
        in_delta != delta.end() ? in_delta->second != nullptr : base_->contains(key);
    if (!present) ++size;
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

}  // namespace tidegate
