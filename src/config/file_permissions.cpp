// SPDX-License-Identifier: Apache-2.0
#include "config/file_permissions.hpp"

#include <sys/stat.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <map>
#include <set>

#include "base/message_text.hpp"
#include "config/value.hpp"

namespace tidegate {
namespace {

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

std::string FolderOfFile(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
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
