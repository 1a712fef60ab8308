// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "rules/problem.hpp"

namespace tidegate {

/// One value of a YAML document. Text is as the file has it: what it means is its reader's matter.
struct YamlNode {
  enum class Kind : std::uint8_t {
    kNull,    ///< Nothing, `~` or `null`.
    kPlain,   ///< A scalar without quotes.
    kQuoted,  ///< A scalar in quotes or as a block; never a number.
    kList,
    kMap,
  };
  Kind kind = Kind::kNull;
  bool open = false;      ///< Only while it is being parsed.
  Position at;            ///< Of an alias: where its anchor is.
  std::int64_t size = 1;  ///< Itself and all below, aliases unfolded.
  std::string text;       ///< Of a scalar.
  /// A list's items; a map's keys and values in turn. Aliases share nodes, so this is no tree, but
  /// it has no cycles.
  std::vector<const YamlNode*> children;
};

/// A parsed document; owns its nodes.
struct YamlDocument {
  std::deque<YamlNode> nodes;  ///< A deque, so that they stay where they are.
  const YamlNode* root = nullptr;
};

inline constexpr int kMaxYamlDepth = 64;
inline constexpr std::int64_t kMaxYamlNodes = 1'000'000;

/// Parses exactly one document, or says why not. Never throws and needs no deep stack, whatever the
/// text: kMaxYamlDepth and kMaxYamlNodes (aliases unfolded) bound what comes of it, CheckYamlText
/// what goes in.
/// Positions name `file`.
[[nodiscard]] std::expected<YamlDocument, Problem> ParseYaml(std::string_view text,
                                                             const SourceFile& file = {});

}  // namespace tidegate
