// SPDX-License-Identifier: Apache-2.0
// docs/requirements.md names the test that proves each demand: every one of them exists.
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

/// Takes the name that `text` begins with, and the spaces and commas behind it.
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

/// `Suite.Name` of every test, and `Suite.*` once a suite.
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

TEST(RequirementsTest, EveryNamedTestExists) {
  const fs::path root = TIDEGATE_SOURCE;
  const std::set<std::string> names = AllTests(root / "tests");
  const std::string text = tidegate::test::ReadFile(root / "docs/requirements.md");
  int count = 0;
  // What stands in backticks and looks like a test or a file of tests.
  for (std::size_t begin = text.find('`'); begin != std::string::npos;) {
    const std::size_t end = text.find('`', begin + 1);
    if (end == std::string::npos) break;
    const std::string quoted = text.substr(begin + 1, end - begin - 1);
    begin = text.find('`', end + 1);
    std::string_view rest = quoted;
    const std::string suite = TakeName(rest);
    if (quoted.starts_with("tests/")) {
      EXPECT_TRUE(fs::exists(root / quoted)) << quoted << " is not there";
    } else if (!suite.empty() && std::isupper(static_cast<unsigned char>(suite[0])) != 0 &&
               rest.starts_with('.')) {
      ++count;
      EXPECT_TRUE(names.contains(quoted)) << "there is no test " << quoted;
    }
  }
  EXPECT_GT(count, 50) << "nothing was looked at";
}

}  // namespace
