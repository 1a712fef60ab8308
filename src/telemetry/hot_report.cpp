// SPDX-License-Identifier: Apache-2.0
#include "telemetry/hot_report.hpp"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace tidegate {
namespace {

struct Name {
  std::uint32_t slot;
  std::string_view identity;
  friend bool operator==(const Name&, const Name&) = default;
};

struct NameHash {
  std::size_t operator()(const Name& name) const noexcept {
    return std::hash<std::string_view>{}(name.identity) ^ (name.slot * 0x9E3779B97F4A7C15u);
  }
};

/// As if no part had it; what the parts have is put in its place, one by one.
struct Sum {
  std::uint64_t count;
  std::uint64_t error;
};

HotList MergeView(std::span<const std::shared_ptr<const HotReport>> parts, std::size_t view,
                  std::size_t most) {
  HotList merged;
  for (const auto& part : parts) {
    if (part == nullptr) continue;
    merged.total += part->by[view].total;
    merged.error += part->by[view].error;
  }
  const std::uint64_t unseen = merged.error;
  std::unordered_map<Name, Sum, NameHash> sums;
  for (const auto& part : parts) {
    if (part == nullptr) continue;
    const HotList& list = part->by[view];
    for (const HotKey& key : list.keys) {
      Sum& sum = sums.try_emplace({key.slot, key.identity}, Sum{unseen, unseen}).first->second;
      sum.count += key.count - list.error;  // May be less than that: unsigned sums come out right.
      sum.error += key.error - list.error;
    }
  }
  std::vector<std::pair<Name, Sum>> all(sums.begin(), sums.end());
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    if (a.second.count != b.second.count) return a.second.count > b.second.count;
    return std::pair(a.first.slot, a.first.identity) < std::pair(b.first.slot, b.first.identity);
  });
  if (all.size() > most) {
    merged.error = std::max(merged.error, all[most].second.count);
    all.resize(most);
  }
  for (const auto& [name, sum] : all) {
    merged.keys.push_back({name.slot, std::string(name.identity), sum.count, sum.error});
  }
  return merged;
}

}  // namespace

HotReport Merge(std::span<const std::shared_ptr<const HotReport>> parts, std::size_t most) {
  HotReport report;
  for (std::size_t view = 0; view < kHotViews; ++view) {
    report.by[view] = MergeView(parts, view, most);
  }
  for (const auto& part : parts) {
    if (part == nullptr) continue;
    report.requests += part->requests;
    report.span = std::max(report.span, part->span);
  }
  return report;
}

}  // namespace tidegate
