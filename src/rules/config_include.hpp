// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <string>
#include <string_view>

#include "rules/config.hpp"
#include "rules/read_context.hpp"
#include "rules/yaml_document.hpp"

namespace tidegate {

/// A configuration file and the files that it includes, as one document. Owns its nodes.
struct ConfigDocument {
  std::deque<YamlDocument> files;  ///< In the order of inclusion, the main file first.
  std::deque<YamlNode> merged;     ///< Sections that several files have.
  const YamlNode* root = nullptr;  ///< nullptr: a file cannot be read; the problems say why.
};

/// The main file of a configuration.
struct MainFile {
  std::string_view yaml;
  std::string path = {};  ///< Empty: the text did not come from a file.
  Includes includes = Includes::kRead;
};

/// Parses a configuration file and all files that it includes, and merges their sections.
/// The lists `rules`, `routes`, `deny` and `exempt` and the map `upstreams` are concatenated: the
/// entries of a file before those of the files that it includes, in the order of `include`. All
/// other sections are kept; the caller reports a section that two files have.
///
/// Reports problems to `context` and notes every included file and pattern there.
[[nodiscard]] ConfigDocument ReadConfigDocument(const MainFile& main, ReadContext& context);

}  // namespace tidegate
