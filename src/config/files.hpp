// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/problem.hpp"

// The files of a configuration: their content, changes of it, and their permissions.

namespace tidegate {

class ReadContext;

/// A hash of a file's content (XXH3, 128 bits), to recognise changes. It is never stored or sent.
struct ContentDigest {
  std::uint64_t low = 0;
  std::uint64_t high = 0;

  /// True for an empty file, and for one that could not be read.
  [[nodiscard]] bool none() const noexcept { return low == 0 && high == 0; }
  friend bool operator==(const ContentDigest&, const ContentDigest&) = default;
};

/// Returns the content of a file. A file longer than `max_bytes` is cut to one byte more than that.
/// The error says why the file cannot be read.
[[nodiscard]] std::expected<std::string, std::string> ReadFileUpTo(const std::string& path,
                                                                   std::size_t max_bytes);

/// Returns the folder of a file; `.` for a path that names none.
[[nodiscard]] std::string FolderOfFile(const std::string& path);

[[nodiscard]] ContentDigest DigestOf(std::string_view content) noexcept;
/// Returns the digest of a regular file's content, and none() for other files: a pipe would block.
[[nodiscard]] ContentDigest DigestOfFile(const std::string& path);

/// The digest of a list of names; never none().
[[nodiscard]] ContentDigest DigestOfNames(const std::vector<std::string>& names);

/// A file with the digest of its content, or a pattern with the digest of the matching names.
struct WatchedFile {
  std::string path = {};
  ContentDigest content = {};
  bool is_pattern = false;
  friend bool operator==(const WatchedFile&, const WatchedFile&) = default;
};

/// Returns the digest that the file or pattern has now.
[[nodiscard]] ContentDigest CurrentDigest(const WatchedFile& file);

/// Returns true if `path` is a pattern: if it has one of the characters `*`, `?` and `[`.
[[nodiscard]] bool IsFilePattern(std::string_view path) noexcept;
/// Returns `path` as a pattern that only `path` itself matches.
[[nodiscard]] std::string EscapedFilePattern(std::string_view path);

/// Returns the files that match a shell pattern, such as `conf/rules/*.yaml`, sorted bytewise,
/// without folders and names that begin with a dot. The error says which folder cannot be read.
[[nodiscard]] std::expected<std::vector<std::string>, std::string> FilesMatching(
    const std::string& pattern);

/// The sensitivity of a file that belongs to a configuration.
enum class Secrecy : std::uint8_t {
  kPublic,  ///< For example a certificate: others may read it, but not change it.
  kSecret,  ///< For example a private key.
  /// A value that is a secret if it has a file of its own. If it is written in the configuration,
  /// its reader decides whether to call ConfigValue::NoteInlineSecret.
  kSecretInFile,
};

/// A file whose permissions are checked, and the place that a warning about it names.
struct CheckedFile {
  std::string path;
  Secrecy secrecy = Secrecy::kPublic;
  Position at = {};
  std::string where = {};
};

/// Returns the warning about a file with these permissions; nothing if they are safe.
[[nodiscard]] std::optional<std::string> FilePermissionWarning(const std::string& path, mode_t mode,
                                                               Secrecy secrecy);
/// As FilePermissionWarning, for a folder. A sticky folder such as /tmp is safe.
[[nodiscard]] std::optional<std::string> FolderPermissionWarning(const std::string& path,
                                                                 mode_t mode);

/// Warns about secrets that every user can read and files and folders that every user can change.
void WarnAboutPermissions(const std::vector<CheckedFile>& files, ReadContext& context);

}  // namespace tidegate
