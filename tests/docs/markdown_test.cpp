// SPDX-License-Identifier: Apache-2.0
// The Markdown files of the project: every link has a target, and every configuration is valid.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.hpp"
#include "server/snapshot_compiler.hpp"

namespace tidegate {
namespace {

namespace fs = std::filesystem;

std::string ReadText(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<fs::path> FilesOfProject(std::string_view extension) {
  const fs::path root = TIDEGATE_SOURCE;
  std::vector<fs::path> files;
  for (fs::recursive_directory_iterator it(root), end; it != end; ++it) {
    const std::string name = it->path().filename().string();
    const bool made = name == "build" || name == "node_modules" || name.starts_with('.');
    if (it->is_directory() && made) it.disable_recursion_pending();
    if (it->is_regular_file() && it->path().extension() == extension) files.push_back(it->path());
  }
  std::ranges::sort(files);
  return files;
}

std::string Name(const fs::path& file) { return fs::relative(file, TIDEGATE_SOURCE).string(); }

/// A line of a Markdown file.
struct Line {
  std::string text;
  std::string language;  ///< Language of the code block that contains the line; empty: outside of
                         ///< code.
  int number = 0;
  bool code = false;
};

std::vector<Line> LinesOf(const fs::path& file) {
  std::vector<Line> lines;
  std::istringstream in(ReadText(file));
  bool code = false;
  std::string language;
  int number = 0;
  for (std::string text; std::getline(in, text);) {
    ++number;
    if (text.starts_with("```")) {
      code = !code;
      language = code ? text.substr(3) : "";
      lines.push_back({"", "", number, true});
      continue;
    }
    lines.push_back({text, language, number, code});
  }
  return lines;
}

// --- Links ----------------------------------------------------------------------------

/// Returns the anchor that GitHub generates for a heading.
std::string AnchorOf(std::string_view heading) {
  std::string anchor;
  for (std::size_t i = 0; i < heading.size(); ++i) {
    const auto c = static_cast<unsigned char>(heading[i]);
    if (heading.substr(i).starts_with("](")) i = std::min(heading.find(')', i), heading.size());
    if (heading[i] == ']') continue;
    if (c == ' ') anchor += '-';
    if (std::isalnum(c) != 0 || c == '-' || c == '_' || c >= 0x80) {
      anchor += static_cast<char>(std::tolower(c));
    }
  }
  return anchor;
}

std::set<std::string> AnchorsOf(const fs::path& file) {
  std::set<std::string> anchors;
  std::map<std::string, int> seen;
  for (const Line& line : LinesOf(file)) {
    for (std::size_t at = line.text.find("<a id=\""); at != std::string::npos;
         at = line.text.find("<a id=\"", at + 1)) {
      anchors.insert(line.text.substr(at + 7, line.text.find('"', at + 7) - at - 7));
    }
    const std::size_t level = line.text.find_first_not_of('#');
    if (line.code || level == 0 || level > 6 || line.text[level] != ' ') continue;
    const std::string anchor = AnchorOf(std::string_view(line.text).substr(level + 1));
    const int times = seen[anchor]++;
    anchors.insert(times == 0 ? anchor : anchor + "-" + std::to_string(times));
  }
  return anchors;
}

/// Returns the targets of all `[text](target)` outside of code.
std::vector<std::string> TargetsIn(const std::string& text) {
  std::vector<std::string> targets;
  bool code = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '`') code = !code;
    if (code || !std::string_view(text).substr(i).starts_with("](")) continue;
    const std::size_t end = std::min(text.find(')', i), text.size());
    targets.push_back(text.substr(i + 2, end - i - 2));
  }
  return targets;
}

TEST(MarkdownTest, GeneratesAnchorsLikeGitHub) {
  EXPECT_EQ(AnchorOf("What counting costs"), "what-counting-costs");
  EXPECT_EQ(AnchorOf("per: what a rule counts by"), "per-what-a-rule-counts-by");
  EXPECT_EQ(AnchorOf("`serve --demo`, or [docs](x.md)"), "serve---demo-or-docs");
  EXPECT_EQ(AnchorOf("GET /v1/rules"), "get-v1rules");
}

TEST(MarkdownTest, EveryLinkHasExistingFileAndAnchor) {
  int links = 0;
  int anchors = 0;
  for (const fs::path& file : FilesOfProject(".md")) {
    for (const Line& line : LinesOf(file)) {
      if (line.code) continue;
      for (const std::string& target : TargetsIn(line.text)) {
        if (target.find("://") != std::string::npos || target.starts_with("mailto:")) continue;
        ++links;
        const std::size_t hash = std::min(target.find('#'), target.size());
        const std::string path = target.substr(0, hash);
        const fs::path to = path.empty() ? file : (file.parent_path() / path).lexically_normal();
        EXPECT_TRUE(fs::exists(to)) << Name(file) << ":" << line.number << ": " << target;
        if (hash == target.size() || to.extension() != ".md" || !fs::exists(to)) continue;
        ++anchors;
        EXPECT_TRUE(AnchorsOf(to).contains(target.substr(hash + 1)))
            << Name(file) << ":" << line.number << ": " << target
            << ": this heading does not exist";
      }
    }
  }
  // With too few links, the search for links is broken and the test proves nothing.
  EXPECT_GT(links, 200);
  EXPECT_GT(anchors, 50);
}

// --- Configurations -------------------------------------------------------------------

/// Rules that are added to parts of a configuration without rules.
constexpr std::string_view kRules = R"(
rules:
  - { id: per-key, per: header:x-api-key | client_ip, limit: 100/s }
  - { id: per-address, per: client_ip, limit: 500/s }
)";

std::optional<std::string> Environment(const std::string& name) {
  if (name == "TIDEGATE_DEMO_UPSTREAM") return std::nullopt;
  return "some-value-of-" + name;
}

/// Returns the problems of a configuration as check-config prints them.
std::vector<std::string> ProblemsOf(const std::string& yaml) {
  ConfigReading reading = ParseConfig(yaml, "/nonexistent", Environment);
  if (reading.config) SnapshotCompiler::Check(*reading.config, reading.problems);
  std::vector<std::string> problems;
  for (const Problem& problem : reading.problems) problems.push_back(problem.Text(""));
  return problems;
}

/// Returns the names of the sections of a configuration: the keys in the first column.
std::set<std::string> SectionsOf(const std::string& yaml) {
  std::set<std::string> sections;
  std::istringstream in(yaml);
  for (std::string line; std::getline(in, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos || line[0] == ' ' || line[0] == '#' || line[0] == '-') continue;
    sections.insert(line.substr(0, colon));
  }
  return sections;
}

bool IsSection(const std::string& name) {
  static const std::set<std::string> kSections = {
      "store",  "listen", "access",  "client_ip",  "identity", "paths",    "responses",
      "api",    "resp",   "limits",  "log",        "metrics",  "process",  "deny",
      "exempt", "rules",  "gateway", "access_log", "routes",   "upstreams"};
  return kSections.contains(name);
}

/// Returns true if a problem only results from showing a part of a configuration without its files,
/// users and other sections.
bool IsOfThePiece(const std::string& problem) {
  return std::ranges::any_of(
      std::initializer_list<std::string_view>{
          "there is no file `", "there is no user `", "has no `routes`, so that",
          "has no effect: no listener requests client certificates"},
      [&](std::string_view part) { return problem.find(part) != std::string::npos; });
}

TEST(MarkdownTest, ConfigurationFilesHaveNoProblemsOrWarnings) {
  const fs::path root = TIDEGATE_SOURCE;
  std::vector<fs::path> files = {root / "docs/recipes/tidegate.yaml"};
  for (const auto& file : fs::directory_iterator(root / "examples")) {
    if (file.path().extension() == ".yaml") files.push_back(file.path());
  }
  EXPECT_GE(files.size(), 4u);
  for (const fs::path& file : files) {
    EXPECT_THAT(ProblemsOf(ReadText(file)), testing::IsEmpty()) << Name(file);
  }
}

TEST(MarkdownTest, ConfigurationsInPagesHaveNoProblemsOrWarnings) {
  int whole = 0;
  int pieces = 0;
  for (const fs::path& file : FilesOfProject(".md")) {
    std::string yaml;
    int begin = 0;
    for (const Line& line : LinesOf(file)) {
      if (line.language == "yaml") {
        if (yaml.empty()) begin = line.number;
        yaml += line.text + "\n";
        continue;
      }
      const std::string block = std::exchange(yaml, "");
      const std::set<std::string> sections = SectionsOf(block);
      // Skip files of other programs, and single entries of a section.
      if (sections.empty() || !std::ranges::all_of(sections, IsSection)) continue;
      const bool is_whole = sections.contains("rules");
      ++(is_whole ? whole : pieces);
      std::vector<std::string> problems =
          ProblemsOf(is_whole ? block : block + std::string(kRules));
      if (!is_whole) std::erase_if(problems, IsOfThePiece);
      EXPECT_THAT(problems, testing::IsEmpty()) << Name(file) << ":" << begin << "\n" << block;
    }
  }
  EXPECT_GE(whole, 3);
  EXPECT_GE(pieces, 10);
}

}  // namespace
}  // namespace tidegate
