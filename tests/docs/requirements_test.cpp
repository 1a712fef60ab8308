// SPDX-License-Identifier: Apache-2.0
// docs/requirements.md names a test for each requirement. These tests must exist.
#include <gtest/gtest.h>

#include <cctype>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <string_view>

#include "support/files.hpp"

namespace {

namespace fs = std::filesystem;

bool IsName(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

/// Removes the name that `text` begins with, and the spaces and commas after it, and returns the
/// name.
std::string TakeName(std::string_view& text) {
  std::size_t size = 0;
  while (size < text.size() && IsName(text[size])) ++size;
  std::string name(text.substr(0, size));
  text.remove_prefix(size);
  while (!text.empty() && (text.front() == ',' || text.front() == ' ' || text.front() == '\n')) {
    text.remove_prefix(1);
  }
  return name;
}

/// Returns `Suite.Name` of every test in a folder, and `Suite.*` of every suite.
std::set<std::string> AllTests(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& file : fs::recursive_directory_iterator(folder)) {
    if (file.path().extension() != ".cpp") continue;
    const std::string text = tidegate::test::ReadFile(file.path());
    for (std::size_t at = text.find("\nTEST"); at != std::string::npos;
         at = text.find("\nTEST", at + 1)) {
      std::string_view rest = std::string_view(text).substr(at + 1);
      rest.remove_prefix(std::min(rest.size(), rest.find('(') + 1));
      const std::string suite = TakeName(rest);
      names.insert(suite + "." + TakeName(rest));
      names.insert(suite + ".*");
    }
  }
  return names;
}

TEST(RequirementsTest, EveryTestNamedInRequirementsExists) {
  const fs::path root = TIDEGATE_SOURCE;
  const std::set<std::string> names = AllTests(root / "tests");
  const std::string text = tidegate::test::ReadFile(root / "docs/requirements.md");
  int count = 0;
  // Check each text in backticks that looks like a test or a file of tests.
  for (std::size_t begin = text.find('`'); begin != std::string::npos;) {
    const std::size_t end = text.find('`', begin + 1);
    if (end == std::string::npos) break;
    const std::string quoted = text.substr(begin + 1, end - begin - 1);
    begin = text.find('`', end + 1);
    std::string_view rest = quoted;
    const std::string suite = TakeName(rest);
    if (quoted.starts_with("tests/")) {
      EXPECT_TRUE(fs::exists(root / quoted)) << quoted << " does not exist";
    } else if (!suite.empty() && std::isupper(static_cast<unsigned char>(suite[0])) != 0 &&
               rest.starts_with('.')) {
      ++count;
      EXPECT_TRUE(names.contains(quoted)) << "test " << quoted << " does not exist";
    }
  }
  EXPECT_GT(count, 50) << "too few tests were found in the text";
}

}  // namespace
