// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "base/problem.hpp"

namespace tidegate {

/// One value of a YAML document. Its text is not interpreted.
struct YamlNode {
  enum class Kind : std::uint8_t {
    kNull,    ///< An empty value, `~` or `null`.
    kPlain,   ///< A scalar without quotes.
    kQuoted,  ///< A scalar in quotes or as a block; never a number.
    kList,
    kMap,
  };
  Kind kind = Kind::kNull;
  bool open = false;      ///< True while the list or map is being parsed.
  Position at;            ///< Where the value is; for an alias, where its anchor is.
  std::int64_t size = 1;  ///< The number of nodes from this one down; each alias counts as a copy.
  std::string text;       ///< The text of a scalar.
  /// The items of a list, or a map's keys and values in turn. Aliases share nodes, without cycles.
  std::vector<const YamlNode*> children;
};

/// A parsed document; owns its nodes.
struct YamlDocument {
  std::deque<YamlNode> nodes;  ///< A deque, so that pointers to nodes stay valid.
  const YamlNode* root = nullptr;
};

inline constexpr std::size_t kMaxYamlBytes = 16u << 20;
inline constexpr int kMaxYamlDepth = 64;
inline constexpr std::int64_t kMaxYamlNodes = 1'000'000;

/// Parses exactly one document of at most kMaxYamlBytes, kMaxYamlDepth and kMaxYamlNodes, where
/// each alias counts as a copy. Never throws and needs no deep stack. Control characters, tabs in
/// the indentation, directives and texts that are not UTF-8 are errors. Positions refer to `file`.
[[nodiscard]] std::expected<YamlDocument, Problem> ParseYaml(std::string_view text,
                                                             const SourceFile& file = {});

}  // namespace tidegate
