// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/hash.hpp"

namespace tidegate {

/// Path patterns stored as trees of segments; one store holds many trees. A pattern consists of
/// words, `:param` (any one segment that is not empty), and optionally a final `**` (that node and
/// all below). Each node where patterns end has a number, its leaf.
class PathTrie {
 public:
  static constexpr std::uint32_t kNone = HashIndex::kNone;

  /// Adds an empty tree. A table of trees can compare keys with its optional name, which is found
  /// by the root node: a search fetches that node next anyway, so it costs no extra cache miss.
  std::uint32_t AddRoot(std::string_view name = {}) {
    const std::uint32_t root = AddNode(kNone);
    nodes_[root].text = Intern(name);
    nodes_[root].text_size = static_cast<std::uint32_t>(name.size());
    return root;
  }
  [[nodiscard]] std::string_view NameOf(std::uint32_t root) const noexcept {
    return TextOf(nodes_[root]);
  }
  /// Returns the leaf of a pattern in a tree. It is kNone at first: the caller sets it.
  std::uint32_t& LeafOf(std::uint32_t root, std::string_view pattern);
  /// Call after the last pattern was added. Replaces each leaf by `renumber(leaf)`.
  template <class Renumber>
  void Finish(Renumber&& renumber) {
    for (Node& node : nodes_) {
      if (node.exact_leaf != kNone) node.exact_leaf = renumber(node.exact_leaf);
      if (node.prefix_leaf != kNone) node.prefix_leaf = renumber(node.prefix_leaf);
    }
    interned_ = {};
    words_.Finish();
  }

  /// Calls `visit(leaf)` for each pattern of a tree that matches `path`. A node can be reached in
  /// one way only, so each is entered at most once, however long the path and whatever the
  /// parameters. The search needs no stack: it goes back by parent nodes and by the path's slashes.
  template <class Visit>
  void Find(std::uint32_t root, std::string_view path, Visit&& visit) const noexcept;

 private:
  struct alignas(32) Node {  // Never crosses two cache lines.
    std::uint32_t parent = kNone;
    std::uint32_t param = kNone;  ///< The child that matches any segment.
    std::uint32_t exact_leaf = kNone;
    std::uint32_t prefix_leaf = kNone;
    std::uint32_t words = kNone;  ///< The only child that is a word, or kMany.
    std::uint32_t text = 0;       ///< The offset in `texts_` of the segment, or of a root's name.
    std::uint32_t text_size = 0;
    bool is_param = false;
  };
  static_assert(sizeof(Node) == 32);

  /// The node has several word children, which are found in `words_`. An only child needs no
  /// look-up, and is mostly next to its parent in memory.
  static constexpr std::uint32_t kMany = kNone - 1;

  [[nodiscard]] std::uint32_t FindWord(std::uint32_t node, std::string_view word) const noexcept {
    const std::uint32_t words = nodes_[node].words;
    if (words == kNone || word.size() > longest_word_) return kNone;
    if (words != kMany) return TextOf(nodes_[words]) == word ? words : kNone;
    return words_.Find(Hash(word, node), [&](std::uint32_t child) {
      return nodes_[child].parent == node && TextOf(nodes_[child]) == word;
    });
  }
  std::uint32_t AddNode(std::uint32_t parent) {
    nodes_.push_back({.parent = parent});
    return static_cast<std::uint32_t>(nodes_.size() - 1);
  }
  std::uint32_t ChildFor(std::uint32_t node, std::string_view segment);
  std::uint32_t Intern(std::string_view word) {
    const auto [at, fresh] =
        interned_.try_emplace(std::string(word), static_cast<std::uint32_t>(texts_.size()));
    if (fresh) texts_ += word;
    return at->second;
  }
  [[nodiscard]] std::string_view TextOf(const Node& node) const noexcept {
    return {texts_.data() + node.text, node.text_size};
  }

  static std::string_view SegmentAt(std::string_view path, std::size_t slash) noexcept {
    const std::size_t end = path.find('/', slash + 1);
    return path.substr(slash + 1, end == std::string_view::npos ? end : end - slash - 1);
  }

  std::vector<Node> nodes_;
  std::string texts_;
  std::size_t longest_word_ = 0;  ///< A longer segment matches no word, so it is not hashed.
  HashIndex words_;               ///< Maps a node and a segment to the child node.
  /// Used until Finish(): the offset of each word in `texts_`. Equal words share their text.
  std::unordered_map<std::string, std::uint32_t> interned_;
};

inline std::uint32_t PathTrie::ChildFor(std::uint32_t node, std::string_view segment) {
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

inline std::uint32_t& PathTrie::LeafOf(std::uint32_t root, std::string_view pattern) {
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

template <class Visit>
void PathTrie::Find(std::uint32_t root, std::string_view path, Visit&& visit) const noexcept {
  std::uint32_t at = root;
  std::size_t slash = 0;    // The start of the next segment; the path's end: all are consumed.
  std::size_t untried = 0;  // Parameters on the way here that were skipped for a word.
  const bool rooted = path.starts_with('/');
  for (;;) {
    const Node& node = nodes_[at];
    if (node.prefix_leaf != kNone) visit(node.prefix_leaf);
    std::uint32_t next = kNone;
    std::string_view segment;
    if (slash == path.size() || !rooted) {
      if (node.exact_leaf != kNone && rooted) visit(node.exact_leaf);
    } else if (node.words != kNone || node.param != kNone) {
      segment = SegmentAt(path, slash);
      const std::uint32_t param = segment.empty() ? kNone : node.param;
      next = FindWord(at, segment);
      if (next == kNone) {
        next = param;
      } else if (param != kNone) {
        ++untried;
      }
    }
    if (next != kNone) {
      at = next;
      slash += 1 + segment.size();
      continue;
    }
    if (untried == 0) return;
    for (;;) {  // Go back to a node whose parameter has not been tried.
      const Node& dead = nodes_[at];
      const std::size_t begin = path.rfind('/', slash - 1);
      const std::uint32_t param = nodes_[dead.parent].param;
      if (!dead.is_param && param != kNone && slash != begin + 1) {
        at = param;
        --untried;
        break;
      }
      at = dead.parent;
      slash = begin;
    }
  }
}

}  // namespace tidegate
