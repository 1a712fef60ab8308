// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/problem.hpp"

namespace tidegate {

class ReadContext;

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
/// Returns the warning about a folder with permissions `mode`; nothing if they are safe. A sticky
/// folder such as /tmp is safe.
[[nodiscard]] std::optional<std::string> FolderPermissionWarning(const std::string& path,
                                                                 mode_t mode);

/// Warns about secrets that every user can read, and about files and folders that every user can
/// change: once for each file and folder.
void WarnAboutPermissions(const std::vector<CheckedFile>& files, ReadContext& context);

}  // namespace tidegate
