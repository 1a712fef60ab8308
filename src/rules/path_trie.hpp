// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "rules/hash_index.hpp"

namespace tidegate {

/// Path patterns as trees of segments, many trees in one store. A pattern's segments are words,
/// `:param` (any one segment that is not empty), and at the end perhaps `**` (that node and all
/// below). Each place where patterns end has a number, its leaf.
class PathTrie {
 public:
  static constexpr std::uint32_t kNone = HashIndex::kNone;

  /// A new, empty tree. It may have a name, for a table of trees to compare with: that lies in the
  /// node that a search fetches next, and so costs no way of its own.
  std::uint32_t AddRoot(std::string_view name = {});
  [[nodiscard]] std::string_view NameOf(std::uint32_t root) const noexcept {
    return TextOf(nodes_[root]);
  }
  /// The leaf of a pattern in a tree; kNone at first, for the caller to set.
  std::uint32_t& LeafOf(std::uint32_t root, std::string_view pattern);
  /// No more patterns will come. Each leaf gets the number that `renumber(leaf)` says.
  template <class Renumber>
  void Finish(Renumber&& renumber);

  /// Calls `visit(leaf)` for each pattern of a tree that fits `path`.
  ///
  /// A node stands for one beginning of patterns and so can be reached in one way only, at one
  /// depth: however long the path, whatever the parameters, each node of the tree is entered at
  /// most once. There is no stack either; the way back is the parents and the path itself.
  template <class Visit>
  void Find(std::uint32_t root, std::string_view path, Visit&& visit) const noexcept;

 private:
  struct alignas(32) Node {  // Never across two cache lines.
    std::uint32_t parent = kNone;
    std::uint32_t param = kNone;  ///< The child for any segment.
    std::uint32_t exact_leaf = kNone;
    std::uint32_t prefix_leaf = kNone;
    std::uint32_t words = kNone;  ///< The only child with a word, or kMany.
    std::uint32_t text = 0;       ///< The segment, or a root's name, in `texts_`.
    std::uint32_t text_size = 0;
    bool is_param = false;
  };
  static_assert(sizeof(Node) == 32);

  /// Children are looked for in `words_`. An only child is not: it mostly lies right behind its
  /// parent, as do the nodes of a path that a host has for itself.
  static constexpr std::uint32_t kMany = kNone - 1;

  [[nodiscard]] std::uint32_t FindWord(std::uint32_t node, std::string_view word) const noexcept;
  std::uint32_t AddNode(std::uint32_t parent);
  std::uint32_t ChildFor(std::uint32_t node, std::string_view segment);
  std::uint32_t Intern(std::string_view word);
  [[nodiscard]] std::string_view TextOf(const Node& node) const noexcept {
    return {texts_.data() + node.text, node.text_size};
  }

  static std::string_view SegmentAt(std::string_view path, std::size_t slash) noexcept {
    const std::size_t end = path.find('/', slash + 1);
    return path.substr(slash + 1, end == std::string_view::npos ? end : end - slash - 1);
  }

  std::vector<Node> nodes_;
  std::string texts_;
  std::size_t longest_word_ = 0;  ///< A longer segment need not be hashed.
  HashIndex words_;               ///< Of a node and a segment, to the child.
  /// Until Finish: where a word stands in `texts_`. Equal words share their text.
  std::unordered_map<std::string, std::uint32_t> interned_;
};

template <class Renumber>
void PathTrie::Finish(Renumber&& renumber) {
  for (Node& node : nodes_) {
    if (node.exact_leaf != kNone) node.exact_leaf = renumber(node.exact_leaf);
    if (node.prefix_leaf != kNone) node.prefix_leaf = renumber(node.prefix_leaf);
  }
  interned_ = {};
  words_.Finish();
}

template <class Visit>
void PathTrie::Find(std::uint32_t root, std::string_view path, Visit&& visit) const noexcept {
  std::uint32_t at = root;
  std::size_t slash = 0;    // Where the next segment begins; the path's end: all are consumed.
  std::size_t untried = 0;  // Parameters beside the words on the way here.
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
    for (;;) {  // Back to where a parameter has not been tried.
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
