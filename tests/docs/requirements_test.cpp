// SPDX-License-Identifier: Apache-2.0
// docs/requirements.md names the test that proves each demand: every one of them exists.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <string>

namespace {

namespace fs = std::filesystem;

std::string ReadFile(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// `Suite.Name` of every test, and `Suite.*` once a suite.
std::set<std::string> AllTests(const fs::path& folder) {
  const std::regex test(R"(TEST(?:_F|_P)?\((\w+),\s*(\w+)\))");
  std::set<std::string> names;
  for (const auto& file : fs::recursive_directory_iterator(folder)) {
    if (file.path().extension() != ".cpp") continue;
    const std::string text = ReadFile(file.path());
    for (std::sregex_iterator found(text.begin(), text.end(), test), end; found != end; ++found) {
      names.insert((*found)[1].str() + "." + (*found)[2].str());
      names.insert((*found)[1].str() + ".*");
    }
  }
  return names;
}

TEST(Requirements, EveryTestThatTheyNameExists) {
  const fs::path root = TIDEGATE_SOURCE;
  const std::set<std::string> names = AllTests(root / "tests");
  const std::string text = ReadFile(root / "docs/requirements.md");
  const std::regex quoted("`([A-Z][A-Za-z0-9]+\\.(?:\\*|[A-Z]\\w+))`");
  const std::regex path("`(tests/[\\w/.]+)`");
  int count = 0;
  for (std::sregex_iterator found(text.begin(), text.end(), quoted), end; found != end; ++found) {
    ++count;
    EXPECT_TRUE(names.contains((*found)[1].str())) << "there is no test " << (*found)[1];
  }
  for (std::sregex_iterator found(text.begin(), text.end(), path), end; found != end; ++found) {
    EXPECT_TRUE(fs::exists(root / (*found)[1].str())) << (*found)[1] << " is not there";
  }
  EXPECT_GT(count, 50) << "nothing was looked at";
}

}  // namespace
