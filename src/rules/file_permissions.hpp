// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rules/problem.hpp"

namespace tidegate {

class ReadContext;

/// The sensitivity of a file that belongs to a configuration.
enum class Secrecy : std::uint8_t {
  kPublic,  ///< For example a certificate: others may read it, but not change it.
  kSecret,  ///< For example a private key.
  /// A secret if it is a file of its own, because why else would it be one; the reader of the value
  /// calls ConfigValue::NoteInlineSecret if the text in the configuration has a secret.
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
/// The same for the folder of a file. Folders in which users can only replace their own files, as
/// /tmp, are safe.
[[nodiscard]] std::optional<std::string> FolderPermissionWarning(const std::string& path,
                                                                 mode_t mode);

/// Warns about files that users other than the owner and the group can read although they hold
/// secrets, and about files and their folders that such users can change. One warning per file and
/// per folder.
void WarnAboutPermissions(const std::vector<CheckedFile>& files, ReadContext& context);

}  // namespace tidegate
