// SPDX-License-Identifier: Apache-2.0
#include "config/content_digest.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <glob.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <expected>
#include <filesystem>
#include <fstream>
#include <memory>
#include <system_error>

namespace tidegate {
namespace {

constexpr std::string_view kPatternCharacters = "*?[";

/// The folder that glob(3) could not read, and why. A global, since glob's callback takes no data.
thread_local std::string unreadable_folder;

int StopAtUnreadable(const char* folder, int error) {
  if (error == ENOENT || error == ENOTDIR) return 0;
  unreadable_folder = std::string(folder) + ": " + std::strerror(error);
  return 1;
}

}  // namespace

std::expected<std::string, std::string> ReadFileUpTo(const std::string& path,
                                                     std::size_t max_bytes) {
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  std::string text;
  std::array<char, 64u << 10> piece;
  while (in && text.size() <= max_bytes) {
    in.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    text.append(piece.data(), static_cast<std::size_t>(in.gcount()));
  }
  if (!in.is_open() || in.bad()) {
    return std::unexpected(errno != 0 ? std::strerror(errno) : "unknown reason");
  }
  if (text.size() > max_bytes) text.resize(max_bytes + 1);
  return text;
}

ContentDigest DigestOf(std::string_view content) noexcept {
  if (content.empty()) return {};
  const XXH128_hash_t hash = XXH3_128bits(content.data(), content.size());
  return {hash.low64, hash.high64};
}

ContentDigest DigestOfFile(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return {};
  std::ifstream in(path, std::ios::binary);
  // The file is read in pieces, because it can be of any length.
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(),
                                                                       XXH3_freeState);
  if (state == nullptr || XXH3_128bits_reset(state.get()) != XXH_OK) return {};
  std::array<char, 16u << 10> piece;
  bool empty = true;
  while (in) {
    in.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    const auto size = static_cast<std::size_t>(in.gcount());
    XXH3_128bits_update(state.get(), piece.data(), size);
    empty = empty && size == 0;
  }
  if (empty || !in.eof()) return {};
  const XXH128_hash_t hash = XXH3_128bits_digest(state.get());
  return {hash.low64, hash.high64};
}

ContentDigest DigestOfNames(const std::vector<std::string>& names) {
  std::string text = "names\n";
  for (const std::string& name : names) text += name + "\n";
  return DigestOf(text);
}

ContentDigest CurrentDigest(const WatchedFile& file) {
  if (!file.is_pattern) return DigestOfFile(file.path);
  return DigestOfNames(FilesMatching(file.path).value_or(std::vector<std::string>{}));
}

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
  // glob(3) would sort by the locale, on which the order of rules must not depend.
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
