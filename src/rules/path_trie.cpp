// SPDX-License-Identifier: Apache-2.0
#include "rules/path_trie.hpp"

#include <algorithm>

#include "rules/hash.hpp"

namespace tidegate {

std::uint32_t PathTrie::AddNode(std::uint32_t parent) {
  nodes_.push_back({.parent = parent});
  return static_cast<std::uint32_t>(nodes_.size() - 1);
}

std::uint32_t PathTrie::AddRoot(std::string_view name) {
  const std::uint32_t root = AddNode(kNone);
  nodes_[root].text = Intern(name);
  nodes_[root].text_size = static_cast<std::uint32_t>(name.size());
  return root;
}

std::uint32_t PathTrie::Intern(std::string_view word) {
  const auto [at, fresh] =
      interned_.try_emplace(std::string(word), static_cast<std::uint32_t>(texts_.size()));
  if (fresh) texts_ += word;
  return at->second;
}

std::uint32_t PathTrie::FindWord(std::uint32_t node, std::string_view word) const noexcept {
  const std::uint32_t words = nodes_[node].words;
  if (words == kNone || word.size() > longest_word_) return kNone;
  if (words != kMany) return TextOf(nodes_[words]) == word ? words : kNone;
  return words_.Find(Hash(word, node), [&](std::uint32_t child) {
    return nodes_[child].parent == node && TextOf(nodes_[child]) == word;
  });
}

std::uint32_t PathTrie::ChildFor(std::uint32_t node, std::string_view segment) {
  const bool is_param = segment.size() > 1 && segment[0] == ':';
  const std::uint32_t existing = is_param ? nodes_[node].param : FindWord(node, segment);
  if (existing != kNone) return existing;
  const std::uint32_t child = AddNode(node);
  if (is_param) {
    nodes_[child].is_param = true;
    nodes_[node].param = child;
    return child;
  }
  nodes_[node].words = nodes_[node].words == kNone ? child : kMany;
  nodes_[child].text = Intern(segment);
  nodes_[child].text_size = static_cast<std::uint32_t>(segment.size());
  longest_word_ = std::max(longest_word_, segment.size());
  words_.Insert(Hash(segment, node), child);
  return child;
}

std::uint32_t& PathTrie::LeafOf(std::uint32_t root, std::string_view pattern) {
  std::uint32_t at = root;
  const bool prefix = pattern.ends_with("/**");
  if (prefix) pattern.remove_suffix(3);
  for (std::size_t slash = 0; slash < pattern.size();) {
    const std::string_view segment = SegmentAt(pattern, slash);
    at = ChildFor(at, segment);
    slash += 1 + segment.size();
  }
  return prefix ? nodes_[at].prefix_leaf : nodes_[at].exact_leaf;
}

}  // namespace tidegate
