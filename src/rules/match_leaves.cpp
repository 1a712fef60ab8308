// SPDX-License-Identifier: Apache-2.0
#include "rules/match_leaves.hpp"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "base/ascii.hpp"

namespace tidegate {
namespace {

/// FNV-1a over lower-case letters: names are short, and hashing them this way needs no copy.
std::uint64_t NameHash(std::string_view name) noexcept {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : name) {
    hash = (hash ^ static_cast<unsigned char>(Lower(c))) * 0x100000001b3;
  }
  return hash ^ hash >> 32;
}

}  // namespace

std::uint32_t MatchLeaves::NameOf(std::string_view header) const noexcept {
  return name_of_.Find(NameHash(header),
                       [&](std::uint32_t name) { return EqualsIgnoreCase(names_[name], header); });
}

/// Indexes the specs of one leaf.
class MatchLeaves::Builder {
 public:
  Builder(MatchLeaves& out, std::span<const MatchSpec> specs, std::uint32_t leaf,
          const std::vector<std::uint32_t>& members)
      : out_(out), leaf_(leaf) {
    for (const std::uint32_t id : members) entries_.push_back({id, &specs[id], Choices(specs[id])});
    for (const Entry& entry : entries_) {
      for (const Choice& choice : entry.choices) {
        for (const std::uint64_t key : choice.keys) ++sharers_[key];
      }
    }
  }

  Leaf Build() {
    std::vector<std::uint32_t> always;
    std::vector<std::uint32_t> checked;
    std::set<int> lengths;
    Leaf leaf;
    for (const Entry& entry : entries_) {
      const Choice* const best = Best(entry);
      if (best == nullptr) {
        (out_.conditions_.IsEmpty(entry.id) ? always : checked).push_back(entry.id);
        continue;
      }
      for (const std::uint64_t key : best->keys) buckets_[key].push_back(entry.id);
      leaf.by_method |= best->by == By::kMethod;
      leaf.by_header |= best->by == By::kHeader;
      if (best->by != By::kNetwork) continue;
      for (const Network& network : entry.spec->client_ips) lengths.insert(network.bits());
    }
    leaf.always = Append(always);
    leaf.checked = Append(checked);
    leaf.lengths.begin = static_cast<std::uint32_t>(out_.lengths_.size());
    out_.lengths_.insert(out_.lengths_.end(), lengths.begin(), lengths.end());
    leaf.lengths.end = static_cast<std::uint32_t>(out_.lengths_.size());
    for (auto& [key, ids] : buckets_) {
      if (ids.size() == 1) {
        out_.bucket_index_.Insert(key, ids[0]);
        continue;
      }
      out_.bucket_index_.Insert(key, static_cast<std::uint32_t>(out_.buckets_.size()) | kShared);
      out_.buckets_.push_back(Append(ids));
    }
    return leaf;
  }

 private:
  /// A condition by which a spec can be indexed: every request that meets it has one of the keys.
  struct Choice {
    By by;
    std::vector<std::uint64_t> keys;
  };
  struct Entry {
    std::uint32_t id;
    const MatchSpec* spec;
    std::vector<Choice> choices;
  };

  std::vector<Choice> Choices(const MatchSpec& spec) {
    std::vector<Choice> choices;
    for (const MatchSpec::Header& header : spec.headers) {
      if (header.pattern.contains('*')) continue;
      out_.longest_value_ = std::max(out_.longest_value_, header.pattern.size());
      choices.push_back(
          {By::kHeader, {Key(leaf_, By::kHeader, AddName(header.name), header.pattern)}});
    }
    if (!spec.client_ips.empty()) {
      Choice& networks = choices.emplace_back(Choice{By::kNetwork, {}});
      for (const Network& network : spec.client_ips) {
        networks.keys.push_back(Key(leaf_, By::kNetwork, static_cast<std::uint64_t>(network.bits()),
                                    network.base().bytes()));
      }
    }
    if (!spec.methods.empty()) {
      Choice& methods = choices.emplace_back(Choice{By::kMethod, {}});
      for (const std::string& method : spec.methods) {
        out_.longest_value_ = std::max(out_.longest_value_, method.size());
        methods.keys.push_back(Key(leaf_, By::kMethod, 0, method));
      }
    }
    for (Choice& choice : choices) {  // Removes duplicate keys.
      std::ranges::sort(choice.keys);
      choice.keys.erase(std::unique(choice.keys.begin(), choice.keys.end()), choice.keys.end());
    }
    return choices;
  }

  std::uint32_t AddName(const std::string& name) {
    const std::uint32_t existing = out_.NameOf(name);
    if (existing != HashIndex::kNone) return existing;
    const auto number = static_cast<std::uint32_t>(out_.names_.size());
    out_.names_.push_back(name);
    out_.name_of_.Insert(NameHash(name), number);
    out_.name_sizes_ |= std::uint64_t{1} << (name.size() % 64);
    return number;
  }

  /// Returns the choice whose fullest bucket is the emptiest; nullptr if the entry has no choices.
  const Choice* Best(const Entry& entry) const {
    const Choice* best = nullptr;
    std::size_t fewest = 0;
    for (const Choice& choice : entry.choices) {
      std::size_t most = 0;
      for (const std::uint64_t key : choice.keys) most = std::max(most, sharers_.at(key));
      if (best != nullptr && most >= fewest) continue;
      best = &choice;
      fewest = most;
    }
    return best;
  }

  Range Append(const std::vector<std::uint32_t>& ids) {
    const auto begin = static_cast<std::uint32_t>(out_.ids_.size());
    out_.ids_.insert(out_.ids_.end(), ids.begin(), ids.end());
    return {begin, static_cast<std::uint32_t>(out_.ids_.size())};
  }

  MatchLeaves& out_;
  std::uint32_t leaf_;
  std::vector<Entry> entries_;
  std::unordered_map<std::uint64_t, std::size_t> sharers_;  ///< Number of specs with this key.
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> buckets_;
};

MatchLeaves::MatchLeaves(std::span<const MatchSpec> specs,
                         const std::vector<std::vector<std::uint32_t>>& leaves) {
  for (const MatchSpec& spec : specs) conditions_.Add(spec);
  for (std::uint32_t leaf = 0; leaf < leaves.size(); ++leaf) {
    leaves_.push_back(Builder(*this, specs, leaf, leaves[leaf]).Build());
  }
  bucket_index_.Finish();
  name_of_.Finish();
}

std::uint32_t MatchLeaves::Single(std::uint32_t leaf) const noexcept {
  const auto& [always, checked, lengths, by_header, by_method] = leaves_[leaf];
  const bool single = always.end - always.begin == 1 && checked.begin == checked.end &&
                      lengths.begin == lengths.end && !by_header && !by_method;
  return single ? ids_[always.begin] : HashIndex::kNone;
}

}  // namespace tidegate
