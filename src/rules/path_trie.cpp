// SPDX-License-Identifier: Apache-2.0
#include "rules/path_trie.hpp"

#include <algorithm>

#include "rules/hash.hpp"

namespace tidegate {

std::uint32_t PathTrie::AddNode(std::uint32_t parent) {
  nodes_.push_back({.parent = parent});
  return static_cast<std::uint32_t>(nodes_.size() - 1);
}

std::uint32_t PathTrie::AddRoot() { return AddNode(kNone); }

std::uint32_t PathTrie::FindWord(std::uint32_t node, std::string_view word) const noexcept {
  if (word.size() > longest_word_) return kNone;
  return words_.Find(Hash(word, node), [&](std::uint32_t child) {
    const Node& found = nodes_[child];
    return found.parent == node &&
           std::string_view(texts_).substr(found.text, found.text_size) == word;
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
  nodes_[node].has_words = true;
  nodes_[child].text = static_cast<std::uint32_t>(texts_.size());
  nodes_[child].text_size = static_cast<std::uint32_t>(segment.size());
  texts_ += segment;
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
