// SPDX-License-Identifier: Apache-2.0
#include "rules/file_pattern.hpp"

#include <glob.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

namespace tidegate {
namespace {

constexpr std::string_view kPatternCharacters = "*?[";

/// What glob(3) could not read. Its callback has no argument of its own.
thread_local std::string unreadable_folder;

int StopAtUnreadable(const char* folder, int error) {
  if (error == ENOENT || error == ENOTDIR) return 0;
  unreadable_folder = std::string(folder) + ": " + std::strerror(error);
  return 1;
}

}  // namespace

bool IsFilePattern(std::string_view path) noexcept {
  return path.find_first_of(kPatternCharacters) != std::string_view::npos;
}

std::string EscapedFilePattern(std::string_view path) {
  std::string pattern;
  for (const char c : path) {
    if (c == '\\' || kPatternCharacters.find(c) != std::string_view::npos) pattern += '\\';
    pattern += c;
  }
  return pattern;
}

std::expected<std::vector<std::string>, std::string> FilesMatching(const std::string& pattern) {
  unreadable_folder.clear();
  glob_t found{};
  // glob(3) sorts by the locale: the order of rules must not depend on it.
  const int result = glob(pattern.c_str(), GLOB_NOSORT, StopAtUnreadable, &found);
  std::vector<std::string> files;
  for (std::size_t i = 0; result == 0 && i < found.gl_pathc; ++i) {
    std::error_code ignored;
    if (!std::filesystem::is_directory(found.gl_pathv[i], ignored)) {
      files.emplace_back(found.gl_pathv[i]);
    }
  }
  globfree(&found);
  if (result == GLOB_ABORTED) return std::unexpected("cannot read the folder " + unreadable_folder);
  if (result == GLOB_NOSPACE) return std::unexpected("matches too many files");
  std::ranges::sort(files);
  return files;
}

}  // namespace tidegate
