// SPDX-License-Identifier: Apache-2.0
#include "config/files.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <glob.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <system_error>

#include "base/message_text.hpp"
#include "config/value.hpp"

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

std::string OctalMode(mode_t mode) {
  std::array<char, 8> text{};
  (void)std::snprintf(text.data(), text.size(), "%04o", mode & 07777);
  return text.data();
}

/// Returns the path quoted as an argument of a shell command.
std::string ShellArgument(const std::string& path) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+:@%,=";
  if (path.find_first_not_of(kPlain) == std::string::npos && !path.starts_with('-')) return path;
  std::string quoted = path.starts_with('-') ? "-- '" : "'";
  for (const char c : path) quoted += c == '\'' ? std::string{"'\\''"} : std::string{c};
  return quoted + "'";
}

std::string Remedy(mode_t mode, const std::string& change, const std::string& path) {
  return " (mode " + OctalMode(mode) + "); run `chmod " + change + " " + ShellArgument(path) + "`";
}

std::optional<mode_t> ModeOf(const std::string& path) {
  struct stat about {};
  if (::stat(path.c_str(), &about) != 0) return std::nullopt;
  return about.st_mode;
}

void AddWarning(ReadContext& context, const CheckedFile& file,
                const std::optional<std::string>& message) {
  if (message) context.Add(Problem::Severity::kWarning, file.at, file.where, *message);
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

std::string FolderOfFile(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
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
    if (c == '\\' || kPatternCharacters.contains(c)) pattern += '\\';
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

std::optional<std::string> FilePermissionWarning(const std::string& path, mode_t mode,
                                                 Secrecy secrecy) {
  const bool readable = secrecy != Secrecy::kPublic && (mode & S_IROTH) != 0;
  const bool writable = (mode & S_IWOTH) != 0;
  if (readable) {
    return "the file " + Backticked(path) +
           " has a secret, and every user of this machine can read " +
           (writable ? "and change it" + Remedy(mode, "o-rw", path)
                     : "it" + Remedy(mode, "o-r", path));
  }
  if (!writable) return std::nullopt;
  return "every user of this machine can change the file " + Backticked(path) +
         Remedy(mode, "o-w", path);
}

std::optional<std::string> FolderPermissionWarning(const std::string& path, mode_t mode) {
  if ((mode & S_IWOTH) == 0 || (mode & S_ISVTX) != 0) return std::nullopt;
  return "every user of this machine can replace files of the configuration in the folder " +
         Backticked(path) + Remedy(mode, "o-w", path);
}

void WarnAboutPermissions(const std::vector<CheckedFile>& files, ReadContext& context) {
  // A file with both a certificate and its key is listed twice; it is checked as a secret.
  std::map<std::string, CheckedFile> checked;
  for (const CheckedFile& file : files) {
    const auto [found, fresh] = checked.try_emplace(file.path, file);
    if (!fresh && found->second.secrecy == Secrecy::kPublic) found->second = file;
  }
  std::set<std::string> folders;
  for (const auto& [path, file] : checked) {
    if (const auto mode = ModeOf(path)) {
      AddWarning(context, file, FilePermissionWarning(path, *mode, file.secrecy));
    }
    const std::string folder = FolderOfFile(path);
    if (!folders.insert(folder).second) continue;
    if (const auto mode = ModeOf(folder)) {
      AddWarning(context, file, FolderPermissionWarning(folder, *mode));
    }
  }
}

}  // namespace tidegate
